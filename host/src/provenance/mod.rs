//! Where a component comes from: keys, detached signatures, whom the user trusts, and the form in which it travels.
//!
//! Keys and signatures are Ed25519 in the files of OpenBSD's signify, so that its tools and ours understand each other. A
//! signature is over the component's bytes themselves. Nothing here reads settings or the store.

mod file;
mod key;
mod layout;
mod signature;
mod trust;

pub use key::{KeyId, PublicKey, SecretKey};
pub use layout::{Exported, Imported, component_of, layout};
pub use signature::Signature;
pub use trust::{Trust, Untrusted};

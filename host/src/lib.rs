//! The library behind `runwarden`: it owns the state of long-running work.
//!
//! It never prints, reads no environment and no home directory: everything it needs is in its configuration.
//! Dependencies point one way: verbs → policy, process, store, notify → model; notify starts
//! programs and opens files through process.

pub mod model;
pub mod notify;
pub mod policy;
pub mod process;
pub mod provenance;
pub mod store;
pub mod verbs;

mod bundled;
mod clock;
pub mod crash;
mod error;
mod host;
mod wake;
mod work;

pub use clock::Clock;
pub use error::{Error, Use};
pub use host::{Config, Host};
pub use wake::{POLL, Wake, Watch, Watching};
pub use work::{
    Contain, GRACE_DEFAULT, LOG_LIMIT_DEFAULT_BYTES, LOG_LIMIT_MIN_BYTES, QueueTerms, StopBy, Variable, Work,
};

//! Components: the only module that knows wasmtime.
//!
//! A policy or handler is a component that can be wrong, slow, hostile or broken. Nothing here lets it do more than
//! refuse or fail its own call: one constructor makes every store with every limit, each call gets a fresh store, what a
//! component answers is checked like input from a stranger, and nothing it answers is used unless it was declared when
//! it was installed. If the process dies in a call, nothing was written: components run outside transactions.
//!
//! What a component says comes through the adapter of the WIT line it speaks ([`line`], one directory for each), in the
//! host's own types; one judge serves all lines.
//!
//! Deciding by data needs no component at all: descriptors are stored as data, and a command that asks no guard, verdict
//! or handler makes no engine ([`engines_made`] counts).

mod answers;
mod beside;
mod cache;
mod calls;
mod code;
mod engine;
mod fault;
mod inspect;
mod install;
mod instance;
mod limits;
mod line;
mod plan;
mod ready;
mod registry;
pub mod table;
#[cfg(test)]
mod tests;
mod text;
mod unjudged;
mod wit_0_1;

pub use crate::model::sha256_hex;
pub use calls::{GuardRequest, HealthRequest, Judged, MapRequest, Surroundings, VerdictRequest};
pub use code::{Code, compile, compile_here};
pub use engine::engines_made;
pub(crate) use fault::COMPILATION;
pub use fault::{InstallError, PolicyFault};
pub(crate) use inspect::exported;
pub use inspect::{Export, Inspected, inspect};
pub use install::{Candidate, findings, prepare, prepare_on_trial};
pub(crate) use limits::COMPILE_THREADS;
pub use limits::{CompileLimits, Limits};
pub use ready::{Ready, Trial, Usage};
pub(crate) use registry::version_key;
pub use registry::{Policies, Selected, select};

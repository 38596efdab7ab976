//! The settings of notices: which handlers are told of an end, and where their destinations lead.
//!
//! Text becomes entries ([`read`]), the entries of all layers one decision per handler name ([`resolve`]), and what was
//! decided is bound to an installed component ([`bind`]). All of it is pure but for reading the two files ([`Files`]).
//! An entry says `unset` (look further down), `disabled` (stop, off) or `configured`. What is malformed is told with a
//! stable code, counts as disabled, and never falls through to a lower layer. No string reaches a shell ([`split`]),
//! and a secret is only ever named.

mod bind;
mod command;
mod destination;
mod entry;
mod files;
mod layer;
mod policies;
mod problem;
mod resolve;
mod table;
#[cfg(test)]
mod tests;

pub use bind::{Component, bind};
pub use command::split;
pub use entry::{Configured, Entry, State, entry};
pub use files::{Files, PROJECT_DIRECTORY, SETTINGS_FILE, read_global, read_project};
pub use layer::{LayerSettings, document, read};
pub use problem::Problem;
pub use resolve::{Asked, Chosen, Decided, NotNamed, Resolved, Spec, resolve};

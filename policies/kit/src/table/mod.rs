//! Constructors with which a descriptor reads like its table.

mod descriptor;
mod edge;
mod handler;
mod row;
mod rule;
mod status;

pub use descriptor::policy;
pub use edge::{edge, edges};
pub use handler::handler;
pub use row::{always, code, codes, exit_codes, field, migration, on_exit, on_signal, outcome, parameter, threshold};
pub use rule::{kill, retry};
pub use status::status;

pub(crate) use row::texts;

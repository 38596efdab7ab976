//! Trying a component before anything is put under it: a table of cases says what is to come, and each is put to the code
//! that would decide it for an entity. Nothing is written, and no store is needed.

mod bench;
mod cases;
mod exit;
mod expect;
mod health;
mod moves;
mod plan;
mod read;
mod row;

pub use bench::{Bench, Timed, bench};
pub use cases::{Case, CaseTable, Tried, try_cases};
pub use row::Problem;

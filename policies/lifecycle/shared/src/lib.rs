//! What the bundled policies have in common: the table of run, session and invocation, the codes of the `run.`
//! family, the execution rule, the verdicts, the kill codes, the two generations of leased work, and health.

pub mod codes;
pub mod health;
pub mod leased;
pub mod process;
pub mod running;

//! What every figure is measured and shown with.

mod log;
mod places;
mod rounds;
mod table;
mod usage;

pub use log::Written;
pub use places::{Home, library, program, sibling};
pub use rounds::{Sample, interleave, measured, median};
pub use table::{Row, Target, table};
pub use usage::{cpu_time, cpu_time_of_living};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Few rounds, small stores: whether it runs at all.
    Quick,
    /// What is written down.
    Full,
}

impl Effort {
    /// One of two sizes.
    pub const fn choose(self, quick: usize, full: usize) -> usize {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

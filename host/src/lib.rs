//! x

pub mod process;

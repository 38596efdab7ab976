//! Tests of the whole program: the binary is run as a user runs it, in a home of its own.

mod compiling;
mod crashes;
mod doctoring;
mod engines;
mod entities;
mod explaining;
mod harness;
mod inventory;
mod judging;
mod listing;
mod living;
mod policies;
mod reading;
mod readme;
mod runs;
mod stopping;
mod stops;
mod stores;
mod terminal;
mod tidy;
mod usage;
mod vectors;
mod waiting;

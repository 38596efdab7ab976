//! Tests of the whole program: the binary is run as a user runs it, in a home of its own.

mod crashes;
mod entities;
mod harness;
mod listing;
mod policies;
mod readme;
mod stops;
mod stores;
mod usage;
mod vectors;
mod waiting;

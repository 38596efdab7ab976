//! Tests of the whole program: the binary is run as a user runs it, in a home of its own.

mod crashes;
mod engines;
mod entities;
mod harness;
mod identities;
mod kill_stores;
mod kill_vectors;
mod killing;
mod listing;
mod living;
mod orphans;
mod policies;
mod reading;
mod readme;
mod reuse;
mod runs;
mod stopping;
mod stops;
mod stores;
mod terminal;
mod tidy;
mod unconfirmed;
mod usage;
mod vectors;
mod waiting;

//! Tests of the whole program: the binary is run as a user runs it, in a home of its own.

mod causes;
mod compiling;
mod containment;
mod crashes;
mod engines;
mod entities;
mod floods;
mod harness;
mod judging;
mod listing;
mod living;
mod nested;
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

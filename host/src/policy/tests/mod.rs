//! Components that behave, misbehave and are none, really compiled and called.

mod bundled;
mod cache;
mod calls;
mod determinism;
mod fake;
mod guests;
mod install;
mod limits;
mod shapes;
mod sources;

//! Components that behave, misbehave and are none, really compiled and called.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod bundled;
mod cache;
mod calls;
mod compiled;
mod corpus;
mod damage;
mod descriptors;
mod determinism;
mod fake;
mod golden;
mod guests;
mod handlers;
mod health;
mod install;
mod limits;
mod random;
mod shapes;
mod sources;

//! The library behind `runwarden`: it owns the state of long-running work.
//!
//! It never prints, reads no environment and no home directory: everything it needs is in its configuration.
//! Dependencies point one way: verbs → policy, process, store → model.

pub mod model;
pub mod store;
pub mod policy;

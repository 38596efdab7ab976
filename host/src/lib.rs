//! The library behind `runwarden`.
pub mod model;
pub mod policy;
pub mod process;
pub mod store;

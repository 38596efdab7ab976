//! Figures beside their floors, measured in the same run: rounds of ours and the floor's alternate, and what counts is
//! the ratio. `cargo run --release -p runwarden-benches` prints them; nothing here asserts a time.

pub mod figures;
pub mod floor;
pub mod harness;

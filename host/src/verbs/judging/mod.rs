//! Judging again and judging beside: what a candidate says of what was decided without it.
//!
//! `judge` asks one candidate about one thing, which happened (its record is asked) or happens now; `replay` asks about the
//! history of a kind, `shadow` about every write of a kind while it is made, `touched` looks at what is live. Nothing a candidate says is enforced.

mod judge;
mod replay;
mod shadow;
#[cfg(test)]
mod tests;
mod touched;

pub use replay::{Replayed, Replaying, Tried, replay};
pub use shadow::{ShadowReport, shadow_report, start_shadow, stop_shadow};
pub(super) use shadow::{judged, look_again, refused};
pub use touched::{Touched, touched};

//! The service: what a store needs done while nobody types, in one process and each part by itself.
//!
//! ```text
//! wake file ──▶ deliverer    due notices and owed plans, at once
//! finishing/ ─▶ finisher     ends, for the commands that wait there
//!               scheduler    schedules that are due
//!               keeper       queued work: delays, retries, leases that ran out
//!               worker       what is queued, when the service has slots
//!               reaper       what died half-way
//!               retention    what has been kept long enough
//!               upkeep       the store's log
//! ```
//!
//! Nothing needs it: every part does what a command does by hand, by the same code. A part that fails is told of once, and
//! tried again after a pause; the others go on. If we die at any instant nothing is lost: claims lapse and are tried
//! again, everything else looks before it acts.

mod once;
mod parts;
mod pulse;
mod service;

pub use once::{Pass, serve_once};
pub use parts::{Labour, serve};
pub use pulse::{Part, PartHealth};
pub use service::Service;

//! Schedules: kept, looked at, and fired.
//!
//! ```text
//! keep.rs   add, pause, resume, remove, look
//! fire.rs   what is due of all of them, now: one function for the service, for `serve --once` and for workers
//! submitted.rs  what a schedule starts, as it is stored
//! zone.rs   cadences in time zones of this machine
//! ```
//!
//! Each fire time is one commit: the entity that stands for it, the note that it does, and where the schedule stands then.
//! If we die between two of them, the next look goes on from there.

mod fire;
mod keep;
mod submitted;
#[cfg(test)]
mod tests;
mod zone;

pub use fire::{FiredNow, fire_due};
pub use keep::{NewSchedule, ScheduleView, add, look, looks, pause, remove, resume};
pub use submitted::{SCHEDULE_TAG, Submitted, Words};
pub use zone::{cron_cadence, interval_cadence, zone};

//! Schedules: work that is due again and again.
//!
//! ```text
//! next_fire_at ──▶ over? ──▶ due(): what is started now, what was missed ──▶ next_fire_at moves on
//! ```
//!
//! A fire time is *on time* when it is looked at within [`ON_TIME`] and none has come since; every other one that is over
//! was *missed*, and what becomes of those is the schedule's [`Missed`]. Each step of [`due`] is one commit that also
//! moves `next_fire_at`, so that a look that dies half-way is taken up where it was.

mod cron;
mod due;
#[cfg(test)]
mod tests;
mod timetable;

use serde::{Deserialize, Serialize};

pub use cron::{CronProblem, EXAMPLE, Expression};
pub use due::{CAUGHT_UP_MAX, Course, Firing, Lapse, ON_TIME, WAITING_MAX, course, due};
pub use timetable::{COUNTED, Passed, Timetable};

use super::{DurationMs, Timestamp};

/// The shortest interval of a schedule: whoever fires looks at a schedule once a second at most.
pub const EVERY_MIN: DurationMs = DurationMs::from_ms(1_000);

/// Work that is due again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// What users call it.
    pub name: String,
    /// When it fires.
    pub cadence: Cadence,
    /// What happens to a fire time while the work of an earlier one is not over.
    pub overlap: Overlap,
    /// What happens to fire times that nobody saw.
    pub missed: Missed,
    /// Nothing is fired.
    pub paused: bool,
    /// When it was made; intervals count from here.
    pub created_at: Timestamp,
    /// The next fire time that was not dealt with; none when there is no more.
    pub next_fire_at: Option<Timestamp>,
}

/// When a schedule fires, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cadence {
    /// By a cron expression, in a time zone of the tz database.
    Cron {
        /// The expression.
        expression: String,
        /// The zone's name.
        zone: String,
    },
    /// By an interval, counted from the schedule's creation.
    Every(DurationMs),
}

/// What happens to a fire time while the work of an earlier one is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is recorded as skipped.
    #[default]
    Skip,
    /// It waits until the earlier one has ended, however that ends.
    Queue,
    /// It is started beside it.
    Allow,
}

/// What happens to fire times that nobody saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// They are recorded as skipped, all of them as one.
    Skip,
    /// The newest is made up for, the others are recorded as skipped.
    #[default]
    One,
    /// Each is made up for, the newest [`CAUGHT_UP_MAX`] of them; what is older is recorded as skipped.
    All,
}

impl Overlap {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Skip, Self::Queue, Self::Allow];

    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Allow => "allow",
        }
    }

    /// Which of them a word is.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|overlap| overlap.word() == word)
    }
}

impl Missed {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Skip, Self::One, Self::All];

    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::One => "one",
            Self::All => "all",
        }
    }

    /// Which of them a word is.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|missed| missed.word() == word)
    }
}

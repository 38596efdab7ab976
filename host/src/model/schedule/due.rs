//! What is due of a schedule now.

use super::{Missed, Overlap, Passed, Schedule, Timetable};
use crate::model::{DurationMs, Timestamp};

/// How late a fire time is still on time. Whoever looks once a minute (`serve --once` from cron) is, with half a minute to
/// spare; a machine that slept was not.
pub const ON_TIME: DurationMs = DurationMs::from_ms(90_000);

/// How many missed fire times are made up for one by one: enough for four days of an hourly schedule, and no flood that
/// keeps the workers from what is due today.
pub const CAUGHT_UP_MAX: usize = 100;

/// One step of what is due: what is recorded for one fire time, in one commit that also moves the schedule on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// The fire time it stands for.
    pub nominal: Timestamp,
    /// Where the schedule stands after it; none when there is no more.
    pub next: Option<Timestamp>,
    /// Whether it is started, or what it tells of.
    pub lapse: Option<Lapse>,
}

/// Fire times that were missed and are not made up for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lapse {
    /// The first that was counted ([`super::COUNTED`]).
    pub first: Timestamp,
    /// The last.
    pub last: Timestamp,
    /// How many.
    pub count: u64,
}

/// How many of a schedule wait for each other at most: each that waits names every one before it.
pub const WAITING_MAX: usize = 100;

/// What is done about a fire time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Its work may be taken up.
    Start,
    /// Its work waits for those before it.
    Wait,
    /// It is skipped: one before it is at work, or too many wait.
    Overlap,
    /// It is skipped, with those before it that were missed.
    Lapse,
}

/// What is done about a fire time while so many before it have not ended.
pub fn course(overlap: Overlap, firing: &Firing, running: usize) -> Course {
    match (&firing.lapse, overlap, running) {
        (Some(_), _, _) => Course::Lapse,
        (None, Overlap::Allow, _) | (None, Overlap::Skip | Overlap::Queue, 0) => Course::Start,
        (None, Overlap::Skip, _) | (None, Overlap::Queue, WAITING_MAX..) => Course::Overlap,
        (None, Overlap::Queue, _) => Course::Wait,
    }
}

/// What is due of a schedule, in order: at most one lapse, then what is started. Empty when nothing is.
pub fn due(schedule: &Schedule, timetable: &Timetable, now: Timestamp) -> Vec<Firing> {
    let open = schedule.next_fire_at.filter(|next| !schedule.paused && *next <= now);
    let Some(first) = open else {
        return Vec::new();
    };
    // One more than is ever started, to know the last that is not.
    let passed = timetable.passed(first, now, CAUGHT_UP_MAX + 1);
    let Some(last) = passed.newest.last() else {
        return Vec::new();
    };
    let is_on_time = now.since(*last) <= ON_TIME;
    let started = match schedule.missed {
        Missed::Skip => usize::from(is_on_time),
        Missed::One => 1,
        Missed::All => passed.newest.len().min(CAUGHT_UP_MAX),
    };
    steps(&passed, started)
}

/// The steps when the newest `started` fire times are started.
fn steps(passed: &Passed, started: usize) -> Vec<Firing> {
    let (left, started) = passed.newest.split_at(passed.newest.len() - started);
    let after = |place: usize| started.get(place).copied().or(passed.upcoming);
    let lapse = left.last().map(|last| Firing {
        nominal: *last,
        next: after(0),
        lapse: Some(Lapse {
            first: passed.first,
            last: *last,
            count: passed.count - started.len() as u64,
        }),
    });
    let starts = started.iter().enumerate().map(|(place, nominal)| Firing {
        nominal: *nominal,
        next: after(place + 1),
        lapse: None,
    });
    lapse.into_iter().chain(starts).collect()
}

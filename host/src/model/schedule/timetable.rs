//! When a schedule fires: the moments, whatever happens to the clocks of its zone.

use jiff::Timestamp as Instant;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::cron::Expression;
use crate::model::{DurationMs, Timestamp};

/// How far back single fire times of a cron expression are counted: the work of a look is bounded, whatever a clock says.
pub const COUNTED: DurationMs = DurationMs::from_ms(366 * 86_400_000);

/// When a schedule fires, ready to be asked.
///
/// An interval is an even grid of elapsed time from the schedule's creation. A cron expression is read on the wall clock
/// of its zone:
///
/// - Times of the day (hours and minutes are numbers) happen once a day each. One that the clocks jump over happens at the
///   jump, and of one that they show twice the first counts.
/// - Everything else (`*/15 * * * *`) is a rhythm and goes on as the wall clock shows: what is jumped over is not made up,
///   and in an hour that is shown twice it goes on.
#[derive(Clone, Debug)]
pub enum Timetable {
    /// By a cron expression in a zone.
    Cron(Box<Expression>, TimeZone),
    /// By an interval: a positive length of time, counted from a moment.
    Every(DurationMs, Timestamp),
}

/// Fire times that are over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The first that was counted.
    pub first: Timestamp,
    /// How many there are, the first and the last among them.
    pub count: u64,
    /// The newest of them, oldest first; as many as were asked for, if there are as many.
    pub newest: Vec<Timestamp>,
    /// The first that is not over yet.
    pub upcoming: Option<Timestamp>,
}

impl Timetable {
    /// The first fire time after a moment; none when there is no more.
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(every, start) => {
                let steps = moment.as_ms().saturating_sub(start.as_ms()).div_euclid(every.as_ms());
                on_grid(*start, *every, steps.max(0).checked_add(1)?)
            }
            Self::Cron(expression, zone) => {
                let after = Instant::from_millisecond(moment.as_ms()).ok()?;
                let found = if expression.is_time_of_day() {
                    next_time_of_day(expression, zone, after)
                } else {
                    next_of_rhythm(expression, zone, after)
                };
                found.map(|found| Timestamp::from_ms(found.as_millisecond()))
            }
        }
    }

    /// The fire times from `first`, which is one, to now, which is not before it; the newest `kept` of them one by one.
    pub fn passed(&self, first: Timestamp, now: Timestamp, kept: usize) -> Passed {
        match self {
            Self::Every(every, start) => {
                let step = |moment: Timestamp| moment.as_ms().saturating_sub(start.as_ms()).div_euclid(every.as_ms());
                let (from, to) = (step(first), step(now));
                let count = u64::try_from(to - from).unwrap_or_default().saturating_add(1);
                let oldest = from.max(to.saturating_sub(i64::try_from(kept).unwrap_or(i64::MAX) - 1));
                let newest = (oldest..=to).filter_map(|step| on_grid(*start, *every, step));
                Passed {
                    first,
                    count,
                    newest: newest.collect(),
                    upcoming: self.next_after(now),
                }
            }
            Self::Cron(..) => self.walked(first, now, kept),
        }
    }

    fn walked(&self, first: Timestamp, now: Timestamp, kept: usize) -> Passed {
        let horizon = Timestamp::from_ms(now.as_ms().saturating_sub(COUNTED.as_ms()));
        let begin = if first < horizon {
            self.next_after(horizon).filter(|begin| *begin <= now).unwrap_or(first)
        } else {
            first
        };
        let mut passed = Passed {
            first: begin,
            count: 0,
            newest: Vec::new(),
            upcoming: Some(begin),
        };
        let mut newest = std::collections::VecDeque::with_capacity(kept + 1);
        while let Some(moment) = passed.upcoming.filter(|moment| *moment <= now) {
            passed.count += 1;
            newest.push_back(moment);
            if newest.len() > kept {
                newest.pop_front();
            }
            passed.upcoming = self.next_after(moment);
        }
        passed.newest = newest.into();
        passed
    }
}

fn on_grid(start: Timestamp, every: DurationMs, steps: i64) -> Option<Timestamp> {
    let length = every.as_ms().checked_mul(steps)?;
    start.as_ms().checked_add(length).map(Timestamp::from_ms)
}

/// The first moment after `after` that a time of the day stands for.
fn next_time_of_day(expression: &Expression, zone: &TimeZone, after: Instant) -> Option<Instant> {
    let mut shown = zone.to_datetime(after);
    loop {
        shown = expression.following(shown)?;
        let moment = moment_of(zone, shown)?;
        // Clocks that were put back show again what has been.
        if moment > after {
            return Some(moment);
        }
    }
}

/// The one moment a time on the wall clock stands for: the first that shows it, or the jump over it.
fn moment_of(zone: &TimeZone, shown: DateTime) -> Option<Instant> {
    match zone.to_ambiguous_timestamp(shown).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(shown).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(shown).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            let before_the_jump = after.to_timestamp(shown).ok()?;
            zone.following(before_the_jump).next().map(|jump| jump.timestamp())
        }
    }
}

/// The first moment after `after` at which the wall clock shows a time of a rhythm.
fn next_of_rhythm(expression: &Expression, zone: &TimeZone, after: Instant) -> Option<Instant> {
    let mut offset = zone.to_offset(after);
    let mut shown = expression.following(offset.to_datetime(after))?;
    let mut from = after;
    loop {
        let moment = offset.to_timestamp(shown).ok()?;
        let change = zone.following(from).next().map(|change| change.timestamp());
        match change.filter(|change| *change <= moment) {
            None => return Some(moment),
            // The clocks are changed before it comes to that: from there on they show something else.
            Some(change) => {
                from = change;
                offset = zone.to_offset(change);
                shown = expression.from(offset.to_datetime(change))?;
            }
        }
    }
}

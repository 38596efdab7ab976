//! Schedules as users handle them.

use serde_json::{Value, json};

use super::submitted::Submitted;
use super::zone::{timetable, upcoming};
use crate::error::Error;
use crate::host::Host;
use crate::model::schedule::{Cadence, Missed, Overlap, Schedule};
use crate::model::{Actor, AdminEvent, Invalid, Timestamp, validate_id};
use crate::store::{KeptSchedule, Occurrence, Steering};

/// A schedule that is to be added.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// What users call it: as an id.
    pub name: String,
    /// When it fires.
    pub cadence: Cadence,
    /// What happens to a fire time while the work of an earlier one is not over.
    pub overlap: Overlap,
    /// What happens to fire times that nobody saw.
    pub missed: Missed,
    /// What it starts.
    pub submitted: Submitted,
}

/// A schedule, with what is to come and what has been.
#[derive(Clone, Debug)]
pub struct ScheduleView {
    /// The schedule.
    pub kept: KeptSchedule,
    /// What it starts.
    pub submitted: Submitted,
    /// Its next fire times, from now on; none when it is paused.
    pub upcoming: Vec<Timestamp>,
    /// Why they cannot be told: its zone is gone from this machine.
    pub problem: Option<String>,
    /// What became of its last fire times, newest first.
    pub occurrences: Vec<Occurrence>,
}

/// Adds a schedule; none when there is one of that name. It fires from now on.
///
/// # Errors
/// Something is wrong with it, or the store failed: nothing was written.
pub fn add(host: &Host, new: NewSchedule, actor: &Actor) -> Result<Option<KeptSchedule>, Error> {
    validate_id(&new.name).map_err(|error| Invalid::new("name", error.to_string(), None))?;
    new.submitted.check(host, &new.name)?;
    let created_at = host.now();
    let kept = KeptSchedule {
        schedule: Schedule {
            next_fire_at: timetable(&new.cadence, created_at)?.next_after(created_at),
            name: new.name,
            cadence: new.cadence,
            overlap: new.overlap,
            missed: new.missed,
            paused: false,
            created_at,
        },
        submission: new.submitted.stored(),
        actor: actor.to_string(),
    };
    let details = json!({"cadence": kept.schedule.cadence, "submission": kept.submission});
    let event = audit(host, "schedule_added", &kept.schedule.name, actor, details);
    let is_new = host.store().add_schedule(&kept, &event)?;
    host.wake();
    Ok(is_new.then_some(kept))
}

/// Pauses a schedule: nothing is fired. False when it was paused before.
///
/// # Errors
/// There is none of that name, or the store failed.
pub fn pause(host: &Host, name: &str, actor: &Actor) -> Result<bool, Error> {
    found(host, name)?;
    let event = audit(host, "schedule_paused", name, actor, Value::Null);
    Ok(host.store().steer_schedule(name, Steering::Pause, &event)?)
}

/// Lets a schedule go on with the first fire time from now on; nothing of the pause is made up. False when it was not
/// paused.
///
/// # Errors
/// There is none of that name, its zone is not known any more, or the store failed.
pub fn resume(host: &Host, name: &str, actor: &Actor) -> Result<bool, Error> {
    let schedule = found(host, name)?.schedule;
    let next = timetable(&schedule.cadence, schedule.created_at)?.next_after(host.now());
    let event = audit(host, "schedule_resumed", name, actor, Value::Null);
    let resumed = host.store().steer_schedule(name, Steering::Resume(next), &event)?;
    host.wake();
    Ok(resumed)
}

/// Takes a schedule away; what it started stays.
///
/// # Errors
/// There is none of that name, or the store failed.
pub fn remove(host: &Host, name: &str, actor: &Actor) -> Result<(), Error> {
    let event = audit(host, "schedule_removed", name, actor, Value::Null);
    if host.store().drop_schedule(name, &event)? {
        return Ok(());
    }
    Err(host.not_found(name))
}

/// A schedule with so many of its next fire times and of its last ones.
///
/// # Errors
/// There is none of that name, or the store cannot be read.
pub fn look(host: &Host, name: &str, (next, last): (usize, usize)) -> Result<ScheduleView, Error> {
    viewed(host, found(host, name)?, (next, last))
}

/// Every schedule, in order of names, each with its next fire time and its last one.
///
/// # Errors
/// The store cannot be read.
pub fn looks(host: &Host) -> Result<Vec<ScheduleView>, Error> {
    let kept = host.store().schedules(None)?;
    kept.into_iter().map(|kept| viewed(host, kept, (1, 1))).collect()
}

fn viewed(host: &Host, kept: KeptSchedule, (next, last): (usize, usize)) -> Result<ScheduleView, Error> {
    let schedule = &kept.schedule;
    let (upcoming, problem) = match (schedule.paused, upcoming(schedule, host.now(), next)) {
        (true, Ok(_)) => (Vec::new(), None),
        (false, Ok(upcoming)) => (upcoming, None),
        (_, Err(invalid)) => (Vec::new(), Some(invalid.message)),
    };
    Ok(ScheduleView {
        occurrences: host.store().occurrences(&schedule.name, last)?,
        submitted: Submitted::read(&kept)?,
        kept,
        upcoming,
        problem,
    })
}

fn found(host: &Host, name: &str) -> Result<KeptSchedule, Error> {
    let found = host.store().schedules(Some(name))?.into_iter().next();
    found.ok_or_else(|| host.not_found(name))
}

fn audit(host: &Host, action: &str, name: &str, actor: &Actor, details: Value) -> AdminEvent {
    AdminEvent {
        id: 0,
        at: host.now(),
        action: action.to_owned(),
        target: Some(format!("schedule/{name}")),
        actor: actor.to_string(),
        details,
    }
}

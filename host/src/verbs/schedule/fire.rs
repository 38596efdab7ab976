//! What is due of all schedules, now.

use serde_json::{Value, json};

use super::submitted::Submitted;
use super::zone::timetable;
use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::schedule::{Course, Firing, ON_TIME, Overlap, WAITING_MAX, course, due};
use crate::model::{Entity, Invalid, Reference, Timestamp};
use crate::store::{Created, Fire, Fired, KeptSchedule};
use crate::verbs::create::{DRAWS_MAX, decided, policy_for};
use crate::verbs::lease::{brought, checked, keep_row};

/// What was fired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FiredNow {
    /// Entities that a worker may take up, now or when what they wait for has ended.
    pub submitted: usize,
    /// Entities that tell of fire times that are skipped.
    pub skipped: usize,
    /// Schedules that could not be fired, and why: they stay where they are.
    pub problems: Vec<String>,
}

/// Fires what is due of every schedule. Repeatable by anybody at any time, beside others that do the same; a schedule that
/// fails keeps none of the others back.
///
/// # Errors
/// The store failed; what was fired before is done.
pub fn fire_due(host: &Host) -> Result<FiredNow, Error> {
    let mut fired = FiredNow::default();
    let now = host.now();
    for kept in host.store().due_schedules(now)? {
        match fire_schedule(host, &kept, now, &mut fired) {
            Ok(()) => {}
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => {
                let name = &kept.schedule.name;
                fired.problems.push(format!("schedule {name} cannot be fired: {error}"));
            }
        }
    }
    Ok(fired)
}

fn fire_schedule(host: &Host, kept: &KeptSchedule, now: Timestamp, so_far: &mut FiredNow) -> Result<(), Error> {
    let schedule = &kept.schedule;
    let step = Step {
        host,
        kept,
        submitted: &Submitted::read(kept)?,
        now,
    };
    let timetable = timetable(&schedule.cadence, schedule.created_at)?;
    let mut stands = schedule.next_fire_at;
    for firing in due(schedule, &timetable, now) {
        let Some(expected) = stands else { break };
        match step.fire(expected, &firing)? {
            Fired::Made(entity) if entity.terminal => so_far.skipped += 1,
            Fired::Made(_) => so_far.submitted += 1,
            Fired::AlreadyFired => {}
            // Somebody else is at it, or it was paused meanwhile.
            Fired::Changed => break,
            Fired::Refused(refused) => return Err(impossible(&refused).into()),
        }
        stands = firing.next;
    }
    Ok(())
}

/// A schedule at work.
#[derive(Clone, Copy)]
struct Step<'a> {
    host: &'a Host,
    kept: &'a KeptSchedule,
    submitted: &'a Submitted,
    now: Timestamp,
}

impl Step<'_> {
    /// Deals with one fire time of the schedule, which stands where it is expected.
    fn fire(&self, expected: Timestamp, firing: &Firing) -> Result<Fired, Error> {
        let schedule = &self.kept.schedule;
        let mut running = match (&firing.lapse, schedule.overlap) {
            (None, Overlap::Skip | Overlap::Queue) => {
                let store = self.host.store();
                store.running_occurrences(&schedule.name, WAITING_MAX)?
            }
            (Some(_), _) | (None, Overlap::Allow) => Vec::new(),
        };
        let mut standing = match course(schedule.overlap, firing, running.len()) {
            Course::Start => Standing::Submitted,
            Course::Wait => Standing::Waits,
            Course::Overlap => Standing::Overlaps,
            Course::Lapse => Standing::Lapsed,
        };
        for _ in 0..DRAWS_MAX {
            match self.make(expected, firing, (&standing, &running))? {
                Fired::Refused(Created::IdTaken) => {}
                Fired::Refused(Created::ParentMissing(parent) | Created::ParentClosed(parent))
                    if !matches!(standing, Standing::Parentless(_)) =>
                {
                    standing = Standing::Parentless(parent);
                }
                Fired::Refused(Created::UniqueKeyHeld(holder)) if standing.has_work() => {
                    standing = Standing::Overlaps;
                    running = vec![*holder];
                }
                fired => return Ok(fired),
            }
        }
        Ok(Fired::Refused(Created::IdTaken))
    }

    /// Makes the entity of a fire time, as what it was decided to be.
    fn make(
        &self,
        expected: Timestamp,
        firing: &Firing,
        (standing, running): (&Standing, &[Entity]),
    ) -> Result<Fired, Error> {
        let (host, schedule) = (self.host, &self.kept.schedule);
        let id = host.draw_id()?;
        let selected = policy_for(host, &self.submitted.kind, self.submitted.policy.as_deref())?;
        let submission = self.submitted.submission(&schedule.name, &id);
        let evidence = self.evidence(firing, (standing, running));
        let rule = checked(host, &selected, &submission)?;
        let create = self.submitted.made(host, (&submission, rule), standing, evidence);
        let waits = matches!(standing, Standing::Waits);
        let behind = running.iter().filter(|_| waits);
        let fire = Fire {
            name: schedule.name.clone(),
            expected,
            nominal: firing.nominal,
            next: firing.next,
            new: decided(host, &create, &selected)?,
            work: standing.has_work().then(|| brought(&submission)),
            behind: behind.map(|entity| entity.reference.clone()).collect(),
        };
        crash::point("schedule.decided");
        let fired = host.store().fire(&fire)?;
        crash::point("schedule.fired");
        if let Fired::Made(entity) = &fired {
            host.wake();
            host.remember_planned(&fire.new.planned);
            if waits {
                // If we die before it, whoever keeps the queue does it.
                keep_row(host, entity.as_ref().clone(), None)?;
            }
        }
        Ok(fired)
    }

    /// What its first history row says of why.
    fn evidence(&self, firing: &Firing, (standing, running): (&Standing, &[Entity])) -> Value {
        let schedule = &self.kept.schedule;
        let references = || {
            running
                .iter()
                .map(|entity| entity.reference.to_string())
                .collect::<Vec<_>>()
        };
        let mut evidence = json!({
            "schedule": schedule.name,
            "scheduled_at": firing.nominal.to_rfc3339(),
            "late_ms": self.now.since(firing.nominal),
        });
        match standing {
            Standing::Submitted | Standing::Lapsed => {}
            Standing::Waits => evidence["waits_for"] = json!(references()),
            Standing::Overlaps => {
                evidence["overlap"] = json!(schedule.overlap);
                evidence["running"] = json!(references());
            }
            Standing::Parentless(parent) => evidence["parent"] = json!(parent.to_string()),
        }
        if let Some(lapse) = &firing.lapse {
            evidence["missed"] = json!(schedule.missed);
            evidence["count"] = json!(lapse.count);
            evidence["first"] = json!(lapse.first.to_rfc3339());
            evidence["last"] = json!(lapse.last.to_rfc3339());
            evidence["on_time_ms"] = json!(ON_TIME);
        }
        evidence
    }
}

/// As what the entity of a fire time is made.
pub(super) enum Standing {
    /// As work for a worker.
    Submitted,
    /// As work for a worker, once those before it have ended.
    Waits,
    /// As a record that it would have overlapped.
    Overlaps,
    /// As a record of what was missed.
    Lapsed,
    /// As a record that what it is to be linked below is gone or has ended.
    Parentless(Reference),
}

impl Standing {
    /// Whether a worker is to do it.
    const fn has_work(&self) -> bool {
        matches!(self, Self::Submitted | Self::Waits)
    }
}

fn impossible(refused: &Created) -> Invalid {
    let message = match refused {
        Created::ParentMissing(parent) => format!("{parent} is not there"),
        Created::ParentClosed(parent) => format!("{parent} has ended or is being stopped"),
        Created::AwaitedMissing(awaited) => format!("{awaited}, which it is to wait for, is gone"),
        Created::IdTaken => "no free id was drawn".to_owned(),
        Created::New { .. }
        | Created::KeyUsed { .. }
        | Created::UniqueKeyHeld(_)
        | Created::LeaseLost
        | Created::SucceededBy(_) => "it was made as what it is not".to_owned(),
    };
    Invalid::new("schedule", message, None)
}

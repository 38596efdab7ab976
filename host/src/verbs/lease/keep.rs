//! Keeping the queue: what time, other work and silent workers make due, for every row, each by itself.
//!
//! The one coordinator of leased work: a worker, the service, `doctor --fix` and whoever submits call this and nothing else.
//! Two at once are harmless: each write repeats the version it was decided on.

use serde_json::{Value, json};

use super::judge::{Looked, has_left_its_end, look};
use super::terms::Row;
use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::lease::{Awaited, Due, Fencing, Next, Now, Seen, doubts, due, fence, lineage_after, rule};
use crate::model::{
    Actor, Create, DurationMs, Entity, Lifecycle, NewEntity, Queueing, Stage, Timestamp, Transition, create,
};
use crate::store::{StagedQuery, Successor};
use crate::verbs::repair::Act;
use crate::verbs::side_by_side::side_by_side;
use crate::verbs::transition::{Beside, TransitionOutcome, write};

/// Rows of a page.
const PAGE: usize = 256;

/// How a queue is kept.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// From the lapse to the fence, in place of what the policies say.
    pub grace: Option<DurationMs>,
    /// Whether it is done or only told.
    pub act: Act,
}

/// What was done for a row, or is left.
#[derive(Debug)]
pub struct Kept {
    /// The row.
    pub reference: String,
    /// Its status before.
    pub previous_status: String,
    /// What was decided, in a word: the stage's rule that was carried out.
    pub decision: &'static str,
    /// In words.
    pub words: String,
    /// The attempt that follows, when one was made.
    pub successor: Option<String>,
    /// It stays doubted, and somebody has to look.
    pub needs_somebody: bool,
    /// Why it could not be done.
    pub failure: Option<Error>,
}

impl Kept {
    fn of(row: &Entity, decision: &'static str, words: impl Into<String>) -> Self {
        Self {
            reference: row.reference.to_string(),
            previous_status: row.status.clone(),
            decision,
            words: words.into(),
            successor: None,
            needs_somebody: false,
            failure: None,
        }
    }

    /// The JSON document.
    pub fn json(&self) -> Value {
        json!({
            "ref": self.reference,
            "previous_status": self.previous_status,
            "decision": self.decision,
            "message": self.words,
            "successor": self.successor,
            "needs_somebody": self.needs_somebody,
            "failure": self.failure.as_ref().map(ToString::to_string),
        })
    }
}

/// Does what is due for every row. What fails for one row is told of it; the others are looked at.
///
/// # Errors
/// The store cannot be read.
pub fn keep(host: &Host, keeping: Keeping) -> Result<Vec<Kept>, Error> {
    let mut all = Vec::new();
    for stage in [Stage::Active, Stage::Doubted, Stage::Later] {
        keep_stage(host, stage, keeping, &mut all)?;
    }
    keep_waiting(host, keeping, &mut all)?;
    Ok(all)
}

/// Does what time and other work make due, which never takes long: no process is looked at, and none is stopped.
///
/// # Errors
/// The store cannot be read.
pub(super) fn keep_moments(host: &Host, keeping: Keeping) -> Result<Vec<Kept>, Error> {
    let mut all = Vec::new();
    keep_stage(host, Stage::Later, keeping, &mut all)?;
    keep_waiting(host, keeping, &mut all)?;
    Ok(all)
}

/// Each row of the stage for which something is due, page by page: a row that stays is passed once.
fn keep_stage(host: &Host, stage: Stage, keeping: Keeping, all: &mut Vec<Kept>) -> Result<(), Error> {
    let before = clock(host, stage)?;
    let mut after = None;
    loop {
        let query = StagedQuery {
            stage,
            before,
            after,
            limit: PAGE,
        };
        let page = host.store().staged_due(&query)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.due_at().map(|at| (at, last.row));
        let is_last = page.len() < PAGE;
        // What is stopped for one row keeps the others waiting as little as can be.
        all.extend(
            side_by_side(page, |entity| kept(host, entity, keeping))
                .into_iter()
                .flatten(),
        );
        if is_last || after.is_none() {
            return Ok(());
        }
    }
}

/// The clock by which a stage is due.
fn clock(host: &Host, stage: Stage) -> Result<Timestamp, Error> {
    match stage {
        Stage::Active | Stage::Doubted => host.steady_now(),
        Stage::Waiting | Stage::Later | Stage::Ready => Ok(host.now()),
    }
}

/// Rows that wait for work of which some has ended.
fn keep_waiting(host: &Host, keeping: Keeping, all: &mut Vec<Kept>) -> Result<(), Error> {
    let mut after = 0;
    loop {
        let page = host.store().awaiting_ended(after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.row;
        let is_last = page.len() < PAGE;
        for entity in page {
            // Seen before it is judged: what ends after that is news for the next sweep.
            let (row, seen) = (entity.clone(), host.store().dependencies(&entity)?);
            let kept = kept(host, entity, keeping);
            let failed = kept.as_ref().is_some_and(|kept| kept.failure.is_some());
            all.extend(kept);
            if keeping.act == Act::Do && !failed {
                host.store().looked_at(&row, &seen)?;
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

/// When something is due for a row next, on this machine's time of day; none when nothing is.
///
/// # Errors
/// The store cannot be read.
pub fn next_due(host: &Host) -> Result<Option<Timestamp>, Error> {
    let mut first: Option<Timestamp> = None;
    for stage in [Stage::Active, Stage::Doubted, Stage::Later] {
        let Some(at) = host.store().next_staged_due(stage)? else {
            continue;
        };
        let left = at.since(clock(host, stage)?);
        let at = host.now().plus(left);
        first = Some(first.map_or(at, |known| known.min(at)));
    }
    Ok(first)
}

/// Does what is due for one row; the row as it then is.
pub(crate) fn keep_row(host: &Host, entity: Entity, grace: Option<DurationMs>) -> Result<Entity, Error> {
    let keeping = Keeping { grace, act: Act::Do };
    if let Some(failure) = kept(host, entity.clone(), keeping).and_then(|kept| kept.failure) {
        return Err(failure);
    }
    Ok(host.store().load(&entity.reference.id)?.unwrap_or(entity))
}

fn kept(host: &Host, entity: Entity, keeping: Keeping) -> Option<Kept> {
    let told = Kept::of(&entity, "failed", "");
    match keep_one(host, entity, keeping) {
        Ok(kept) => kept,
        Err(error) => Some(Kept {
            words: error.to_string(),
            failure: Some(error),
            ..told
        }),
    }
}

fn keep_one(host: &Host, entity: Entity, keeping: Keeping) -> Result<Option<Kept>, Error> {
    let Some(row) = Row::of(host, entity, keeping.grace)? else {
        return Ok(None);
    };
    let now = Now {
        steady: host.steady_now()?,
        wall: host.now(),
    };
    let awaited = awaited(host, &row.entity)?;
    let terms = (&row.terms, row.not_before());
    match due(&row.lifecycle, &row.entity, terms, &awaited, now) {
        Due::Nothing => Ok(None),
        Due::Write(command) => {
            let words = command.reason.summary.clone().unwrap_or_default();
            let kept = Kept::of(&row.entity, decision(&row.entity), words);
            if keeping.act == Act::DryRun {
                return Ok(Some(kept));
            }
            if is_given_up_at_once(&row) && has_left_its_end(host, &row)? {
                return Ok(Some(Kept::of(&row.entity, "ended", "its end was seen")));
            }
            crash::point("lease.due");
            Ok(applied(host, &row, &command, None)?.then_some(kept))
        }
        Due::Judge if keeping.act == Act::DryRun => Ok(Some(Kept::of(
            &row.entity,
            "fence",
            "its grace is over: its processes are looked at",
        ))),
        Due::Judge => judged(host, &row, now.steady),
    }
}

/// Whether the lease of a row that is due ran out under a policy that doubts nobody: nothing is stopped for it, but an end
/// that its run left is recorded first.
fn is_given_up_at_once(row: &Row) -> bool {
    let stage = row.entity.queued.as_ref().and_then(|queued| queued.stage);
    stage == Some(Stage::Active) && rule(&row.lifecycle).is_some_and(|rule| !doubts(rule))
}

/// The word for what is due for a row.
fn decision(row: &Entity) -> &'static str {
    match row.queued.as_ref().and_then(|queued| queued.stage) {
        Some(Stage::Active) => "lapse",
        Some(Stage::Doubted) => "fence",
        Some(Stage::Waiting) => "awaited",
        Some(Stage::Later) => "due",
        Some(Stage::Ready) | None => "nothing",
    }
}

/// What became of the work that a row waits for.
fn awaited(host: &Host, row: &Entity) -> Result<Awaited, Error> {
    let dependencies = host.store().dependencies(row)?;
    if dependencies.is_empty() {
        return Ok(Awaited::Nothing);
    }
    if let Some(failed) = dependencies.iter().find(|dependency| dependency.ended == Some(false)) {
        return Ok(Awaited::Failed(failed.on.clone()));
    }
    let is_open = dependencies.iter().any(|dependency| dependency.ended.is_none());
    Ok(if is_open { Awaited::Open } else { Awaited::Met })
}

/// Writes what is due; false when somebody was faster.
fn applied(host: &Host, row: &Row, command: &Transition, successor: Option<&Successor>) -> Result<bool, Error> {
    let beside = Beside {
        successor,
        ..Beside::NOTHING
    };
    let outcome = write(host, &row.entity, command, &beside)?;
    Ok(matches!(outcome, TransitionOutcome::Applied { .. }))
}

fn judged(host: &Host, row: &Row, steady: Timestamp) -> Result<Option<Kept>, Error> {
    let seen = match look(host, row)? {
        Looked::Ended => return Ok(Some(Kept::of(&row.entity, "ended", "its end was seen"))),
        Looked::Seen(seen) => seen,
    };
    fence_off(host, row, &seen, steady)
}

/// Shuts the holder of a doubted row out, with the attempt that follows in the same commit.
pub(super) fn fence_off(host: &Host, row: &Row, seen: &Seen, steady: Timestamp) -> Result<Option<Kept>, Error> {
    let Some(fencing) = fence(&row.lifecycle, &row.entity, &row.terms, seen, steady) else {
        return Ok(None);
    };
    let (command, next) = match fencing {
        Fencing::Stays(why) => {
            return Ok(Some(Kept {
                needs_somebody: true,
                ..Kept::of(&row.entity, "doubted", why)
            }));
        }
        Fencing::Write(command, next) => (command, next),
    };
    let new = (next == Next::Successor).then(|| successor(host, row)).transpose()?;
    crash::point("lease.fencing");
    if !applied(host, row, &command, new.as_ref())? {
        return Ok(None);
    }
    crash::point("lease.fenced");
    let words = command.reason.summary.clone().unwrap_or_default();
    Ok(Some(Kept {
        successor: new.map(|new| new.new.entity.reference.to_string()),
        needs_somebody: next == Next::OnceConfirmed,
        ..Kept::of(&row.entity, "fence", words)
    }))
}

/// The attempt that follows a row: its policy, its place, its tags, its notices; its work is taken over by the store.
pub(super) fn successor(host: &Host, row: &Row) -> Result<Successor, Error> {
    let command = next_attempt(host, &row.entity, &row.lifecycle)?;
    let new: NewEntity = create(
        &row.lifecycle,
        &row.entity.policy,
        &command,
        host.store().name(),
        host.now(),
    )?;
    Ok(Successor { new: Box::new(new) })
}

/// The command that makes the attempt that follows a row.
pub(super) fn next_attempt(host: &Host, row: &Entity, lifecycle: &Lifecycle) -> Result<Create, Error> {
    let rule = rule(lifecycle);
    let mut command = Create::new(&row.reference.kind, &host.draw_id()?, Actor::system("reaper"));
    command.status = rule.map(|rule| rule.queued.clone());
    command.name.clone_from(&row.name);
    command.tags = row.tags.clone();
    command.notify = row.notify.clone();
    let lineage = lineage_after(row);
    command.reason.summary = Some(format!("goes on where {} was given up", row.reference));
    command.reason.evidence = vec![json!({
        "chain_parent": row.reference.to_string(),
        "generation": lineage.generation,
        "lease_attempts": lineage.lease_attempts,
    })];
    command.lineage = Some(lineage);
    command.queueing = row.queued.as_ref().map(|queued| Queueing {
        queue: queued.queue.clone(),
        priority: queued.priority,
        due_at: None,
        unique_key: row.unique_key.clone(),
        asked: Value::Null,
    });
    Ok(command)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;
    use crate::verbs::create::{IdChoice, create as create_entity};
    use crate::verbs::lease::faults::Bench;

    /// Row 2: a sweep goes through all there is, page by page: rows with which nothing can be done starve none behind them.
    #[test]
    fn rows_that_cannot_be_judged_keep_no_other_from_it() {
        let bench = Bench::new("schedule_run@1");
        for number in 0..2 * PAGE + 1 {
            // Held by somebody under a lease that is long over, and without the work that would say what was asked for.
            let mut dead = Create::new(
                "schedule_run",
                &format!("dead-{number}"),
                Actor::new("operator", "tests"),
            );
            dead.status = Some("running".to_owned());
            dead.fields.insert("leased_by".to_owned(), json!("nobody"));
            dead.fields.insert("lease_expires_at".to_owned(), json!(1));
            dead.queueing = Some(Queueing {
                queue: "q".to_owned(),
                priority: 0,
                due_at: None,
                unique_key: None,
                asked: Value::Null,
            });
            create_entity(&bench.host, &dead, IdChoice::Given, None).unwrap();
        }
        bench.submit(3, &[]).unwrap();
        bench.claim().unwrap().unwrap();
        bench.wait();
        let keeping = Keeping {
            grace: None,
            act: Act::Do,
        };
        let kept = keep(&bench.host, keeping).unwrap();
        let references: Vec<&str> = kept.iter().map(|kept| kept.reference.as_str()).collect();
        assert_eq!(references, ["schedule_run/row"], "in one sweep");
    }
}

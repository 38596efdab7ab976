//! Records how a run ended, from the exit file that its shim left: whoever comes first, the result is the same.
//!
//! The finishing command, a killer, and any command that reads a run whose exit file waits all call this. It is
//! repeatable: a run that is recorded already, or has not ended, comes back as it is.

mod meaning;
mod unseen;

pub(crate) use meaning::{by_kill, open_below, seen, signal_word, spawn_summary};
pub(crate) use unseen::{HOST_RESTARTED, nobody, unseen};

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::Value;

use self::meaning::{cause, ending, evidence, patch, summary, with_intent};
use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::lease::keep_wish;
use crate::model::{
    Actor, DurationMs, EndSeen, Ended, Ending, Entity, Evidence, Lifecycle, Outcome, Reason, Runtime, RuntimeState,
    Timestamp, Transition,
};
use crate::process::{ExitFile, ExitRecord, RunDir, artifacts};
use crate::store::RuntimeUpdate;
use crate::verbs::lease::end_row_of;
use crate::verbs::transition::{Beside, TransitionOutcome, write};
use crate::verbs::verdict::{End, ask_verdict, observed};
use crate::work::Work;

/// Records the end of a run if its exit file tells one and the store does not; answers the entity as it then is.
///
/// # Errors
/// The store failed, or the exit file cannot be read: nothing was written.
pub fn settle(host: &Host, mut entity: Entity) -> Result<Entity, Error> {
    for _ in 0..CHANGES_MAX {
        let Some(runtime) = newest_runtime(host, &entity)? else {
            return Ok(entity);
        };
        if runtime.is_stopped() {
            // Somebody may have recorded the end after the entity was read.
            let current = if entity.terminal {
                None
            } else {
                host.store().load(&entity.reference.id)?
            };
            return Ok(current.unwrap_or(entity));
        }
        let Some(record) = exit_record(&runtime)? else {
            return Ok(entity);
        };
        let settled = record_end(host, &entity, &runtime, &Told::by(&record))?;
        entity = host.store().load(&entity.reference.id)?.unwrap_or(entity);
        if settled == Settled::Done {
            break;
        }
    }
    Ok(entity)
}

/// How often an entity that changes while its end is being recorded is looked at again; the next reader goes on.
const CHANGES_MAX: usize = 4;

/// What tells an end.
pub(crate) struct Told<'a> {
    record: &'a ExitRecord,
    /// What a repair saw, where no shim wrote the record.
    observed: Option<&'a Value>,
}

impl<'a> Told<'a> {
    /// The record of a shim.
    pub(crate) const fn by(record: &'a ExitRecord) -> Self {
        Self { record, observed: None }
    }

    /// A record made up of what was observed, and by nobody who saw the end.
    pub(crate) const fn observed(record: &'a ExitRecord, observed: &'a Value) -> Self {
        Self {
            record,
            observed: Some(observed),
        }
    }
}

/// Whether an end is recorded as far as it can be now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Done,
    /// The entity changed meanwhile.
    LookAgain,
}

/// The newest runtime of an entity that is not stopped; where all are, the newest.
pub(crate) fn newest_runtime(host: &Host, entity: &Entity) -> Result<Option<Runtime>, Error> {
    let mut runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
    let open = runtimes.iter().rposition(|runtime| !runtime.is_stopped());
    Ok(match open {
        Some(place) => Some(runtimes.swap_remove(place)),
        None => runtimes.pop(),
    })
}

/// What the shim left, if it is this attempt's.
pub(crate) fn exit_record(runtime: &Runtime) -> Result<Option<ExitRecord>, Error> {
    let Some(run_dir) = &runtime.run_dir else {
        return Ok(None);
    };
    match run_directory(run_dir).read_exit(&runtime.attempt_token)? {
        ExitFile::Recorded(record) => Ok(Some(*record)),
        ExitFile::Absent | ExitFile::OtherAttempt => Ok(None),
    }
}

/// How a run's program was seen to end, once nothing of the run is left. It tells more than the
/// entity does where the policy has no way from its status to that end.
///
/// # Errors
/// The store or the exit file cannot be read.
pub fn observed_exit(host: &Host, entity: &Entity) -> Result<Option<Ended>, Error> {
    let runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
    let Some(runtime) = runtimes.last().filter(|runtime| runtime.is_stopped()) else {
        return Ok(None);
    };
    Ok(exit_record(runtime)?.map(|record| seen(&record).1))
}

/// The run directory that a runtime row names.
pub(crate) fn run_directory(path: &[u8]) -> RunDir {
    RunDir::at(Path::new(std::ffi::OsStr::from_bytes(path)))
}

/// Writes an end, and what it says of the runtime, in one commit.
pub(crate) fn record_end(host: &Host, entity: &Entity, runtime: &Runtime, told: &Told<'_>) -> Result<Settled, Error> {
    let record = told.record;
    if stop_goes_on(record) {
        return Ok(Settled::Done);
    }
    let runtime = &with_intent(runtime, record);
    let mut update = runtime_update(runtime, record, host.now());
    if entity.terminal {
        return record_late(host, entity, runtime, record, update);
    }
    if !ending(runtime, record).0.is_its_own() && !record.set.empty {
        // Survivors: "stopped" would be a lie. The row says so, the status stays (SEMANTICS 5.4).
        update.state = Some(RuntimeState::Stopping);
        return note_runtime(host, runtime, update);
    }
    let is_told = runtime.state == RuntimeState::Lingering || (runtime.stop_unconfirmed && !record.set.empty);
    if is_told {
        // Its end was told when its worker ended, and refused: the status would be another otherwise.
        return note_runtime(host, runtime, update);
    }
    let lifecycle = host.lifecycle(entity)?;
    let Some((mut command, end)) = end_command(host, &lifecycle, entity, runtime, record)? else {
        return note_runtime(host, runtime, update);
    };
    if let Some(observed) = told.observed {
        command.reason.evidence.push(observed.clone());
        if !by_kill(runtime, record) {
            command.actor = Actor::system("repair");
        }
    }
    command.expected_statuses = Some(vec![entity.status.clone()]);
    update.only_from = BEFORE_THE_END.to_vec();
    crash::point("settle.judged");
    let beside = Beside {
        end: Some(&end),
        ..Beside::runtimes(std::slice::from_ref(&update))
    };
    match write(host, entity, &command, &beside)? {
        TransitionOutcome::Applied { entity: ended, .. } => {
            crash::point("settle.ended");
            end_row_of(host, &ended)?;
            Ok(Settled::Done)
        }
        // Somebody else recorded it from the same file, or a report came between.
        TransitionOutcome::Conflict(_) => Ok(Settled::LookAgain),
        // Its policy has no way from the status it reported to that end: the refusal is in the audit rows, once,
        // written with the runtime row by whoever was first.
        TransitionOutcome::Rejected(_) => {
            host.wake();
            Ok(Settled::Done)
        }
    }
}

/// Where a runtime is until somebody has told the end of its worker.
const BEFORE_THE_END: [RuntimeState; 4] = [
    RuntimeState::Starting,
    RuntimeState::Running,
    RuntimeState::Stopping,
    RuntimeState::Lost,
];

/// Writes what an exit record says of the runtime, unless the row says it already.
fn note_runtime(host: &Host, runtime: &Runtime, update: RuntimeUpdate) -> Result<Settled, Error> {
    let known = update.state == Some(runtime.state) && update.stop_unconfirmed == Some(runtime.stop_unconfirmed);
    if !known {
        host.store().update_runtimes(&[update])?;
        host.wake();
    }
    Ok(Settled::Done)
}

/// A stop is not over: its outcome is recorded when the set is empty or given up.
fn stop_goes_on(record: &ExitRecord) -> bool {
    !record.set.empty && record.stop.as_ref().is_some_and(|stop| !stop.given_up)
}

/// A run that reported its own end and went on: how its process ended is added, no verdict, no new event.
fn record_late(
    host: &Host,
    entity: &Entity,
    runtime: &Runtime,
    record: &ExitRecord,
    update: RuntimeUpdate,
) -> Result<Settled, Error> {
    if entity.structural.cause.is_some() || record.spawn_error.is_some() {
        return note_runtime(host, runtime, update);
    }
    let (ending, ended) = ending(runtime, record);
    let mut reason = entity.reason.clone();
    reason.evidence.push(evidence(host, entity, runtime, record)?);
    let mut command = Transition::new(&entity.status, reason, Actor::system("settle"));
    let lifecycle = host.lifecycle(entity)?;
    command.patch = patch(&lifecycle, record, cause(record, ending, ended));
    command.patch.remove("ended_at");
    command.expected_version = Some(entity.version);
    Ok(match write(host, entity, &command, &Beside::runtimes(&[update]))? {
        TransitionOutcome::Conflict(_) => Settled::LookAgain,
        TransitionOutcome::Applied { .. } | TransitionOutcome::Rejected(_) => Settled::Done,
    })
}

/// What the ending means, as a command for the one write path.
fn end_command(
    host: &Host,
    lifecycle: &Lifecycle,
    entity: &Entity,
    runtime: &Runtime,
    record: &ExitRecord,
) -> Result<Option<(Transition, End)>, Error> {
    let (ending, ended) = ending(runtime, record);
    let work = host
        .store()
        .work(entity)?
        .and_then(|work| serde_json::from_value::<Work>(work.0).ok());
    let found = Found::of(host, entity, runtime, work.as_ref())?;
    let mut end = End::of(match &record.spawn_error {
        Some(error) if !by_kill(runtime, record) => EndSeen::NotStarted {
            stage: error.stage.clone(),
        },
        Some(_) | None => EndSeen::Ended {
            ending,
            ended,
            evidence: found.evidence,
        },
    });
    let mut meaning = Meaning {
        outcome: end.seen.by_table(lifecycle, &entity.status),
        summary: summary(record, ending, &found),
        patch: Default::default(),
        retry_after: None,
    };
    if ending.is_its_own() && record.spawn_error.is_none() {
        end.observed = Some(observed(lifecycle, entity, (runtime, record, &found)));
        ask_verdict(host, lifecycle, entity, &mut end, &mut meaning)?;
    }
    let Some(outcome) = meaning.outcome else {
        return Ok(None);
    };
    let mut observed = evidence(host, entity, runtime, record)?;
    keep_wish(&mut observed, meaning.retry_after);
    let reason = Reason {
        code: outcome.code,
        summary: meaning.summary,
        evidence: vec![observed],
    };
    let actor = match (&runtime.stop_intent, ending) {
        (Some(intent), Ending::Killed | Ending::KilledByForce) => intent.actor.clone(),
        _ => Actor::new("executor", "shim"),
    };
    let mut command = Transition::new(&outcome.status, reason, actor);
    command.patch = patch(lifecycle, record, cause(record, ending, ended));
    command.patch.extend(meaning.patch);
    Ok(Some((command, end)))
}

/// An ending as it will be written.
pub(super) struct Meaning {
    pub(super) outcome: Option<Outcome>,
    pub(super) summary: Option<String>,
    pub(super) patch: crate::model::Fields,
    pub(super) retry_after: Option<DurationMs>,
}

/// How an attempt ended, by what its shim left: with a kill that was wanted before as that kill.
pub(crate) fn attempt_ending(runtime: &Runtime, record: &ExitRecord) -> (Ending, Ended) {
    ending(&with_intent(runtime, record), record)
}

/// What was looked for in the run's directories.
pub(super) struct Found {
    evidence: Evidence,
    pub(super) artifacts: Vec<(String, String)>,
    pub(super) missing: Vec<String>,
    pub(super) evidence_wanted: bool,
}

impl Found {
    /// What became of the evidence it was to leave.
    pub(super) const fn evidence(&self) -> Evidence {
        self.evidence
    }

    pub(super) fn of(host: &Host, entity: &Entity, runtime: &Runtime, work: Option<&Work>) -> Result<Self, Error> {
        let artifacts = runtime.run_dir.as_deref().map(artifacts).unwrap_or_default();
        let evidence_wanted = work.is_some_and(|work| work.want_evidence);
        let missing: Vec<String> = work.map(|work| missing_artifacts(work, runtime)).unwrap_or_default();
        let present = !artifacts.is_empty() || (evidence_wanted && reported_evidence(host, entity)?);
        let evidence = match (missing.is_empty(), evidence_wanted, present) {
            (false, ..) => Evidence::ArtifactMissing,
            (true, true, false) => Evidence::WantedAndAbsent,
            (true, _, true) => Evidence::Present,
            (true, false, false) => Evidence::NotWanted,
        };
        Ok(Self {
            evidence,
            artifacts,
            missing,
            evidence_wanted,
        })
    }
}

/// Whether the run registered evidence with a report.
fn reported_evidence(host: &Host, entity: &Entity) -> Result<bool, Error> {
    let id = Some(entity.reference.id.clone());
    let rows = host.store().history(&crate::store::HistoryQuery {
        id,
        ..Default::default()
    })?;
    Ok(rows.iter().skip(1).any(|row| !row.reason.evidence.is_empty()))
}

/// Expected patterns that match no file: absolute ones as they are, others below `artifacts/` or the working directory.
fn missing_artifacts(work: &Work, runtime: &Runtime) -> Vec<String> {
    let bases = [
        runtime
            .run_dir
            .clone()
            .map(|directory| [directory.as_slice(), b"/artifacts"].concat()),
        Some(work.cwd.0.clone()),
    ];
    let exists = |pattern: &String| {
        bases.iter().flatten().any(|base| {
            let base = glob::Pattern::escape(&String::from_utf8_lossy(base));
            let full = if pattern.starts_with('/') {
                pattern.clone()
            } else {
                format!("{base}/{pattern}")
            };
            glob::glob(&full).is_ok_and(|mut found| found.any(|path| path.is_ok()))
        })
    };
    work.expect_artifacts
        .iter()
        .filter(|pattern| !exists(pattern))
        .cloned()
        .collect()
}

/// What an exit record says of the runtime.
fn runtime_update(runtime: &Runtime, record: &ExitRecord, at: Timestamp) -> RuntimeUpdate {
    let survivors = record.stop.is_some() && record.set.survivors_total > 0;
    let state = match (record.set.empty, record.stop.is_some()) {
        (true, _) => RuntimeState::Stopped,
        (false, true) => RuntimeState::Stopping,
        (false, false) => RuntimeState::Lingering,
    };
    RuntimeUpdate {
        id: runtime.id,
        state: Some(state),
        stop_unconfirmed: Some(survivors),
        at,
        ..Default::default()
    }
}

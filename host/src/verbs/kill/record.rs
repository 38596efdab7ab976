//! Writes the end of an entity that no shim saw end: through the one write path, without an invented exit code.

use serde_json::{Value, json};

use super::Kill;
use super::report::{KillResult, Killed};
use crate::error::Error;
use crate::host::Host;
use crate::model::{Cause, Entity, KillRow, Reason, Runtime, RuntimeState, SeenGone, Transition, is_killed_by};
use crate::store::RuntimeUpdate;
use crate::verbs::settle::open_below;
use crate::verbs::transition::{Beside, TransitionOutcome, write};

/// An end as it is to be written.
pub(super) struct End<'a> {
    /// The word for the strongest signal.
    pub(super) signal: &'a str,
    /// In words.
    pub(super) summary: &'a str,
    /// What proves that nothing of it lives.
    pub(super) proof: Option<&'a str>,
    /// What was seen that says that its processes are gone, where nobody was signalled.
    pub(super) seen: Option<SeenGone>,
    /// Whether it came to SIGKILL, now or in a kill before that could not be confirmed.
    pub(super) forced: bool,
}

/// Writes it and reports.
pub(super) fn end(
    host: &Host,
    entity: &Entity,
    (row, runtime): (&KillRow, Option<&Runtime>),
    asked: &Kill,
    end: &End<'_>,
) -> Result<Killed, Error> {
    let code = if end.forced { &row.force_code } else { &row.term_code };
    // A kill that was not confirmed is recorded as that kill.
    let earlier = runtime.and_then(|runtime| runtime.stop_intent.as_ref());
    let actor = earlier.map_or_else(|| asked.actor.clone(), |intent| intent.actor.clone());
    let note = earlier.map_or_else(|| asked.note.clone(), |intent| intent.note.clone());
    let mut evidence = json!({
        "signal": end.signal,
        "pid": runtime.and_then(|runtime| Some(runtime.worker.as_ref()?.pid)),
        "identity_level": runtime.and_then(|runtime| runtime.level.clone()),
        "proof": end.proof,
        "survivors": [],
        "killed_at": host.now().to_rfc3339(),
        "note": note,
    });
    if let Some(seen) = end.seen {
        evidence["observed"] = json!(seen.word());
    }
    let open = open_below(host, entity)?;
    if !open.is_empty() {
        evidence["children_not_stopped"] = json!(open);
    }
    let reason = Reason::code(code).summary(end.summary).evidence(evidence);
    let mut command = Transition::new(&row.goes_to, reason, actor);
    command.expected_statuses = Some(vec![entity.status.clone()]);
    let lifecycle = host.lifecycle(entity)?;
    for (name, value) in fields(host, runtime, end) {
        if lifecycle.field(name).is_some() {
            command.patch.insert(name.to_owned(), value);
        }
    }
    let update = runtime.map(|runtime| stopped(host, runtime));
    let outcome = write(host, entity, &command, &Beside::runtimes(update.as_slice()))?;
    let report = Killed {
        stopped: end.proof.is_some(),
        proof: end.proof.map(str::to_owned),
        ..Killed::of(entity, runtime, end.signal)
    };
    match outcome {
        TransitionOutcome::Conflict(conflict) => overtaken(host, report, row, conflict.found.status),
        TransitionOutcome::Applied { status, .. } => Ok(Killed { status, ..report }),
        TransitionOutcome::Rejected(refusal) => Ok(Killed {
            result: KillResult::Refused,
            ..report
        }
        .saying(refusal.message)),
    }
}

/// Somebody else wrote first. Where that is the end which this kill was about to write, as whoever records the end of the
/// run below does for leased work, the entity is killed; any other end is its own.
fn overtaken(host: &Host, report: Killed, row: &KillRow, found: String) -> Result<Killed, Error> {
    let id = report.reference.rsplit_once('/').map_or("", |(_, id)| id);
    let current = host.store().load(id)?.filter(|entity| entity.terminal);
    let Some(current) = current else {
        return Ok(Killed {
            status: found,
            result: KillResult::Incomplete,
            ..report
        }
        .saying("it changed while it was being killed: kill it again"));
    };
    Ok(Killed {
        result: if is_killed_by(row, &current) {
            KillResult::Killed
        } else {
            KillResult::Unchanged
        },
        status: current.status,
        ..report
    })
}

/// Says of a runtime whose processes are positively gone that it is stopped.
pub(super) fn release(host: &Host, runtime: &Runtime) -> Result<(), Error> {
    host.store().update_runtimes(&[stopped(host, runtime)])?;
    host.wake();
    Ok(())
}

fn stopped(host: &Host, runtime: &Runtime) -> RuntimeUpdate {
    RuntimeUpdate {
        id: runtime.id,
        state: Some(RuntimeState::Stopped),
        stop_unconfirmed: Some(false),
        at: host.now(),
        ..RuntimeUpdate::default()
    }
}

/// What the end says beside the status: how it ended is not known when nobody saw it.
fn fields(host: &Host, runtime: Option<&Runtime>, end: &End<'_>) -> Vec<(&'static str, Value)> {
    let mut fields = vec![("ended_at", json!(host.now().as_ms()))];
    if runtime.is_none_or(|runtime| runtime.worker.is_none()) {
        return fields;
    }
    let cause = match (end.proof.is_some(), end.seen) {
        (true, _) => Cause::Kill,
        (false, Some(SeenGone::EarlierBoot)) => Cause::HostRestarted,
        (false, _) => Cause::Unobserved,
    };
    fields.push(("cause", json!(cause.word())));
    fields.push(("ended_at_is_approximate", json!(true)));
    fields
}

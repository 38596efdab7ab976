//! What an exit record means: which ending it tells, and how it is told in fields, words and evidence.

use serde_json::{Value, json};

use super::unseen::HOST_RESTARTED;
use super::{Found, run_directory};
use crate::error::Error;
use crate::host::Host;
use crate::model::{
    Actor, Cause, DurationMs, Ended, Ending, Entity, Evidence, Fields, IDENTITY_STAGE, Lifecycle, Runtime, StopIntent,
    Timestamp,
};
use crate::process::{Cause as Asked, ExitRecord, Stage};
use crate::store::Scope;

/// What was seen, and which stop of ours was going on.
pub(crate) fn seen(record: &ExitRecord) -> (Ending, Ended) {
    let ended = match (record.exit_code, record.term_signal) {
        (Some(code), _) => Ended::Exited(i64::from(code)),
        (None, Some(signal)) => Ended::Signalled(i64::from(signal)),
        (None, None) => Ended::Unobserved,
    };
    let forced = record.stop.as_ref().is_some_and(|stop| stop.forced);
    // `cause` names a stop only if it was going on when the worker ended; one that came later stopped what lingered.
    let ending = match record.cause.as_str() {
        "timeout" => Ending::TimedOut,
        "hangup" => Ending::HungUp,
        "interrupt" => Ending::Interrupted,
        "terminate" => Ending::Terminated,
        "parent_gone" => Ending::ParentGone,
        "oom" => Ending::OutOfMemory,
        HOST_RESTARTED => Ending::HostRestarted,
        "kill" if forced => Ending::KilledByForce,
        "kill" => Ending::Killed,
        _ => Ending::Natural,
    };
    (ending, ended)
}

/// The same, with a kill that was wanted before the process ended by itself: it is written as that kill (SEMANTICS 5.0).
pub(super) fn ending(runtime: &Runtime, record: &ExitRecord) -> (Ending, Ended) {
    match seen(record) {
        (own, ended)
            if (own.is_its_own() || own == Ending::HostRestarted)
                && !is_failed_start(record)
                && is_wanted_before(runtime, record) =>
        {
            (Ending::Killed, ended)
        }
        other => other,
    }
}

/// The runtime with the intent that its run directory keeps, where a kill ended it that the store could not be told of.
pub(super) fn with_intent(runtime: &Runtime, record: &ExitRecord) -> Runtime {
    let mut runtime = runtime.clone();
    if runtime.stop_intent.is_some() || record.cause != Asked::Kill.text() {
        return runtime;
    }
    let directory = runtime.run_dir.as_deref().map(run_directory);
    let requests = directory.and_then(|run| run.stop_requests().ok()).unwrap_or_default();
    let first = requests.into_iter().find(|(_, slot)| slot.cause == Asked::Kill);
    runtime.stop_intent = first.and_then(|(_, slot)| {
        let (kind, id) = slot.actor.split_once(':')?;
        let ms = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        Some(StopIntent {
            actor: Actor::new(kind, id),
            note: Some(slot.note).filter(|note| !note.is_empty()),
            grace: DurationMs::from_ms(ms(slot.patience.grace_ms())),
            // The request's own clock counts from boot; it came before the end.
            at: Timestamp::from_ms(ms(record.ended_at_ms)),
        })
    });
    runtime
}

/// Whether an end is written as a kill.
pub(crate) fn by_kill(runtime: &Runtime, record: &ExitRecord) -> bool {
    matches!(ending(runtime, record).0, Ending::Killed | Ending::KilledByForce)
}

/// Whether its program could not be executed: not that its gate stayed closed.
fn is_failed_start(record: &ExitRecord) -> bool {
    let stage = record.spawn_error.as_ref().map(|error| error.stage.as_str());
    stage.is_some_and(|stage| stage != Stage::Gate.text() && stage != Stage::Stopped.text())
}

/// Whether somebody wanted it killed before it ended.
fn is_wanted_before(runtime: &Runtime, record: &ExitRecord) -> bool {
    let ended_at_ms = i64::try_from(record.ended_at_ms).unwrap_or(i64::MAX);
    runtime
        .stop_intent
        .as_ref()
        .is_some_and(|intent| intent.at.as_ms() <= ended_at_ms)
}

/// How the process ended: a kill that was only wanted did not end it.
pub(super) fn cause(record: &ExitRecord, ending: Ending, ended: Ended) -> Cause {
    match seen(record).0 {
        own if own.is_its_own() => own.cause(ended),
        _ => ending.cause(ended),
    }
}

/// The fields an end sets, those that the kind has.
pub(super) fn patch(lifecycle: &Lifecycle, record: &ExitRecord, cause: Cause) -> Fields {
    let mut fields = vec![
        ("ended_at", json!(record.ended_at_ms)),
        ("exit_code", json!(record.exit_code)),
        ("term_signal", json!(record.term_signal)),
        ("cause", json!(cause.word())),
        ("duration_ms", json!(by_parent(record, record.duration_ms))),
    ];
    if record.written_by.is_some() {
        fields.push(("ended_at_is_approximate", json!(true)));
    }
    let declared = fields.into_iter().filter(|(name, _)| lifecycle.field(name).is_some());
    declared.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The end in words.
pub(super) fn summary(record: &ExitRecord, ending: Ending, found: &Found) -> Option<String> {
    if let Some(error) = &record.spawn_error {
        return Some(spawn_summary(&error.stage, error.errno));
    }
    if found.evidence == Evidence::ArtifactMissing && record.exit_code == Some(0) {
        return Some(format!("expected artifacts are missing: {}", found.missing.join(", ")));
    }
    let how = match (record.exit_code, record.term_signal) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(signal)) => format!("died by signal {signal}"),
        (None, None) => "ended unobserved".to_owned(),
    };
    Some(match ending {
        Ending::Natural => how,
        Ending::OutOfMemory => format!("killed by the system for want of memory; {how}"),
        Ending::TimedOut => format!("stopped at its time limit; {how}"),
        Ending::HungUp => format!("stopped because its terminal went away; {how}"),
        Ending::Interrupted => format!("interrupted; {how}"),
        Ending::Terminated => format!("stopped from outside; {how}"),
        Ending::ParentGone => format!("stopped because the command that started it ended; {how}"),
        Ending::Killed => format!("killed; {how}"),
        Ending::KilledByForce => format!("killed by force; {how}"),
        Ending::HostRestarted => "the machine restarted".to_owned(),
    })
}

/// A failed start in words, without paths: they are in the work specification.
pub(crate) fn spawn_summary(stage: &str, errno: i32) -> String {
    let what = match stage {
        "directory" => "cannot change to the working directory",
        "exec" => "cannot execute the program",
        "reserve" => "no room for the exit record",
        "stopped" => "stopped before it began",
        "gate" => "never begun",
        IDENTITY_STAGE => "its start ended before its process was recorded",
        "terminal" => "no pseudo-terminal",
        other => return format!("cannot start ({other}): {}", std::io::Error::from_raw_os_error(errno)),
    };
    if errno == 0 {
        what.to_owned()
    } else {
        format!("{what}: {}", std::io::Error::from_raw_os_error(errno))
    }
}

/// What only a parent sees; none in a record that was written in place of the shim's.
fn by_parent<T>(record: &ExitRecord, seen: T) -> Option<T> {
    record.written_by.is_none().then_some(seen)
}

/// What was observed, for the reason.
pub(super) fn evidence(host: &Host, entity: &Entity, runtime: &Runtime, record: &ExitRecord) -> Result<Value, Error> {
    let note = runtime.stop_intent.as_ref().and_then(|intent| intent.note.clone());
    let mut evidence = json!({
        "pid": record.worker_pid,
        "identity_level": runtime.level,
        "raw_status": record.raw_status,
        "core_dumped": record.core_dumped,
        "oom_kills": (record.oom_kills > 0).then_some(record.oom_kills),
        "stop": record.stop,
        "proof": record.set.proof,
        "spared": record.set.spared,
        "survivors": record.set.survivors,
        "note": note,
        "user_ms": by_parent(record, record.user_ms),
        "system_ms": by_parent(record, record.system_ms),
        "max_resident_bytes": by_parent(record, record.max_rss_bytes),
        "lost_output_bytes": record.lost_output_bytes,
        "dropped_output_bytes": (record.dropped_output_bytes > 0).then_some(record.dropped_output_bytes),
        "spawn_error": record.spawn_error,
    });
    if let Some(by) = &record.written_by {
        evidence["written_by"] = json!(by);
    }
    if by_kill(runtime, record) {
        let at = Timestamp::from_ms(i64::try_from(record.ended_at_ms).unwrap_or(i64::MAX));
        evidence["signal"] = json!(signal_word(record));
        evidence["killed_at"] = json!(at.to_rfc3339());
        let open = open_below(host, entity)?;
        if !open.is_empty() {
            evidence["children_not_stopped"] = json!(open);
        }
    }
    Ok(evidence)
}

/// The word for the strongest signal of a stop (SEMANTICS 5).
pub(crate) fn signal_word(record: &ExitRecord) -> &str {
    match &record.stop {
        Some(stop) if stop.signal != "none" => &stop.signal,
        // Its gate stayed closed: there was nobody to signal.
        _ if record.spawn_error.is_some() => "no_process",
        _ => "already_dead",
    }
}

/// How many of those below are named in evidence.
const NAMED_MAX: usize = 20;

/// What is linked below and has not ended: the evidence of a kill says so.
pub(crate) fn open_below(host: &Host, entity: &Entity) -> Result<Vec<String>, Error> {
    let below = host.store().linked(entity, Scope::Descendants)?;
    let open = below.iter().filter(|entity| !entity.terminal);
    Ok(open
        .take(NAMED_MAX)
        .map(|entity| entity.reference.to_string())
        .collect())
}

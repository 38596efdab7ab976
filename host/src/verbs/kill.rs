//! Stops a run and says only what was observed.
//!
//! The intent is durable first: in the store, and in the run directory, which is what counts while the store cannot be
//! written. The shim, which alone can see the set end, stops it; the killer watches. Then the end is recorded, by the
//! finishing command or by the killer, whoever comes first: from the same files, so the result is the same.

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, DurationMs, Entity, KillRow, Reason, Runtime, RuntimeState, StopIntent, Transition};
use crate::process::{self, Liveness, Patience, Slot, Survivor, Wake, classify};
use crate::store::RuntimeUpdate;
use crate::verbs::identity;
use crate::verbs::settle::{exit_record, run_directory, settle};
use crate::verbs::transition::{TransitionOutcome, transition};
use crate::wake::Watch;

/// How long after KILL the shim looks for proof before it gives up (PROCESS 3), and a margin for recording.
const PROOF_AND_RECORD: Duration = Duration::from_secs(8);

/// What a kill asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Kill {
    /// From the first signal to KILL.
    pub grace: DurationMs,
    /// Who asks.
    pub actor: Actor,
    /// Why, in words.
    pub note: Option<String>,
}

/// What came of a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillResult {
    /// It was stopped, or never had a process, and its end is recorded as a kill.
    Killed,
    /// It had ended before; nothing was changed.
    Unchanged,
    /// Nothing was signalled and nothing written.
    Refused,
    /// Something could not be stopped, or not be confirmed.
    Incomplete,
}

impl KillResult {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Incomplete => "incomplete",
        }
    }
}

/// The report of a kill: what was observed, each fact for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Killed {
    /// The entity.
    pub reference: String,
    /// The status before.
    pub previous_status: String,
    /// The status after.
    pub status: String,
    /// What came of it.
    pub result: KillResult,
    /// The strongest signal sent, or the word that says why none was (SEMANTICS 5).
    pub signal: String,
    /// The worker.
    pub pid: Option<i64>,
    /// The set was observed empty.
    pub stopped: bool,
    /// What lives on.
    pub survivors: Vec<Survivor>,
    /// In words, where something has to be said.
    pub message: Option<String>,
}

/// Kills one entity.
///
/// # Errors
/// The store or the run directory failed before anything was signalled.
pub async fn kill(host: &Host, entity: Entity, asked: &Kill) -> Result<Killed, Error> {
    let entity = settle(host, entity)?;
    let runtime = newest(host, &entity)?;
    let live = runtime.filter(|runtime| !runtime.is_stopped());
    if entity.terminal && live.is_none() {
        return Ok(Killed {
            result: KillResult::Unchanged,
            ..report(&entity, None, "already_dead")
        });
    }
    let lifecycle = host.lifecycle(&entity)?;
    let row = lifecycle.kill_row(&entity.status);
    match (live, row) {
        (Some(runtime), _) => stop(host, &entity, runtime, asked).await,
        (None, Some(row)) => end_without_process(host, &entity, row, asked),
        (None, None) => {
            let message = format!(
                "a {} cannot be killed while it is {}",
                entity.reference.kind, entity.status
            );
            Ok(Killed {
                message: Some(message),
                ..refused(&entity, None, "no_process")
            })
        }
    }
}

/// The newest runtime of an entity.
fn newest(host: &Host, entity: &Entity) -> Result<Option<Runtime>, Error> {
    let runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
    Ok(runtimes.into_iter().next_back())
}

fn report(entity: &Entity, runtime: Option<&Runtime>, signal: &str) -> Killed {
    Killed {
        reference: entity.reference.to_string(),
        previous_status: entity.status.clone(),
        status: entity.status.clone(),
        result: KillResult::Killed,
        signal: signal.to_owned(),
        pid: runtime
            .and_then(|runtime| runtime.worker.as_ref())
            .map(|worker| worker.pid),
        stopped: false,
        survivors: Vec::new(),
        message: None,
    }
}

fn refused(entity: &Entity, runtime: Option<&Runtime>, signal: &str) -> Killed {
    Killed {
        result: KillResult::Refused,
        ..report(entity, runtime, signal)
    }
}

/// An entity that never had a process is ended by its row alone.
fn end_without_process(host: &Host, entity: &Entity, row: &KillRow, asked: &Kill) -> Result<Killed, Error> {
    let reason = Reason::code(&row.term_code)
        .summary("killed; it had no process")
        .evidence(json!({"signal": "no_process", "note": asked.note}));
    let mut command = Transition::new(&row.goes_to, reason, asked.actor.clone());
    command.expected_statuses = Some(vec![entity.status.clone()]);
    let outcome = transition(host, entity, &command)?;
    let mut killed = report(entity, None, "no_process");
    match outcome {
        TransitionOutcome::Applied { status, .. } => {
            killed.status = status;
            killed.message = Some("it had no process: no process was stopped".to_owned());
        }
        TransitionOutcome::Conflict(conflict) => {
            killed.status = conflict.found.status;
            killed.result = KillResult::Incomplete;
            killed.message = Some("it changed while it was being killed: kill it again".to_owned());
        }
        TransitionOutcome::Rejected(refusal) => {
            killed.result = KillResult::Refused;
            killed.message = Some(refusal.message);
        }
    }
    Ok(killed)
}

/// Stops the set of a runtime and records the end.
async fn stop(host: &Host, entity: &Entity, runtime: Runtime, asked: &Kill) -> Result<Killed, Error> {
    if let Some(word) = elsewhere(host, &runtime) {
        let message = format!("it was started on {}: kill it there", runtime.place.host);
        return Ok(Killed {
            message: Some(message),
            ..refused(entity, Some(&runtime), word)
        });
    }
    let watch = host.wake_file().watch();
    record_intent(host, &runtime, asked);
    // Looked at again: a run that was being started has its shim recorded since, or its starter finds the intent.
    let runtime = newest(host, entity)?.unwrap_or(runtime);
    let wait = Duration::from_millis(u64::try_from(asked.grace.as_ms()).unwrap_or(0)) + PROOF_AND_RECORD;
    let heard = match ask_shim(host, &runtime, asked)? {
        Asked::Heard => watch_end(host, entity, &watch, wait).await?,
        Asked::StillStarting => watch_end(host, entity, &watch, wait).await?,
        Asked::Unheard(word, message) => {
            let result = KillResult::Incomplete;
            return Ok(Killed {
                result,
                message: Some(message),
                ..report(entity, Some(&runtime), word)
            });
        }
    };
    let killed = observed(entity, &runtime, &heard)?;
    if killed.result == KillResult::Incomplete && killed.survivors.is_empty() {
        return Ok(with_survivors(host, &runtime, killed));
    }
    Ok(killed)
}

/// Why a runtime is not judged from here; none when it is ours.
fn elsewhere(host: &Host, runtime: &Runtime) -> Option<&'static str> {
    let here = identity::place(host);
    if runtime.kind != crate::model::RuntimeKind::Local {
        return Some("remote");
    }
    if runtime.place.host != here.host {
        return Some("host_mismatch");
    }
    (runtime.place.boot_id == here.boot_id && runtime.place.pid_namespace != here.pid_namespace)
        .then_some("namespace_mismatch")
}

/// The intent in the store. A store that cannot be written does not keep a process alive: the run directory counts.
fn record_intent(host: &Host, runtime: &Runtime, asked: &Kill) {
    let intent = StopIntent {
        actor: asked.actor.clone(),
        note: asked.note.clone(),
        grace: asked.grace,
        at: host.now(),
    };
    let state = (runtime.state != RuntimeState::Starting).then_some(RuntimeState::Stopping);
    let update = RuntimeUpdate {
        id: runtime.id,
        state,
        stop_intent: Some(intent),
        at: host.now(),
        ..Default::default()
    };
    if let Err(error) = host.store().update_runtimes(&[update]) {
        tracing::warn!(%error, "the intent to stop is in the run directory alone");
    }
}

/// Whether the shim heard.
enum Asked {
    Heard,
    /// It has no identity yet: its starter finds the intent.
    StillStarting,
    Unheard(&'static str, String),
}

fn ask_shim(host: &Host, runtime: &Runtime, asked: &Kill) -> Result<Asked, Error> {
    let Some(run_dir) = &runtime.run_dir else {
        return Ok(Asked::Unheard(
            "unverifiable",
            "it has no run directory: nothing was signalled".to_owned(),
        ));
    };
    let Some(shim) = identity::shim(runtime) else {
        return Ok(Asked::StillStarting);
    };
    let directory = run_directory(run_dir);
    let slot = Slot {
        cause: process::Cause::Kill,
        patience: Patience::Grace {
            ms: u64::try_from(asked.grace.as_ms()).unwrap_or(0),
        },
        at_ms: process::boottime_ms(),
        code: String::new(),
        actor: asked.actor.to_string(),
        note: asked.note.clone().unwrap_or_default(),
    };
    Ok(match process::ask_stop(&directory, &slot, &shim, host.place())?.wake {
        Wake::Woken => Asked::Heard,
        // Its exit file may be complete all the same.
        Wake::ShimGone(_) if exit_record(runtime)?.is_some() => Asked::Heard,
        Wake::ShimGone(_) => Asked::Unheard(
            "unverifiable",
            "its shim is gone and left no record: nothing was signalled".to_owned(),
        ),
        Wake::ShimUnknown(_) => Asked::Unheard(
            "unverifiable",
            "its shim cannot be told from others here: nothing was signalled".to_owned(),
        ),
        Wake::Denied => Asked::Unheard("permission_denied", "it belongs to another user".to_owned()),
    })
}

/// Waits until the end is recorded, or survivors are, at most as long as a stop can take.
async fn watch_end(host: &Host, entity: &Entity, watch: &Watch, at_most: Duration) -> Result<Entity, Error> {
    let mut current = entity.clone();
    let until = tokio::time::Instant::now() + at_most;
    while tokio::time::Instant::now() < until {
        if let Some(found) = host.store().load(&entity.reference.id)? {
            current = settle(host, found)?;
        }
        let over = newest(host, entity)?.is_none_or(|runtime| runtime.is_stopped() || runtime.stop_unconfirmed);
        if over && (current.terminal || current.version == entity.version) {
            break;
        }
        watch.changed().await;
    }
    Ok(current)
}

/// The report, from what the shim observed.
fn observed(before: &Entity, runtime: &Runtime, now: &Entity) -> Result<Killed, Error> {
    let mut killed = Killed {
        previous_status: before.status.clone(),
        ..report(now, Some(runtime), "no_process")
    };
    let Some(record) = exit_record(runtime)? else {
        killed.result = if now.terminal {
            KillResult::Killed
        } else {
            KillResult::Incomplete
        };
        killed.message = (!now.terminal).then(|| "no proof of its end was seen in time".to_owned());
        return Ok(killed);
    };
    killed.signal = record
        .stop
        .as_ref()
        .map_or_else(|| "already_dead".to_owned(), |stop| stop.signal.clone());
    killed.stopped = record.set.empty;
    killed.survivors.clone_from(&record.set.survivors);
    let by_kill = record.cause == "kill" || before.terminal;
    killed.result = match (record.set.empty, by_kill) {
        (false, _) => KillResult::Incomplete,
        (true, true) if before.terminal && record.stop.is_none() => KillResult::Unchanged,
        (true, true) => KillResult::Killed,
        // It ended by itself before the kill reached it.
        (true, false) => KillResult::Unchanged,
    };
    if !record.set.empty {
        killed.message = Some("not everything it started could be stopped".to_owned());
    }
    Ok(killed)
}

/// The program itself outlived KILL, and its shim writes no record before it has ended: who lives is looked at from here,
/// and the runtime row says that the stop is unconfirmed.
fn with_survivors(host: &Host, runtime: &Runtime, mut killed: Killed) -> Killed {
    let shim = identity::shim(runtime).filter(|shim| matches!(classify(shim, host.place()), Liveness::Alive(_)));
    let survivors = shim.and_then(|shim| process::members_below(shim.pid).ok());
    killed.survivors = survivors.unwrap_or_default();
    if killed.survivors.is_empty() {
        return killed;
    }
    killed.signal = "sigkill".to_owned();
    let update = RuntimeUpdate {
        id: runtime.id,
        stop_unconfirmed: Some(true),
        at: host.now(),
        ..Default::default()
    };
    if let Err(error) = host.store().update_runtimes(&[update]) {
        tracing::warn!(%error, "that the stop is unconfirmed is not recorded");
    }
    killed
}

impl Killed {
    /// The JSON document.
    pub fn json(&self) -> Value {
        let survivors: Vec<Value> = self
            .survivors
            .iter()
            .map(|s| json!({"pid": s.pid, "comm": s.comm, "state": s.state, "uid": s.uid}))
            .collect();
        json!({
            "ref": self.reference,
            "previous_status": self.previous_status,
            "status": self.status,
            "outcome": self.result.word(),
            "signal": self.signal,
            "pid": self.pid,
            "stopped": self.stopped,
            "survivors": survivors,
            "children": [],
            "message": self.message,
        })
    }
}

//! Adopts a run whose shim was killed while members of its set live: another shim takes over, and the run ends as it would
//! have.
//!
//! ```text
//! shim with the lock ─▶ recorded, with an audit row ─▶ confirmed
//! ```
//!
//! Until it is confirmed the new shim leaves when we do, so dying anywhere leaves a run to be adopted.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, AdminEvent, Containment, Entity, Runtime, RuntimeState};
use crate::process::{
    self, Adopting, Command, Contain, HeldBy, Identity, Io, Look, Orphaned, ParentTie, ProcessError, Stage,
    Surroundings,
};
use crate::store::RuntimeUpdate;
use crate::verbs::identity;
use crate::verbs::run::{duration, finish, stop_by};
use crate::verbs::settle::run_directory;
use crate::work::{LOG_LIMIT_DEFAULT_BYTES, Work};

/// Has the set taken over. That somebody else is doing it is no error.
///
/// # Errors
/// The store failed, or no shim can be started: the row says then that the shim is lost, and the set lives on.
pub(super) fn adopt(host: &Host, entity: &Entity, runtime: &Runtime, evidence: &Value) -> Result<(), Error> {
    let Some(run_dir) = &runtime.run_dir else {
        return lose(host, runtime);
    };
    let (newly_found, worker) = worker(host, runtime)?;
    let orphaned = Orphaned {
        worker: worker.as_ref().and_then(|worker| process::held(worker, host.place())),
        identity: worker,
        recorded_at_ms: u64::try_from(runtime.created_at.as_ms()).unwrap_or(0),
        cgroup: runtime
            .cgroup
            .clone()
            .map(|path| PathBuf::from(OsString::from_vec(path))),
    };
    let command = command(host, entity, runtime)?;
    let adopting = match process::adopt(&command, orphaned, &run_directory(run_dir), host.place()) {
        Ok(adopting) => adopting,
        Err(error) if is_taken(&error) => return Ok(()),
        Err(error) => {
            lose(host, runtime)?;
            return Err(error.into());
        }
    };
    crash::point("adopt.held");
    if !record(host, runtime, (&adopting, newly_found.as_ref()), evidence)? {
        return Ok(());
    }
    crash::point("adopt.recorded");
    adopting.confirm()?;
    host.wake();
    Ok(())
}

/// Whether another shim holds the lock of the run directory.
fn is_taken(error: &ProcessError) -> bool {
    matches!(error, ProcessError::StartRefused { stage: Stage::Lock, source } if source.kind() == ErrorKind::WouldBlock)
}

/// The worker, as it was recorded; else the oldest process that carries the token, which is recorded now.
fn worker(host: &Host, runtime: &Runtime) -> Result<(Option<Identity>, Option<Identity>), Error> {
    if let Some(worker) = identity::worker(runtime) {
        return Ok((None, Some(worker)));
    }
    let Look::Living(members) = identity::unheld(host, runtime)?.look() else {
        return Ok((None, None));
    };
    let captured = members
        .iter()
        .filter_map(|member| process::capture(member.pid, host.place(), &runtime.attempt_token).ok());
    let oldest = captured.min_by_key(|member| member.start_ticks);
    Ok((oldest.clone(), oldest))
}

/// Everything a shim is started from; of the work, what matters to one that begins late.
fn command(host: &Host, entity: &Entity, runtime: &Runtime) -> Result<Command, Error> {
    let stored = host.store().work(entity)?;
    let work = stored.and_then(|work| serde_json::from_value::<Work>(work.0).ok());
    let work = work.as_ref();
    // A shim that was born into the cgroup of a run would be killed with it.
    let containing = process::choose(Contain::Subreaper, &Surroundings::here(), "").unwrap_or_default();
    let argv = work.map(|work| work.argv.iter().map(|word| word.as_os_str().to_owned()).collect());
    Ok(Command {
        shim: process::install_shim(&host.config().cache(), host.config().shim)?,
        reference: entity.reference.to_string(),
        attempt_token: runtime.attempt_token.clone(),
        argv: argv.unwrap_or_else(|| vec!["-".into()]),
        environment: Vec::new(),
        directory: PathBuf::from("/"),
        io: Io::Null,
        grace: work.map_or_else(Default::default, |work| duration(work.grace_ms)),
        timeout: work.and_then(|work| work.timeout_ms).map(duration),
        stop_by: work.map_or(process::StopBy::Signal(process::Signal::TERM), stop_by),
        // Whoever it was to die with cannot be told from others any more.
        parent: ParentTie::Survive,
        log_limit_bytes: work
            .and_then(|work| work.log_limit_bytes)
            .unwrap_or(LOG_LIMIT_DEFAULT_BYTES),
        containing,
        finish: Some(finish(host, &entity.reference)),
    })
}

/// Records who takes over. False when somebody else wrote the row meanwhile.
fn record(
    host: &Host,
    runtime: &Runtime,
    (adopting, newly_found): (&Adopting, Option<&Identity>),
    evidence: &Value,
) -> Result<bool, Error> {
    let shim = identity::recorded(&adopting.shim);
    let state = match runtime.state {
        RuntimeState::Starting | RuntimeState::Running | RuntimeState::Lost => RuntimeState::Running,
        RuntimeState::Stopping | RuntimeState::Lingering | RuntimeState::Stopped => runtime.state,
    };
    let update = RuntimeUpdate {
        id: runtime.id,
        only_from: vec![runtime.state],
        state: Some(state),
        shim: Some(shim.clone()),
        worker: newly_found.map(identity::recorded),
        level: newly_found.map(|worker| worker.level().text().to_owned()),
        containment: Some(match adopting.held_by {
            HeldBy::Cgroup => Containment::Cgroup,
            HeldBy::Subreaper | HeldBy::PidNamespace => Containment::Group,
        }),
        at: host.now(),
        ..RuntimeUpdate::default()
    };
    let event = AdminEvent {
        id: 0,
        at: host.now(),
        action: "runtime_adopted".to_owned(),
        target: Some(runtime.owner.to_string()),
        actor: Actor::system("repair").to_string(),
        details: evidence.clone(),
    };
    host.store().record(&[event], &[update])?;
    let rows = host.store().runtimes(Some(std::slice::from_ref(&runtime.owner)))?;
    Ok(rows
        .iter()
        .any(|row| row.id == runtime.id && row.shim.as_ref() == Some(&shim)))
}

/// Says that nobody watches the set.
fn lose(host: &Host, runtime: &Runtime) -> Result<(), Error> {
    let update = RuntimeUpdate {
        id: runtime.id,
        only_from: vec![RuntimeState::Starting, RuntimeState::Running],
        state: Some(RuntimeState::Lost),
        at: host.now(),
        ..RuntimeUpdate::default()
    };
    host.store().update_runtimes(&[update])?;
    Ok(())
}

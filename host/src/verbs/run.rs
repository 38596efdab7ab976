//! Starts a run. The order is what makes it safe to die anywhere:
//!
//! ```text
//! intent committed ─▶ run directory ─▶ shim, worker held at its gate ─▶ identities committed ─▶ gate opened
//! ```
//!
//! Before the gate is opened nothing has been executed. From then on the shim records the end, whoever else lives.

mod variables;

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::crash;
use crate::error::Error;
use crate::host::{Host, entropy};
use crate::model::{
    Actor, Bytes, Containment, Create, EndSeen, Entity, Invalid, NewEntity, Outcome, Protected, Reason, Reference,
    Runtime, RuntimeKind, RuntimeState, StopIntent, Transition, removal_refusal,
};
use crate::policy::Selected;
use crate::process::{
    self, Command, Containing, Control, Finish, Held, HeldBy, Io, Opened, ParentTie, ProcessError, RunDir,
    Surroundings, path_of, real_path,
};
use crate::store::{NewRun, RuntimeUpdate, Work as StoredWork};
use crate::verbs::create::{IdChoice, make, policy_for};
use crate::verbs::identity;
use crate::verbs::settle::spawn_summary;
use crate::verbs::transition::{Beside, write};
use crate::verbs::verdict::End;
use crate::work::{LOG_LIMIT_DEFAULT_BYTES, StopBy, Work};

/// What a run is started from.
#[derive(Debug)]
pub struct Start {
    /// The entity: kind, id, name, tags, parents, actor. Its status is the policy's start status.
    pub create: Create,
    /// Whose choice the id is.
    pub id: IdChoice,
    /// Another policy than the one in force.
    pub policy: Option<String>,
    /// What it is to do.
    pub work: Work,
    /// The caller's environment, for what the work inherits.
    pub inherited: Vec<(Bytes, Bytes)>,
    /// Where its streams go.
    pub io: Io,
    /// What the end of this process means for it.
    pub parent: ParentTie,
}

/// How a start came out.
#[derive(Debug)]
pub enum Begun {
    /// The program executes.
    Running(Box<Running>),
    /// Nothing was executed; the entity says why.
    Failed(Box<StartFailure>),
    /// An idempotency key was used before: nothing was started now.
    Replayed(Box<Entity>),
}

/// A program that executes.
#[derive(Debug)]
pub struct Running {
    /// The entity.
    pub entity: Entity,
    /// Its run directory.
    pub directory: RunDir,
    /// The shim's control socket.
    pub control: Control,
    /// The master of its pseudo-terminal.
    pub terminal: Option<std::os::fd::OwnedFd>,
    /// The writing end of its standard input, with stop by stdin.
    pub stdin: Option<std::os::fd::OwnedFd>,
}

/// A start that failed.
#[derive(Debug)]
pub struct StartFailure {
    /// The entity as recorded.
    pub entity: Entity,
    /// The step that failed.
    pub stage: String,
    /// The error number, 0 if there is none.
    pub errno: i32,
}

/// Starts a run.
///
/// # Errors
/// The command is wrong or the store failed before anything was started. A start that fails later is no error: it
/// leaves an entity that says why.
pub fn run(host: &Host, start: Start) -> Result<Begun, Error> {
    let selected = policy_for(host, &start.create.kind, start.policy.as_deref())?;
    let rule = selected
        .lifecycle
        .descriptor()
        .execution
        .clone()
        .ok_or_else(|| not_run(host, &start.create.kind))?;
    own_directories(host, &start.work)?;
    let token = token()?;
    let containing = containing(&start, &token)?;
    let made = make(host, &creation(&start, &rule.start), start.id, &selected, |new| {
        Some(NewRun {
            runtime: Some(runtime(host, new, &start, &token)),
            work: stored(&start.work),
            directories: start.work.own_dirs.iter().map(|path| path.0.clone()).collect(),
            lease: start.work.lease.clone(),
            after: Vec::new(),
        })
    })?;
    let Some(runtime_id) = made.runtime_id.filter(|_| !made.replayed) else {
        return Ok(Begun::Replayed(Box::new(made.entity)));
    };
    let attempt = Attempt {
        entity: made.entity,
        runtime_id,
        token,
    };
    let directory = RunDir::at(host.run_dir(&attempt.entity.reference.id));
    crash::point("run.intent_committed");
    let held = match hold(host, &attempt, (start, containing), &directory) {
        Ok(held) => held,
        Err(error) => return failed(host, &selected, attempt, &refusal(&error)),
    };
    crash::point("run.held");
    if !commit_identities(host, &attempt, &held)? {
        held.abandon()?;
        return killed_at_the_gate(host, &attempt);
    }
    crash::point("run.identities_committed");
    open(host, &selected, attempt, held, directory)
}

/// One attempt to start.
struct Attempt {
    entity: Entity,
    runtime_id: i64,
    token: String,
}

/// Why a start failed.
struct StartError {
    stage: String,
    errno: i32,
    summary: String,
}

/// That a kind has no execution rule.
pub(crate) fn not_run(host: &Host, kind: &str) -> Error {
    let message = format!("a {kind} is not run: its policy has no execution rule");
    let hint = host.kinds().ok().map(|kinds| format!("kinds are {}", kinds.join(", ")));
    Invalid::new("kind", message, hint).into()
}

/// Judges the directories that a run is to own, before anything is made: one that could never be removed is no run's.
fn own_directories(host: &Host, work: &Work) -> Result<(), Error> {
    let ours = [Protected::inside(
        real_path(host.config().home()),
        "runwarden keeps its own there",
    )];
    for directory in &work.own_dirs {
        let path = path_of(&directory.0);
        if let Some(why) = removal_refusal(&path, &ours) {
            let message = format!("{} cannot be a run's own: {why}", path.display());
            return Err(Invalid::new("own_dir", message, None).into());
        }
    }
    Ok(())
}

fn token() -> Result<String, Error> {
    use std::fmt::Write as _;
    Ok(entropy()?.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    }))
}

/// Chooses what is to hold the set together; what was asked for and cannot be had is told before anything is made.
fn containing(start: &Start, token: &str) -> Result<Containing, Error> {
    let name = process::group_name(&start.create.id, token);
    process::choose(start.work.contain, &Surroundings::here(), &name).map_err(|why| {
        let hint = Some("`--contain auto` takes what there is".to_owned());
        Invalid::new("contain", format!("no cgroup can be had for the run: {why}"), hint).into()
    })
}

fn creation(start: &Start, rule: &Outcome) -> Create {
    let mut create = start.create.clone();
    create.status = Some(rule.status.clone());
    if create.reason.code.is_empty() {
        create.reason.code.clone_from(&rule.code);
    }
    if let Some(spawn_kind) = &start.work.spawn_kind {
        create.fields.insert("spawn_kind".to_owned(), json!(spawn_kind));
    }
    create
}

fn stored(work: &Work) -> StoredWork {
    StoredWork(serde_json::to_value(work).expect("a work specification is plain data"))
}

fn runtime(host: &Host, new: &NewEntity, start: &Start, token: &str) -> Runtime {
    let run_dir = host.run_dir(&new.entity.reference.id);
    Runtime {
        id: 0,
        owner: new.entity.reference.clone(),
        kind: RuntimeKind::Local,
        state: RuntimeState::Starting,
        stop_unconfirmed: false,
        place: identity::place(host),
        worker: None,
        shim: None,
        attempt_token: token.to_owned(),
        level: None,
        containment: Containment::Subreaper,
        process_group: None,
        cgroup: None,
        cwd: Some(start.work.cwd.0.clone()),
        run_dir: Some(run_dir.into_os_string().into_vec()),
        remote_handle: None,
        resume_token: start.work.resume_token.clone(),
        stop_intent: None,
        created_at: host.now(),
        updated_at: host.now(),
    }
}

/// Makes the run directory and has a shim hold the worker. Nothing is executed yet.
fn hold(
    host: &Host,
    attempt: &Attempt,
    (start, containing): (Start, Containing),
    directory: &RunDir,
) -> Result<Held, ProcessError> {
    RunDir::create(directory.path())?;
    let reference = &attempt.entity.reference;
    let description = json!({
        "ref": reference.to_string(),
        "attempt_token": attempt.token,
        "work": start.work,
        "created_at": attempt.entity.created_at.to_rfc3339(),
    });
    directory.write_run(format!("{description:#}\n").as_bytes())?;
    let shim = process::install_shim(&host.config().cache(), host.config().shim)?;
    let work = &start.work;
    let ours = variables::own(host, attempt, work, directory);
    let environment = work
        .environment(&start.inherited, &ours)
        .into_iter()
        .map(split_variable)
        .collect();
    let command = Command {
        shim,
        reference: reference.to_string(),
        attempt_token: attempt.token.clone(),
        argv: work.argv.iter().map(|word| word.as_os_str().to_owned()).collect(),
        environment,
        directory: PathBuf::from(work.cwd.as_os_str()),
        io: start.io,
        grace: duration(work.grace_ms),
        timeout: work.timeout_ms.map(duration),
        stop_by: stop_by(work),
        parent: start.parent,
        log_limit_bytes: work.log_limit_bytes.unwrap_or(LOG_LIMIT_DEFAULT_BYTES),
        containing,
        finish: Some(finish(host, reference)),
    };
    process::prepare(command, directory, host.place())
}

/// What a stop of the work tries before SIGKILL.
pub(super) fn stop_by(work: &Work) -> process::StopBy {
    match work.stop_by {
        StopBy::Term => process::StopBy::Signal(process::Signal::TERM),
        StopBy::Signal(number) => {
            process::StopBy::Signal(process::Signal::from_named_raw(number).unwrap_or(process::Signal::TERM))
        }
        StopBy::Stdin => process::StopBy::Stdin,
    }
}

pub(super) fn duration(length: crate::model::DurationMs) -> Duration {
    Duration::from_millis(u64::try_from(length.as_ms()).unwrap_or(0))
}

fn split_variable(variable: Vec<u8>) -> (OsString, OsString) {
    let at = variable.iter().position(|byte| *byte == b'=').unwrap_or(variable.len());
    let value = variable.get(at + 1..).unwrap_or_default().to_vec();
    (OsString::from_vec(variable[..at].to_vec()), OsString::from_vec(value))
}

/// The command that records the end: its path, and its image in case the path leads nowhere by then.
pub(super) fn finish(host: &Host, reference: &Reference) -> Finish {
    let config = host.config();
    let mut argv = vec![
        config.program.clone().into_os_string(),
        "--home".into(),
        config.home.clone().into_os_string(),
    ];
    if let Some(database) = &config.database {
        let mut url = OsString::from("sqlite:");
        url.push(database);
        argv.extend(["--store".into(), url]);
    }
    argv.extend(["finish".into(), reference.id.clone().into()]);
    Finish {
        argv,
        image: File::open(&config.program).ok().map(Into::into),
    }
}

/// Records who was started. False when somebody wants it stopped already: then the gate stays closed.
fn commit_identities(host: &Host, attempt: &Attempt, held: &Held) -> Result<bool, Error> {
    let update = RuntimeUpdate {
        id: attempt.runtime_id,
        // One that was killed before it had a process stays as the kill left it.
        only_from: vec![RuntimeState::Starting],
        state: Some(RuntimeState::Running),
        worker: Some(identity::recorded(&held.worker)),
        shim: Some(identity::recorded(&held.shim)),
        level: Some(held.worker.level().text().to_owned()),
        containment: Some(match held.held_by {
            HeldBy::Cgroup => Containment::Cgroup,
            HeldBy::Subreaper => Containment::Subreaper,
            HeldBy::PidNamespace => Containment::PidNamespace,
        }),
        cgroup: held.cgroup.clone().map(|path| path.into_os_string().into_vec()),
        at: host.now(),
        ..RuntimeUpdate::default()
    };
    host.store().update_runtimes(&[update])?;
    Ok(intent(host, attempt)?.is_none())
}

fn open(host: &Host, selected: &Selected, attempt: Attempt, mut held: Held, directory: RunDir) -> Result<Begun, Error> {
    let (terminal, stdin) = (held.terminal.take(), held.stdin.take());
    match held.open_gate() {
        Ok(Opened::Started(control)) => {
            crash::point("run.gate_opened");
            let entity = attempt.entity;
            Ok(Begun::Running(Box::new(Running {
                entity,
                directory,
                control,
                terminal,
                stdin,
            })))
        }
        // A kill found it at its gate, after its starter had looked for one.
        Ok(Opened::Failed {
            stage: process::Stage::Stopped,
            ..
        }) if intent(host, &attempt)?.is_some() => killed_at_the_gate(host, &attempt),
        Ok(Opened::Failed { stage, errno }) => {
            let stage = stage.text().to_owned();
            let summary = spawn_summary(&stage, errno);
            failed(host, selected, attempt, &StartError { stage, errno, summary })
        }
        Err(error) => failed(host, selected, attempt, &refusal(&error)),
    }
}

fn refusal(error: &ProcessError) -> StartError {
    match error {
        ProcessError::StartRefused { stage, source } => {
            let errno = source.raw_os_error().unwrap_or(0);
            let stage = stage.text().to_owned();
            let summary = spawn_summary(&stage, errno);
            StartError { stage, errno, summary }
        }
        ProcessError::InvalidCommand { .. } => StartError {
            stage: "command".to_owned(),
            errno: 0,
            summary: format!("cannot start: {error}"),
        },
        other => {
            let cause = std::error::Error::source(other)
                .map(|cause| format!(": {cause}"))
                .unwrap_or_default();
            StartError {
                stage: "shim".to_owned(),
                errno: 0,
                summary: format!("cannot start: {other}{cause}"),
            }
        }
    }
}

/// Leaves a failed entity, never a running one.
fn failed(host: &Host, selected: &Selected, attempt: Attempt, why: &StartError) -> Result<Begun, Error> {
    let end = End::of(EndSeen::NotStarted {
        stage: why.stage.clone(),
    });
    let outcome = end.seen.by_table(&selected.lifecycle, &attempt.entity.status);
    let outcome = outcome.expect("a kind that is run has an execution rule");
    let evidence = json!({"stage": why.stage, "errno": why.errno});
    let reason = Reason {
        code: outcome.code,
        summary: Some(why.summary.clone()),
        evidence: vec![evidence],
    };
    let mut command = Transition::new(&outcome.status, reason, Actor::new("executor", "run"));
    command.expected_statuses = Some(vec![attempt.entity.status.clone()]);
    let stopped = [stopped(&attempt, host)];
    let beside = Beside {
        end: Some(&end),
        ..Beside::runtimes(&stopped)
    };
    write(host, &attempt.entity, &command, &beside)?;
    let entity = host
        .store()
        .load(&attempt.entity.reference.id)?
        .unwrap_or(attempt.entity);
    Ok(Begun::Failed(Box::new(StartFailure {
        entity,
        stage: why.stage.clone(),
        errno: why.errno,
    })))
}

/// Why it is to be stopped, if somebody wants that.
fn intent(host: &Host, attempt: &Attempt) -> Result<Option<StopIntent>, Error> {
    let runtimes = host
        .store()
        .runtimes(Some(std::slice::from_ref(&attempt.entity.reference)))?;
    Ok(runtimes.into_iter().next_back().and_then(|runtime| runtime.stop_intent))
}

/// A kill was quicker than the start: its intent decides what is written.
fn killed_at_the_gate(host: &Host, attempt: &Attempt) -> Result<Begun, Error> {
    let intent = intent(host, attempt)?;
    let lifecycle = host.lifecycle(&attempt.entity)?;
    let row = lifecycle.kill_row(&attempt.entity.status);
    if let (Some(intent), Some(row)) = (intent, row) {
        let reason = Reason::code(&row.term_code)
            .summary("killed before it began: nothing was executed")
            .evidence(json!({"signal": "no_process", "note": intent.note}));
        let mut command = Transition::new(&row.goes_to, reason, intent.actor);
        command.expected_statuses = Some(vec![attempt.entity.status.clone()]);
        write(
            host,
            &attempt.entity,
            &command,
            &Beside::runtimes(&[stopped(attempt, host)]),
        )?;
    }
    let entity = host
        .store()
        .load(&attempt.entity.reference.id)?
        .unwrap_or_else(|| attempt.entity.clone());
    Ok(Begun::Failed(Box::new(StartFailure {
        entity,
        stage: "stopped".to_owned(),
        errno: 0,
    })))
}

fn stopped(attempt: &Attempt, host: &Host) -> RuntimeUpdate {
    RuntimeUpdate {
        id: attempt.runtime_id,
        state: Some(RuntimeState::Stopped),
        at: host.now(),
        ..RuntimeUpdate::default()
    }
}

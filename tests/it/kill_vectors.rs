//! The reference system's kills as data, driven through the host library with real processes. Where this host differs on
//! purpose, the table names the exception.

use std::process::{Child, Command, Stdio};

use runwarden_host::Host;
use runwarden_host::model::{Actor, Create, DurationMs, Entity, Reach, Reference};
use runwarden_host::process::{Gone, Identity, Liveness, Place, Unknown, classify, machine_name};
use runwarden_host::verbs::{IdChoice, Kill, Killing, create, kill};
use serde_json::Value;

use crate::harness::{host, process, until, vectors};
use crate::vectors::placed;

/// What is recorded of the process of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recorded {
    /// No process.
    Nothing,
    /// A living one, as it is.
    Exactly,
    /// A living one that ignores TERM.
    Deaf,
    /// A living one by its number alone.
    BareNumber,
    /// A living one, started so many ticks later.
    Later(u64),
    /// A living one, of another machine.
    OtherHost,
    /// A living one, of another boot.
    OtherBoot,
    /// A living one that another system is to stop.
    Remote,
    /// One that has ended and was reaped.
    Reaped,
    /// One that has ended and was not.
    Zombie,
}

/// What is killed, and what is linked to it.
#[derive(Clone, Copy, Debug)]
enum Scene {
    /// One entity of a kind, in a status.
    One(&'static str, &'static str, Recorded),
    /// The child of the second entity; the first is killed.
    BelowAn(&'static str, Recorded),
    /// One of a kind above a session.
    Above(&'static str, &'static str, Recorded, (&'static str, Recorded)),
    /// What the command line does with words and options.
    CommandLine,
    /// What is not built yet.
    NotBuilt,
}

/// How this host differs: why, the exit code, the statuses in order of creation, whether the first process lives.
type Exception = (&'static str, i32, &'static [&'static str], Option<bool>);

const REFERENCE: &str = "exception 5: unknown or ambiguous is 2, no target 64, a dry run works with references";
const GONE: &str = "exception 3: a recycled pid or an earlier boot is already_dead and ended";
const NO_IDENTITY: &str = "environment and command line are no identity: ticks decide";

const CASES: &[(&str, Scene, Option<Exception>)] = {
    use Recorded::{BareNumber, Deaf, Exactly, Later, Nothing, OtherBoot, OtherHost, Reaped, Remote, Zombie};
    use Scene::{Above, BelowAn, CommandLine, NotBuilt, One};
    const fn session(recorded: Recorded) -> Scene {
        One("session", "running", recorded)
    }
    &[
        ("session, markers match, process obeys SIGTERM", session(Exactly), None),
        ("session, process ignores SIGTERM, --grace 1", session(Deaf), None),
        (
            "session, no create_time and env marker absent",
            session(BareNumber),
            None,
        ),
        (
            "session, env marker names another session, create_time matches",
            session(Exactly),
            Some((NO_IDENTITY, 0, &["cancelled"], Some(false))),
        ),
        (
            "session, create_time off by 0.05 (inside tolerance)",
            session(Later(5)),
            Some(("ticks are compared exactly; exception 3", 0, &["cancelled"], Some(true))),
        ),
        (
            "session, create_time off by 0.2 (recycled pid)",
            session(Later(20)),
            Some((GONE, 0, &["cancelled"], Some(true))),
        ),
        ("session, recorded on another host", session(OtherHost), None),
        (
            "session, boot time differs by 10 s",
            session(OtherBoot),
            Some((GONE, 0, &["cancelled"], Some(true))),
        ),
        (
            "session, boot time differs by 4 s (inside tolerance)",
            session(OtherBoot),
            Some((
                "boot ids are compared exactly; exception 3",
                0,
                &["cancelled"],
                Some(true),
            )),
        ),
        // Exception 5: there are no in-process or foreign modes; what others stop is `remote`.
        ("session, in_process mode", session(Remote), None),
        ("session, unknown identity mode", session(Remote), None),
        ("session, identity mode present but null", session(Remote), None),
        ("session, no metadata at all", session(Nothing), None),
        ("session, metadata pid not a number", session(Nothing), None),
        ("session, pid already gone", session(Reaped), None),
        ("session, zombie (exited, unreaped)", session(Zombie), None),
        (
            "session, live pid matching create_time but not our command line",
            session(Exactly),
            Some((NO_IDENTITY, 0, &["cancelled"], Some(false))),
        ),
        (
            "session already terminal",
            One("session", "completed", Nothing),
            Some((
                "exception 4: a terminal target is unchanged, exit 0",
                0,
                &["completed"],
                None,
            )),
        ),
        (
            "invocation with bare pid, no create_time",
            One("invocation", "running", BareNumber),
            None,
        ),
        (
            "invocation with create_time",
            One("invocation", "running", Exactly),
            None,
        ),
        (
            "session --recursive (signals the OWNING invocation first)",
            BelowAn("invocation", Exactly),
            Some((
                "exception 5: a session never takes its parent along",
                0,
                &["running", "cancelled"],
                Some(true),
            )),
        ),
        (
            "session without --recursive (owner untouched)",
            BelowAn("invocation", Exactly),
            None,
        ),
        (
            "invocation --recursive, child refused (foreign host)",
            Above("invocation", "running", Exactly, ("running", OtherHost)),
            None,
        ),
        ("play with no linked session", One("play", "running", Nothing), None),
        (
            "play linked to a running session",
            Above("play", "running", Nothing, ("running", Exactly)),
            None,
        ),
        (
            "play linked to a terminal session",
            Above("play", "running", Nothing, ("completed", Nothing)),
            Some((
                "linked runs have all ended: no_process, exit 0",
                0,
                &["blocked", "completed"],
                None,
            )),
        ),
        (
            "play in gated",
            One("play", "gated", Nothing),
            Some((
                "exception 5: a play is killable from every non-terminal status",
                1,
                &["blocked"],
                None,
            )),
        ),
        ("show", One("show", "active", Nothing), None),
        ("show --recursive", One("show", "active", Nothing), None),
        (
            "show imported",
            One("show", "imported", Nothing),
            Some(("exception 5: an imported show is killable", 0, &["aborted"], None)),
        ),
        ("unknown id", CommandLine, Some((REFERENCE, 2, &[], None))),
        ("ambiguous prefix", CommandLine, Some((REFERENCE, 2, &[], None))),
        ("ambiguous across kinds", CommandLine, Some((REFERENCE, 2, &[], None))),
        ("no id", CommandLine, Some((REFERENCE, 64, &[], None))),
        ("--dry-run with id", CommandLine, Some((REFERENCE, 0, &[], None))),
        ("--all-stale --dry-run (verbose)", NotBuilt, None),
        ("--all-stale (verbose)", NotBuilt, None),
    ]
};

/// A process of the test, ended with it.
struct Process(Child);

impl Process {
    fn new(recorded: Recorded) -> Self {
        let script = match recorded {
            Recorded::Deaf => "trap '' TERM; echo x; while :; do read x < /dev/zero; done",
            Recorded::Reaped | Recorded::Zombie => "echo x; exit 0",
            _ => "echo x; exec sleep 600",
        };
        let started = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = started.expect("a shell");
        let mut told = child.stdout.take().expect("a pipe");
        let mut byte = [0; 1];
        std::io::Read::read_exact(&mut told, &mut byte).expect("it has begun");
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn lives(&self) -> bool {
        crate::harness::lives(&self.pid())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Puts an entity into the store, with a process as it is recorded.
fn put(
    host: &Host,
    (kind, status): (&str, &str),
    parent: Option<&Reference>,
    recorded: Recorded,
) -> (Entity, Option<Process>) {
    let entity = match parent {
        None => placed(host, kind, status),
        Some(parent) => {
            let id = host.draw_id().expect("entropy");
            let mut command = Create::new(kind, &id, Actor::new("operator", "test"));
            command.parents = vec![parent.clone()];
            if status != "running" {
                command.status = Some("running".to_owned());
            }
            let made = create(host, &command, IdChoice::Drawn, None)
                .expect("it can be created")
                .entity;
            if status == "running" {
                made
            } else {
                ended(host, &made, status)
            }
        }
    };
    if recorded == Recorded::Nothing {
        return (entity, None);
    }
    let mut process = Process::new(recorded);
    record(host, &entity, &mut process, recorded);
    (entity, Some(process))
}

fn ended(host: &Host, entity: &Entity, status: &str) -> Entity {
    use runwarden_host::model::{Reason, Transition};
    use runwarden_host::verbs::{TransitionOutcome, transition};
    let command = Transition::new(status, Reason::code("run.completed.ok"), Actor::new("operator", "test"));
    match transition(host, entity, &command).expect("an edge") {
        TransitionOutcome::Applied { entity, .. } => *entity,
        other => panic!("{other:?}"),
    }
}

/// Writes a runtime row that names the process.
fn record(host: &Host, entity: &Entity, child: &mut Process, recorded: Recorded) {
    let here = Place::here(machine_name());
    if matches!(recorded, Recorded::Reaped | Recorded::Zombie) {
        let pid = child.pid();
        until("it has ended", || process(&pid).is_some_and(|seen| seen.0 == 'Z'));
    }
    let mut ticks = process(&child.pid()).map(|seen| seen.1);
    match recorded {
        Recorded::Reaped => drop(child.0.wait()),
        Recorded::BareNumber => ticks = None,
        Recorded::Later(by) => ticks = ticks.map(|ticks| ticks.saturating_sub(by)),
        _ => {}
    }
    let kind = if recorded == Recorded::Remote { "other" } else { "local" };
    let machine = if recorded == Recorded::OtherHost {
        "elsewhere".to_owned()
    } else {
        here.host
    };
    let boot = if recorded == Recorded::OtherBoot {
        Some("another".to_owned())
    } else {
        here.boot_id
    };
    let store = rusqlite::Connection::open(host.config().database_path()).expect("the store");
    store
        .execute(
            "INSERT INTO runtimes (owner, kind, state, stop_unconfirmed, host, boot_id, pid_namespace, time_namespace, \
             worker_pid, worker_start_ticks, attempt_token, containment, created_at_ms, updated_at_ms) \
             VALUES (?1, ?2, 'running', 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'none', 0, 0)",
            rusqlite::params![
                entity.row,
                kind,
                machine,
                boot.unwrap_or_default(),
                here.pid_namespace.map(u64::cast_signed),
                here.time_namespace.map(u64::cast_signed),
                child.0.id(),
                ticks.and_then(|ticks| i64::try_from(ticks).ok()),
                format!("token-of-{}-{}", std::process::id(), entity.reference.id),
            ],
        )
        .expect("a runtime row");
}

fn killed(host: &Host, target: Entity, argv: &[&str]) -> Killing {
    let asked = Kill {
        grace: DurationMs::from_ms(if argv.contains(&"--grace") { 1_000 } else { 10_000 }),
        actor: Actor::new("operator", "test"),
        note: None,
        reach: if argv.contains(&"--recursive") {
            Reach::Everything
        } else {
            Reach::Policy
        },
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(kill(host, &[target], &asked)).expect("a report")
}

#[test]
fn every_recorded_kill_comes_out_as_it_did_or_as_its_exception_says() {
    let recorded = vectors("kill_outcomes.json");
    let cases = recorded["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), CASES.len());
    for (case, (name, scene, exception)) in cases.iter().zip(CASES) {
        assert_eq!(case["case"], *name);
        let argv: Vec<&str> = case["argv"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        check(case, &argv, *scene, *exception);
    }
}

fn check(case: &Value, argv: &[&str], scene: Scene, exception: Option<Exception>) {
    let name = &case["case"];
    let home = tempfile::tempdir().expect("a directory");
    let host = host(home.path());
    let (entities, first, target) = match scene {
        Scene::CommandLine | Scene::NotBuilt => return,
        Scene::One(kind, status, recorded) => {
            let (entity, process) = put(&host, (kind, status), None, recorded);
            (vec![entity], vec![process], 0)
        }
        Scene::BelowAn(kind, recorded) => {
            let (parent, process) = put(&host, (kind, "running"), None, recorded);
            let (child, below) = put(
                &host,
                ("session", "running"),
                Some(&parent.reference),
                Recorded::Exactly,
            );
            (vec![parent, child], vec![process, below], 1)
        }
        Scene::Above(kind, status, recorded, (below, of_below)) => {
            let (parent, process) = put(&host, (kind, status), None, recorded);
            let (child, under) = put(&host, ("session", below), Some(&parent.reference), of_below);
            (vec![parent, child], vec![process, under], 0)
        }
    };
    let killing = killed(&host, entities[target].clone(), argv);
    let statuses: Vec<String> = entities
        .iter()
        .map(|entity| {
            host.store()
                .load(&entity.reference.id)
                .expect("the store")
                .expect("it is there")
                .status
        })
        .collect();
    let exit = i32::from(!killing.is_complete());
    let lives = first[0].as_ref().map(Process::lives);
    if let Some((why, code, expected, alive)) = exception {
        assert_eq!((exit, lives), (code, alive), "{name} ({why}): {killing:?}");
        assert_eq!(statuses, expected, "{name} ({why})");
        return;
    }
    assert_eq!(Some(i64::from(exit)), case["exit"].as_i64(), "{name}: {killing:?}");
    if let Some(alive) = case["process_alive_after"].as_bool() {
        assert_eq!(lives, Some(alive), "{name}: {killing:?}");
    }
    for (entity, status) in entities.iter().zip(&statuses) {
        let rows = case["rows"].as_object().expect("rows");
        let row = rows.iter().find(|(key, _)| key.starts_with(&entity.reference.kind));
        let (_, row) = row.expect("a row of that kind");
        assert_eq!(row["status"], **status, "{name}: {}", entity.reference);
        let now = host
            .store()
            .load(&entity.reference.id)
            .expect("the store")
            .expect("it is there");
        if let Some(code) = row["reason_code"].as_str() {
            assert_eq!(now.reason.code, code, "{name}: {}", entity.reference);
            let signal = row["evidence"][0]["signal"]
                .as_str()
                .unwrap_or_default()
                .replace("no_pid", "no_process");
            assert_eq!(now.reason.evidence[0]["signal"], signal, "{name}: {}", entity.reference);
        }
    }
}

/// What a recorded identity is judged to be, in the vectors' words.
fn verdict(identity: &Identity) -> &'static str {
    match classify(identity, &Place::here(machine_name())) {
        Liveness::Alive(_) => "ours",
        Liveness::Gone { why: Gone::Zombie } => "zombie",
        Liveness::Gone { .. } => "not_ours",
        Liveness::Unknown {
            why: Unknown::Incomplete,
        } => "unverifiable",
        Liveness::Unknown { why } => panic!("{why:?}"),
    }
}

#[test]
fn every_recorded_identity_is_judged_as_it_was_or_as_its_exception_says() {
    let recorded = vectors("kill_identity.json");
    let mut judged = 0;
    for case in recorded["kill_identity"].as_array().expect("cases") {
        let word = |name: &str| case[name].as_str().unwrap_or_default();
        let reads = ["open", "create_time_read", "env_read", "cmdline_read"].map(word);
        // A read that was refused cannot be brought about here; a process that ends between two reads is seen by its
        // descriptor, as one that had ended before.
        if reads[..2].contains(&"denied") {
            continue;
        }
        let zombie = reads.contains(&"zombie");
        let gone = reads.contains(&"gone");
        let mut child = Process::new(if zombie { Recorded::Zombie } else { Recorded::Exactly });
        if zombie {
            let pid = child.pid();
            until("it has ended", || process(&pid).is_some_and(|seen| seen.0 == 'Z'));
        }
        let mut identity = by_ticks(&child);
        let times = (case["expected_create_time"].as_f64(), case["live_create_time"].as_f64());
        // Compared by ticks alone: the strongest layers would leave nothing to judge.
        match times {
            (None, _) => identity.start_ticks = None,
            (Some(expected), Some(live)) => {
                let off = ((live - expected) * 100.0).round().abs();
                identity.start_ticks = identity.start_ticks.map(|ticks| ticks - off as u64);
            }
            (Some(_), None) => {}
        }
        if gone {
            child.0.kill().expect("it is ours");
            child.0.wait().expect("it is ours");
        }
        let exact = times
            .0
            .zip(times.1)
            .is_none_or(|(expected, live)| (live - expected).abs() < 0.005);
        let expected = match (word("verdict"), times.0) {
            // A zombie is one when its number is all that is known of it, too.
            (_, _) if zombie || gone => word("verdict"),
            ("ours", Some(_)) if exact => "ours",
            // Ticks are compared exactly.
            ("ours", Some(_)) => "not_ours",
            // Environment and command line are no identity: ticks decide, and without them nothing does.
            (_, Some(_)) if exact => "ours",
            (_, Some(_)) => "not_ours",
            (_, None) => "unverifiable",
        };
        let found = verdict(&identity);
        let found = if zombie && found == "not_ours" { "zombie" } else { found };
        assert_eq!(found, expected, "{case}");
        judged += 1;
    }
    assert!(judged >= 40, "{judged} identities");
}

/// The identity of a child by its ticks.
fn by_ticks(child: &Process) -> Identity {
    let here = Place::here(machine_name());
    Identity {
        host: here.host.clone(),
        boot_id: here.boot_id.clone().unwrap_or_default(),
        pid_namespace: here.pid_namespace,
        time_namespace: here.time_namespace,
        pid: child.0.id().cast_signed(),
        start_ticks: process(&child.pid()).map(|seen| seen.1),
        pidfs_inode: None,
        pidfs_handle: None,
        attempt_token: "token".to_owned(),
    }
}

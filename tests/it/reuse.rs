//! kill and process numbers that are used again: in a pid namespace of the test's own every number is handed out twice.

use std::process::{Child, Command, Stdio};

use runwarden_host::Host;
use runwarden_host::model::{Actor, Create, DurationMs, Entity, KillStep, Reach};
use runwarden_host::process::{Gone, Identity, Liveness, Place, capture, classify, machine_name};
use runwarden_host::verbs::{IdChoice, Kill, create, kill, plan_kill};

use crate::harness::{host, process};

/// Set for the copy of the test that is in a namespace of its own: how many kills it is to make.
const INSIDE: &str = "RUNWARDEN_TEST_OF_REUSE";
/// How often a number is used again while its first holder is judged.
const JUDGED: usize = 2_000;
/// How often a kill and the plan of one are made of it, too; the long suite (`--ignored`) has thousands.
const KILLED: usize = 300;
const KILLED_LONG: usize = 3_000;
const TOKEN: &str = "a-token-that-nobody-carries";

fn unshared(program: &std::ffi::OsStr) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"])
        .arg(program);
    command.stdin(Stdio::null());
    command
}

#[test]
fn kill_of_a_reused_pid_signals_nobody_however_often_and_however_fast_it_is_reused() {
    match std::env::var_os(INSIDE) {
        Some(kills) => reuse(kills.to_str().and_then(|kills| kills.parse().ok()).expect("a number")),
        None => apart(KILLED),
    }
}

#[test]
#[ignore = "thousands of kills take minutes"]
fn kill_of_a_reused_pid_signals_nobody_in_thousands_of_kills() {
    apart(KILLED_LONG);
}

/// Has the test above done in a namespace of its own.
fn apart(kills: usize) {
    let allowed = unshared("true".as_ref()).stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        // No namespaces for this user: numbers cannot be handed out on purpose.
        return;
    }
    let test = std::env::current_exe().expect("this test");
    let name = "reuse::kill_of_a_reused_pid_signals_nobody_however_often_and_however_fast_it_is_reused";
    let inside = unshared(test.as_os_str())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, kills.to_string())
        .output()
        .expect("the namespace was made before");
    let told = String::from_utf8_lossy(&inside.stdout);
    assert!(
        inside.status.success() && told.contains("1 passed"),
        "{told}{}",
        String::from_utf8_lossy(&inside.stderr)
    );
}

/// A process that sleeps; it ends with its holder, and with the namespace.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Self {
        Self(
            Command::new("sleep")
                .arg("600")
                .stdin(Stdio::null())
                .spawn()
                .expect("sleep"),
        )
    }

    /// Starts one under the number that is given, which is free.
    fn with_number(pid: u32) -> Option<Self> {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).expect("the namespace is ours");
        Some(Self::new()).filter(|sleeper| sleeper.0.id() == pid)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn reuse(kills: usize) {
    let home = tempfile::tempdir().expect("a directory");
    let host = host(home.path());
    let here = Place::here(machine_name());
    let (mut judged, mut same_tick) = (0, 0);
    while judged < JUDGED.max(kills) {
        let first = Sleeper::new();
        let pid = first.0.id();
        let identity = capture(pid.cast_signed(), &here, TOKEN).expect("it lives");
        if identity.pidfs_inode.is_none() {
            // Before Linux 6.9 ticks are all there is, and within one of them nothing tells the two apart.
            return;
        }
        drop(first);
        let Some(mut second) = Sleeper::with_number(pid) else {
            continue;
        };
        let ticks = process(&pid.to_string()).map(|seen| seen.1);
        same_tick += usize::from(ticks == identity.start_ticks);
        let answer = classify(&identity, &here);
        assert!(
            matches!(
                answer,
                Liveness::Gone {
                    why: Gone::NoSuchProcess | Gone::Recycled
                }
            ),
            "{answer:?} of {identity:?}"
        );
        if judged < kills {
            is_ended_alone(&host, &identity);
        }
        assert!(matches!(second.0.try_wait(), Ok(None)), "{pid} was signalled");
        judged += 1;
    }
    assert!(same_tick > 0, "no number was used twice within a tick");
}

/// Kills the holder that the identity names, after a plan of it: it is gone, and nobody is signalled.
fn is_ended_alone(host: &Host, identity: &Identity) {
    let id = host.draw_id().expect("entropy");
    let command = Create::new("session", &id, Actor::new("operator", "test"));
    let entity = create(host, &command, IdChoice::Drawn, None)
        .expect("it can be created")
        .entity;
    record(host, &entity, identity);
    let targets = [entity];
    let plan = plan_kill(host, &targets, Reach::Policy).expect("a plan");
    assert_eq!(plan.steps[0].step, KillStep::EndGone);
    let asked = Kill {
        grace: DurationMs::from_ms(0),
        actor: Actor::new("operator", "test"),
        note: None,
        reach: Reach::Policy,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let killing = runtime
        .expect("a runtime")
        .block_on(kill(host, &targets, &asked))
        .expect("a report");
    let told = &killing.targets[0];
    assert_eq!(
        (told.signal.as_str(), told.status.as_str()),
        ("already_dead", "cancelled"),
        "{killing:?}"
    );
}

/// A runtime row that names a process by all that is known of it.
fn record(host: &Host, entity: &Entity, identity: &Identity) {
    let signed = |number: Option<u64>| number.map(u64::cast_signed);
    let store = rusqlite::Connection::open(host.config().database_path()).expect("the store");
    store
        .execute(
            "INSERT INTO runtimes (owner, kind, state, stop_unconfirmed, host, boot_id, pid_namespace, time_namespace, \
             worker_pid, worker_start_ticks, worker_pidfs_inode, worker_pidfs_handle, attempt_token, containment, \
             created_at_ms, updated_at_ms) \
             VALUES (?1, 'local', 'running', 0, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'none', 0, 0)",
            rusqlite::params![
                entity.row,
                identity.host,
                identity.boot_id,
                signed(identity.pid_namespace),
                signed(identity.time_namespace),
                identity.pid,
                signed(identity.start_ticks),
                signed(identity.pidfs_inode),
                identity.pidfs_handle,
                identity.attempt_token,
            ],
        )
        .expect("a runtime row");
}

//! Real processes through the module's public face.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::*;

const BOUND: Duration = Duration::from_secs(30);
const TOKEN: &str = "attempt-1";

fn place() -> Place {
    Place::here("test-machine")
}

/// The shim beside this test's own file, built if need be.
fn shim() -> PathBuf {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let status = std::process::Command::new(env!("CARGO"))
            .args(["build", "-q", "-p", "runwarden-shim"])
            .status();
        assert!(status.expect("cargo").success(), "the shim builds");
        let own = std::env::current_exe().expect("this test");
        own.parent()
            .and_then(|deps| deps.parent())
            .expect("a target directory")
            .join("runwarden-shim")
    };
    SHIM.get_or_init(build).clone()
}

fn command(argv: &[&str]) -> Command {
    Command {
        shim: shim(),
        reference: "run/test".to_owned(),
        attempt_token: TOKEN.to_owned(),
        argv: argv.iter().map(OsString::from).collect(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: "/".into(),
        io: Io::Null,
        grace: Duration::from_secs(10),
        timeout: None,
        stop_by: StopBy::Signal(Signal::TERM),
        parent: ParentTie::Survive,
        log_limit_bytes: 1 << 20,
        containing: Containing::default(),
        finish: None,
    }
}

/// A run directory that leaves neither files nor processes behind.
struct Home {
    run: RunDir,
    _directory: tempfile::TempDir,
    shim: Option<Identity>,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let run = RunDir::create(directory.path().join("r")).expect("a run directory");
        Self {
            run,
            _directory: directory,
            shim: None,
        }
    }

    fn prepare(&mut self, command: Command) -> Held {
        let held = prepare(command, &self.run, &place()).expect("a held worker");
        self.shim = Some(held.shim.clone());
        held
    }

    fn start(&mut self, command: Command) -> Control {
        match self.prepare(command).open_gate().expect("an open gate") {
            Opened::Started(control) => control,
            Opened::Failed { stage, errno } => panic!("failed at {stage:?} with {errno}"),
        }
    }

    /// The record once the shim is gone.
    fn ended(&self) -> ExitRecord {
        eventually(|| (self.run.shim_lock().ok()? == ShimLock::Free).then_some(()));
        match self.run.read_exit(TOKEN).expect("a readable record") {
            ExitFile::Recorded(record) => *record,
            other => panic!("{other:?}"),
        }
    }

    fn stop(&self, patience: Patience) -> StopAsked {
        let shim = self.shim.as_ref().expect("a started shim");
        ask_stop(&self.run, &slot(patience), shim, &place()).expect("a written request")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.shim.is_some() && self.run.shim_lock().is_ok_and(|lock| lock == ShimLock::Held) {
            self.stop(Patience::Force);
            eventually(|| (self.run.shim_lock().ok()? == ShimLock::Free).then_some(()));
        }
    }
}

fn slot(patience: Patience) -> Slot {
    Slot {
        cause: Cause::Kill,
        patience,
        at_ms: runwarden_shim::clock::boottime_ms(),
        code: "run.cancelled.manual_kill".to_owned(),
        actor: "operator:test".to_owned(),
        note: String::new(),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "between two looks at another process, at most for the bound"
)]
fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < BOUND, "not within {BOUND:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A child of the test itself.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        Self(
            std::process::Command::new("sleep")
                .arg("1000")
                .stdin(Stdio::null())
                .spawn()
                .expect("sleep"),
        )
    }

    fn identity(&self) -> Identity {
        capture(self.0.id().cast_signed(), &place(), TOKEN).expect("a living child")
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What became of an identity, in a word.
fn verdict(identity: &Identity, place: &Place) -> String {
    match classify(identity, place) {
        Liveness::Alive(_) => "alive".to_owned(),
        Liveness::Gone { why } => format!("gone {why:?}"),
        Liveness::Unknown { why } => format!("unknown {why:?}"),
    }
}

#[test]
fn a_living_process_is_alive_at_every_level() {
    let child = Sleeper::start();
    let mut identity = child.identity();
    loop {
        assert_eq!(verdict(&identity, &place()), "alive", "at {}", identity.level().text());
        match identity.level() {
            Level::PidfsHandle => identity.pidfs_handle = None,
            Level::PidfsInode => identity.pidfs_inode = None,
            Level::Ticks => identity.start_ticks = None,
            Level::None => unreachable!("a bare number is never alive"),
        }
        if identity.level() == Level::None {
            break;
        }
    }
    assert_eq!(verdict(&identity, &place()), "unknown Incomplete");
}

#[test]
fn a_zombie_and_a_reaped_process_are_gone() {
    let mut child = Sleeper::start();
    let identity = child.identity();
    let Liveness::Alive(process) = classify(&identity, &place()) else {
        panic!("it lives")
    };
    assert_eq!(signal(&process, Signal::KILL).expect("a signal"), Sent::Sent);
    assert!(process.wait_for_exit(BOUND).expect("an answer"));
    assert_eq!(verdict(&identity, &place()), "gone Zombie");
    assert_eq!(signal(&process, Signal::KILL).expect("an answer"), Sent::AlreadyDead);
    child.0.wait().expect("a status");
    assert_eq!(verdict(&identity, &place()), "gone NoSuchProcess");
}

#[test]
fn another_process_with_the_number_is_not_the_recorded_one() {
    let child = Sleeper::start();
    let mut recycled = child.identity();
    recycled.pidfs_handle = None;
    recycled.pidfs_inode = recycled.pidfs_inode.map(|inode| inode + 1);
    assert!(recycled.pidfs_inode.is_none() || verdict(&recycled, &place()) == "gone Recycled");
    recycled.pidfs_inode = None;
    recycled.start_ticks = recycled.start_ticks.map(|ticks| ticks + 1);
    assert_eq!(verdict(&recycled, &place()), "gone Recycled");
}

#[test]
fn what_is_recorded_elsewhere_is_unknown_and_never_gone() {
    let child = Sleeper::start();
    let identity = child.identity();
    let check = |change: &dyn Fn(&mut Identity), expected: &str| {
        let mut changed = identity.clone();
        change(&mut changed);
        assert_eq!(verdict(&changed, &place()), expected);
    };
    check(&|identity| identity.host = "elsewhere".to_owned(), "unknown OtherHost");
    check(
        &|identity| identity.pid_namespace = Some(1),
        "unknown OtherPidNamespace",
    );
    check(&|identity| identity.pid_namespace = None, "unknown Incomplete");
    check(&|identity| identity.boot_id = String::new(), "unknown Incomplete");
    check(&|identity| identity.boot_id = "earlier".to_owned(), "gone EarlierBoot");
    let ticks_elsewhere = |identity: &mut Identity| {
        (identity.pidfs_handle, identity.pidfs_inode, identity.time_namespace) = (None, None, Some(1));
    };
    check(&ticks_elsewhere, "unknown OtherTimeNamespace");
    if identity.level() >= Level::PidfsInode {
        check(&|identity| identity.start_ticks = Some(1), "unknown Contradiction");
    }
}

#[test]
fn an_identity_survives_being_written_down() {
    let identity = capture(std::process::id().cast_signed(), &place(), TOKEN).expect("ourselves");
    let text = serde_json::to_string(&identity).expect("text");
    assert_eq!(serde_json::from_str::<Identity>(&text).expect("an identity"), identity);
}

#[test]
fn a_run_from_start_to_end() {
    let mut home = Home::new();
    let mut control = home.start(command(&["sh", "-c", "echo out; echo err >&2; exit 5"]));
    eventually(|| matches!(control.receive(), Ok(Some(Event::Ended))).then_some(()));
    let record = home.ended();
    assert_eq!(
        (record.exit_code, record.term_signal, record.cause.as_str()),
        (Some(5), None, "exit")
    );
    assert!(record.set.empty && record.spawn_error.is_none() && record.stop.is_none());
    let lengths: Vec<_> = home
        .run
        .segments()
        .expect("segments")
        .into_iter()
        .map(|s| (s.stream, s.bytes))
        .collect();
    assert!(
        lengths.contains(&(Stream::Stdout, 0..4)) && lengths.contains(&(Stream::Stderr, 0..4)),
        "{lengths:?}"
    );
    assert_eq!(
        home.run.read_exit("another").expect("a readable record"),
        ExitFile::OtherAttempt
    );
    eventually(|| matches!(control.receive(), Ok(Some(Event::ShimGone))).then_some(()));
}

#[test]
fn the_last_output_is_that_of_both_streams_in_order_of_arrival() {
    let mut home = Home::new();
    let directory = home.run.path().display().to_string();
    // Each waits until the shim has written down what came before.
    let script = format!(
        "echo one; until [ -s {directory}/stdout.log ]; do :; done
         echo two >&2; until [ -s {directory}/stderr.log ]; do :; done
         echo three; exit 5"
    );
    let mut control = home.start(command(&["sh", "-c", &script]));
    eventually(|| matches!(control.receive(), Ok(Some(Event::Ended))).then_some(()));
    home.ended();
    let last = |bytes| String::from_utf8(last_output(&home.run, bytes).expect("logs")).expect("text");
    assert_eq!(last(100), "one\ntwo\nthree\n");
    assert_eq!(last(8), "o\nthree\n");
    assert_eq!(last(3), "ee\n");
    assert_eq!(last(0), "");
    eventually(|| matches!(control.receive(), Ok(Some(Event::ShimGone))).then_some(()));
}

#[test]
fn an_abandoned_worker_has_executed_nothing() {
    let mut home = Home::new();
    let held = home.prepare(command(&["sh", "-c", "echo ran"]));
    let (worker, shim) = (held.worker.clone(), held.shim.clone());
    assert_eq!(verdict(&worker, &place()), "alive");
    assert_eq!(home.run.shim_lock().expect("a lock"), ShimLock::Held);
    held.abandon().expect("the shim ends");
    assert!(verdict(&worker, &place()).starts_with("gone"));
    assert!(verdict(&shim, &place()).starts_with("gone"));
    let record = home.ended();
    assert_eq!(record.spawn_error.expect("no start").stage, "gate");
    assert_eq!(std::fs::read(home.run.log(Stream::Stdout)).expect("a log"), b"");
}

#[test]
fn a_request_before_the_gate_keeps_it_closed() {
    let mut home = Home::new();
    let held = home.prepare(command(&["sh", "-c", "echo ran"]));
    home.run.append_stop(&slot(Patience::Force)).expect("a written request");
    let opened = held.open_gate().expect("an answer");
    assert!(
        matches!(
            opened,
            Opened::Failed {
                stage: Stage::Stopped,
                ..
            }
        ),
        "{opened:?}"
    );
    assert_eq!(home.ended().cause, "kill");
}

#[test]
fn a_stop_reaches_the_whole_set() {
    let mut home = Home::new();
    let script =
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 0.01; done' & while :; do sleep 0.01; done";
    let _control = home.start(command(&["sh", "-c", script]));
    let shim = home.shim.clone().expect("a shim");
    eventually(|| {
        (members_below(shim.pid)
            .ok()?
            .iter()
            .filter(|member| member.comm == "sh")
            .count()
            >= 2)
            .then_some(())
    });
    let asked = home.stop(Patience::Grace { ms: 50 });
    assert_eq!(
        asked,
        StopAsked {
            slot: 0,
            wake: Wake::Woken
        }
    );
    let record = home.ended();
    let stop = record.stop.expect("a stop");
    assert_eq!(
        (record.term_signal, record.cause.as_str(), stop.forced),
        (Some(9), "kill", true)
    );
    assert_eq!(record.set.proof.as_deref(), Some("subreaper_echild"));
    // A process that is ending lets go of its lock before it counts as gone.
    let shim = home.shim.clone().expect("a started shim");
    eventually(|| matches!(classify(&shim, &place()), Liveness::Gone { .. }).then_some(()));
    let again = home.stop(Patience::Force);
    assert!(
        matches!(
            again,
            StopAsked {
                slot: 1,
                wake: Wake::ShimGone(_)
            }
        ),
        "{again:?}"
    );
}

#[test]
fn a_killed_shim_leaves_a_free_lock_and_a_worker_that_can_be_found() {
    let mut home = Home::new();
    let held = home.prepare(command(&["sleep", "1000"]));
    let (worker, shim) = (held.worker.clone(), held.shim.clone());
    let Opened::Started(mut control) = held.open_gate().expect("an open gate") else {
        panic!("no start")
    };
    let Liveness::Alive(process) = classify(&shim, &place()) else {
        panic!("the shim lives")
    };
    assert_eq!(signal(&process, Signal::KILL).expect("a signal"), Sent::Sent);
    eventually(|| matches!(control.receive(), Ok(Some(Event::ShimGone))).then_some(()));
    eventually(|| (home.run.shim_lock().ok()? == ShimLock::Free).then_some(()));
    assert_eq!(home.run.read_exit(TOKEN).expect("an answer"), ExitFile::Absent);
    let Liveness::Alive(process) = classify(&worker, &place()) else {
        panic!("the worker lives")
    };
    assert_eq!(signal(&process, Signal::KILL).expect("a signal"), Sent::Sent);
    assert!(process.wait_for_exit(BOUND).expect("an answer"));
    assert!(verdict(&worker, &place()).starts_with("gone"));
}

#[test]
fn a_command_no_process_can_have_is_refused_before_anything_is_made() {
    let home = Home::new();
    let check = |change: &dyn Fn(&mut Command)| {
        let mut command = command(&["true"]);
        change(&mut command);
        let refused = prepare(command, &home.run, &place()).expect_err("a refusal");
        assert!(matches!(refused, ProcessError::InvalidCommand { .. }), "{refused:?}");
        assert_eq!(home.run.shim_lock().expect("an answer"), ShimLock::Absent);
    };
    check(&|command| command.argv.clear());
    check(&|command| command.argv.push(OsString::from_vec(b"a\0b".to_vec())));
    check(&|command| command.argv.push("x".repeat(131_072).into()));
    check(&|command| command.directory = OsString::from_vec(b"/\0".to_vec()).into());
    check(&|command| command.environment.push(("A=B".into(), "c".into())));
    check(&|command| command.environment.push(("A".into(), OsString::from_vec(vec![0]))));
}

#[test]
fn a_run_directory_serves_one_shim_at_a_time() {
    let mut home = Home::new();
    let _control = home.start(command(&["sleep", "1000"]));
    let refused = prepare(command(&["true"]), &home.run, &place()).expect_err("a refusal");
    assert!(
        matches!(refused, ProcessError::StartRefused { stage: Stage::Lock, .. }),
        "{refused:?}"
    );
}

#[test]
fn a_shim_that_is_no_shim_is_an_error() {
    let home = Home::new();
    let mut wrong = command(&["true"]);
    wrong.shim = "/no/such/shim".into();
    assert!(matches!(
        prepare(wrong, &home.run, &place()),
        Err(ProcessError::File { .. })
    ));
    let mut wrong = command(&["true"]);
    wrong.shim = "/bin/true".into();
    assert!(matches!(
        prepare(wrong, &home.run, &place()),
        Err(ProcessError::ShimGone)
    ));
}

#[test]
fn closing_standard_input_needs_both_ends() {
    let mut home = Home::new();
    let mut reads = command(&["sh", "-c", "cat; exit 4"]);
    reads.stop_by = StopBy::Stdin;
    reads.io = Io::Inherit(std::fs::File::open("/dev/null").expect("null").into());
    let mut held = home.prepare(reads);
    let stdin = held.stdin.take().expect("a writing end");
    let Opened::Started(mut control) = held.open_gate().expect("an open gate") else {
        panic!("no start")
    };
    control.stop(&slot(Patience::Grace { ms: 60_000 })).expect("a request");
    eventually(|| matches!(control.receive(), Ok(Some(Event::CloseStdin))).then_some(()));
    drop(stdin);
    let record = home.ended();
    assert_eq!((record.exit_code, record.cause.as_str()), (Some(4), "kill"));
    assert_eq!(home.run.stop_requests().expect("requests")[0].0, 12);
}

#[test]
fn only_descendants_are_inside() {
    let mut home = Home::new();
    let _control = home.start(command(&["sleep", "1000"]));
    assert_eq!(is_inside(home.shim.as_ref().expect("a shim"), &place()), Inside::No);
    let parent = rustix::process::getppid().expect("a parent").as_raw_nonzero().get();
    let parent = capture(parent, &place(), TOKEN).expect("a living parent");
    assert_eq!(is_inside(&parent, &place()), Inside::Yes);
    let elsewhere = Place {
        host: "elsewhere".to_owned(),
        ..place()
    };
    assert_eq!(is_inside(&parent, &elsewhere), Inside::Unknown);
}

#[test]
fn every_request_has_a_slot_and_the_first_is_kept() {
    let home = Home::new();
    let slots: Vec<_> = (0..14)
        .map(|_| home.run.append_stop(&slot(Patience::Force)).expect("a slot"))
        .collect();
    assert_eq!(slots, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11, 11]);
    assert_eq!(home.run.stop_requests().expect("requests").len(), 12);
    home.run.begin_attempt().expect("a clean start");
    assert_eq!(home.run.stop_requests().expect("requests").len(), 0);
}

#[test]
fn the_shim_is_written_out_once_and_mended_when_damaged() {
    let cache = tempfile::tempdir().expect("a directory");
    let path = install_shim(cache.path(), b"bytes").expect("a file");
    let inode = |path: &PathBuf| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).expect("a file"));
    let first = inode(&path);
    assert_eq!(install_shim(cache.path(), b"bytes").expect("a file"), path);
    assert_eq!(inode(&path), first);
    std::fs::write(&path, b"damage").expect("damage");
    install_shim(cache.path(), b"bytes").expect("a file");
    assert_eq!(std::fs::read(&path).expect("a file"), b"bytes");
    assert_ne!(install_shim(cache.path(), b"others").expect("a file"), path);
    assert_eq!(std::fs::read_dir(cache.path()).expect("a directory").count(), 2);
}

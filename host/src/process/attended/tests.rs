//! Real programs and what they start.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use runwarden_shim::stat;

use super::*;

const BOUND: Duration = Duration::from_secs(60);
/// Moves out of session, group, environment and family, then stays.
const ESCAPE: &str =
    "setsid env -i /bin/sh -c '(/bin/sh -c \"echo \\$\\$ > $0/escaped; exec sleep 600\" &) ; exit' $0 &";

fn script(text: &str, directory: &Path) -> Program {
    let words = ["/bin/sh".as_ref(), "-c".as_ref(), text.as_ref(), directory.as_os_str()];
    Program {
        argv: words.map(OsString::from).to_vec(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        input: None,
    }
}

/// The number that a process of the test wrote, once it has.
async fn pid_in(path: &Path) -> i32 {
    let until = Instant::now() + BOUND;
    loop {
        if let Ok(text) = fs::read_to_string(path)
            && let Some(pid) = text.strip_suffix('\n')
        {
            return pid.parse().unwrap();
        }
        assert!(Instant::now() < until, "{} was not written", path.display());
        tokio::task::yield_now().await;
    }
}

/// Whether a process of the test lives; it does not afterwards.
fn lived(pid: i32) -> bool {
    if !stat::read(pid).is_ok_and(|stat| !stat.is_dead()) {
        return false;
    }
    let process = PidFd::open(pid).unwrap();
    signal(&process, Signal::KILL).unwrap();
    process.wait_for_exit(BOUND).unwrap()
}

#[tokio::test]
async fn whoever_left_session_group_environment_and_parent_is_killed_too() {
    let home = tempfile::tempdir().unwrap();
    let text = format!("{ESCAPE} trap '' TERM; echo $$ > $0/worker; while :; do sleep 600; done");
    let program = script(&text, home.path());
    let escaped = home.path().join("escaped");
    let worker = home.path().join("worker");
    let attended = attend(&program, BOUND);
    let (escaped, worker) = tokio::select! {
        ended = attended => panic!("ended: {ended:?}"),
        pids = async { (pid_in(&escaped).await, pid_in(&worker).await) } => pids,
    };
    // Dropped: by now both are dead.
    assert_eq!(
        (lived(worker), lived(escaped)),
        (false, false),
        "the program, and what it started"
    );
}

#[tokio::test]
async fn at_its_time_a_program_is_killed_with_what_it_started_and_nobody_is_left() {
    let home = tempfile::tempdir().unwrap();
    let program = script("echo $$ > $0/worker; echo said; sleep 600 & sleep 600", home.path());
    let attended = attend(&program, Duration::from_secs(1)).await.unwrap();
    assert_eq!(attended.end, AttendedEnd::OutOfTime(Vec::new()));
    assert_eq!(attended.output, b"said\n");
    let worker = pid_in(&home.path().join("worker")).await;
    assert!(stat::read(worker).is_err(), "it was not reaped");
}

#[tokio::test]
async fn an_attempt_ends_with_its_program_whoever_holds_its_streams() {
    let home = tempfile::tempdir().unwrap();
    let program = script(
        "(echo $$ > $0/daemon; exec sleep 600) & sleep 0; echo $! > $0/left; exit 3",
        home.path(),
    );
    let attended = attend(&program, BOUND).await.unwrap();
    assert_eq!(attended.end, AttendedEnd::Exited(3));
    let left = pid_in(&home.path().join("left")).await;
    assert!(lived(left), "a program that ends by itself may leave something running");
}

#[tokio::test]
async fn the_end_of_the_output_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let program = script("head -c 300000 /dev/zero; echo last >&2", home.path());
    let attended = attend(&program, BOUND).await.unwrap();
    assert_eq!(attended.output.len(), OUTPUT_BYTES_MAX);
    assert!(attended.output.ends_with(b"\0last\n"));
}

#[tokio::test]
async fn many_programs_at_once_each_get_their_own_end() {
    let home = tempfile::tempdir().unwrap();
    let programs: Vec<_> = (0..8)
        .map(|code| script(&format!("exit {code}"), home.path()))
        .collect();
    let tasks: Vec<_> = programs
        .into_iter()
        .map(|program| tokio::spawn(async move { attend(&program, BOUND).await.unwrap().end }))
        .collect();
    for (code, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.await.unwrap(), AttendedEnd::Exited(i32::try_from(code).unwrap()));
    }
}

/// Starts itself anew each time, away from session, environment and parent, holds a pipe, and ends.
const RELAY: &str = "exec 9>\"$1/held\"\nsetsid env -i /bin/sh \"$0\" \"$1\" &\n";

#[tokio::test]
async fn a_chain_of_processes_that_each_start_the_next_and_end_is_broken() {
    let home = tempfile::tempdir().unwrap();
    let (relay, held) = (home.path().join("relay"), home.path().join("held"));
    fs::write(&relay, RELAY).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&held).status().unwrap();
    assert!(made.success());
    let mut options = fs::OpenOptions::new();
    let mut reader = options.read(true).custom_flags(libc::O_NONBLOCK).open(&held).unwrap();
    let program = script("/bin/sh $0/relay $0; exec sleep 600", home.path());
    let attended = attend(&program, Duration::from_secs(1)).await.unwrap();
    let left = reader.read(&mut [0]);
    // A chain that was not broken ends here.
    fs::remove_file(&relay).unwrap();
    assert_eq!(attended.end, AttendedEnd::OutOfTime(Vec::new()));
    assert!(matches!(left, Ok(0)), "somebody holds the pipe: {left:?}");
}

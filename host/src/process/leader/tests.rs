//! Real programs.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs::{self, File, Permissions};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use super::*;

const BOUND: Duration = Duration::from_secs(60);
const PAGE_BYTES: usize = 4096;

fn executable(argv: &[&str], path: &str) -> Executable {
    let argv: Vec<_> = argv.iter().map(|word| word.as_bytes().to_vec()).collect();
    Executable::new(&argv, &[format!("PATH={path}").into_bytes()]).unwrap()
}

/// What the program writes, and its exit code.
fn run(argv: &[&str], path: &str) -> io::Result<(String, Option<i32>)> {
    let (mut reader, writer) = io::pipe()?;
    let leader = start_leader(&executable(argv, path), File::open("/dev/null")?, &writer)?;
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text)?;
    Ok((text, leader.reap()?.exit_status()))
}

fn written(argv: &[&str]) -> String {
    let (text, code) = run(argv, "/usr/bin:/bin").unwrap();
    assert_eq!(code, Some(0), "{text}");
    text
}

fn why_not(argv: &[&str], path: &str) -> Option<i32> {
    run(argv, path).expect_err("it cannot be executed").raw_os_error()
}

fn script(directory: &Path, text: &str, mode: u32) {
    let path = directory.join("program");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_program_leads_a_session_in_the_root_and_has_its_streams_alone() {
    let stat = written(&["cat", "/proc/self/stat"]);
    let fields: Vec<i64> = stat
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .skip(1)
        .take(3)
        .map(|field| field.parse().unwrap())
        .collect();
    let pid: i64 = stat.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(
        fields,
        [i64::from(std::process::id()), pid, pid],
        "parent, group, session"
    );
    assert_eq!(written(&["readlink", "/proc/self/cwd"]), "/\n");
    // The fourth is the directory that is listed.
    assert_eq!(written(&["ls", "/proc/self/fd"]), "0\n1\n2\n3\n");
}

#[test]
fn a_program_starts_with_no_signal_blocked_and_none_ignored_that_we_ignore() {
    // SAFETY: the set is initialised before it is read; this thread is the test's own.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), null_mut());
    }
    let text = written(&["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]);
    assert!(text.contains("SigBlk:\t0000000000000000\n"), "{text}");
    let ignored = text.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    assert_eq!(ignored & (1 << (libc::SIGPIPE - 1)), 0, "{text}");
    let blocked = fs::read_to_string("/proc/thread-self/status").unwrap();
    assert!(
        !blocked.contains("SigBlk:\t0000000000000000\n"),
        "ours are as they were"
    );
}

#[test]
fn a_program_that_cannot_be_executed_is_told_with_the_reason_of_exec() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().to_str().unwrap();
    assert_eq!(why_not(&["/nonexistent/program"], directory), Some(libc::ENOENT));
    assert_eq!(why_not(&["program"], directory), Some(libc::ENOENT));
    script(home.path(), "exit 7", 0o600);
    assert_eq!(why_not(&["program"], directory), Some(libc::EACCES));
    assert_eq!(
        why_not(&["/dev/null/program"], directory),
        Some(libc::ENOENT),
        "as execvp has it"
    );
}

#[test]
fn a_file_that_names_nobody_who_runs_it_is_run_with_its_arguments() {
    let home = tempfile::tempdir().unwrap();
    script(home.path(), "echo $# \"$1\"; exit 7", 0o700);
    let told = run(&["program", "a  b"], home.path().to_str().unwrap()).unwrap();
    assert_eq!(told, ("1 a  b\n".to_owned(), Some(7)));
}

#[test]
fn a_program_ends_with_the_thread_that_started_it() {
    let sleep = || {
        let (null, program) = (
            File::open("/dev/null").unwrap(),
            executable(&["sleep", "600"], "/usr/bin:/bin"),
        );
        start_leader(&program, &null, &null).unwrap()
    };
    let leader = std::thread::spawn(sleep).join().unwrap();
    assert!(leader.wait_for_exit(BOUND).unwrap(), "it lives");
    assert_eq!(leader.reap().unwrap().terminating_signal(), Some(libc::SIGKILL));
}

/// Pages that this thread faulted for.
fn faults() -> i64 {
    // SAFETY: `rusage` is plain data that the call fills.
    unsafe {
        let mut usage: libc::rusage = zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_minflt
    }
}

#[test]
fn starting_a_program_costs_no_page_of_ours() {
    const PAGES: usize = 4096;
    let mut memory = vec![1_u8; PAGES * PAGE_BYTES];
    let mut touch = || {
        memory
            .iter_mut()
            .step_by(PAGE_BYTES)
            .for_each(|byte| *std::hint::black_box(byte) += 1)
    };
    touch();
    assert_eq!(written(&["true"]), "");
    let before = faults();
    touch();
    let faulted = faults() - before;
    assert!(faulted < 256, "{faulted} of {PAGES} pages were made to be copied");
}

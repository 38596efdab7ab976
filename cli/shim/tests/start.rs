//! Starting: the gate, the stages of failure, bytes as they are.

mod harness;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use harness::{Run, assert_has, eventually};
use runwarden_shim::files;
use runwarden_shim::message::{FromShim, Stage, ToShim};
use runwarden_shim::slot::Patience;

#[test]
fn an_exit_code_is_recorded() {
    let exit = Run::shell("exit 42").finish();
    assert_has(
        &exit,
        &[
            r#""v":1,"token":"token-1","worker_pid":"#,
            r#""raw_status":10752,"exit_code":42,"term_signal":null,"core_dumped":false,"cause":"exit","stop":null"#,
            r#""spawn_error":null,"set":{"empty":true,"proof":"subreaper_echild","survivors":[]"#,
        ],
    );
}

#[test]
fn a_death_by_signal_has_no_exit_code() {
    let exit = Run::shell("kill -9 $$").finish();
    assert_has(
        &exit,
        &[r#""exit_code":null,"term_signal":9,"core_dumped":false,"cause":"signal""#],
    );
}

#[test]
fn nothing_runs_when_the_starter_leaves_before_the_gate_opens() {
    let mut started = Run::shell("echo ran; touch ran").with(|_| ()).prepare();
    started.control = None;
    let exit = started.exit_file();
    assert_has(
        &exit,
        &[r#""spawn_error":{"stage":"gate","errno":0}"#, r#""exit_code":null"#],
    );
    assert_eq!(started.read(files::STDOUT_LOG), b"");
}

#[test]
fn nothing_runs_when_a_stop_came_before_the_gate_opened() {
    let run = Run::shell("echo ran");
    harness::write_slot(&run.directory, 0, Patience::Force);
    let mut started = run.prepare();
    started.send(&ToShim::Go);
    assert_eq!(
        started.receive_kept(),
        FromShim::StartFailed {
            stage: Stage::Stopped,
            errno: 0
        }
    );
    assert_has(&started.exit_file(), &[r#""cause":"kill""#, r#""stage":"stopped""#]);
    assert_eq!(started.read(files::STDOUT_LOG), b"");
}

#[track_caller]
fn check_failure(run: Run, stage: Stage, errno: i32) {
    let mut started = run.prepare();
    started.send(&ToShim::Go);
    assert_eq!(started.receive_kept(), FromShim::StartFailed { stage, errno });
    let exit = started.exit_file();
    assert_has(
        &exit,
        &[&format!(
            r#""spawn_error":{{"stage":"{}","errno":{errno}}}"#,
            stage.text()
        )],
    );
    assert_has(&exit, &[r#""raw_status":null,"exit_code":null,"term_signal":null"#]);
}

#[test]
fn a_failed_start_names_its_stage() {
    check_failure(Run::of(&["no-such-program"]), Stage::Exec, libc::ENOENT);
    check_failure(Run::of(&["/no/such/program"]), Stage::Exec, libc::ENOENT);
    check_failure(Run::of(&["/etc/passwd"]), Stage::Exec, libc::EACCES);
    check_failure(
        Run::of(&["true"]).with(|spec| spec.directory = b"/no/such".to_vec()),
        Stage::Directory,
        libc::ENOENT,
    );
    check_failure(
        Run::of(&["true"]).with(|spec| spec.directory = b"/etc/passwd".to_vec()),
        Stage::Directory,
        libc::ENOTDIR,
    );
}

#[test]
fn a_start_that_cannot_reserve_its_files_is_refused() {
    let run = Run::of(&["true"]);
    std::fs::create_dir(run.directory.join(files::EXIT_RESERVES[1])).expect("an obstacle");
    let refused = std::panic::catch_unwind(|| run.prepare()).err().expect("no worker");
    let text = refused.downcast_ref::<String>().expect("a message");
    assert!(text.contains("Reserve"), "{text}");
}

#[test]
fn a_relative_program_is_relative_to_the_working_directory() {
    let run = Run::of(&["./tool"]);
    let tool = run.directory.join("tool");
    // No shebang: as execvp does, the shell runs it.
    std::fs::write(&tool, "exit 7\n").expect("a script");
    std::fs::set_permissions(&tool, Permissions::from_mode(0o700)).expect("a mode");
    let directory = run.spec.run_directory.clone();
    assert_has(
        &run.with(|spec| spec.directory = directory).finish(),
        &[r#""exit_code":7"#],
    );
}

#[test]
fn arguments_environment_and_output_keep_every_byte() {
    let run = Run::of(&[
        "sh",
        "-c",
        r#"printf '%s|%s|' "$1" "$ODD"; printf '\377\000\n'; pwd; echo error >&2"#,
        "sh",
    ]);
    let odd = b"a\xff\n \t\x01\"'$(x)".to_vec();
    let run = run.with(|spec| {
        spec.argv.push(odd.clone());
        spec.environment.push([b"ODD=", odd.as_slice()].concat());
    });
    let directory = run.directory.join(std::ffi::OsString::from("d\u{fc} "));
    std::fs::create_dir(&directory).expect("a directory");
    let name = std::os::unix::ffi::OsStrExt::as_bytes(directory.as_os_str()).to_vec();
    let started = run.with(|spec| spec.directory = name.clone()).start();
    assert_has(&started.exit_file(), &[r#""exit_code":0"#]);
    let expected = [&odd[..], b"|", &odd, b"|\xff\0\n", &name, b"\n"].concat();
    assert_eq!(started.read(files::STDOUT_LOG), expected);
    assert_eq!(started.read(files::STDERR_LOG), b"error\n");
    let order = started.read(files::ORDER_LOG);
    assert!(
        !order.is_empty() && order.len().is_multiple_of(16),
        "{} bytes of order",
        order.len()
    );
}

#[test]
fn two_megabytes_of_arguments_arrive() {
    let argument = "x".repeat(100_000);
    let mut argv = vec!["sh", "-c", "echo $#", "sh"];
    argv.resize(4 + 18, &argument);
    let started = Run::of(&argv).start();
    assert_has(&started.exit_file(), &[r#""exit_code":0"#]);
    assert_eq!(started.read(files::STDOUT_LOG), b"18\n");
}

#[test]
fn much_output_arrives_whole() {
    let started = Run::shell("head -c 5000000 /dev/zero | tr '\\0' x").start();
    assert_has(&started.exit_file(), &[r#""exit_code":0"#, r#""lost_output_bytes":0"#]);
    let log = started.read(files::STDOUT_LOG);
    assert!(
        log.len() == 5_000_000 && log.iter().all(|byte| *byte == b'x'),
        "{} bytes",
        log.len()
    );
}

#[test]
fn a_program_has_default_signals_and_only_standard_descriptors() {
    let started = Run::shell("grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | wc -l").start();
    started.exit_file();
    let log = String::from_utf8(started.read(files::STDOUT_LOG)).expect("text");
    // ls has its three streams and the directory it reads.
    assert_eq!(log, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n4\n");
}

#[test]
fn a_pseudo_terminal_is_a_terminal_of_the_size_that_was_asked_for() {
    let script = "test -t 0 && test -t 1 && test -t 2 && stty size; read line; echo got $line; stty size";
    let mut started = Run::shell(script)
        .with(|spec| spec.io = runwarden_shim::spec::IoMode::Pty)
        .start();
    started.wait_for(files::OUTPUT_LOG, "24 80");
    let window = runwarden_shim::spec::Window {
        rows: 50,
        columns: 132,
        width: 0,
        height: 0,
    };
    started.send(&ToShim::Window(window));
    let master = started.fds.pop().expect("the master comes third");
    // What is typed goes past the shim, so the shim has to have been there first.
    eventually("the new size", || (harness::rows_of(&master) == 50).then_some(()));
    std::io::Write::write_all(&mut std::fs::File::from(master), b"hello\n").expect("typing");
    assert_has(&started.exit_file(), &[r#""exit_code":0"#]);
    let log = String::from_utf8(started.read(files::OUTPUT_LOG)).expect("text");
    assert!(log.contains("got hello\r\n50 132\r\n"), "{log:?}");
}

#[test]
fn standard_input_and_the_process_group_are_the_callers() {
    let (reader, writer) = harness::pipe();
    let mut run = Run::shell("cat; ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat");
    run.stdin = Some(reader);
    let started = run
        .with(|spec| spec.io = runwarden_shim::spec::IoMode::InheritStdin)
        .start();
    std::io::Write::write_all(&mut std::fs::File::from(writer), b"typed\n").expect("typing");
    started.exit_file();
    // SAFETY: no memory involved.
    let group = unsafe { libc::getpgrp() };
    let log = String::from_utf8(started.read(files::STDOUT_LOG)).expect("text");
    let words: Vec<_> = log.split_whitespace().collect();
    assert_eq!(words, ["typed", group.to_string().as_str()]);
}

#[test]
fn a_program_whose_reader_is_gone_gets_sigpipe() {
    let started = Run::shell("while :; do echo y; done").start();
    started.send(&ToShim::CloseStream(runwarden_shim::message::Stream::Stdout));
    // dash reports the failed write and goes on or dies by the signal, depending on the builtin; yes(1) is plain.
    drop(started);
    let started = Run::of(&["yes"]).start();
    started.send(&ToShim::CloseStream(runwarden_shim::message::Stream::Stdout));
    assert_has(&started.exit_file(), &[r#""term_signal":13"#]);
}

#[test]
fn an_idle_shim_is_small() {
    let started = Run::of(&["sleep", "1000"]).with(|spec| {
        spec.environment
            .push([b"BIG=".as_slice(), &vec![b'x'; 100_000]].concat());
    });
    let started = started.start();
    let smaps = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", started.shim)).expect("a living shim");
    let kilobytes = |key: &str| -> u64 {
        smaps
            .lines()
            .filter(|line| line.starts_with(key))
            .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
            .sum()
    };
    let private = kilobytes("Private_Clean") + kilobytes("Private_Dirty");
    let (resident, dirty) = (kilobytes("Rss"), kilobytes("Private_Dirty"));
    #[expect(clippy::print_stderr, reason = "a measurement to be read in the test's output")]
    {
        eprintln!("idle shim: {resident} KiB resident, {private} KiB private, {dirty} KiB private and dirty");
    }
    assert!(resident <= 4096, "{resident} KiB resident");
}

#[test]
fn a_starter_that_leaves_ends_of_children_unheard_does_not_deafen_the_shim() {
    let mut run = Run::shell("exit 6");
    run.deaf = true;
    assert_has(&run.finish(), &[r#""exit_code":6"#]);
}

#[test]
fn nothing_is_dropped_before_the_starter_has_read_it() {
    let run = Run::of(&["seq", "1", "400000"]).with(|spec| spec.log_limit_bytes = 1 << 20);
    let started = run.start();
    let length = || std::fs::metadata(started.path(files::STDOUT_LOG)).map_or(0, |log| log.len());
    eventually("full logs", || (length() > 1 << 20).then_some(()));
    let log = std::fs::File::open(started.path(files::STDOUT_LOG)).expect("a log");
    assert_eq!(runwarden_shim::hole::dropped(&log), None);
    started.send(&ToShim::Seen {
        stream: runwarden_shim::message::Stream::Stdout,
        offset: u64::MAX,
    });
    assert_has(&started.exit_file(), &[r#""exit_code":0"#]);
    let dropped = runwarden_shim::hole::dropped(&log).expect("a hole");
    assert_eq!((dropped.start, length()), (64 << 10, 2_688_895));
}

//! Stopping: the whole set, with proof.

mod harness;

use std::time::{Duration, Instant};

use harness::{Run, Started, assert_has, eventually};
use runwarden_shim::files;
use runwarden_shim::message::ToShim;
use runwarden_shim::slot::{self, Cause, Patience, Slot};
use runwarden_shim::spec::{IoMode, ParentTie, StopBy};

const GRACE: Patience = Patience::Grace { ms: 300 };

fn printed_pid(started: &Started) -> i32 {
    eventually("a pid in the log", || {
        let log = String::from_utf8(started.read(files::STDOUT_LOG)).ok()?;
        log.split_once('\n')?.0.trim().parse().ok()
    })
}

#[test]
fn a_polite_request_is_enough_for_a_polite_program() {
    let started = Run::shell("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done").start();
    started.wait_for(files::STDOUT_LOG, "ready");
    started.ask_stop(0, Patience::Grace { ms: 60_000 });
    let exit = started.exit_file();
    assert_has(
        &exit,
        &[
            r#""exit_code":3,"term_signal":null,"core_dumped":false,"cause":"kill","stop":{"cause":"kill","slot":0,"#,
            r#""signal":"sigterm","forced":false,"given_up":false}"#,
            r#""empty":true"#,
        ],
    );
    assert_eq!(started.read(files::STDOUT_LOG), b"ready\nbye\n");
}

#[test]
fn a_program_that_counts_is_asked_once() {
    let script = "trap 'echo term' TERM; echo ready; while :; do sleep 0.01; done";
    let started = Run::shell(script).start();
    started.wait_for(files::STDOUT_LOG, "ready");
    started.ask_stop(0, GRACE);
    assert_has(
        &started.exit_file(),
        &[r#""term_signal":9"#, r#""signal":"sigkill","forced":true"#],
    );
    assert_eq!(started.read(files::STDOUT_LOG), b"ready\nterm\n");
}

#[test]
fn a_double_fork_into_a_new_session_is_stopped_too() {
    let script = "setsid sh -c 'trap \"\" TERM; (echo $$; exec sleep 1000) & exec sleep 1000' & wait";
    let started = Run::shell(script).start();
    let pid = printed_pid(&started);
    started.ask_stop(0, GRACE);
    assert_has(&started.exit_file(), &[r#""empty":true,"proof":"subreaper_echild""#]);
    started.assert_gone(pid);
}

#[test]
fn a_stopped_program_is_woken_to_hear_the_request() {
    let started = Run::shell("trap 'exit 5' TERM; echo $$; kill -STOP $$; exit 6").start();
    let pid = printed_pid(&started);
    eventually("a stopped worker", || {
        (runwarden_shim::stat::read(pid).ok()?.state == b'T').then_some(())
    });
    started.ask_stop(0, Patience::Grace { ms: 60_000 });
    assert_has(&started.exit_file(), &[r#""exit_code":5"#, r#""cause":"kill""#]);
}

#[test]
fn a_hopper_that_is_never_one_process_for_long_is_stopped() {
    // Each process starts the next in a session of its own and leaves.
    let hop = "import os\nprint(os.getpid(), flush=True)\nwhile True:\n  if os.fork(): os._exit(0)\n  os.setsid()\n";
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return;
    }
    let started = Run::of(&["python3", "-c", hop]).start();
    started.ended();
    let since = Instant::now();
    started.ask_stop(0, Patience::Force);
    assert_has(
        &started.exit_file(),
        &[
            r#""exit_code":0,"term_signal":null,"core_dumped":false,"cause":"exit""#,
            r#""empty":true"#,
        ],
    );
    #[expect(clippy::print_stderr, reason = "a measurement to be read in the test's output")]
    {
        eprintln!("hopper stopped after {:?}", since.elapsed());
    }
}

#[test]
fn a_time_limit_stops_the_set_and_says_so() {
    let started = Run::shell("sleep 1000").with(|spec| spec.timeout_ms = 50).start();
    assert_has(
        &started.exit_file(),
        &[
            r#""term_signal":15"#,
            r#""cause":"timeout","stop":{"cause":"timeout","slot":12"#,
        ],
    );
}

#[test]
fn the_earliest_kill_wins() {
    let started = Run::shell("trap '' TERM; echo ready; while :; do sleep 0.01; done").start();
    started.wait_for(files::STDOUT_LOG, "ready");
    started.ask_stop(0, Patience::Grace { ms: 600_000 });
    started.ask_stop(1, GRACE);
    started.ask_stop(2, Patience::Grace { ms: 600_000 });
    assert_has(&started.exit_file(), &[r#""slot":0"#, r#""forced":true"#]);
}

#[test]
fn the_end_of_the_starter_ends_a_run_that_was_to_die_with_it() {
    let run = Run::shell("setsid sleep 1000 & echo ready; sleep 1000");
    let mut started = run.with(|spec| spec.parent = ParentTie::DieWithStarter).start();
    started.wait_for(files::STDOUT_LOG, "ready");
    started.control = None;
    assert_has(&started.exit_file(), &[r#""cause":"parent_gone""#, r#""empty":true"#]);
}

#[test]
fn the_end_of_the_starter_means_nothing_to_another_run() {
    let mut started = Run::shell("read line < ready; exit 9").with(|_| ());
    let fifo = started.directory.join("ready");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("mkfifo")
            .success()
    );
    started.spec.directory.clone_from(&started.spec.run_directory);
    let mut started = started.start();
    started.control = None;
    std::fs::write(fifo, "go\n").expect("the worker reads");
    assert_has(&started.exit_file(), &[r#""exit_code":9"#, r#""cause":"exit""#]);
}

#[test]
fn a_request_from_outside_is_noted_before_it_is_obeyed() {
    let started = Run::shell("sleep 1000").start();
    // SAFETY: the shim lives, its lock is held.
    unsafe { libc::kill(started.shim, libc::SIGTERM) };
    assert_has(&started.exit_file(), &[r#""cause":"terminate""#, r#""slot":12"#]);
    let content = started.read(files::STOP);
    assert_eq!(content.len(), 16 * 1024);
    let noted = slot::at(&content, 12).expect("a slot");
    assert_eq!(noted.cause, Cause::Terminate);
}

#[test]
fn closing_standard_input_can_be_the_request() {
    let (reader, writer) = harness::pipe();
    let mut run = Run::shell("cat; exit 4").with(|spec| spec.stop_by = StopBy::Stdin);
    (run.stdin, run.stdin_writer) = (Some(reader), Some(writer));
    let started = run.start();
    started.ask_stop(0, Patience::Grace { ms: 60_000 });
    assert_has(
        &started.exit_file(),
        &[r#""exit_code":4"#, r#""cause":"kill""#, r#""signal":"none""#],
    );
}

#[test]
fn an_adopted_child_that_ends_first_is_not_taken_for_the_worker() {
    // Waits until the shim has reaped the orphan: a zombie still answers to its number.
    let script = "p=$(sh -c 'sh -c \"exit 79\" >&- & echo $!'); while kill -0 $p 2>&-; do :; done; exit 3";
    assert_has(&Run::shell(script).finish(), &[r#""exit_code":3"#]);
}

#[test]
fn a_grandchild_that_holds_the_output_open_delays_nothing_and_is_kept_in_view() {
    let started = Run::shell("sh -c 'echo $$; read x < fifo; echo late' & exit 2").with(|spec| {
        spec.directory.clone_from(&spec.run_directory);
    });
    let fifo = started.directory.join("fifo");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("mkfifo")
            .success()
    );
    let mut started = started.start();
    assert_eq!(started.receive_kept(), runwarden_shim::message::FromShim::Ended);
    let pid = printed_pid(&started);
    let exit = started.ended();
    assert_has(
        &exit,
        &[
            r#""exit_code":2"#,
            r#""empty":false,"proof":null"#,
            &format!(r#"{{"pid":{pid},"comm":"sh""#),
        ],
    );
    std::fs::write(fifo, "go\n").expect("the grandchild reads");
    assert_has(
        &started.exit_file(),
        &[r#""exit_code":2"#, r#""empty":true,"proof":"subreaper_echild""#],
    );
    assert_eq!(started.read(files::STDOUT_LOG), format!("{pid}\nlate\n").into_bytes());
}

#[test]
fn the_finishing_command_runs_after_the_end_and_again_when_a_lingering_set_is_empty() {
    let run = Run::shell("sleep 1000 & exit 0");
    let finish = [
        b"/bin/sh".as_slice(),
        b"-c",
        b"echo finished $MARK; cat exit.json >/dev/null",
    ];
    let started = run.with(|spec| {
        spec.finish = finish.iter().map(|word| word.to_vec()).collect();
        spec.environment.push(b"MARK=m1".to_vec());
    });
    let started = started.start();
    started.wait_for(files::FINISH_LOG, "finished m1\n");
    started.ask_stop(0, GRACE);
    assert_has(
        &started.exit_file(),
        &[r#""cause":"exit","stop":{"cause":"kill""#, r#""empty":true"#],
    );
    let log = String::from_utf8(started.read(files::FINISH_LOG)).expect("text");
    assert_eq!(log.matches("finished m1\n").count(), 2, "{log}");
}

#[test]
fn a_shim_that_waits_for_its_finishing_command_sleeps() {
    let run = Run::shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    let fifo = run.directory.join("fifo");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("mkfifo")
            .success()
    );
    let finish = format!("echo waiting; read line < {}", fifo.display());
    let finish = ["/bin/sh", "-c", &finish].map(|word| word.as_bytes().to_vec());
    let started = run.with(|spec| spec.finish = finish.to_vec()).start();
    started.wait_for(files::STDOUT_LOG, "ready");
    started.ask_stop(0, Patience::Grace { ms: 10 });
    started.wait_for(files::FINISH_LOG, "waiting");
    // A shim that polls without pause would never be seen asleep for long.
    let asleep = || runwarden_shim::stat::read(started.shim).is_ok_and(|stat| stat.state == b'S');
    let mut seen = 0;
    eventually("a sleeping shim", || {
        seen = if asleep() { seen + 1 } else { 0 };
        (seen >= 20).then_some(())
    });
    std::fs::write(fifo, "go\n").expect("the finishing command reads");
    assert_has(&started.exit_file(), &[r#""term_signal":9"#]);
}

#[test]
fn a_finishing_command_whose_file_is_gone_is_started_from_its_image() {
    let mut run = Run::of(&["true"]).with(|spec| spec.finish = vec![b"/no/such/file".to_vec(), b"word".to_vec()]);
    run.image = Some(std::fs::File::open("/bin/echo").expect("echo").into());
    let started = run.start();
    started.exit_file();
    assert_eq!(started.read(files::FINISH_LOG), b"word\n");
}

#[test]
fn the_callers_process_group_is_never_signalled() {
    // This test is in that group: if it were signalled, nothing would be left to fail.
    let run = Run::shell("sleep 1000 & echo ready; wait").with(|spec| spec.io = IoMode::InheritStdin);
    let started = run.start();
    started.wait_for(files::STDOUT_LOG, "ready");
    started.ask_stop(0, GRACE);
    assert_has(&started.exit_file(), &[r#""term_signal":15"#, r#""empty":true"#]);
}

#[test]
fn a_stop_of_a_terminal_run_leaves_nothing() {
    let run =
        Run::shell("trap '' HUP TERM; sleep 1000 & echo ready; wait; sleep 1000").with(|spec| spec.io = IoMode::Pty);
    let started = run.start();
    started.wait_for(files::OUTPUT_LOG, "ready");
    started.ask_stop(0, GRACE);
    assert_has(
        &started.exit_file(),
        &[r#""term_signal":9"#, r#""forced":true"#, r#""empty":true"#],
    );
}

#[test]
fn a_request_over_the_control_socket_is_noted_too() {
    let started = Run::shell("sleep 1000").start();
    let slot = Slot {
        cause: Cause::Interrupt,
        patience: GRACE,
        at_ms: runwarden_shim::clock::boottime_ms(),
        code: "run.cancelled.interrupt".to_owned(),
        actor: "operator:test".to_owned(),
        note: "enough".to_owned(),
    };
    started.send(&ToShim::Stop(slot.encode()));
    assert_has(&started.exit_file(), &[r#""cause":"interrupt""#, r#""slot":12"#]);
    assert_eq!(slot::at(&started.read(files::STOP), 12), Some(slot));
}

#[test]
fn a_lingering_set_is_stopped_when_its_starter_leaves() {
    let run = Run::shell("sleep 1000 & exit 0").with(|spec| spec.parent = ParentTie::DieWithStarter);
    let mut started = run.start();
    started.ended();
    started.control = None;
    assert_has(
        &started.exit_file(),
        &[r#""cause":"exit","stop":{"cause":"parent_gone""#, r#""empty":true"#],
    );
}

#[test]
fn a_stop_is_quick() {
    let started = Run::shell("sleep 1000 & sleep 1000 & wait").start();
    let since = Instant::now();
    started.ask_stop(0, Patience::Grace { ms: 600_000 });
    started.exit_file();
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
}

//! wait: its line, its exit codes, its signals.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::harness::{Home, PROGRAM, answered, until_watching};

fn ended(home: &Home, id: &str, status: &str, code: &str) {
    home.done(&["create", "session", "--id", id]);
    home.done(&["transition", id, status, "--reason", code]);
}

#[test]
fn a_line_for_each_mention_and_the_worst_of_them_as_exit_code() {
    let home = Home::new();
    ended(&home, "good", "completed", "run.completed.ok");
    ended(&home, "poor", "failed", "run.failed.exception");
    home.done(&["create", "session", "--id", "slow"]);
    let good = "good\tstatus=completed\treason=run.completed.ok\tartifact_dir=-\texit_code=-\n";
    let poor = "poor\tstatus=failed\treason=run.failed.exception\tartifact_dir=-\texit_code=-\n";
    let cases: [(&[&str], i32, String); 9] = [
        (&["good"], 0, good.to_owned()),
        (&["good", "good"], 0, good.repeat(2)),
        (&["good", "session/good"], 0, good.repeat(2)),
        (&["good", "poor"], 1, format!("{good}{poor}")),
        (&["good", "nope"], 2, good.to_owned()),
        (&["nope"], 2, String::new()),
        (&["good", "slow", "--timeout", "100ms"], 3, good.to_owned()),
        (&["slow", "nope", "--timeout", "0"], 3, String::new()),
        (&["slow", "good", "--any"], 0, good.to_owned()),
    ];
    for (words, code, lines) in cases {
        let answer = home.run(&[&["wait"], words].concat()).exits(code);
        assert_eq!(answer.out, lines, "{words:?}");
        assert_eq!(
            answer.err.is_empty(),
            !words.contains(&"nope"),
            "{words:?}: {}",
            answer.err
        );
    }
}

#[test]
fn a_missing_store_is_not_found_and_not_made() {
    let home = Home::new();
    let answer = home.run(&["wait", "anything"]).exits(2);
    assert!(answer.out.is_empty() && answer.err.contains("state.db"), "{answer:?}");
    assert!(!home.home().exists());
}

#[test]
fn selectors_choose_what_is_waited_for() {
    let home = Home::new();
    home.run(&["create", "session", "--id", "one", "--tag", "b=7"]).exits(0);
    home.done(&["transition", "one", "completed", "--reason", "run.completed.ok"]);
    assert!(home.done(&["wait", "--tag", "b=7"]).starts_with("one\t"));
    home.run(&["wait", "--tag", "b=8"]).exits(2).hints("runwarden ls");
    assert_eq!(home.done(&["wait", "--all"]), "", "nothing is alive");
    home.run(&["wait"]).exits(64);
}

#[test]
fn json_lines_say_the_same() {
    let home = Home::new();
    ended(&home, "good", "completed", "run.completed.ok");
    let expected = json!({
        "run_id": "good", "kind": "session", "status": "completed", "reason": "run.completed.ok",
        "artifact_dir": null, "exit_code": null, "success": true,
    });
    for words in [["--format", "json"].as_slice(), &["--json"]] {
        let answer = home.run(&[&["wait", "good", "good"], words].concat()).exits(0);
        let documents: Vec<serde_json::Value> = answer
            .out
            .lines()
            .map(|line| serde_json::from_str(line).expect("a document on each line"))
            .collect();
        assert_eq!(documents, [expected.clone(), expected.clone()]);
    }
}

#[test]
fn exit_code_is_the_program_s_own() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "code"]);
    home.done(&[
        "transition",
        "code",
        "failed",
        "--reason",
        "run.failed.exit_nonzero",
        "--set",
        "exit_code=7",
    ]);
    home.done(&["create", "session", "--id", "signal"]);
    home.done(&[
        "transition",
        "signal",
        "failed",
        "--reason",
        "run.failed.exit_nonzero",
        "--set",
        "term_signal=9",
    ]);
    ended(&home, "none", "failed", "run.failed.exception");
    assert!(
        home.run(&["wait", "code", "--exit-code"])
            .exits(7)
            .out
            .ends_with("exit_code=7\n")
    );
    assert!(
        home.run(&["wait", "signal", "--exit-code"])
            .exits(137)
            .out
            .ends_with("exit_code=-9\n")
    );
    home.run(&["wait", "none", "--exit-code"]).exits(1);
    home.run(&["wait", "code", "signal", "--exit-code"]).exits(64);
    home.run(&["wait", "nope", "--exit-code"]).exits(2);
}

#[test]
fn a_status_on_the_way_can_be_waited_for() {
    let home = Home::new();
    home.done(&["create", "play", "--id", "p-1"]);
    home.done(&["transition", "p-1", "gated", "--reason", "play.pending.created"]);
    assert!(home.done(&["wait", "p-1", "--until", "gated"]).contains("status=gated"));
    home.run(&["wait", "p-1", "--until", "gatedd"]).exits(64).hints("gated");
    home.done(&["transition", "p-1", "blocked", "--reason", "play.pending.created"]);
    home.run(&["wait", "p-1", "--until", "gated"]).exits(1);
}

#[test]
fn an_end_is_told_soon_after_it_happened() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "slow"]);
    let waiter = home.command(&["wait", "slow"]).spawn().expect("the program starts");
    until_watching(&waiter);
    home.done(&[
        "transition",
        "slow",
        "cancelled",
        "--reason",
        "run.cancelled.manual_kill",
    ]);
    let answer = answered(waiter, "wait slow".to_owned()).exits(1);
    assert!(answer.out.contains("\tstatus=cancelled\t"), "{}", answer.out);
}

#[test]
fn where_files_cannot_be_watched_an_end_is_still_told() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "slow"]);
    // The administrator of a user namespace of his own may forbid himself every watch.
    let text = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$0\" wait slow";
    if !may_unshare() {
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", text, PROGRAM]);
    command.env("RUNWARDEN_HOME", home.home());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let waiter = command.spawn().expect("unshare is there");
    until_watching(&waiter);
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", waiter.id())).expect("it lives");
    let watches = descriptors
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok());
    assert!(
        watches
            .into_iter()
            .all(|target| !target.to_string_lossy().contains("inotify"))
    );
    home.done(&["transition", "slow", "completed", "--reason", "run.completed.ok"]);
    let answer = answered(waiter, "wait slow without watches".to_owned()).exits(0);
    assert!(answer.out.contains("\tstatus=completed\t"), "{answer:?}");
}

/// Whether this user may make a user namespace and limit it.
fn may_unshare() -> bool {
    let mut attempt = Command::new("unshare");
    attempt.args([
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        "echo 0 > /proc/sys/user/max_inotify_instances",
    ]);
    attempt.output().is_ok_and(|output| output.status.success())
}

#[test]
fn an_interrupted_wait_ends_with_3() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "slow"]);
    for signal in ["INT", "TERM"] {
        let waiter = home.command(&["wait", "slow"]).spawn().expect("the program starts");
        until_watching(&waiter);
        let sent = Command::new("kill")
            .args(["-s", signal, &waiter.id().to_string()])
            .output();
        assert!(sent.expect("kill is there").status.success());
        let answer = answered(waiter, format!("wait slow, then {signal}")).exits(3);
        assert_eq!(answer.out, "");
    }
}

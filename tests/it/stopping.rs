//! kill: everything a run started is gone when it says so, and it says nothing else.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Answer, Home, answered, lives, opened, until};

/// Starts a detached shell script and waits for what it tells in the file `told`.
fn started(home: &Home, id: &str, options: &[&str], text: &str) -> String {
    let text = format!("told={}; {text}", home.path(id).display());
    home.detach(id, &[options, &["--", "sh", "-c", &text]].concat());
    home.told(id)
}

fn target(answer: Answer) -> Value {
    answer.document()["targets"][0].clone()
}

#[track_caller]
fn check(text: &str, grace: &str, signal: &str, code: &str) {
    let home = Home::new();
    let pids = started(&home, "one", &[], text);
    let answer = home.run(&["kill", "one", "--grace", grace, "--json"]).exits(0);
    for pid in pids.split_whitespace() {
        assert!(!lives(pid), "{pid} of `{text}`");
    }
    assert_eq!(answer.document()["complete"], true);
    let killed = target(answer);
    assert_eq!(
        (&killed["outcome"], &killed["stopped"]),
        (&json!("killed"), &json!(true)),
        "{killed}"
    );
    assert_eq!(
        (&killed["signal"], &killed["survivors"]),
        (&json!(signal), &json!([])),
        "{killed}"
    );
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (&shown["status"], &shown["reason"]["code"]),
        (&json!("cancelled"), &json!(code))
    );
    assert_eq!(shown["runtime"]["state"], "stopped");
}

#[test]
fn a_program_that_obeys_is_asked_and_not_forced() {
    check(
        "echo $$ > $told; exec sleep 600",
        "20s",
        "sigterm",
        "run.cancelled.manual_kill",
    );
}

#[test]
fn a_program_deaf_to_term_is_killed() {
    let deaf = r#"trap "" TERM; echo $$ > $told; while :; do read x < /dev/zero; done"#;
    check(deaf, "100ms", "sigkill", "run.cancelled.force_kill");
}

#[test]
fn a_double_fork_into_a_session_of_its_own_does_not_escape() {
    let fork =
        r"(setsid sh -c 'sleep 600 & echo $! >> $0; exit' $told & ); until [ -s $told ]; do :; done; exec sleep 600";
    check(fork, "20s", "sigterm", "run.cancelled.manual_kill");
}

#[test]
fn a_stopped_process_is_woken_to_hear_its_signal() {
    let stopped = r"sleep 600 & kill -STOP $!; echo $! $$ > $told; kill -STOP $$; wait";
    check(stopped, "20s", "sigterm", "run.cancelled.manual_kill");
}

#[test]
fn a_program_started_through_an_interpreter_is_known_by_its_start_and_killed() {
    let home = Home::new();
    let script = home.path("worker");
    let text = format!(
        "#!/bin/sh\necho $$ > {}\nread x < {}\n",
        home.path("one").display(),
        home.gate("gate").display()
    );
    std::fs::write(&script, text).expect("a script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&script, mode).expect("a script of ours");
    home.detach("one", &["--", &script.to_string_lossy()]);
    let pid = home.told("one");
    home.done(&["kill", "one"]);
    assert!(!lives(&pid));
}

#[test]
fn who_holds_the_output_of_an_ended_leader_and_ignores_term_is_killed_after_the_grace() {
    let home = Home::new();
    let text = r#"(trap "" TERM; exec sh -c 'echo $$ > $0; while :; do read x < /dev/zero; done' $told) & exit 0"#;
    let pid = started(&home, "one", &[], text);
    until("its end is recorded", || {
        home.json(&["show", "one"])["terminal"] == true
    });
    let since = std::time::Instant::now();
    let told = target(home.run(&["kill", "one", "--grace", "1s", "--json"]).exits(0));
    let took = since.elapsed();
    assert!(!lives(&pid));
    assert_eq!(
        (&told["outcome"], &told["signal"], &told["stopped"]),
        (&json!("unchanged"), &json!("sigkill"), &json!(true)),
        "{told}"
    );
    assert!(took < std::time::Duration::from_secs(9), "it took {took:?}");
    assert_eq!(home.json(&["show", "one"])["status"], "completed");
}

/// A program that does not leave at the end of its input, with a child that does not either.
#[test]
fn who_was_to_leave_at_the_end_of_its_input_and_does_not_is_killed_with_its_children() {
    let home = Home::new();
    let deaf = r#"trap "" TERM; sh -c 'trap "" TERM; while :; do read x < /dev/zero; done' & echo $! $$ > $told; while :; do read x < /dev/zero; done"#;
    let pids = started(&home, "one", &["--stop-by", "stdin"], deaf);
    let since = std::time::Instant::now();
    let told = target(home.run(&["kill", "one", "--grace", "500ms", "--json"]).exits(0));
    let took = since.elapsed();
    assert!(pids.split_whitespace().all(|pid| !lives(pid)), "{pids}");
    assert_eq!(
        (&told["outcome"], &told["signal"], &told["stopped"]),
        (&json!("killed"), &json!("sigkill"), &json!(true)),
        "{told}"
    );
    assert!(took < std::time::Duration::from_secs(10), "it took {took:?}");
}

#[test]
fn a_second_kill_changes_nothing_and_succeeds() {
    let home = Home::new();
    started(&home, "one", &[], "echo $$ > $told; exec sleep 600");
    home.done(&["kill", "one"]);
    let before = home.json(&["show", "one"]);
    let again = target(home.run(&["kill", "one", "--json"]).exits(0));
    assert_eq!(
        (&again["outcome"], &again["signal"]),
        (&json!("unchanged"), &json!("already_dead")),
        "{again}"
    );
    assert_eq!(home.json(&["show", "one"]), before);
    home.done(&["run", "--id", "ended", "--", "true"]);
    let ended = target(home.run(&["kill", "ended", "--json"]).exits(0));
    assert_eq!(
        (&ended["outcome"], &ended["status"]),
        (&json!("unchanged"), &json!("completed")),
        "{ended}"
    );
}

#[test]
fn an_entity_without_a_process_is_ended_and_the_kill_says_so() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "bare"]);
    let killed = target(home.run(&["kill", "bare", "--json"]).exits(0));
    assert_eq!(
        (&killed["outcome"], &killed["signal"]),
        (&json!("killed"), &json!("no_process"))
    );
    assert_eq!((&killed["stopped"], &killed["pid"]), (&json!(false), &Value::Null));
    assert!(
        killed["message"]
            .as_str()
            .is_some_and(|message| message.contains("no process")),
        "{killed}"
    );
    assert_eq!(home.json(&["show", "bare"])["status"], "cancelled");
}

#[test]
fn a_word_that_means_nothing_stops_nothing() {
    let home = Home::new();
    let pid = started(&home, "one", &[], "echo $$ > $told; exec sleep 600");
    let answer = home.run(&["kill", "one", "nobody"]).exits(2);
    assert!(answer.err.contains("nothing was signalled"), "{}", answer.err);
    assert!(lives(&pid));
    assert_eq!(home.json(&["show", "one"])["status"], "running");
    home.run(&["kill"]).exits(64);
    home.done(&["kill", "one"]);
}

#[test]
fn the_grace_period_is_kept() {
    let home = Home::new();
    let deaf = r#"trap "" TERM; echo $$ > $told; while :; do read x < /dev/zero; done"#;
    started(&home, "one", &[], deaf);
    home.done(&["kill", "one", "--grace", "600ms"]);
    home.over("one");
    let record = home.exit_record("one");
    // Both are of the clock that counts from boot: when the stop was asked for, and how long the run took.
    assert_eq!(record["stop"]["forced"], true, "{record}");
    let history = home.json(&["history", "one"]);
    assert_eq!(history[1]["reason"]["evidence"][0]["stop"]["signal"], "sigkill");
    let asked = intent_at_ms(&home);
    let ended = record["ended_at_ms"].as_i64().expect("a time");
    assert!(ended - asked >= 590, "KILL came after {} ms: {record}", ended - asked);
}

/// When the intent to stop was recorded.
fn intent_at_ms(home: &Home) -> i64 {
    let database = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    let query = "SELECT stop_at_ms FROM runtimes";
    database.query_row(query, [], |row| row.get(0)).expect("an intent")
}

#[test]
fn of_two_kills_at_once_one_writes_the_end_and_both_succeed() {
    let home = Home::new();
    for round in 0..5 {
        let id = format!("run-{round}");
        started(&home, &id, &[], "echo $$ > $told; exec sleep 600");
        let killers = [(); 2].map(|()| home.start(&["kill", &id, "--json"]));
        for killer in killers {
            let killed = target(answered(killer, format!("kill {id}")).exits(0));
            assert_eq!(killed["status"], "cancelled", "{killed}");
        }
        assert_eq!(home.json(&["history", &id]).as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn an_end_is_written_once_when_its_writers_race() {
    let home = Home::new();
    for round in 0..20 {
        let id = format!("run-{round}");
        let gate = home.gate(&format!("gate-{round}"));
        let text = format!("echo $$ > $told; read x < {}", gate.display());
        started(&home, &id, &[], &text);
        let killer = home.start(&["kill", &id]);
        let held = opened(&gate);
        answered(killer, format!("kill {id}")).exits(0);
        drop(held);
        let shown = home.over(&id);
        let history = home.json(&["history", &id]);
        assert_eq!(history.as_array().map(Vec::len), Some(2), "{history}");
        let ended_well = shown["status"] == "completed" && shown["fields"]["exit_code"] == 0;
        assert!(ended_well || shown["status"] == "cancelled", "{shown}");
    }
}

#[test]
fn a_kill_during_the_start_leaves_nothing_running() {
    let home = Home::new();
    home.done(&["create", "session"]);
    for round in 0..10 {
        let id = format!("run-{round}");
        let text = format!("echo $$ > {}; exec sleep 600", home.path(&id).display());
        let starter = home.start(&["run", "-d", "--id", &id, "--", "sh", "-c", &text]);
        until("the kill is accepted", || {
            home.run(&["kill", &id, "--grace", "0"]).code == 0
        });
        let answer = answered(starter, format!("run {id}"));
        assert_eq!(answer.out, format!("run/{id}\n"));
        let shown = home.over(&id);
        assert_eq!(shown["status"], "cancelled", "{shown}");
        let began = std::fs::read_to_string(home.path(&id)).unwrap_or_default();
        assert!(began.is_empty() || !lives(began.trim_end()), "{began}");
    }
}

/// The end of a leader is not that of its work: who lives on is told until nobody does.
#[test]
fn what_outlives_the_program_is_told_and_killed() {
    let home = Home::new();
    let pid = started(&home, "one", &[], "setsid sleep 600 & echo $! > $told; exit 0");
    until("the end is recorded", || {
        home.json(&["show", "one"])["terminal"] == true
    });
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (&shown["status"], &shown["runtime"]["state"]),
        (&json!("completed"), &json!("lingering"))
    );
    let killed = target(home.run(&["kill", "one", "--json"]).exits(0));
    assert_eq!(
        (&killed["stopped"], &killed["status"]),
        (&json!(true), &json!("completed")),
        "{killed}"
    );
    assert!(!lives(&pid));
    assert_eq!(home.over("one")["status"], "completed");
}

#[test]
fn a_run_may_kill_itself() {
    let home = Home::new();
    let text = format!("{} kill @self; exit 0", crate::harness::PROGRAM);
    home.run(&["run", "--id", "me", "--", "sh", "-c", &text]);
    assert_eq!(home.over("me")["status"], "cancelled");
}

#[test]
fn the_report_of_a_kill_has_the_members_that_are_promised() {
    let home = Home::new();
    let pid = started(
        &home,
        "one",
        &["--contain", "subreaper"],
        "echo $$ > $told; exec sleep 600",
    );
    let document = home.json(&["kill", "one"]);
    let expected = json!({"complete": true, "targets": [{
        "ref": "run/one", "previous_status": "running", "status": "cancelled", "outcome": "killed", "signal": "sigterm",
        "pid": pid.parse::<i64>().expect("a number"), "stopped": true, "proof": "subreaper_echild", "survivors": [],
        "children": [], "message": null,
    }]});
    assert_eq!(document, expected);
}

/// Starts a run that ignores TERM, and waits until it does.
fn deaf(home: &Home, id: &str) {
    let script = "trap '' TERM; echo deaf; while :; do sleep 0.1; done";
    home.done(&["run", "--detach", "--id", id, "--", "sh", "-c", script]);
    until("it ignores TERM", || home.run(&["logs", id]).out.contains("deaf"));
}

#[test]
fn several_are_stopped_side_by_side_each_with_its_own_grace() {
    const GRACE_MS: u64 = 3_000;
    let home = Home::new();
    let ids = ["one", "two"];
    ids.iter().for_each(|id| deaf(&home, id));
    let killed = home.json(&["kill", "--grace", "3s", "one", "two"]);
    assert_eq!(killed["complete"], true, "{killed}");
    let asked = ids.map(|id| {
        let stop = &home.json(&["show", id])["reason"]["evidence"][0]["stop"];
        stop["at_ms"].as_u64().expect("when it was asked for")
    });
    let apart = asked[0].abs_diff(asked[1]);
    assert!(
        apart < GRACE_MS,
        "the second was asked {apart} ms after the first: it waited for it"
    );
}

#[test]
fn one_that_cannot_be_asked_keeps_no_other_from_being_stopped_and_told() {
    let home = Home::new();
    let runs = home.home().join("runs");
    ["one", "two"].iter().for_each(|id| {
        home.done(&["run", "--detach", "--id", id, "--", "sleep", "600"]);
    });
    std::fs::rename(runs.join("one"), runs.join("away")).expect("a directory of ours");
    let answer = home.run(&["kill", "one", "two", "--json"]).exits(74);
    let killed = answer.document();
    assert_eq!(
        (&killed["complete"], &killed["targets"][0]["ref"]),
        (&false.into(), &"run/two".into()),
        "{killed}"
    );
    assert!(answer.err.contains("run/one was not killed"), "{}", answer.err);
    assert_eq!(home.json(&["show", "two"])["status"], "cancelled");
    std::fs::rename(runs.join("away"), runs.join("one")).expect("a directory of ours");
    home.done(&["kill", "one"]);
}

/// A group of processes that can be frozen so that SIGKILL waits for the thaw: the first freezer of Linux. Dropped, it
/// lets everybody go on.
struct Freezer(PathBuf);

impl Freezer {
    /// None where there is no such freezer, or this user may not use it.
    fn new() -> Option<Self> {
        let group = PathBuf::from(format!("/sys/fs/cgroup/freezer/runwarden-test-{}", std::process::id()));
        std::fs::create_dir(&group).ok()?;
        let freezer = Self(group);
        freezer.0.join("freezer.state").exists().then_some(freezer)
    }

    fn write(&self, name: &str, words: &str) {
        std::fs::write(self.0.join(name), words).expect("the group is ours");
    }

    fn freeze(&self, pid: &str) {
        self.write("cgroup.procs", pid);
        self.write("freezer.state", "FROZEN");
        until("the process is frozen", || {
            std::fs::read_to_string(self.0.join("freezer.state")).is_ok_and(|state| state.trim() == "FROZEN")
        });
    }

    fn thaw(&self) {
        self.write("freezer.state", "THAWED");
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.thaw();
        // A process that is dead already leaves its group when somebody has seen its end.
        let root = Path::new("/sys/fs/cgroup/freezer/cgroup.procs");
        for pid in std::fs::read_to_string(self.0.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            let _ = std::fs::write(root, pid);
        }
        until("the group is empty", || std::fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn who_cannot_be_killed_is_named_and_the_run_is_not_said_to_be_stopped() {
    let Some(freezer) = Freezer::new() else { return };
    let home = Home::new();
    home.detach("one", &["--", "sleep", "600"]);
    let pid = home.json(&["show", "one"])["runtime"]["pid"].to_string();
    freezer.freeze(&pid);
    let target = target(home.run(&["kill", "one", "--grace", "0", "--json"]).exits(1));
    assert_eq!(
        (&target["outcome"], &target["stopped"]),
        (&json!("incomplete"), &json!(false))
    );
    assert_eq!(target["survivors"][0]["pid"].to_string(), pid, "{target}");
    assert_eq!(target["survivors"][0]["comm"], "sleep", "{target}");
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (&shown["status"], &shown["runtime"]["state"]),
        (&json!("running"), &json!("stopping"))
    );
    assert_eq!(shown["runtime"]["stop_unconfirmed"], true, "{shown}");
    freezer.thaw();
    let over = home.over("one");
    assert_eq!(over["reason"]["code"], "run.cancelled.force_kill", "{over}");
}

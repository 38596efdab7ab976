//! kill while the store cannot be written: what runs is stopped all the same, in time, and nothing is lost.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Home, answered, lives, until, until_watching};

/// Grace, five seconds, and what a slow machine takes for the rest.
const BOUND: Duration = Duration::from_secs(13);

fn started(home: &Home, id: &str, script: &str) -> String {
    let text = format!("told={}; {script}", home.path(id).display());
    home.detach(id, &["--", "sh", "-c", &text]);
    home.told(id)
}

/// Holds the write lock of the store until it is dropped.
fn locked(home: &Home) -> rusqlite::Connection {
    let store = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    store.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    store
}

#[test]
fn a_locked_store_keeps_nobody_alive_and_the_kill_is_recorded_later() {
    let home = Home::new();
    let pid = started(&home, "one", "echo $$ > $told; exec sleep 600");
    let lock = locked(&home);
    let since = Instant::now();
    let arguments = ["kill", "one", "--grace", "1s", "--note", "enough", "--json"];
    let answer = home.run(&arguments).exits(74);
    let took = since.elapsed();
    assert!(!lives(&pid), "it was stopped");
    assert!(took < BOUND, "it took {took:?}");
    let told = &answer.document()["targets"][0];
    assert_eq!(
        (&told["outcome"], &told["stopped"], &told["status"]),
        (&json!("incomplete"), &json!(true), &json!("running")),
        "{told}"
    );
    let message = told["message"].as_str().expect("a message");
    assert!(message.starts_with("stopped, and not recorded"), "{message}");
    drop(lock);
    let shown = home.over("one");
    assert_eq!(
        (&shown["status"], &shown["reason"]["code"]),
        (&json!("cancelled"), &json!("run.cancelled.manual_kill"))
    );
    let history = home.json(&["history", "one"]);
    assert_eq!(history.as_array().map(Vec::len), Some(2));
    // Who asked and why are in the run directory, which counts while the store cannot be written.
    assert_eq!(
        (&history[1]["actor"], &history[1]["reason"]["evidence"][0]["note"]),
        (&json!({"kind": "operator", "id": "ada"}), &json!("enough")),
        "{history}"
    );
}

#[test]
fn a_locked_store_does_not_bring_kill_before_the_grace_is_over() {
    let home = Home::new();
    let deaf = r#"trap "" TERM; echo $$ > $told; while :; do read x < /dev/zero; done"#;
    let pid = started(&home, "one", deaf);
    let lock = locked(&home);
    let since = Instant::now();
    home.run(&["kill", "one", "--grace", "2s"]).exits(74);
    let took = since.elapsed();
    assert!(!lives(&pid));
    assert!(took >= Duration::from_secs(2) && took < BOUND, "it took {took:?}");
    let record = home.exit_record("one");
    assert_eq!(record["stop"]["forced"], true);
    drop(lock);
    home.over("one");
}

#[test]
fn a_locked_store_is_waited_for_once_and_not_for_each_run() {
    let home = Home::new();
    let ids = ["a", "b", "c", "d", "e", "f"];
    let pids = ids.map(|id| started(&home, id, "echo $$ > $told; exec sleep 600"));
    let lock = locked(&home);
    let since = Instant::now();
    home.run(&["kill", "--all", "--grace", "1s"]).exits(74);
    let took = since.elapsed();
    assert!(pids.iter().all(|pid| !lives(pid)));
    assert!(took < BOUND, "it took {took:?}");
    drop(lock);
    ids.iter()
        .for_each(|id| assert_eq!(home.over(id)["status"], "cancelled"));
}

#[test]
fn a_locked_store_keeps_an_orphaned_set_from_living_on() {
    let home = Home::new();
    let pid = started(&home, "one", "echo $$ > $told; exec sleep 600");
    let shim = home.json(&["show", "one"])["runtime"]["shim_pid"]
        .as_i64()
        .expect("a shim");
    let number = i32::try_from(shim)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .expect("a pid");
    rustix::process::kill_process(number, rustix::process::Signal::KILL).expect("it is ours");
    until("the shim is gone", || !lives(&shim.to_string()));
    let lock = locked(&home);
    let since = Instant::now();
    home.run(&["kill", "one", "--grace", "1s"]).exits(74);
    assert!(since.elapsed() < BOUND, "it took {:?}", since.elapsed());
    assert!(!lives(&pid));
    drop(lock);
    let shown = home.over("one");
    assert_eq!(
        (&shown["status"], &shown["fields"]["exit_code"]),
        (&json!("cancelled"), &json!(null))
    );
}

#[test]
fn a_full_store_keeps_nobody_alive() {
    let home = Home::new();
    let pid = started(&home, "one", "echo $$ > $told; exec sleep 600");
    let store = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    // Stands for a disk without room: every statement that changes one of these tables fails as a full one does.
    store
        .execute_batch(
            "CREATE TRIGGER full_transitions BEFORE INSERT ON transitions BEGIN SELECT raise(ABORT, 'full'); END;
             CREATE TRIGGER full_runtimes BEFORE UPDATE ON runtimes BEGIN SELECT raise(ABORT, 'full'); END;",
        )
        .expect("triggers");
    let answer = home.run(&["kill", "one", "--json"]).exits(74);
    assert!(!lives(&pid));
    assert_eq!(answer.document()["targets"][0]["stopped"], true);
    store
        .execute_batch("DROP TRIGGER full_transitions; DROP TRIGGER full_runtimes;")
        .expect("no triggers");
    assert_eq!(home.over("one")["status"], "cancelled");
}

#[test]
fn an_interrupted_kill_says_that_what_was_asked_goes_on_and_it_does() {
    let home = Home::new();
    let deaf = r#"trap "" TERM; echo $$ > $told; while :; do read x < /dev/zero; done"#;
    let pid = started(&home, "one", deaf);
    let killer = home.start(&["kill", "one", "--grace", "3s"]);
    until_watching(&killer);
    until("the stop is asked for", || {
        home.json(&["show", "one"])["runtime"]["state"] == "stopping"
    });
    let number = i32::try_from(killer.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .expect("a pid");
    rustix::process::kill_process(number, rustix::process::Signal::INT).expect("it is ours");
    let answer = answered(killer, "kill one".to_owned()).exits(3);
    assert!(answer.err.contains("goes on"), "{}", answer.err);
    let shown = home.over("one");
    assert!(!lives(&pid));
    assert_eq!(shown["reason"]["code"], "run.cancelled.force_kill");
}

//! `doctor --fix`, `kill --all-stale` and `kill --declare-gone`: what is done to what nobody watches, and what is left.

use runwarden_test_guests::{Mode, hostile};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Home, PROGRAM, lives, opened, until};

/// Kills a process that a run of this test started, unless it is gone.
fn ended(pid: &str) {
    let number = pid.parse().ok().and_then(Pid::from_raw).expect("a pid");
    let _ = kill_process(number, Signal::KILL);
    until("it is gone", || !lives(pid));
}

/// Starts a run that waits, and kills its shim without a look at the run afterwards; its worker.
fn orphaned(home: &Home, id: &str, parent: &[&str]) -> String {
    let told = home.path(id);
    let text = format!("echo $$ > {}; exec sleep 600", told.display());
    home.detach(id, &[parent, &["--", "sh", "-c", &text]].concat());
    let worker = home.told(id);
    let shim = home.json(&["show", id])["runtime"]["shim_pid"]
        .as_i64()
        .expect("a shim");
    ended(&shim.to_string());
    worker
}

/// The store, changed behind the back of everybody.
fn change(home: &Home, sql: &str) {
    let store = Connection::open(home.home().join("state.db")).expect("the store");
    store.execute(sql, []).expect("rows of ours");
}

fn stored_status(home: &Home, id: &str) -> String {
    let store = Connection::open(home.home().join("state.db")).expect("the store");
    let sql = "SELECT status FROM entities JOIN entity_ids USING (entity) WHERE entity_ids.id = ?1";
    store.query_row(sql, [id], |row| row.get(0)).expect("a row of ours")
}

fn decisions(answer: &Value) -> Vec<(String, String)> {
    let repaired = answer["repaired"].as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = repaired
        .iter()
        .map(|one| (word(&one["ref"]), word(&one["decision"])))
        .collect();
    all.sort();
    all
}

#[test]
fn doctor_tells_what_it_would_repair_then_repairs_it_and_then_finds_nothing() {
    let home = Home::new();
    orphaned(&home, "alive", &[]);
    let restarted = orphaned(&home, "restarted", &[]);
    ended(&restarted);
    change(
        &home,
        "UPDATE runtimes SET boot_id = 'earlier' WHERE owner = (SELECT entity FROM entity_ids WHERE id = 'restarted')",
    );
    let planned = home.run(&["doctor", "--fix", "--dry-run", "--json"]).document();
    let expected = [("run/alive", "adopt"), ("run/restarted", "end_host_restarted")]
        .map(|(reference, word)| (reference.to_owned(), word.to_owned()));
    assert_eq!(decisions(&planned), expected);
    assert_eq!(
        stored_status(&home, "restarted"),
        "running",
        "a dry run changes nothing"
    );
    let done = home.run(&["doctor", "--fix", "--json"]).document();
    assert_eq!(decisions(&done), expected);
    assert_eq!(stored_status(&home, "restarted"), "failed");
    let again = home.run(&["doctor", "--fix", "--json"]).document();
    assert_eq!(decisions(&again), []);
    home.done(&["kill", "alive"]);
}

/// A cleanup that began before a successor was started is about an attempt, not about the run's name.
#[test]
fn what_is_left_of_an_earlier_attempt_ends_nothing() {
    let home = Home::new();
    home.run(&["run", "--id", "earlier", "--", "sh", "-c", "exit 9"])
        .exits(9);
    home.over("earlier");
    let gate = home.gate("gate");
    let script = format!(
        "echo $$ > {}; read x < {}; exit 7",
        home.path("one").display(),
        gate.display()
    );
    home.detach("one", &["--", "sh", "-c", &script]);
    let worker = home.told("one");
    std::fs::copy(home.of_run("earlier", "exit.json"), home.of_run("one", "exit.json")).expect("a record");
    for words in [
        &["show", "one"][..],
        &["doctor", "--fix"],
        &["kill", "--all-stale"],
        &["ls"],
        &["finish", "one"],
    ] {
        home.run(words);
        assert_eq!(stored_status(&home, "one"), "running", "{words:?}");
    }
    assert!(lives(&worker));
    let _gate = opened(&gate);
    assert_eq!(home.over("one")["fields"]["exit_code"], 7);
}

/// No age ends what lives: no deadline that nobody set, no want of sessions, of artifacts or of reports.
#[test]
fn a_quiet_run_that_lives_is_left_alone_however_old_it_is() {
    let home = Home::new();
    for kind in ["run", "session", "invocation"] {
        let script = format!("echo $$ > {}; exec sleep 600", home.path(kind).display());
        home.detach(kind, &["--kind", kind, "--", "sh", "-c", &script]);
        home.told(kind);
    }
    change(
        &home,
        "UPDATE entities SET created_at_ms = created_at_ms - 864000000, updated_at_ms = updated_at_ms - 864000000",
    );
    change(&home, "UPDATE runtimes SET created_at_ms = created_at_ms - 864000000");
    home.run(&["doctor", "--fix"]).exits(0);
    home.run(&["kill", "--all-stale"]).exits(0);
    for kind in ["run", "session", "invocation"] {
        assert_eq!(stored_status(&home, kind), "running", "{kind}");
        home.done(&["kill", kind, "--grace", "0"]);
    }
}

/// Rows that name a dead process while they hold the only token to take the work up again: repaired in place, never taken
/// away.
#[test]
fn a_row_that_can_be_taken_up_again_is_repaired_in_place() {
    let home = Home::new();
    let dead = orphaned(&home, "one", &["--resume-token", "again"]);
    ended(&dead);
    home.run(&["doctor", "--fix"]).exits(0);
    for _ in 0..2 {
        let shown = home.json(&["show", "one"]);
        let runtime = &shown["runtime"];
        assert_eq!(
            (&runtime["state"], &runtime["pid"], &runtime["shim_pid"]),
            (&json!("stopped"), &Value::Null, &Value::Null),
            "it names no process: {runtime}"
        );
        assert_eq!(runtime["resume_token"], true);
        assert_eq!(shown["reason"]["evidence"][0]["pid"].to_string(), dead, "{shown}");
        assert!(home.of_run("one", "stdout.log").exists());
        change(&home, "UPDATE entities SET ended_at_ms = ended_at_ms - 100000000000");
        home.run(&["prune", "--older-than", "0"]).exits(0);
        home.run(&["doctor", "--fix"]).exits(0);
    }
}

/// A stopped row of an entity that goes on names no process either, and stays.
#[test]
fn a_row_of_what_has_not_ended_is_repaired_in_place() {
    let home = Home::new();
    let file = home.path("gadget.wasm");
    std::fs::write(&file, hostile(Mode::Honest)).expect("a file");
    home.done(&["policy", "install", &file.to_string_lossy(), "--activate"]);
    let told = home.path("g");
    let script = format!(
        "{PROGRAM} report shelved --reason gadget.shelved.put; echo $$ > {}; exec sleep 600",
        told.display()
    );
    home.detach("g", &["--kind", "gadget", "--", "sh", "-c", &script]);
    let worker = home.told("g");
    let shim = home.json(&["show", "g"])["runtime"]["shim_pid"].to_string();
    ended(&shim);
    ended(&worker);
    home.run(&["doctor", "--fix"]).exits(0);
    home.run(&["prune", "--older-than", "0"]).exits(0);
    let shown = home.json(&["show", "g"]);
    assert_eq!(
        (
            &shown["status"],
            &shown["terminal"],
            &shown["runtime"]["state"],
            &shown["runtime"]["pid"]
        ),
        (&json!("shelved"), &json!(false), &json!("stopped"), &Value::Null),
        "{shown}"
    );
    assert!(home.of_run("g", "stdout.log").exists());
}

#[test]
fn the_sweep_ends_what_is_gone_and_what_follows_from_it_and_nothing_else() {
    let home = Home::new();
    for id in ["over", "open", "empty"] {
        home.done(&["create", "play", "--id", id]);
    }
    let gone = orphaned(&home, "gone", &["--parent", "play/over"]);
    ended(&gone);
    let script = format!("echo $$ > {}; exec sleep 600", home.path("alive").display());
    home.detach("alive", &["--parent", "play/open", "--", "sh", "-c", &script]);
    home.told("alive");
    let young = home.run(&["kill", "--all-stale", "--json"]).exits(0).document();
    assert_eq!(young["ended"], json!([]), "all of them are young");
    change(&home, "UPDATE entities SET created_at_ms = created_at_ms - 7200000");
    let verdicts = |answer: &Value| -> Vec<(String, String)> {
        let candidates = answer["candidates"].as_array().cloned().unwrap_or_default();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut all: Vec<_> = candidates
            .iter()
            .map(|one| (word(&one["ref"]), word(&one["verdict"])))
            .collect();
        all.sort();
        all
    };
    let expected = [
        ("play/empty", "undetermined"),
        ("play/open", "keep"),
        ("play/over", "end"),
        ("run/alive", "keep"),
        ("run/gone", "end"),
    ]
    .map(|(reference, word)| (reference.to_owned(), word.to_owned()));
    let planned = home
        .run(&["kill", "--all-stale", "--dry-run", "--json"])
        .exits(1)
        .document();
    assert_eq!((verdicts(&planned), &planned["ended"]), (expected.to_vec(), &json!([])));
    assert_eq!(stored_status(&home, "gone"), "running");
    let done = home.run(&["kill", "--all-stale", "--json"]).exits(1).document();
    assert_eq!(verdicts(&done), expected);
    assert_eq!(done["ended"].as_array().map(Vec::len), Some(2), "{done}");
    for (id, status) in [
        ("gone", "cancelled"),
        ("over", "blocked"),
        ("open", "pending"),
        ("empty", "pending"),
    ] {
        assert_eq!(stored_status(&home, id), status, "{id}");
    }
    let shown = home.json(&["show", "gone"]);
    assert_eq!(
        (
            &shown["reason"]["code"],
            &shown["fields"]["exit_code"],
            &shown["runtime"]["state"]
        ),
        (&json!("run.cancelled.stale_auto"), &Value::Null, &json!("stopped"))
    );
    home.done(&["kill", "alive"]);
}

#[test]
fn the_operators_word_ends_what_cannot_be_judged_and_nothing_else() {
    let home = Home::new();
    let worker = orphaned(&home, "one", &["--contain", "subreaper"]);
    let word = ["kill", "one", "--declare-gone", "--note", "it was removed", "--json"];
    home.run(&word[..3]).exits(64);
    let refused = home.run(&word).exits(1).document();
    assert_eq!(
        refused["targets"][0]["outcome"], "refused",
        "it is seen to be alive: {refused}"
    );
    assert!(lives(&worker));
    ended(&worker);
    change(&home, "UPDATE runtimes SET host = 'elsewhere'");
    home.run(&["kill", "one"]).exits(1);
    let told = home.run(&word).exits(0).document();
    assert_eq!(told["targets"][0]["signal"], "host_mismatch", "{told}");
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (
            &shown["status"],
            &shown["fields"]["exit_code"],
            &shown["runtime"]["state"]
        ),
        (&json!("cancelled"), &Value::Null, &json!("stopped"))
    );
    let audited = home.json(&["history", "one", "--admin"]);
    let events = audited.as_array().cloned().unwrap_or_default();
    assert!(
        events
            .iter()
            .any(|event| event["action"] == "runtime_declared_gone" && event["details"]["note"] == "it was removed"),
        "{audited}"
    );
}

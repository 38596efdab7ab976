//! prune: what has been kept long enough goes, and nothing that is alive, can be taken up again, or was never judged.

use std::fs;

use runwarden_host::model::{Actor, AdminEvent, Retention};
use runwarden_host::store::{Acknowledged, Consumer};
use runwarden_host::verbs::{PruneKind, PruneOutcome, Pruning, plan_prune, prune};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::crashes::shim_is_gone;
use crate::harness::{Home, host, lives, until};
use crate::removing::aged;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Makes every time in the store so many days older; history and audit rows too, which no command could.
pub(crate) fn older(home: &Home, days: i64) {
    let connection = Connection::open(home.home().join("state.db")).expect("the store is a database");
    let ms = days * DAY_MS;
    let sql = format!(
        "BEGIN;
         DROP TRIGGER transitions_are_not_changed; DROP TRIGGER admin_events_are_not_changed;
         UPDATE entities SET ended_at_ms = ended_at_ms - {ms}, created_at_ms = created_at_ms - {ms},
             updated_at_ms = updated_at_ms - {ms};
         UPDATE transitions SET at_ms = at_ms - {ms};
         UPDATE admin_events SET at_ms = at_ms - {ms};
         CREATE TRIGGER transitions_are_not_changed BEFORE UPDATE ON transitions
         BEGIN SELECT RAISE(ABORT, 'transitions is append-only'); END;
         CREATE TRIGGER admin_events_are_not_changed BEFORE UPDATE ON admin_events
         BEGIN SELECT RAISE(ABORT, 'admin_events is append-only'); END;
         COMMIT"
    );
    connection.execute_batch(&sql).expect("the statements fit");
}

fn ended(home: &Home, id: &str, options: &[&str], code: u8) {
    home.detach(
        id,
        &[options, &["--", "sh", "-c", &format!("echo said; exit {code}")]].concat(),
    );
    over(home, id);
}

/// Waits until a run has ended and its shim, which protects its directory, is gone too.
fn over(home: &Home, id: &str) {
    home.over(id);
    until("its shim is gone", || shim_is_gone(home, id));
}

/// What goes, each as what and of whom.
fn planned(document: &Value) -> Vec<(String, String)> {
    let items = document["items"].as_array().expect("a list");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    items
        .iter()
        .map(|item| (word(&item["what"]), word(&item["ref"])))
        .collect()
}

fn pair(what: &str, reference: &str) -> (String, String) {
    (what.to_owned(), reference.to_owned())
}

fn there(home: &Home, id: &str) -> bool {
    home.home().join("runs").join(id).exists()
}

#[test]
fn directories_of_successes_go_after_14_days_and_of_failures_after_90() {
    let home = Home::new();
    ended(&home, "good", &[], 0);
    ended(&home, "bad", &[], 3);
    assert_eq!(home.done(&["prune"]), "Nothing has been kept long enough to go.");
    older(&home, 15);
    assert_eq!(planned(&home.json(&["prune"])), [pair("directories", "run/good")]);
    assert!(!there(&home, "good") && there(&home, "bad"));
    let shown = home.json(&["show", "good"]);
    assert_eq!(
        (&shown["status"], &shown["run_dir"]),
        (&json!("completed"), &Value::Null)
    );
    let gone = home.run(&["logs", "good"]).exits(2).hints("history run/good --admin");
    assert!(gone.err.contains("were removed"), "{}", gone.err);
    older(&home, 80);
    assert_eq!(planned(&home.json(&["prune"])), [pair("directories", "run/bad")]);
    let audited = home.json(&["history", "run/good", "--admin"]);
    assert_eq!(audited[0]["action"], "directories_pruned", "{audited}");
}

#[test]
fn a_dry_run_shows_what_the_act_does_and_takes_nothing() {
    let home = Home::new();
    let tree = home.path("tree");
    fs::create_dir(&tree).expect("a new directory");
    ended(&home, "one", &["--own-dir", "tree"], 0);
    ended(&home, "two", &[], 1);
    let arguments = ["prune", "--older-than", "0"];
    let mut plan = home.json(&[&arguments[..], &["--dry-run"]].concat());
    assert!(tree.exists() && there(&home, "one") && there(&home, "two"));
    let mut act = home.json(&arguments);
    assert!(!tree.exists() && !there(&home, "one") && !there(&home, "two"));
    for (document, outcome) in [(&mut plan, "planned"), (&mut act, "done")] {
        for item in document["items"].as_array_mut().expect("a list") {
            assert_eq!(item["outcome"], outcome, "{item}");
            item["outcome"] = Value::Null;
        }
        document["dry_run"] = Value::Null;
    }
    assert_eq!(plan, act);
    assert_eq!(planned(&act).len(), 2);
}

#[test]
fn the_size_of_what_goes_is_that_of_the_whole_tree() {
    let home = Home::new();
    fs::create_dir_all(home.path("tree/deeper")).expect("a new directory");
    let script = "mkdir -p $RUNWARDEN_RUN_DIR/artifacts/deeper; head -c 100000 /dev/zero > $RUNWARDEN_RUN_DIR/artifacts/deeper/a; \
                  head -c 200000 /dev/zero > tree/deeper/b";
    home.detach("one", &["--own-dir", "tree", "--", "sh", "-c", script]);
    over(&home, "one");
    let planned = home.json(&["prune", "--older-than", "0", "--dry-run"]);
    let freed = |document: &Value| document["items"][0]["bytes"].as_u64().expect("a number");
    assert!(freed(&planned) >= 300_000, "{planned}");
    let removed = home.json(&["rm", "one"])["entities"][0]["freed_bytes"].clone();
    assert_eq!(removed, json!(freed(&planned)), "what was said goes");
}

#[test]
fn the_directories_of_many_go_side_by_side_and_are_told_in_order() {
    let home = Home::new();
    let ids: Vec<String> = (0..12).map(|number| format!("n{number:02}")).collect();
    for id in &ids {
        home.detach(id, &["--", "true"]);
    }
    ids.iter().for_each(|id| over(&home, id));
    let pruned = home.json(&["prune", "--older-than", "0"]);
    let expected: Vec<_> = ids.iter().map(|id| pair("directories", &format!("run/{id}"))).collect();
    assert_eq!(planned(&pruned), expected);
    for id in &ids {
        assert!(!there(&home, id), "{id}");
        let audited = home.json(&["history", id, "--admin"]);
        assert_eq!(audited.as_array().map(Vec::len), Some(1), "{audited}");
    }
}

#[test]
fn what_is_alive_or_can_be_taken_up_again_stays_however_old() {
    let home = Home::new();
    home.detach("live", &["--", "sleep", "600"]);
    let pid = home.json(&["show", "live"])["runtime"]["pid"].to_string();
    let lingers = format!(
        "setsid sleep 600 & echo $! > {}; exit 0",
        home.path("lingers").display()
    );
    home.detach("lingering", &["--", "sh", "-c", &lingers]);
    let lingering = home.told("lingers");
    until("the end is recorded", || {
        home.json(&["show", "lingering"])["terminal"] == true
    });
    ended(&home, "resumable", &["--resume-token", "t"], 0);
    home.done(&["create", "play", "--id", "parent"]);
    older(&home, 400);
    home.done(&["prune", "--older-than", "0"]);
    for id in ["live", "lingering", "resumable"] {
        assert!(there(&home, id), "{id}");
        home.run(&["show", id]).exits(0);
    }
    home.run(&["show", "parent"]).exits(0);
    assert_eq!(home.json(&["show", "resumable"])["runtime"]["resume_token"], true);
    assert!(lives(&pid) && lives(&lingering));
    home.done(&["kill", "live", "lingering"]);
}

#[test]
fn records_go_after_a_year_children_first_and_their_history_with_the_next_pass() {
    let home = Home::new();
    home.done(&["create", "show", "--id", "above"]);
    ended(&home, "below", &["--parent", "show/above"], 0);
    home.done(&[
        "transition",
        "above",
        "completed",
        "--reason",
        "show.completed.final_gate",
    ]);
    home.done(&["create", "show", "--id", "open"]);
    older(&home, 366);
    let first = home.json(&["prune"]);
    let records: Vec<_> = planned(&first)
        .into_iter()
        .filter(|(what, _)| what == "record")
        .collect();
    assert_eq!(
        records,
        [pair("record", "run/below"), pair("record", "show/above")],
        "{first}"
    );
    home.run(&["show", "above"]).exits(2);
    assert_eq!(home.json(&["history", "below"]).as_array().map(Vec::len), Some(2));
    assert!(!there(&home, "below"));
    let second = home.json(&["prune"]);
    assert_eq!(planned(&second), [pair("history", "")], "{second}");
    assert_eq!(second["items"][0]["rows"], 4);
    home.run(&["history", "below"]).exits(2);
    // What is there keeps its history, however old; an id is never used twice.
    assert_eq!(home.json(&["history", "open"]).as_array().map(Vec::len), Some(1));
    home.run(&["create", "show", "--id", "above"]).exits(4);
    let audited = home.json(&["history", "--admin"]);
    let pruned = audited
        .as_array()
        .expect("a list")
        .iter()
        .filter(|event| event["action"] == "history_pruned");
    assert_eq!(pruned.count(), 1, "{audited}");
}

#[test]
fn what_a_consumer_is_owed_and_what_is_not_delivered_stays_however_old() {
    let home = Home::new();
    home.done(&["create", "play", "--id", "told"]);
    home.done(&["transition", "told", "merged", "--reason", "play.merged.ok"]);
    home.done(&["notify", "add", "fails", "--exec", "false"]);
    home.done(&["notify", "add", "works", "--exec", "true"]);
    let send = |to: &str| {
        let sent = home.json(&["outbox", "send", "--to", to, "{}"]);
        sent["id"].as_str().expect("an id").to_owned()
    };
    let (waiting, arrived) = (send("fails"), send("works"));
    let library = host(&home.home());
    let store = library.store();
    let consumer = Consumer {
        name: "reader".to_owned(),
        since: None,
        created_at: library.now(),
        retired_at: None,
    };
    let event = AdminEvent {
        id: 0,
        at: library.now(),
        action: "consumer_added".to_owned(),
        target: Some("reader".to_owned()),
        actor: "operator:tests".to_owned(),
        details: Value::Null,
    };
    assert!(store.add_consumer(&consumer, &event).expect("the store is there"));
    older(&home, 400);
    let first = planned(&home.json(&["prune"]));
    let record = |reference: &str| first.contains(&pair("record", reference));
    assert!(
        record("play/told") && record(&format!("dispatch/{arrived}")) && !record(&format!("dispatch/{waiting}")),
        "{first:?}"
    );
    let pending = || {
        store
            .pending("reader", 9)
            .expect("the store is there")
            .expect("it is active")
    };
    let owed = pending().remove(0).0;
    let rows = |document: &Value| document["items"][0]["rows"].as_i64();
    // The event's row stays; the other row of the play and all three of the dispatch that arrived go.
    assert_eq!(rows(&home.json(&["prune"])), Some(4));
    assert_eq!(pending()[0].0, owed);
    let acknowledged = store.acknowledge("reader", owed.as_str(), library.now());
    assert_eq!(acknowledged.expect("the store is there"), Acknowledged::New);
    assert_eq!(rows(&home.json(&["prune"])), Some(1));
    home.run(&["history", "told"]).exits(2);
    home.run(&["show", &waiting]).exits(0);
}

#[test]
fn a_directory_that_no_row_names_goes_a_day_after_its_last_change() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "s"]);
    let stray = home.home().join("runs/stray");
    fs::create_dir_all(stray.join("artifacts")).expect("a new directory");
    fs::write(stray.join("run.json"), "{}").expect("a new file");
    home.done(&["prune"]);
    assert!(stray.exists(), "it is too young");
    aged(&stray);
    fs::write(stray.join("stdout.log"), "more").expect("a new file");
    home.done(&["prune"]);
    assert!(stray.exists(), "something in it is too young");
    aged(&stray);
    // To another store it is a stranger's.
    let other = format!("sqlite:{}", home.path("other.db").display());
    home.done(&["--store", &other, "create", "session"]);
    let said = home.done(&["--store", &other, "prune"]);
    assert!(stray.exists() && said.contains("1 run directories"), "{said}");
    let plan = home.json(&["prune", "--dry-run"]);
    assert_eq!((planned(&plan), stray.exists()), (vec![pair("stray", "")], true));
    home.done(&["prune"]);
    assert!(!stray.exists());
    let audited = home.json(&["history", "--admin"]);
    assert!(audited.to_string().contains("stray_pruned"), "{audited}");
}

#[test]
fn logs_go_the_longest_ended_first_until_the_rest_fits() {
    let home = Home::new();
    let big = ["--", "sh", "-c", "head -c 200000 /dev/zero"];
    for id in ["first", "second"] {
        home.detach(id, &big);
        over(&home, id);
    }
    let asked = |logs_bytes| Pruning {
        retention: Retention {
            logs_bytes,
            ..Retention::STANDARD
        },
        actor: Actor::new("operator", "tests"),
        protected: Vec::new(),
    };
    let host = host(&home.home());
    assert_eq!(plan_prune(&host, &asked(1 << 30)).expect("a plan").items, []);
    let done = prune(&host, &asked(300_000)).expect("an act");
    let what: Vec<_> = done
        .items
        .iter()
        .map(|item| (item.kind, item.reference.as_deref()))
        .collect();
    assert_eq!(what, [(PruneKind::Logs, Some("run/first"))]);
    assert_eq!(done.items[0].outcome, PruneOutcome::Done);
    assert!(!home.of_run("first", "stdout.log").exists() && home.of_run("first", "exit.json").exists());
    assert!(home.of_run("second", "stdout.log").exists());
    assert_eq!(home.run(&["logs", "first"]).out, "");
}

#[test]
fn nothing_goes_when_the_directory_of_runs_cannot_be_read() {
    let home = Home::new();
    ended(&home, "one", &[], 0);
    let runs = home.home().join("runs");
    fs::rename(&runs, home.path("away")).expect("a directory of ours");
    fs::write(&runs, "no directory").expect("a new file");
    home.run(&["prune", "--older-than", "0"]).exits(74);
    fs::remove_file(&runs).expect("the file");
    fs::rename(home.path("away"), &runs).expect("a directory of ours");
    assert_eq!(home.json(&["show", "one"])["runtime"]["state"], "stopped");
    home.done(&["prune", "--older-than", "0"]);
    assert!(!there(&home, "one"));
}

#[test]
fn an_age_is_a_length_of_time() {
    let home = Home::new();
    home.run(&["prune", "--older-than", "yesterday"]).exits(64);
    home.run(&["prune"]).exits(2);
    assert!(!home.home().exists(), "a retention makes no store");
}

//! A handler that is broken, slow or hostile costs its limit: the end is what it was, the others are heard, and what it
//! owes is visible and told once.

use std::path::Path;

use runwarden_test_guests::{Mode, hostile_handler};
use serde_json::{Value, json};

use crate::harness::Home;
use crate::notices::{sink, told};

/// Installs the handler in a mode; gives its digest.
fn installed(home: &Home, mode: Mode) -> String {
    let file = home.path(&format!("{mode:?}.wasm"));
    std::fs::write(&file, hostile_handler(mode)).expect("a file of the test");
    let installed = home.json(&["policy", "install", &file.to_string_lossy()]);
    installed["digest"].as_str().expect("a digest").to_owned()
}

/// Binds the handler in a mode, to a program that must never be started.
fn bind_broken(home: &Home, name: &str, mode: Mode) {
    let touch = json!(["touch", home.path("touched").to_string_lossy()]).to_string();
    home.bind(name, &["--component", &installed(home, mode), "--exec", &touch]);
}

/// Audit rows of handlers that failed: for whom, and which.
fn failures(home: &Home) -> Vec<(String, String)> {
    let audit = home.json(&["history", "--admin"]);
    let audit = audit.as_array().expect("a list").iter();
    let failed = audit.filter(|row| row["action"] == "handler_failed");
    failed
        .map(|row| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&row["target"]), text(&row["details"]["handler"]))
        })
        .collect()
}

/// Handlers to which plans are owed, with how often each was tried.
fn owed(home: &Home) -> Vec<(String, i64)> {
    let database = home.database();
    let sql = "SELECT handler, tries FROM owed_plans ORDER BY handler";
    let mut statement = database.prepare(sql).expect("the statement fits");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let rows: Result<_, _> = rows.expect("the store is readable").collect();
    rows.expect("handlers and numbers")
}

/// An end with two broken handlers around a sound one.
fn check(mode: Mode) {
    let home = Home::new();
    let file = home.path("heard");
    bind_broken(&home, "a-broken", mode);
    home.bind("b-sound", &["--exec", &sink(&file)]);
    bind_broken(&home, "c-broken", Mode::PlanPanics);
    home.run(&["run", "--id", "one", "--", "sh", "-c", "exit 3"]).exits(3);
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (&shown["status"], &shown["fields"]["exit_code"], &shown["version"]),
        (&json!("failed"), &json!(3), &json!(2)),
        "{mode:?}: {shown}"
    );
    // On a busy machine the time for all plans may be over before each was asked: those are then owed as well.
    deliver(&home);
    one_is_heard(&file, mode);
    let both = [("run/one", "a-broken"), ("run/one", "c-broken")].map(|(run, name)| (run.to_owned(), name.to_owned()));
    assert_eq!(failures(&home), both, "{mode:?}: each is told once");
    let before = owed(&home);
    let names: Vec<&str> = before.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a-broken", "c-broken"], "{mode:?}");
    for passes in 1..3 {
        let delivered = deliver(&home);
        assert_eq!(delivered["planned"], 0, "{mode:?}: {delivered}");
        let later = before.iter().map(|(name, tries)| (name.clone(), tries + passes));
        assert_eq!(
            owed(&home),
            later.collect::<Vec<_>>(),
            "{mode:?}: it is owed until it is made"
        );
    }
    assert_eq!(
        failures(&home),
        both,
        "{mode:?}: a handler that stays broken is told once"
    );
    one_is_heard(&file, mode);
    assert!(!home.path("touched").exists(), "{mode:?}");
    assert_eq!(
        home.notice()["handler"],
        "b-sound",
        "{mode:?}: no notice of a broken plan is half made"
    );
}

/// One pass over everything, as if its time had come.
fn deliver(home: &Home) -> Value {
    home.overdue();
    let said = home.run(&["outbox", "deliver", "--once", "--json"]).exits(0);
    said.document()
}

#[track_caller]
fn one_is_heard(file: &Path, mode: Mode) {
    let told = told(file);
    let ends: Vec<&Value> = told.iter().map(|(_, envelope)| &envelope["terminal_status"]).collect();
    assert_eq!(ends, [&json!("failed")], "{mode:?}");
}

#[test]
fn a_handler_that_traps_costs_its_own_notice() {
    check(Mode::PlanPanics);
    check(Mode::PlanRecurses);
}

#[test]
fn a_handler_that_never_answers_costs_its_time() {
    check(Mode::PlanLoops);
}

#[test]
fn a_handler_that_takes_all_memory_costs_its_limit() {
    check(Mode::PlanTakesMemory);
}

#[test]
fn a_handler_that_answers_a_million_dispatches_sends_none() {
    check(Mode::PlanAnswersAMillion);
    check(Mode::PlanAnswersTooMany);
}

#[test]
fn a_handler_that_names_a_destination_it_was_not_given_sends_nothing() {
    check(Mode::PlanNamesAnother);
}

#[test]
fn a_handler_that_answers_nonsense_sends_nothing() {
    for mode in [
        Mode::PlanIsEnormous,
        Mode::PlanBodyIsEmpty,
        Mode::PlanDeadlineIsPast,
        Mode::PlanForgesAKey,
        Mode::PlanTakesAPlace,
        Mode::PlanFaults,
        Mode::PlanIsCritical,
    ] {
        check(mode);
    }
}

/// What a broken handler owes is no reason to plan for the others again, nor to keep an entity that is to be removed.
#[test]
fn what_a_broken_handler_owes_outlives_its_entity() {
    let home = Home::new();
    bind_broken(&home, "broken", Mode::PlanPanics);
    home.ended_session("one", &[]);
    assert_eq!(owed(&home), [("broken".to_owned(), 1)]);
    home.done(&["rm", "one"]);
    deliver(&home);
    assert_eq!(owed(&home), [("broken".to_owned(), 2)]);
    assert_eq!(failures(&home).len(), 1);
}

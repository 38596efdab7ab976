//! Dying between any two steps of a removal leaves what is there with its row, and the same command again ends it.

use std::fs;

use serde_json::{Value, json};

use crate::crashes::{dies_at, shim_is_gone};
use crate::harness::{Home, until};
use crate::pruning::older;

/// A run that ended, with two directories of its own.
fn ended() -> Home {
    let home = Home::new();
    for name in ["tree-1", "tree-2"] {
        fs::create_dir(home.path(name)).expect("a new directory");
    }
    let own = ["--own-dir", "tree-1", "--own-dir", "tree-2"];
    home.detach("one", &[&own[..], &["--", "sh", "-c", "exit 3"]].concat());
    home.over("one");
    until("its shim is gone", || shim_is_gone(&home, "one"));
    home
}

/// What is left of the run: its record, its runtime row, and each of its directories.
fn left(home: &Home) -> (bool, bool, [bool; 3]) {
    let shown = home.run(&["show", "one", "--json"]);
    let has_runtime = shown.code == 0 && shown.document()["runtime"] != Value::Null;
    let directories = [home.path("tree-1"), home.path("tree-2"), home.home().join("runs/one")];
    (shown.code == 0, has_runtime, directories.map(|path| path.exists()))
}

fn is_gone(home: &Home) {
    assert_eq!(left(home), (false, false, [false; 3]));
    let history = home.json(&["history", "run/one"]);
    assert_eq!(history.as_array().map(Vec::len), Some(2), "{history}");
    let audited = home.json(&["history", "run/one", "--admin"]);
    let removals = audited.as_array().expect("a list").iter();
    assert_eq!(
        removals.filter(|event| event["action"] == "entity_removed").count(),
        1,
        "{audited}"
    );
}

#[test]
fn a_removal_that_dies_between_two_steps_is_ended_by_the_next() {
    for (place, record, runtime, directories) in [
        ("remove.stopped", true, true, [true; 3]),
        ("remove.inventory", true, false, [true; 3]),
        ("remove.directory", true, false, [false, true, true]),
        ("remove.resource", true, false, [false, true, true]),
        ("remove.run_directory", true, false, [false; 3]),
        ("remove.committed", false, false, [false; 3]),
    ] {
        let home = ended();
        dies_at(&home, place, &["rm", "one"]);
        assert_eq!(left(&home), (record, runtime, directories), "{place}");
        if record {
            home.done(&["rm", "one"]);
        }
        is_gone(&home);
    }
}

#[test]
fn a_removal_that_dies_after_its_kill_has_recorded_the_end() {
    let home = Home::new();
    home.detach("one", &["--", "sleep", "600"]);
    dies_at(&home, "remove.stopped", &["rm", "one"]);
    assert_eq!(home.over("one")["status"], "cancelled");
    home.done(&["rm", "one"]);
    is_gone(&home);
}

#[test]
fn a_retention_that_dies_between_two_steps_is_ended_by_the_next() {
    for (place, runtime, directories) in [
        ("prune.planned", true, [true; 3]),
        ("remove.inventory", false, [true; 3]),
        ("remove.directory", false, [false, true, true]),
        ("remove.resource", false, [false, true, true]),
        ("remove.run_directory", false, [false; 3]),
        ("prune.step", false, [false; 3]),
    ] {
        let home = ended();
        let arguments = ["prune", "--older-than", "0"];
        dies_at(&home, place, &arguments);
        assert_eq!(left(&home), (true, runtime, directories), "{place}");
        home.done(&arguments);
        assert_eq!(left(&home), (true, false, [false; 3]), "{place}");
        assert_eq!(home.json(&["show", "one"])["status"], "failed");
    }
}

#[test]
fn a_record_that_was_half_pruned_goes_with_the_next_pass() {
    for place in ["remove.inventory", "remove.run_directory", "remove.committed"] {
        let home = ended();
        older(&home, 400);
        dies_at(&home, place, &["prune"]);
        home.done(&["prune"]);
        home.run(&["show", "one"]).exits(2);
        home.done(&["prune"]);
        home.run(&["history", "one"]).exits(2);
        assert!(!home.path("tree-1").exists(), "{place}");
    }
}

#[test]
fn a_stray_is_audited_before_it_goes() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "s"]);
    let stray = home.home().join("runs/stray");
    fs::create_dir_all(&stray).expect("a new directory");
    crate::removing::aged(&stray);
    dies_at(&home, "prune.audited", &["prune"]);
    let audited = home.json(&["history", "--admin"]);
    assert!(
        audited.to_string().contains("stray_pruned") && stray.exists(),
        "{audited}"
    );
    assert_eq!(home.json(&["prune"])["complete"], json!(true));
    assert!(!stray.exists());
}

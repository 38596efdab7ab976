//! rm: stopped and confirmed first, removed then; whatever cannot be confirmed keeps its row and its directories.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::crashes::shim_is_gone;
use crate::harness::{Home, answered, lives, until};

/// Starts a detached shell script and waits for what it tells in the file `told`.
fn started(home: &Home, id: &str, options: &[&str], text: &str) -> String {
    let text = format!("told={}; {text}", home.path(id).display());
    home.detach(id, &[options, &["--", "sh", "-c", &text]].concat());
    home.told(id)
}

/// A directory beside the home, as an option's value.
fn own(home: &Home, name: &str) -> (PathBuf, String) {
    let path = home.path(name);
    fs::create_dir_all(path.join("inner")).expect("a new directory");
    fs::write(path.join("inner/file"), "work").expect("a new file");
    let path = path.canonicalize().expect("it is there");
    let word = path.to_str().expect("the path is text").to_owned();
    (path, word)
}

/// Changes the store by hand, as no command does.
fn by_hand(home: &Home, sql: &str) {
    let connection = Connection::open(home.home().join("state.db")).expect("the store is a database");
    connection.execute_batch(sql).expect("the statement fits");
}

fn entity(document: &Value, reference: &str) -> Value {
    let entities = document["entities"].as_array().expect("a list");
    let found = entities.iter().find(|one| one["ref"] == reference);
    found.unwrap_or_else(|| panic!("{reference} is in {document}")).clone()
}

fn actions(home: &Home, reference: &str) -> Vec<String> {
    let events = home.json(&["history", reference, "--admin"]);
    let events = events.as_array().expect("a list").clone();
    events
        .iter()
        .map(|event| event["action"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_live_run_is_stopped_then_removed_and_its_history_answers() {
    let home = Home::new();
    let (tree, word) = own(&home, "tree");
    let pid = started(&home, "one", &["--own-dir", &word], "echo $$ > $told; exec sleep 600");
    let document = home.json(&["rm", "one"]);
    let run_dir = home
        .home()
        .join("runs/one")
        .canonicalize()
        .unwrap_or_else(|_| home.home().join("runs/one"));
    let expected = json!({"complete": true, "entities": [{
        "ref": "run/one", "status": "cancelled", "outcome": "removed", "directories": [word, run_dir],
        "freed_bytes": document["entities"][0]["freed_bytes"], "signal": "sigterm", "survivors": [], "message": null,
    }]});
    assert_eq!(document, expected);
    assert!(
        document["entities"][0]["freed_bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 0)
    );
    assert!(!lives(&pid) && !tree.exists() && !run_dir.exists());
    home.run(&["show", "one"]).exits(2);
    let history = home.json(&["history", "run/one"]);
    let statuses: Vec<&str> = history
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|row| row["status"].as_str())
        .collect();
    assert_eq!(statuses, ["running", "cancelled"]);
    for word in ["run/one", "one"] {
        assert_eq!(actions(&home, word), ["entity_removed"], "{word}");
    }
    home.run(&["run", "--detach", "--id", "one", "--", "true"]).exits(4);
    home.run(&["create", "session", "--id", "one"]).exits(4);
    home.run(&["rm", "one"]).exits(2);
}

// The three that kandev's decision 25 asks for: sessions that ended, sessions that are missing, stops that fail.

#[test]
fn a_terminal_entity_with_a_live_runtime_is_stopped_before_it_is_removed() {
    let home = Home::new();
    let pid = started(&home, "one", &[], "setsid sleep 600 & echo $! > $told; exit 0");
    until("the end is recorded", || {
        home.json(&["show", "one"])["terminal"] == true
    });
    assert!(lives(&pid), "it lingers");
    let removed = entity(&home.json(&["rm", "one"]), "run/one");
    assert_eq!(
        (&removed["outcome"], &removed["status"]),
        (&json!("removed"), &json!("completed"))
    );
    assert!(!lives(&pid));
    home.run(&["show", "one"]).exits(2);
}

#[test]
fn a_runtime_whose_entity_is_missing_is_left_alone() {
    let home = Home::new();
    let pid = started(&home, "one", &[], "echo $$ > $told; exec sleep 600");
    by_hand(
        &home,
        "PRAGMA foreign_keys = OFF; DELETE FROM runtimes; DELETE FROM works; DELETE FROM entities",
    );
    aged(&home.home().join("runs/one"));
    let plan = home.run(&["prune", "--json"]).exits(1).document();
    assert_eq!(plan["items"][0]["what"], "stray", "{plan}");
    assert_eq!(plan["items"][0]["outcome"], "kept", "{plan}");
    assert!(lives(&pid) && home.of_run("one", "run.json").exists());
    let number: i32 = pid.parse().expect("a number");
    let process = rustix::process::Pid::from_raw(number).expect("a process of this test");
    rustix::process::kill_process(process, rustix::process::Signal::KILL).expect("it lives");
    until("its shim is gone", || shim_is_gone(&home, "one"));
    aged(&home.home().join("runs/one"));
    home.done(&["prune"]);
    assert!(!home.home().join("runs/one").exists());
}

/// Makes a directory and what is directly in it two days older.
pub(crate) fn aged(directory: &std::path::Path) {
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 24 * 60 * 60);
    let entries = fs::read_dir(directory)
        .expect("a directory")
        .flatten()
        .map(|entry| entry.path());
    for path in entries.chain([directory.to_owned()]) {
        let file = fs::File::open(path).expect("a file of ours");
        file.set_modified(then).expect("a file of ours");
    }
}

/// Rows and directories go after the processes, never before: what cannot be stopped can be tried again.
#[test]
fn a_stop_that_cannot_be_confirmed_keeps_the_row_and_the_directories() {
    let home = Home::new();
    let (tree, word) = own(&home, "tree");
    let pid = started(&home, "one", &["--own-dir", &word], "echo $$ > $told; exec sleep 600");
    for (change, signal) in [
        ("host = 'elsewhere'", "host_mismatch"),
        ("pid_namespace = 1", "namespace_mismatch"),
        ("kind = 'container'", "remote"),
        (
            "shim_pidfs_inode = 1, shim_pidfs_handle = NULL, shim_start_ticks = NULL, shim_pid = 1",
            "identity_mismatch",
        ),
    ] {
        let row = "CREATE TEMP TABLE kept AS SELECT * FROM runtimes";
        let connection = Connection::open(home.home().join("state.db")).expect("the store is a database");
        connection
            .execute_batch(&format!("{row}; UPDATE runtimes SET {change}"))
            .expect("the statement fits");
        let kept = entity(&home.run(&["rm", "one", "--json"]).exits(1).document(), "run/one");
        assert_eq!(
            (&kept["outcome"], &kept["signal"]),
            (&json!("kept"), &json!(signal)),
            "{kept}"
        );
        assert!(
            kept["message"]
                .as_str()
                .is_some_and(|said| said.contains("not confirmed")),
            "{kept}"
        );
        assert!(lives(&pid) && tree.join("inner/file").exists() && home.of_run("one", "run.json").exists());
        assert_eq!(home.json(&["show", "one"])["status"], "running", "{change}");
        let back = "DELETE FROM runtimes; INSERT INTO runtimes SELECT * FROM kept; DROP TABLE kept";
        connection.execute_batch(back).expect("the statement fits");
    }
    home.done(&["rm", "one"]);
    assert!(!lives(&pid) && !tree.exists());
}

#[test]
fn a_stop_that_fails_keeps_everything() {
    let home = Home::new();
    let (tree, word) = own(&home, "tree");
    let pid = started(&home, "one", &["--own-dir", &word], "echo $$ > $told; exec sleep 600");
    let runs = home.home().join("runs");
    fs::rename(runs.join("one"), runs.join("away")).expect("a directory of ours");
    let answer = home.run(&["rm", "one"]);
    assert!(matches!(answer.code, 1 | 74), "{answer:?}");
    assert!(
        answer.err.contains("run/one") || answer.out.contains("run/one"),
        "{answer:?}"
    );
    assert!(lives(&pid) && tree.exists());
    fs::rename(runs.join("away"), runs.join("one")).expect("a directory of ours");
    home.done(&["rm", "one"]);
    assert!(!lives(&pid) && !tree.exists());
}

#[test]
fn a_record_that_cannot_be_read_keeps_its_run_from_retention() {
    let home = Home::new();
    let (tree, word) = own(&home, "tree");
    for (id, options) in [("one", &["--own-dir", &word][..]), ("two", &[])] {
        home.detach(id, &[options, &["--", "true"]].concat());
        home.over(id);
        until("its shim is gone", || shim_is_gone(&home, id));
    }
    by_hand(&home, "UPDATE runtimes SET state = 'running' WHERE runtime = 1");
    fs::write(home.of_run("one", "exit.json"), "no record").expect("a file of ours");
    let said = home.done(&["prune", "--older-than", "0"]);
    assert!(said.contains("run/one is left alone"), "{said}");
    assert!(tree.exists() && home.of_run("one", "exit.json").exists());
    assert!(!home.of_run("two", "exit.json").exists(), "it keeps no other");
    // A removal sees for itself that nothing of it runs.
    home.done(&["rm", "one"]);
    assert!(!tree.exists());
}

#[test]
fn an_inventory_that_cannot_be_read_ends_the_removal_with_nothing_done() {
    for table in ["runtimes", "resources", "links"] {
        let home = Home::new();
        let (tree, word) = own(&home, "tree");
        let pid = started(&home, "one", &["--own-dir", &word], "echo $$ > $told; exec sleep 600");
        by_hand(&home, &format!("ALTER TABLE {table} RENAME TO hidden"));
        home.run(&["rm", "one"]).exits(74);
        if table != "links" {
            home.run(&["prune", "--older-than", "0"]).exits(74);
        }
        by_hand(&home, &format!("ALTER TABLE hidden RENAME TO {table}"));
        assert!(
            lives(&pid) && tree.exists() && home.of_run("one", "run.json").exists(),
            "{table}"
        );
        assert_eq!(home.json(&["show", "one"])["status"], "running", "{table}");
        home.done(&["rm", "one"]);
    }
}

#[test]
fn a_directory_in_which_another_live_run_works_stays_with_its_row() {
    let home = Home::new();
    let (tree, word) = own(&home, "tree");
    let (_, outside) = own(&home, "outside");
    home.detach("one", &["--own-dir", &word, "--", "true"]);
    home.over("one");
    until("its shim is gone", || shim_is_gone(&home, "one"));
    let inner = tree.join("inner").to_str().expect("text").to_owned();
    let gone_there = format!("cd {inner}; echo $$ > $told; exec sleep 600");
    for (id, cwd, text) in [
        ("by-cwd", inner.as_str(), "echo $$ > $told; exec sleep 600"),
        ("by-cd", outside.as_str(), gone_there.as_str()),
    ] {
        let pid = started(&home, id, &["--cwd", cwd], text);
        let kept = entity(&home.run(&["rm", "one", "--json"]).exits(1).document(), "run/one");
        let said = kept["message"].as_str().unwrap_or_default();
        assert!(said.contains(&format!("run/{id} works in it")), "{kept}");
        assert!(lives(&pid) && tree.join("inner/file").exists());
        let prune = home.run(&["prune", "--older-than", "0", "--json"]).exits(1).document();
        let of_one = |item: &&Value| item["ref"] == "run/one";
        let item = prune["items"].as_array().and_then(|items| items.iter().find(of_one));
        assert_eq!(item.map(|item| &item["outcome"]), Some(&json!("kept")), "{prune}");
        assert!(tree.join("inner/file").exists());
        home.done(&["kill", id]);
        home.over(id);
    }
    home.done(&["rm", "one"]);
    assert!(!tree.exists());
}

#[test]
fn a_run_directory_in_which_another_live_run_works_stays() {
    let home = Home::new();
    home.detach("one", &["--", "true"]);
    home.over("one");
    // Its shim changes the directory once more, which makes it young again.
    until("its shim is gone", || shim_is_gone(&home, "one"));
    let artifacts = home.of_run("one", "artifacts");
    let cwd = artifacts.to_str().expect("text");
    let pid = started(&home, "two", &["--cwd", cwd], "echo $$ > $told; exec sleep 600");
    let kept = home.run(&["rm", "one"]).exits(1);
    assert!(kept.out.contains("run/two works in it"), "{}", kept.out);
    by_hand(
        &home,
        "PRAGMA foreign_keys = OFF; DELETE FROM entities WHERE entity = 1; DELETE FROM runtimes WHERE owner = 1",
    );
    aged(&home.home().join("runs/one"));
    home.run(&["prune"]).exits(1);
    assert!(lives(&pid) && artifacts.exists());
    home.done(&["rm", "two"]);
    home.done(&["prune"]);
    assert!(!artifacts.exists());
}

#[test]
fn a_directory_that_has_become_a_link_stays_with_what_it_leads_to() {
    let home = Home::new();
    let (tree, word) = own(&home, "tree");
    let (precious, _) = own(&home, "precious");
    home.detach("one", &["--own-dir", &word, "--", "true"]);
    home.over("one");
    fs::rename(&tree, home.path("moved")).expect("a directory of ours");
    symlink(&precious, &tree).expect("a new link");
    let kept = home.run(&["rm", "one"]).exits(1);
    assert!(kept.out.contains("a symbolic link is in the way"), "{}", kept.out);
    assert!(precious.join("inner/file").exists());
    assert_eq!(home.json(&["show", "one"])["status"], "completed");
    fs::remove_file(&tree).expect("the link");
    home.done(&["rm", "one"]);
    assert!(precious.join("inner/file").exists() && home.path("moved").exists());
}

#[test]
fn what_could_never_be_removed_is_no_runs_own() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "s"]);
    let (_, word) = own(&home, "tree");
    symlink("tree", home.path("link")).expect("a new link");
    fs::write(home.path("file"), "").expect("a new file");
    let state = home.home();
    let places = [".", "..", "/", "link", "file", "none/such", "home", "home/runs/x"];
    for place in places.into_iter().chain([state.to_str().expect("text")]) {
        home.run(&["run", "--detach", "--own-dir", place, "--", "true"])
            .exits(64);
        home.run(&["run", "--own-dir", place, "--", "true"]).exits(125);
    }
    home.detach(
        "later",
        &[
            "--own-dir",
            "made-by-it",
            "--own-dir",
            &word,
            "--",
            "mkdir",
            "made-by-it",
        ],
    );
    home.over("later");
    assert!(home.path("made-by-it").exists());
    home.done(&["rm", "later"]);
    assert!(!home.path("made-by-it").exists() && !home.path("tree").exists());
}

#[test]
fn the_record_is_kept_where_that_is_asked_for() {
    let home = Home::new();
    let (tree, word) = own(&home, "tree");
    home.detach("one", &["--own-dir", &word, "--", "true"]);
    home.over("one");
    let cleared = entity(&home.json(&["rm", "one", "--keep-record"]), "run/one");
    assert_eq!(cleared["outcome"], "cleared");
    assert!(!tree.exists() && !home.home().join("runs/one").exists());
    let shown = home.json(&["show", "one"]);
    assert_eq!(
        (&shown["status"], &shown["run_dir"]),
        (&json!("completed"), &Value::Null)
    );
    assert_eq!(actions(&home, "run/one"), ["entity_cleared"]);
    home.done(&["rm", "one"]);
    assert_eq!(actions(&home, "run/one"), ["entity_cleared", "entity_removed"]);
    // The one handle by which its program takes up its work again goes only with the record.
    home.detach("two", &["--resume-token", "t", "--", "true"]);
    home.over("two");
    home.done(&["rm", "two", "--keep-record"]);
    assert_eq!(home.json(&["show", "two"])["runtime"]["resume_token"], true);
    home.done(&["rm", "two"]);
    home.run(&["show", "two"]).exits(2);
}

#[test]
fn what_is_linked_below_goes_too_unless_it_is_linked_below_another() {
    let home = Home::new();
    for id in ["a", "b"] {
        home.done(&["create", "play", "--id", id]);
    }
    let below = started(
        &home,
        "below",
        &["--parent", "play/a"],
        "echo $$ > $told; exec sleep 600",
    );
    let parents = ["--parent", "play/a", "--parent", "play/b"];
    let shared = started(&home, "shared", &parents, "echo $$ > $told; exec sleep 600");
    let document = home.json(&["rm", "play/a"]);
    let outcome = |reference: &str| entity(&document, reference)["outcome"].clone();
    assert_eq!(
        [outcome("run/shared"), outcome("run/below"), outcome("play/a")],
        [json!("shared"), json!("removed"), json!("removed")],
        "{document}"
    );
    assert!(!lives(&below) && !lives(&shared));
    let shown = home.json(&["show", "shared"]);
    assert_eq!(
        (&shown["parents"], &shown["status"]),
        (&json!(["play/b"]), &json!("cancelled"))
    );
    assert!(home.of_run("shared", "exit.json").exists());
    home.done(&["rm", "shared", "play/b"]);
    assert_eq!(home.json(&["ls", "--all"]), json!([]));
}

#[test]
fn selectors_choose_and_one_word_that_means_nothing_removes_nothing() {
    let home = Home::new();
    for (id, tag, code) in [
        ("one", "batch=7", "3"),
        ("two", "batch=8", "3"),
        ("three", "batch=7", "0"),
    ] {
        home.run(&[
            "run",
            "--id",
            id,
            "--tag",
            tag,
            "--",
            "sh",
            "-c",
            &format!("exit {code}"),
        ]);
    }
    home.run(&["rm"]).exits(64);
    home.run(&["rm", "one", "nothing"]).exits(2);
    home.run(&["show", "one"]).exits(0);
    home.done(&["rm", "--failed", "--tag", "batch=7"]);
    home.run(&["show", "one"]).exits(2);
    home.done(&["rm", "two", "@", "two"]);
    assert_eq!(home.json(&["ls", "--all"]), json!([]));
}

#[test]
fn an_entity_that_nothing_ends_is_not_removed_before_it_has_ended() {
    let home = Home::new();
    home.done(&["create", "team", "--id", "t"]);
    let kept = home.run(&["rm", "t"]).exits(1);
    assert!(kept.out.contains("it is still active: end it first"), "{}", kept.out);
    home.done(&["transition", "t", "archived", "--reason", "team.archived.operator"]);
    home.done(&["rm", "t"]);
}

#[test]
fn what_runs_elsewhere_keeps_its_entity_until_it_is_released() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "s"]);
    home.done(&[
        "runtime", "register", "s", "--kind", "ssh", "--host", "box", "--handle", "12",
    ]);
    let kept = entity(&home.run(&["rm", "s", "--json"]).exits(1).document(), "session/s");
    assert_eq!((&kept["outcome"], &kept["signal"]), (&json!("kept"), &json!("remote")));
    assert!(
        kept["message"]
            .as_str()
            .is_some_and(|said| said.contains("runtime release 1")),
        "{kept}"
    );
    assert_eq!(home.json(&["show", "s"])["runtime"]["state"], "running");
    home.done(&["runtime", "release", "1"]);
    home.done(&["rm", "s"]);
    home.run(&["show", "s"]).exits(2);
}

#[test]
fn two_removals_at_once_are_one() {
    let home = Home::new();
    let (tree, word) = own(&home, "tree");
    started(&home, "one", &["--own-dir", &word], "echo $$ > $told; exec sleep 600");
    let both = [0, 1].map(|_| home.start(&["rm", "one", "--json"]));
    let codes = both.map(|child| answered(child, "rm one".to_owned()).code);
    // The second may come when it is gone already.
    assert!(
        codes.iter().all(|code| matches!(code, 0 | 2)) && codes.contains(&0),
        "{codes:?}"
    );
    assert!(!tree.exists() && !home.home().join("runs/one").exists());
    assert_eq!(actions(&home, "run/one"), ["entity_removed"]);
}

#[test]
fn the_report_for_people_names_each_directory() {
    let home = Home::new();
    let (_, word) = own(&home, "tree");
    home.detach("one", &["--own-dir", &word, "--", "true"]);
    home.over("one");
    let said = home.done(&["rm", "one"]);
    assert!(said.starts_with("removed run/one (completed)"), "{said}");
    assert!(
        said.contains(&format!("gone: {word}")) && said.contains("/runs/one"),
        "{said}"
    );
}

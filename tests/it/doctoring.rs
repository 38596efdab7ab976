//! doctor: what is not as it should be is told, and nothing is changed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::crashes::shim_is_gone;
use crate::harness::{Home, until};

/// The check of that name.
#[track_caller]
fn check<'a>(told: &'a Value, name: &str) -> &'a Value {
    let mut all = told["checks"].as_array().expect("a list").iter();
    all.find(|check| check["name"] == name)
        .unwrap_or_else(|| panic!("{name} is checked: {told:#}"))
}

/// What `doctor` says, which ends with this code.
#[track_caller]
fn doctor(home: &Home, code: i32) -> Value {
    let told = home.run(&["doctor", "--json"]).exits(code).document();
    assert_eq!(told["ok"], json!(code == 0), "{told:#}");
    for check in told["checks"].as_array().expect("a list") {
        let members: Vec<&String> = check.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["hint", "message", "name", "result"]);
    }
    told
}

/// Waits until a run has ended and its shim is gone too: until then its finishing command may write.
fn over(home: &Home, id: &str) {
    home.over(id);
    until("its shim is gone", || shim_is_gone(home, id));
}

#[test]
fn a_machine_without_a_home_is_looked_at_and_nothing_is_made() {
    let home = Home::new();
    let told = doctor(&home, 0);
    for name in [
        "kernel",
        "identity",
        "abilities",
        "containment",
        "logout",
        "home",
        "space",
        "store",
    ] {
        assert_ne!(check(&told, name)["result"], "bad", "{told:#}");
    }
    assert!(!home.home().exists(), "nothing is made");
}

#[test]
fn a_home_in_use_is_well_and_stays_as_it_is() {
    let home = Home::new();
    home.done(&["run", "--id", "one", "--", "echo", "hello"]);
    over(&home, "one");
    let store = || std::fs::read(home.home().join("state.db")).expect("the store");
    let before = store();
    let told = doctor(&home, 0);
    for name in [
        "permissions",
        "store",
        "schema",
        "log",
        "sqlite",
        "reserve",
        "runs",
        "orphans",
        "disk use",
    ] {
        assert_eq!(check(&told, name)["result"], "ok", "{told:#}");
    }
    assert_eq!(store(), before);
    let text = home.run_with(&["doctor"], &[("COLUMNS", "40")]).exits(0).out;
    let wide = text
        .lines()
        .filter(|line| line.chars().count() > 40 && !line.contains('/'))
        .count();
    assert_eq!(wide, 0, "{text}");
    assert!(text.contains("\nok    store: "), "{text}");
    home.run(&["doctor", "--nonsense"]).exits(64);
}

#[test]
fn a_home_that_others_may_read_is_bad() {
    let home = Home::new();
    home.done(&["create", "session"]);
    let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it is ours");
    set(&home.home().join("state.db"), 0o644);
    let told = doctor(&home, 1);
    let permissions = check(&told, "permissions");
    assert_eq!(permissions["result"], "bad", "{told:#}");
    assert_eq!(permissions["hint"], format!("chmod -R go= {}", home.home().display()));
    set(&home.home().join("state.db"), 0o600);
    doctor(&home, 0);
}

#[test]
fn a_damaged_store_is_bad_and_keeps_no_other_check_from_being_made() {
    let home = Home::new();
    home.done(&["create", "session"]);
    let harm = Connection::open(home.home().join("state.db")).expect("the store");
    harm.execute_batch("PRAGMA foreign_keys = OFF; INSERT INTO links (parent, child) VALUES (7, 8)")
        .expect("harm");
    drop(harm);
    let told = doctor(&home, 1);
    assert!(
        check(&told, "store")["message"]
            .as_str()
            .is_some_and(|said| said.contains("links")),
        "{told:#}"
    );
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        std::fs::write(home.home().join(name), "nothing of the kind".repeat(300)).expect("it is ours");
    }
    let told = doctor(&home, 1);
    assert_eq!(check(&told, "store")["result"], "bad");
    check(&told, "disk use");
}

#[test]
fn a_reader_that_keeps_its_snapshot_is_named() {
    let home = Home::new();
    home.done(&["create", "session"]);
    let reader = Connection::open(home.home().join("state.db")).expect("the store");
    let rows = "BEGIN; SELECT count(*) FROM entities";
    reader.execute_batch(rows).expect("a snapshot");
    let said = check(&doctor(&home, 0), "log")["message"].clone();
    let wanted = format!("pid {} reads now", std::process::id());
    assert!(said.as_str().is_some_and(|said| said.contains(&wanted)), "{said}");
}

#[test]
fn what_lives_on_is_a_warning_and_what_waits_for_somebody_is_bad() {
    let home = Home::new();
    let script = format!("setsid sleep 600 & echo $! > {}", home.path("child").display());
    home.detach("left", &["--", "sh", "-c", &script]);
    home.told("child");
    until("the end is recorded", || {
        home.json(&["show", "left"])["runtime"]["state"] == "lingering"
    });
    let told = doctor(&home, 0);
    assert_eq!(check(&told, "lingering")["result"], "warn");
    assert_eq!(check(&told, "lingering")["hint"], "runwarden kill run/left");
    home.done(&["kill", "left", "--grace", "1s"]);
    assert_eq!(check(&doctor(&home, 0), "lingering")["message"], "none");

    home.done(&["run", "--id", "stuck", "--", "true"]);
    over(&home, "stuck");
    let store = Connection::open(home.home().join("state.db")).expect("the store");
    let as_if_cut_off = "UPDATE runtimes SET state = 'starting', shim_pid = NULL, shim_start_ticks = NULL, \
        shim_pidfs_inode = NULL, shim_pidfs_handle = NULL, worker_pid = NULL, worker_start_ticks = NULL, \
        worker_pidfs_inode = NULL, worker_pidfs_handle = NULL, attempt_token = 'other', created_at_ms = created_at_ms - 31000 \
        WHERE CAST(run_dir AS TEXT) LIKE '%stuck'";
    assert_eq!(store.execute(as_if_cut_off, []).expect("a row"), 1);
    let told = doctor(&home, 1);
    assert_eq!(check(&told, "starts")["result"], "bad", "{told:#}");
    assert!(
        check(&told, "starts")["message"]
            .as_str()
            .is_some_and(|said| said.contains("run/stuck")),
        "{told:#}"
    );
}

//! A store that is locked, newer, damaged or missing: an exit code and words, and nothing half-written.

use rusqlite::Connection;

use crate::harness::Home;

fn database(home: &Home) -> std::path::PathBuf {
    home.home().join("state.db")
}

/// A home with one session, and its database opened by hand.
fn made() -> (Home, Connection) {
    let home = Home::new();
    home.done(&["create", "session", "--id", "s"]);
    let connection = Connection::open(database(&home)).expect("the store is a database");
    (home, connection)
}

const END: [&str; 5] = ["transition", "s", "completed", "--reason", "run.completed.ok"];

#[test]
fn a_store_that_another_process_holds_is_busy_and_reads_go_on() {
    let (home, connection) = made();
    connection.execute_batch("BEGIN IMMEDIATE").expect("the lock is free");
    let answer = home.run(&END).exits(75).hints("try again");
    assert!(answer.err.contains("busy"), "{}", answer.err);
    assert_eq!(home.json(&["show", "s"])["status"], "running");
    connection.execute_batch("ROLLBACK").expect("the lock is ours");
    home.run(&END).exits(0);
}

#[test]
fn a_newer_store_is_left_alone() {
    let (home, connection) = made();
    let newer = "INSERT INTO schema_version (version, applied_at_ms) VALUES (9999, 0); PRAGMA user_version = 9999";
    connection.execute_batch(newer).expect("its number is ours to change");
    let before = std::fs::read(database(&home)).expect("the file is there");
    for arguments in [&["show", "s"][..], &END[..], &["run", "--detach", "--", "true"][..]] {
        let answer = home.run(arguments).exits(74);
        assert!(answer.err.contains("9999"), "{}", answer.err);
    }
    assert_eq!(std::fs::read(database(&home)).expect("the file is there"), before);
}

#[test]
fn what_is_no_store_is_told_as_damaged_and_left_alone() {
    let home = Home::new();
    std::fs::create_dir(home.home()).expect("a new home");
    std::fs::write(database(&home), "this is a shopping list, not a database; ".repeat(100)).expect("a file");
    let before = std::fs::read(database(&home)).expect("the file is there");
    let answer = home.run(&["show", "s"]).exits(74);
    assert!(answer.err.contains("damaged"), "{}", answer.err);
    home.run(&["create", "session"]).exits(74);
    assert_eq!(std::fs::read(database(&home)).expect("the file is there"), before);
}

#[test]
fn a_store_that_is_not_there_is_not_made_by_a_question() {
    let home = Home::new();
    for question in [
        &["show", "s"][..],
        &["wait", "s"],
        &["history", "s"],
        &["kill", "s"],
        &["logs", "s"],
    ] {
        home.run(question).exits(2);
    }
    home.run(&["ls"]).exits(0);
    assert!(!database(&home).exists(), "a question made a store");
}

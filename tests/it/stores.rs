//! A store that is locked, read-only, newer, damaged or missing: an exit code and words, and nothing half-written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;

use crate::crashes::shim_is_gone;
use crate::harness::{Home, until};

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

/// A question takes no lock that a writer holds.
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
    let before = fs::read(database(&home)).expect("the file is there");
    for arguments in [&["show", "s"][..], &END[..], &["run", "--detach", "--", "true"][..]] {
        let answer = home.run(arguments).exits(74);
        assert!(answer.err.contains("9999"), "{}", answer.err);
    }
    assert_eq!(fs::read(database(&home)).expect("the file is there"), before);
}

#[test]
fn what_is_no_store_is_told_as_damaged_and_left_alone() {
    let home = Home::new();
    fs::create_dir(home.home()).expect("a new home");
    fs::write(database(&home), "this is a shopping list, not a database; ".repeat(100)).expect("a file");
    let before = fs::read(database(&home)).expect("the file is there");
    let answer = home.run(&["show", "s"]).exits(74);
    assert!(answer.err.contains("damaged"), "{}", answer.err);
    home.run(&["create", "session"]).exits(74);
    assert_eq!(fs::read(database(&home)).expect("the file is there"), before);
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

/// A home that cannot be written as long as this lives: on a file system mounted read-only for who may mount, else by
/// its permissions.
struct Frozen<'a> {
    home: &'a Home,
    mounted: bool,
}

impl<'a> Frozen<'a> {
    fn new(home: &'a Home) -> Self {
        let mount = |options: &[&str]| {
            let mut mount = Command::new("mount");
            mount.args(options).arg(home.home());
            mount.output().is_ok_and(|output| output.status.success())
        };
        let path = home.home().display().to_string();
        let mounted = mount(&["--bind", &path]);
        let frozen = Self { home, mounted };
        if mounted {
            assert!(mount(&["-o", "remount,bind,ro"]), "what was mounted is made read-only");
        } else {
            frozen.permit(0o555, 0o444);
        }
        frozen
    }

    /// Why nothing can be written, in the words of a failure.
    const fn why(&self) -> &'static str {
        if self.mounted {
            "mounted read-only"
        } else {
            "permissions forbid"
        }
    }

    fn permit(&self, directory: u32, file: u32) {
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        for entry in fs::read_dir(self.home.home()).expect("the home is there").flatten() {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            set(&entry.path(), if is_file { file } else { directory });
        }
        set(&self.home.home(), directory);
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg(self.home.home()).status();
        } else {
            self.permit(0o700, 0o600);
        }
    }
}

/// A home with a session, a run that ended, and one whose end waits to be recorded.
fn with_a_waiting_end() -> Home {
    let home = Home::new();
    home.done(&["create", "session", "--id", "s"]);
    home.detach("ended", &["--", "echo", "said"]);
    home.over("ended");
    until("its shim is gone", || shim_is_gone(&home, "ended"));
    let mut start = home.command(&["run", "--detach", "--id", "waits", "--", "sh", "-c", "exit 3"]);
    start.env("RUNWARDEN_CRASH_AT", "settle.judged");
    assert!(start.output().expect("the program starts").status.success());
    until("the end waits and its shim is gone", || {
        home.of_run("waits", "exit.json").exists() && shim_is_gone(&home, "waits")
    });
    home
}

const QUESTIONS: [&[&str]; 8] = [
    &["ls"],
    &["show", "ended"],
    &["history", "ended"],
    &["logs", "ended"],
    &["wait", "ended"],
    &["policy", "ls"],
    &["policy", "show", "session"],
    &["policy", "matrix", "session"],
];

#[test]
fn a_store_that_cannot_be_written_is_read_and_a_waiting_end_is_told_once() {
    let home = with_a_waiting_end();
    let frozen = Frozen::new(&home);
    for question in QUESTIONS {
        home.run(question).exits(0);
    }
    for question in [
        &["ls"][..],
        &["ls", "--health"],
        &["show", "waits"],
        &["history", "waits"],
    ] {
        let answer = home.run(question).exits(0);
        assert!(answer.out.contains("running"), "{}", answer.out);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
        assert!(answer.err.starts_with("warning: run/waits"), "{}", answer.err);
    }
    let health = &home.json(&["ls", "--health", "waits"])[0]["health"];
    assert_eq!(
        health["level"], "orphaned",
        "gone without output, and its end is not recorded"
    );
    let waiting = home.run(&["wait", "waits", "--timeout", "1500ms"]).exits(3);
    assert_eq!(
        waiting.err.matches("waits to be recorded").count(),
        1,
        "{}",
        waiting.err
    );
    for (command, code) in [
        (&END[..], 74),
        (&["create", "session"], 74),
        (&["kill", "s"], 74),
        (&["run", "--detach", "--", "true"], 74),
        (&["run", "--", "true"], 125),
    ] {
        let answer = home.run(command).exits(code).hints("RUNWARDEN_HOME");
        assert!(answer.err.contains(frozen.why()), "{}", answer.err);
    }
    drop(frozen);
    assert_eq!(home.json(&["show", "waits"])["fields"]["exit_code"], 3);
}

#[test]
fn a_store_that_was_copied_without_its_log_is_read_where_it_cannot_be_written() {
    let home = with_a_waiting_end();
    home.done(&["show", "waits"]);
    let emptied = Connection::open(database(&home)).expect("the store is a database");
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    emptied
        .query_row(checkpoint, [], |_| Ok(()))
        .expect("nobody has it open");
    drop(emptied);
    for name in ["state.db-wal", "state.db-shm"] {
        let _ = fs::remove_file(home.home().join(name));
    }
    let frozen = Frozen::new(&home);
    for question in QUESTIONS {
        home.run(question).exits(0);
    }
    home.run(&END).exits(74).hints("RUNWARDEN_HOME");
    drop(frozen);
}

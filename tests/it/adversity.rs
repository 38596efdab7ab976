//! What happens around a run while it runs: the binary is replaced, the store is changed by another version, the clock is
//! set, the program or its directory is removed, a container starts anew over its volume.

use std::process::Command;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Home, PROGRAM, lives, opened, until};

/// A detached run that waits at a gate of its own and then exits with 7.
fn waiting(home: &Home, program: &str, id: &str) -> std::path::PathBuf {
    let (gate, told) = (home.gate(&format!("{id}.gate")), home.path(id));
    let script = format!("echo $$ > {}; read x < {}; exit 7", told.display(), gate.display());
    let mut command = Command::new(program);
    command.args(["run", "--detach", "--id", id, "--", "sh", "-c", &script]);
    command.env("RUNWARDEN_HOME", home.home()).current_dir(home.path("."));
    assert!(command.output().expect("the program starts").status.success());
    home.told(id);
    gate
}

fn database(home: &Home) -> Connection {
    Connection::open(home.home().join("state.db")).expect("the store")
}

/// The status as it is stored, without a look at the run.
fn stored(home: &Home, id: &str) -> String {
    let sql = "SELECT status FROM entities JOIN entity_ids USING (entity) WHERE entity_ids.id = ?1";
    let store = database(home);
    store.query_row(sql, [id], |row| row.get(0)).expect("a row of ours")
}

fn ended_with_7(shown: &Value) {
    assert_eq!(
        (&shown["status"], &shown["fields"]["exit_code"]),
        (&json!("failed"), &json!(7)),
        "{shown}"
    );
}

#[test]
fn an_end_is_recorded_although_the_binary_that_started_the_run_was_removed() {
    let home = Home::new();
    let copy = home.path("runwarden-of-yesterday");
    std::fs::copy(PROGRAM, &copy).expect("a copy");
    let gate = waiting(&home, &copy.to_string_lossy(), "one");
    std::fs::remove_file(&copy).expect("a copy of ours");
    let _open = opened(&gate);
    // Nobody reads the run: its own finishing command records it, from the image that the shim kept.
    until("the end is in the store", || stored(&home, "one") == "failed");
    ended_with_7(&home.over("one"));
}

#[test]
fn an_end_is_recorded_although_the_binary_was_replaced_by_another_version() {
    let home = Home::new();
    let copy = home.path("runwarden-in-use");
    std::fs::copy(PROGRAM, &copy).expect("a copy");
    let gate = waiting(&home, &copy.to_string_lossy(), "one");
    let next = home.path("runwarden-next");
    std::fs::copy(PROGRAM, &next).expect("a copy");
    std::fs::rename(&next, &copy).expect("an upgrade");
    let _open = opened(&gate);
    until("the end is in the store", || stored(&home, "one") == "failed");
    ended_with_7(&home.over("one"));
}

#[test]
fn an_end_that_the_version_of_its_run_could_not_record_is_recorded_by_the_next_that_can() {
    let home = Home::new();
    let gate = waiting(&home, PROGRAM, "one");
    let store = database(&home);
    let format: i64 = store
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .expect("a number");
    // As after a newer Runwarden had been here: its format is not this one's.
    store.pragma_update(None, "user_version", 9999).expect("a number");
    let _open = opened(&gate);
    let log = home.of_run("one", "finish.log");
    until("its finishing command has said why it cannot", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("newer"))
    });
    assert_eq!(home.exit_record("one")["exit_code"], 7);
    home.run(&["show", "one"]).exits(74);
    store.pragma_update(None, "user_version", format).expect("a number");
    ended_with_7(&home.json(&["show", "one"]));
}

#[test]
fn a_clock_that_was_set_back_makes_no_run_shorter_than_nothing() {
    let home = Home::new();
    home.run(&["run", "--detach", "--id", "one", "--", "sh", "-c", "exit 7"])
        .exits(0);
    home.over("one");
    // As if the clock had been set back by a day between start and end.
    let day = 86_400_000;
    for column in ["created_at_ms", "updated_at_ms"] {
        let sql = format!("UPDATE entities SET {column} = {column} + {day}");
        database(&home).execute(&sql, []).expect("a row");
    }
    let shown = home.json(&["show", "one"]);
    let took = shown["fields"]["duration_ms"].as_i64();
    assert!(
        took.is_some_and(|ms| (0..60_000).contains(&ms)),
        "measured by a clock nobody sets: {shown}"
    );
    for words in [
        &["ls"][..],
        &["show", "one"],
        &["history", "one"],
        &["why", "one"],
        &["doctor"],
    ] {
        let told = home.done(words);
        let negative = told.split_whitespace().any(|word| {
            word.strip_prefix('-')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        assert!(!negative, "{words:?}: {told}");
    }
    home.run(&["wait", "one"]).exits(1);
}

#[test]
fn a_run_whose_directory_and_program_are_removed_goes_on_to_its_own_end() {
    let home = Home::new();
    let (gate, work) = (home.gate("gate"), home.path("work"));
    std::fs::create_dir(&work).expect("a directory");
    let script = work.join("program");
    let text = format!(
        "#!/bin/sh\necho $$ > {}\nread x < {}\nexit 7\n",
        home.path("one").display(),
        gate.display()
    );
    std::fs::write(&script, text).expect("a script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&script, mode).expect("a script of ours");
    home.detach("one", &["--cwd", &work.to_string_lossy(), "--", "./program"]);
    let pid = home.told("one");
    std::fs::remove_dir_all(&work).expect("a directory of ours");
    assert_eq!(home.json(&["show", "one"])["status"], "running");
    home.done(&["why", "one"]);
    assert!(lives(&pid));
    let _open = opened(&gate);
    ended_with_7(&home.over("one"));
    home.done(&["rm", "one"]);
}

/// Whether namespaces of processes can be made here.
fn containers_are_to_be_had() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "true"]);
    command.output().is_ok_and(|output| output.status.success())
}

/// A shell script that is started in a container, which begins and ends with it.
fn container(home: &Home, script: &str) -> Command {
    let mut command = Command::new("unshare");
    let namespaces = [
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ];
    command.args(namespaces).args(["sh", "-c", script]);
    command
        .env("RUNWARDEN_HOME", home.home())
        .env("rw", PROGRAM)
        .current_dir(home.path("."));
    command
}

/// What a script in a container wrote.
fn in_a_container(home: &Home, script: &str) -> String {
    let output = container(home, script).output().expect("unshare starts");
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_container_that_starts_anew_over_its_volume_ends_no_run_by_guessing() {
    if !containers_are_to_be_had() {
        return;
    }
    let home = Home::new();
    let gate = home.gate("gate");
    let start = format!(
        "$rw run --detach --id one -- sh -c 'echo $$ > {}; exec sleep 600'; read x < {}",
        home.path("one").display(),
        gate.display()
    );
    let mut first = container(&home, &start).spawn().expect("unshare starts");
    home.told("one");
    // Held, so that no later container is given the number of this one's namespace.
    let namespace = format!("/proc/{}/ns/pid_for_children", first.id());
    let _held = std::fs::File::open(namespace).expect("a namespace");
    let _open = opened(&gate);
    assert!(first.wait().expect("a child").success());
    // The container is gone, and with it every process of it; the next one has processes of its own.
    let script = "$rw doctor --fix > /dev/null; $rw show one --json";
    let shown: Value = serde_json::from_str(&in_a_container(&home, script)).expect("a document");
    assert_eq!(shown["status"], "running", "{shown}");
    let refused = in_a_container(&home, "$rw kill one --json; test $? = 1");
    let refused: Value = serde_json::from_str(&refused).expect("a document");
    assert_eq!(refused["targets"][0]["signal"], "namespace_mismatch", "{refused}");
    assert!(in_a_container(&home, "$rw why one").contains("--declare-gone"));
    let declared = in_a_container(
        &home,
        "$rw kill one --declare-gone --note 'the container is gone' --json",
    );
    let declared: Value = serde_json::from_str(&declared).expect("a document");
    assert_eq!(declared["complete"], true, "{declared}");
    if let Some(group) = shown["runtime"]["cgroup"].as_str() {
        assert!(!std::path::Path::new(group).exists(), "{group} is left");
    }
    let shown: Value = serde_json::from_str(&in_a_container(&home, "$rw show one --json")).expect("a document");
    assert_eq!(
        (&shown["terminal"], &shown["fields"]["exit_code"]),
        (&json!(true), &Value::Null),
        "{shown}"
    );
}

/// The program in a time namespace in which the machine slept for ten days since it was started: the clock that goes on in
/// sleep is that far ahead of the one that does not. None where none can be made.
fn after_ten_days_asleep(home: &Home, arguments: &[&str]) -> Option<std::process::Output> {
    let asleep = ["--time", "--fork", "--boottime", "864000"];
    let tried = Command::new("unshare").args(asleep).arg("true").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(asleep).arg(PROGRAM).args(arguments);
    command.env("RUNWARDEN_HOME", home.home());
    Some(command.output().expect("unshare starts"))
}

/// Row 51: what decides about a lease is no clock that somebody sets, nor that of a namespace.
#[test]
fn leases_are_measured_by_one_clock_in_whatever_time_namespace_their_workers_are() {
    let home = Home::new();
    home.done(&["submit", "--id", "one", "--", "true"]);
    let worker = ["worker", "--drain", "--quiet"];
    let Some(inside) = after_ten_days_asleep(&home, &worker) else {
        return;
    };
    assert!(inside.status.success(), "{inside:?}");
    home.done(&["submit", "--id", "two", "--", "true"]);
    home.done(&worker);
    let sql = "SELECT count(*), max(heartbeat_at_ms) - min(heartbeat_at_ms) FROM workers";
    let (workers, apart_ms): (i64, i64) = database(&home)
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("workers of ours");
    assert_eq!(workers, 2);
    assert!(
        (0..600_000).contains(&apart_ms),
        "the same minutes, {apart_ms} ms apart"
    );
    let boots: i64 = database(&home)
        .query_row("SELECT count(*) FROM boots", [], |row| row.get(0))
        .expect("a number");
    assert_eq!(boots, 1, "a namespace that is gone leaves its number to the next");
}

#[test]
fn time_asleep_counts_for_no_timeout() {
    let home = Home::new();
    let run = |id: &str, timeout: &str, program: &[&str]| {
        let start = [&["run", "--detach", "--id", id, "--timeout", timeout, "--"], program].concat();
        after_ten_days_asleep(&home, &start).map(|output| assert!(output.status.success(), "{output:?}"))
    };
    if run("awake", "1h", &["sleep", "600"]).is_none() {
        return;
    }
    assert_eq!(home.json(&["show", "awake"])["status"], "running");
    let stop = ["kill", "awake", "--grace", "5s"];
    let stopped = after_ten_days_asleep(&home, &stop).expect("it could be made before");
    assert!(stopped.status.success(), "{stopped:?}");
    assert_eq!(home.over("awake")["status"], "cancelled");
    // What is awake for longer than it may be is still stopped.
    run("late", "100ms", &["sleep", "600"]);
    assert_eq!(home.over("late")["status"], "timed_out");
}

/// A small file system over the home, as long as it is held.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn over(directory: std::path::PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&directory).expect("a directory of ours");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs"])
            .arg(&directory)
            .output();
        mounted
            .is_ok_and(|mounted| mounted.status.success())
            .then_some(Self(directory))
    }

    /// Writes until nothing more fits.
    fn fill(&self) -> std::path::PathBuf {
        let path = self.0.join("ballast");
        let mut file = std::fs::File::create(&path).expect("an empty file fits");
        let block = vec![1; 1 << 16];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
        while std::io::Write::write_all(&mut file, &block[..512]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn on_a_full_disk_what_runs_can_be_seen_and_stopped_and_nothing_is_begun() {
    let home = Home::new();
    let Some(disk) = SmallDisk::over(home.home()) else {
        return;
    };
    home.detach("one", &["--", "sleep", "600"]);
    home.detach("two", &["--", "sleep", "600"]);
    let pid = home.json(&["show", "one"])["runtime"]["pid"].to_string();
    let ballast = disk.fill();
    for words in [&["ls"][..], &["show", "one"], &["history", "one"], &["why", "one"]] {
        home.done(words);
    }
    let begun = home.run(&["run", "--detach", "--id", "three", "--", "true"]);
    assert!(matches!(begun.code, 74 | 125), "{begun:?}");
    assert!(begun.err.contains("hint: "), "{begun:?}");
    let killed = home.run(&["kill", "one", "--grace", "1s"]);
    assert!(matches!(killed.code, 0 | 74), "{killed:?}");
    until("it is stopped all the same", || !lives(&pid));
    std::fs::remove_file(&ballast).expect("a file of ours");
    assert_eq!(home.over("one")["status"], "cancelled", "its end waited to be recorded");
    home.done(&["kill", "two", "--grace", "1s"]);
    home.over("two");
    let listed = home.json(&["ls", "--all"]);
    let running = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter(|run| run["terminal"] == false);
    assert_eq!(running.count(), 0, "nothing is half-begun: {listed}");
}

//! Fences: of many who judge a silent worker at once one is right, and whoever dies on the way leaves it to the next.

use std::process::Child;

use runwarden_host::model::Actor;
use runwarden_host::verbs::lease::confirm;
use serde_json::{Value, json};

use crate::crashes::dies_at;
use crate::harness::{Home, host, lives, opened, until};
use crate::workers::{Later, Worker, waiting_at};

/// A home with a row whose lease has run out: its worker is killed, and its run goes on. With the id and the pid.
fn abandoned(home: &Home, options: &[&str]) -> (String, String) {
    let (_, script) = waiting_at(home, "one");
    let script = format!("echo x >> {}; {script}", home.path("count").display());
    let id = home.submit(&[&["--lease", "1500ms"], options].concat(), &["sh", "-c", &script]);
    let worker = Worker::start(home, &[]);
    let pid = home.told("one");
    until("its run is recorded", || {
        let run = home.runs_of(&id);
        run.len() == 1 && home.json(&["show", &run[0]])["runtime"]["state"] == "running"
    });
    worker.killed();
    (id, pid)
}

/// Workers that take nothing, and judge.
fn judges(home: &Home, count: usize) -> Vec<Child> {
    (0..count)
        .map(|_| home.start(&["worker", "--queue", "none", "--lease-grace", "0", "--quiet"]))
        .collect()
}

fn rows(home: &Home) -> Vec<Value> {
    let all = home.json(&["ls", "schedule_run", "--all"]);
    all.as_array().expect("a list").clone()
}

/// Row 1: whoever judged a row by what it was writes nothing once it has become something else.
#[test]
fn a_row_that_ended_while_it_was_judged_stays_as_it_ended() {
    let home = Home::new();
    let (id, _) = abandoned(&home, &[]);
    let other = Worker::start(&home, &["--lease-grace", "1h", "--queue", "none"]);
    home.until_status(&id, "supervisor_unknown");
    other.stopped();
    let library = host(&home.home());
    let judged = library.store().load(&id).expect("it can be read").expect("it is there");
    let _open = opened(&home.path("one.gate"));
    home.until_status(&id, "completed");
    let operator = Actor::new("operator", "test");
    let late = confirm(&library, judged, (&operator, None));
    assert!(late.is_err(), "{late:?}");
    assert_eq!(home.status_of(&id), "completed");
    assert_eq!(home.successor_of(&id), None);
    assert_eq!(home.codes_of(&id).last().map(String::as_str), Some("run.completed.ok"));
}

/// Rows 12 and 13, and the second gate of ADR-0060: eight fencers, one winner, one successor.
#[test]
fn of_eight_who_fence_at_once_one_wins() {
    let home = Home::new();
    let (id, pid) = abandoned(&home, &[]);
    let mut all = judges(&home, 8);
    home.until_status(&id, "orphaned");
    for child in &mut all {
        let _ = child.kill();
        let _ = child.wait();
    }
    assert!(!lives(&pid));
    assert_eq!(rows(&home).len(), 2, "one successor");
    let codes = home.codes_of(&id);
    assert_eq!(
        codes[2..],
        ["run.supervisor_unknown.lease_stale", "run.orphaned.fence_committed"]
    );
    assert_eq!(home.json(&["queue", "ls"])["late_writes"], 0);
}

/// The third gate of ADR-0060: fence and successor are of one commit, and whoever comes next goes on.
#[test]
fn a_judge_that_dies_anywhere_leaves_the_row_to_the_next() {
    for place in ["lease.due", "lease.stopping", "lease.fencing", "lease.fenced"] {
        let home = Home::new();
        let (id, pid) = abandoned(&home, &[]);
        dies_at(&home, place, &["worker", "--queue", "none", "--lease-grace", "0"]);
        let statuses = home.status_of(&id);
        assert_eq!(
            (statuses == "orphaned", rows(&home).len()),
            (place == "lease.fenced", if place == "lease.fenced" { 2 } else { 1 }),
            "{place}: {statuses}"
        );
        let next = Worker::start(&home, &["--queue", "none", "--lease-grace", "0"]);
        let successor = home.until_succeeded(&id);
        next.stopped();
        assert!(!lives(&pid), "{place}");
        assert_eq!(rows(&home).len(), 2, "{place}");
        assert_eq!(successor["status"], "queued", "{place}");
        assert_eq!(home.told("count"), "x", "{place}");
    }
}

/// Row 12: a list of what is ready is a hint; of those who take from the same list each row has one.
#[test]
fn workers_that_take_at_the_same_time_run_each_row_once() {
    const ROWS: usize = 24;
    let home = Home::new();
    let count = format!("echo x >> {}", home.path("count").display());
    let ids: Vec<String> = (0..ROWS).map(|_| home.submit(&[], &["sh", "-c", &count])).collect();
    let all: Vec<Child> = (0..4)
        .map(|_| home.start(&["worker", "--drain", "--slots", "3", "--quiet"]))
        .collect();
    for mut child in all {
        assert!(child.wait().expect("our own child").success());
    }
    for id in &ids {
        assert_eq!((home.status_of(id).as_str(), home.runs_of(id).len()), ("completed", 1));
    }
    let text = std::fs::read_to_string(home.path("count")).expect("they ran");
    assert_eq!(text.lines().count(), ROWS);
}

/// Row 19: whoever is killed takes nothing with him, and no row runs beside itself.
#[test]
fn workers_that_are_killed_at_any_moment_lose_no_row() {
    let home = Home::new();
    let ids: Vec<String> = (0..6)
        .map(|number| {
            let lock = home.path(&format!("lock{number}"));
            let overlap = home.path("overlap");
            let script = format!(
                "mkdir {0} || echo {number} >> {1}; echo x; sleep 0.2; rmdir {0}",
                lock.display(),
                overlap.display()
            );
            let options = ["--lease", "1500ms", "--attempts", "9"];
            home.submit(&options, &["sh", "-c", &script])
        })
        .collect();
    let ended = || rows(&home).iter().filter(|row| row["terminal"] == true).count();
    for _ in 0..4 {
        let (worker, before) = (
            Worker::start(&home, &["--slots", "2", "--lease-grace", "100ms"]),
            ended(),
        );
        until("something runs", || {
            let held = &home.json(&["queue", "ls"])["queues"][0]["held"];
            held.as_i64().is_some_and(|held| held > 0) || ended() > before || ended() >= ids.len()
        });
        worker.killed();
    }
    let worker = Worker::start(&home, &["--slots", "2", "--lease-grace", "100ms"]);
    until("everything has ended", || {
        rows(&home).iter().all(|row| row["terminal"] == true)
    });
    worker.stopped();
    let last: Vec<Value> = rows(&home)
        .into_iter()
        .filter(|row| row["status"] != "orphaned")
        .collect();
    assert_eq!(last.len(), ids.len(), "{last:?}");
    for row in last {
        assert_eq!(row["status"], json!("completed"), "{row}");
    }
    assert!(!home.path("overlap").exists(), "a row ran beside itself");
}

#[test]
fn a_worker_that_died_between_the_claim_and_the_start_has_started_nothing() {
    for (policy, place) in [
        ("schedule_run@1", "worker.claimed"),
        ("schedule_run@2", "worker.claimed"),
        ("schedule_run@1", "run.intent_committed"),
        ("schedule_run@2", "run.intent_committed"),
    ] {
        let home = Home::new();
        let count = format!("echo x >> {}", home.path("count").display());
        let id = home.submit(&["--policy", policy], &["sh", "-c", &count]);
        dies_at(&home, place, &["worker", "--drain"]);
        assert_eq!(home.status_of(&id), "running", "{policy} {place}");
        let mut later = Later::of(&home);
        later = later.by_hours(1);
        later.keep();
        later = later.by_hours(1);
        later.keep();
        let said = home.drain(&[]);
        let last = home.successor_of(&id).map_or(json!(id), |next| next["id"].clone());
        let row = home.json(&["show", last.as_str().expect("an id")]);
        assert_eq!(row["status"], "completed", "{policy} {place}: {row} {}", said.err);
        let count = std::fs::read_to_string(home.path("count")).expect("it ran");
        assert_eq!(count, "x\n", "{policy} {place}");
    }
}

#[test]
fn an_end_that_was_seen_is_the_end_of_the_row_wherever_its_recorder_died() {
    for policy in ["schedule_run@1", "schedule_run@2"] {
        for place in ["settle.ended", "lease.ending"] {
            let home = Home::new();
            let count = format!("echo x >> {}; exit 0", home.path("count").display());
            let id = home.submit(&["--policy", policy, "--lease", "1500ms"], &["sh", "-c", &count]);
            let mut command = home.command(&["worker", "--once"]);
            command.env("RUNWARDEN_CRASH_AT", place);
            let mut child = command.spawn().expect("it starts");
            // Whoever of the two comes first dies there: the finishing command, or the worker.
            let run = || home.runs_of(&id);
            until("its run has ended", || {
                run().len() == 1 && home.json(&["show", &run()[0]])["terminal"] == true
            });
            let _ = child.kill();
            let _ = child.wait();
            let other = Worker::start(&home, &["--lease-grace", "100ms"]);
            home.until_status(&id, "completed");
            other.stopped();
            assert_eq!(home.told("count"), "x", "{policy} {place}");
            assert_eq!(home.late_writes(), 0, "{policy} {place}");
        }
    }
}

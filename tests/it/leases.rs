//! Leases: a worker that is killed, that stands still, and that comes back; under both generations of the policy.

use std::io::Write as _;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Home, lives, opened, until};
use crate::workers::{Worker, waiting_at};

impl Home {
    /// The attempt that goes on where this one was given up.
    pub(crate) fn successor_of(&self, id: &str) -> Option<Value> {
        let all = self.json(&["ls", "schedule_run", "--all"]);
        let follows = |row: &&Value| row["lineage"]["chain_parent"] == id;
        all.as_array().expect("a list").iter().find(follows).cloned()
    }

    /// Waits for it.
    pub(crate) fn until_succeeded(&self, id: &str) -> Value {
        until(&format!("{id} has a successor"), || self.successor_of(id).is_some());
        self.successor_of(id).expect("it is there")
    }

    pub(crate) fn late_writes(&self) -> u64 {
        self.json(&["queue", "ls"])["late_writes"].as_u64().expect("a number")
    }
}

/// A worker whose row runs, with the pid of its program. It is at rest: no write of it is under way.
fn at_work(home: &Home, id: &str, name: &str) -> (Worker, String) {
    let worker = Worker::start(home, &["--name", "first"]);
    let pid = home.told(name);
    until("its run is recorded", || {
        let run = home.runs_of(id);
        run.len() == 1 && home.json(&["show", &run[0]])["runtime"]["state"] == "running"
    });
    (worker, pid)
}

fn stopped_pid(number: &Value) -> Pid {
    let number = number.as_i64().and_then(|number| i32::try_from(number).ok());
    number.and_then(Pid::from_raw).expect("a pid")
}

/// The end that nobody of the worker's saw is recorded by the finishing command, under the fence it was started with.
#[test]
fn the_run_of_a_killed_worker_ends_its_row_by_itself() {
    for policy in ["schedule_run@1", "schedule_run@2"] {
        let home = Home::new();
        let (gate, script) = waiting_at(&home, "one");
        let id = home.submit(&["--policy", policy], &["sh", "-c", &script]);
        let (worker, _) = at_work(&home, &id, "one");
        worker.killed();
        let _open = opened(&gate);
        home.until_status(&id, "completed");
        assert_eq!(home.drain(&[]).out, "0 taken, 0 ended\n");
        assert_eq!(home.runs_of(&id).len(), 1);
        assert_eq!(home.late_writes(), 0);
    }
}

/// The row of an attempt that was given up, with what its history says of that.
fn is_fenced(home: &Home, id: &str) -> Value {
    let row = home.json(&["show", id]);
    assert_eq!(
        (&row["status"], &row["reason"]["code"], &row["fields"]["leased_by"]),
        (&json!("orphaned"), &json!("run.orphaned.fence_committed"), &Value::Null),
        "{row}"
    );
    let codes = home.codes_of(id);
    assert!(
        codes.ends_with(&[
            "run.supervisor_unknown.lease_stale".to_owned(),
            "run.orphaned.fence_committed".to_owned()
        ]),
        "{codes:?}"
    );
    let evidence = &row["reason"]["evidence"][0];
    for known in [
        "leased_by",
        "fence",
        "silent_ms",
        "lease_ms",
        "grace_ms",
        "observed",
        "policy_digest",
    ] {
        assert!(!evidence[known].is_null(), "{known}: {evidence}");
    }
    row
}

/// What follows an attempt takes over all of it.
fn follows(row: &Value, next: &Value) {
    assert_eq!(
        (
            &next["status"],
            &next["lineage"]["generation"],
            &next["lineage"]["root"]
        ),
        (&json!("queued"), &json!(1), &row["id"]),
        "{next}"
    );
    for same in ["tags", "name", "policy", "command"] {
        assert_eq!(next[same], row[same], "{same}");
    }
    assert_eq!(next["fields"]["lease_attempts"], 1, "{next}");
}

/// Rows 4, 5, 6, 7 and 18: judged by the row alone, soon after lease and grace, by a worker that serves another queue; with
/// the worker's own row gone, and another worker of its name about.
#[test]
fn a_run_that_outlives_its_worker_and_its_lease_is_stopped_and_another_attempt_made() {
    let home = Home::new();
    let (gate, script) = waiting_at(&home, "one");
    let options = [
        "--lease",
        "1500ms",
        "--unique-key",
        "k",
        "--tag",
        "a=b",
        "--name",
        "n",
        "--queue",
        "builds",
        "--priority",
        "3",
    ];
    let id = home.submit(&options, &["sh", "-c", &script]);
    let (worker, pid) = at_work(&home, &id, "one");
    worker.killed();
    assert_eq!(home.database().execute("DELETE FROM workers", []).expect("a write"), 1);
    let other = Worker::start(
        &home,
        &["--name", "first", "--queue", "others", "--lease-grace", "200ms"],
    );
    let next = home.until_succeeded(&id);
    assert!(!lives(&pid), "what lived was stopped before");
    follows(&is_fenced(&home, &id), &next);
    home.run(&["submit", "--unique-key", "k", "--", "true"])
        .exits(4)
        .hints(next["id"].as_str().expect("an id"));
    let listed = &home.json(&["queue", "ls"])["queues"][0];
    assert_eq!(
        (&listed["queue"], &listed["ready"]),
        (&json!("builds"), &json!(1)),
        "{listed}"
    );
    other.stopped();
    std::fs::remove_file(home.path("one")).expect("it was written");
    let third = Worker::start(&home, &["--queue", "builds"]);
    assert_ne!(home.told("one"), pid);
    let _open = opened(&gate);
    let next = home.until_status(next["id"].as_str().expect("an id"), "completed");
    assert_eq!(next["fields"]["lease_attempts"], 2, "{next}");
    third.stopped();
}

#[test]
fn in_the_first_generation_a_lease_that_ran_out_is_back_in_the_queue_at_once() {
    let home = Home::new();
    let (gate, script) = waiting_at(&home, "one");
    let options = ["--policy", "schedule_run@1", "--lease", "1500ms"];
    let id = home.submit(&options, &["sh", "-c", &script]);
    let (worker, pid) = at_work(&home, &id, "one");
    worker.killed();
    std::fs::remove_file(home.path("one")).expect("it was written");
    let other = Worker::start(&home, &[]);
    assert_ne!(home.told("one"), pid);
    assert!(lives(&pid), "nobody looked for it");
    let mut open = opened(&gate);
    open.write_all(b"go\n").expect("a pipe has room");
    home.until_status(&id, "completed");
    assert_eq!(
        home.codes_of(&id),
        [
            "schedule.queued.created",
            "run.started.ok",
            "run.queued.lease_expired",
            "run.started.ok",
            "run.completed.ok"
        ]
    );
    until("the late end of the first is on record", || home.late_writes() == 1);
    other.stopped();
}

/// Row 11: a holder that stood still for less than the grace goes on, and nothing is started a second time.
#[test]
fn a_worker_that_comes_back_within_the_grace_has_its_row_again() {
    let home = Home::new();
    let (gate, script) = waiting_at(&home, "one");
    let id = home.submit(&["--lease", "1500ms"], &["sh", "-c", &script]);
    let (worker, pid) = at_work(&home, &id, "one");
    worker.stand_still(&home);
    let other = Worker::start(&home, &["--lease-grace", "1h"]);
    let doubted = home.until_status(&id, "supervisor_unknown");
    assert!(doubted["fields"]["unknown_since"].is_string(), "{doubted}");
    let listed = home.json(&["queue", "ls"])["queues"][0].clone();
    assert_eq!(listed["doubted"], 1, "{listed}");
    worker.signal(Signal::CONT);
    home.until_status(&id, "running");
    assert!(lives(&pid), "nothing was stopped");
    let _open = opened(&gate);
    home.until_status(&id, "completed");
    assert_eq!(
        home.codes_of(&id)[1..],
        [
            "run.started.ok",
            "run.supervisor_unknown.lease_stale",
            "run.running.recovered_same_holder",
            "run.completed.ok"
        ]
    );
    assert_eq!(worker.stopped().out, "1 taken, 1 ended\n");
    assert_eq!(other.stopped().out, "0 taken, 0 ended\n");
    assert_eq!((home.runs_of(&id).len(), home.late_writes()), (1, 0));
}

/// Rows 14, 15 and 17: what a holder does after it was shut out changes nothing, and is seen.
#[test]
fn a_worker_that_comes_back_after_the_grace_writes_nothing_and_says_that_it_lost_its_row() {
    for policy in ["schedule_run@1", "schedule_run@2"] {
        let home = Home::new();
        let (gate, script) = waiting_at(&home, "one");
        let id = home.submit(&["--policy", policy, "--lease", "1500ms"], &["sh", "-c", &script]);
        let (worker, pid) = at_work(&home, &id, "one");
        worker.stand_still(&home);
        std::fs::remove_file(home.path("one")).expect("it was written");
        let other = Worker::start(&home, &["--lease-grace", "100ms"]);
        let second = home.told("one");
        assert_eq!(
            lives(&pid),
            policy == "schedule_run@1",
            "stopped before, or not looked at"
        );
        worker.signal(Signal::CONT);
        until("the loss is recorded", || home.late_writes() == 1);
        home.run(&["queue", "renew", &id, "--token", "1"]).exits(4);
        let said = worker.stopped();
        assert!(said.err.contains(&format!("schedule_run/{id} is lost")), "{}", said.err);
        assert_eq!(said.out, "1 taken, 0 ended, 1 lost\n");
        assert!(!lives(&pid), "its own it has stopped");
        assert!(lives(&second), "the successor goes on");
        let audit = home.json(&["history", "--admin"]);
        let late: Vec<&Value> = audit
            .as_array()
            .expect("a list")
            .iter()
            .filter(|event| event["action"] == "lease_write_refused")
            .collect();
        assert_eq!(late.len(), 1, "{audit}");
        assert_eq!(late[0]["details"]["fence"], 1, "{audit}");
        let _open = opened(&gate);
        let last = home.successor_of(&id).map_or(json!(id), |next| next["id"].clone());
        home.until_status(last.as_str().expect("an id"), "completed");
        other.stopped();
    }
}

#[test]
fn a_lease_that_runs_out_at_the_last_attempt_is_a_failure() {
    for policy in ["schedule_run@1", "schedule_run@2"] {
        let home = Home::new();
        let (gate, script) = waiting_at(&home, "one");
        let options = ["--policy", policy, "--lease", "1500ms", "--attempts", "1"];
        let id = home.submit(&options, &["sh", "-c", &script]);
        let (worker, pid) = at_work(&home, &id, "one");
        worker.killed();
        let other = Worker::start(&home, &["--lease-grace", "100ms"]);
        let row = home.until_status(&id, "failed");
        assert_eq!(row["reason"]["code"], "run.failed.lease_attempts_exhausted", "{row}");
        assert_eq!(home.successor_of(&id), None);
        assert_eq!(
            lives(&pid),
            policy == "schedule_run@1",
            "stopped before, or not looked at"
        );
        let _open = opened(&gate);
        home.over(&home.runs_of(&id)[0]);
        other.stopped();
    }
}

/// Row 5, the other half: what is healthy is not touched, however long it takes.
#[test]
fn a_healthy_run_of_many_leases_is_left_alone() {
    let home = Home::new();
    let (gate, script) = waiting_at(&home, "one");
    let id = home.submit(&["--lease", "1500ms"], &["sh", "-c", &script]);
    let (worker, _) = at_work(&home, &id, "one");
    let other = Worker::start(&home, &["--lease-grace", "0"]);
    until("its lease was extended often", || {
        home.json(&["show", &id])["version"]
            .as_i64()
            .is_some_and(|version| version > 9)
    });
    let _open = opened(&gate);
    home.until_status(&id, "completed");
    assert_eq!(home.codes_of(&id).len(), 3);
    for worker in [worker, other] {
        worker.stopped();
    }
}

/// Row 18: work in doubt counts as held, so that nothing is let in beside it.
#[test]
fn what_is_in_doubt_fills_its_queue_and_delays_nobody_elsewhere() {
    let home = Home::new();
    home.done(&["queue", "limit", "builds", "1"]);
    let (gate, script) = waiting_at(&home, "one");
    let options = ["--lease", "1500ms", "--grace", "100ms", "--queue", "builds"];
    let id = home.submit(&options, &["sh", "-c", &format!("trap '' TERM; {script}")]);
    let (worker, pid) = at_work(&home, &id, "one");
    worker.killed();
    // A shim that does not move stands for a set that cannot be seen to end.
    let run = home.runs_of(&id)[0].clone();
    let shim = stopped_pid(&home.json(&["show", &run])["runtime"]["shim_pid"]);
    kill_process(shim, Signal::STOP).expect("it is ours");
    let other = Worker::start(&home, &["--lease-grace", "0", "--slots", "2"]);
    home.until_status(&id, "supervisor_unknown");
    let behind = home.submit(&["--queue", "builds"], &["true"]);
    until("its stop could not be confirmed", || {
        home.json(&["show", &run])["runtime"]["stop_unconfirmed"] == true
    });
    let elsewhere = home.submit(&[], &["true"]);
    home.until_status(&elsewhere, "completed");
    assert_eq!(
        home.status_of(&id),
        "supervisor_unknown",
        "nobody knows whether it lives"
    );
    assert_eq!(home.status_of(&behind), "queued");
    assert_eq!(home.successor_of(&id), None);
    kill_process(shim, Signal::CONT).expect("it is ours");
    let next = home.until_succeeded(&id);
    assert!(!lives(&pid));
    let _open = opened(&gate);
    home.until_status(next["id"].as_str().expect("an id"), "completed");
    home.until_status(&behind, "completed");
    other.stopped();
}

/// Row 25: the start is on record before anything runs, and a store that cannot be written meanwhile delays it, no more.
#[test]
fn a_store_that_is_busy_loses_neither_row_nor_end() {
    let home = Home::new();
    let (gate, script) = waiting_at(&home, "one");
    let id = home.submit(&["--lease", "10s"], &["sh", "-c", &script]);
    let store = home.database();
    store.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    let worker = Worker::start(&home, &[]);
    assert_eq!(home.status_of(&id), "queued");
    store.execute_batch("ROLLBACK").expect("it was begun");
    home.told("one");
    store
        .execute_batch("BEGIN IMMEDIATE")
        .expect("nobody else writes for long");
    let _open = opened(&gate);
    let run = home.runs_of(&id)[0].clone();
    until("its end is on disk", || home.of_run(&run, "exit.json").exists());
    assert_eq!(home.status_of(&id), "running");
    store.execute_batch("ROLLBACK").expect("it was begun");
    home.until_status(&id, "completed");
    worker.stopped();
}

#[test]
fn a_lease_is_renewed_by_hand_under_its_token_alone() {
    let home = Home::new();
    let (gate, script) = waiting_at(&home, "one");
    let id = home.submit(&["--lease", "2s"], &["sh", "-c", &script]);
    let (worker, _) = at_work(&home, &id, "one");
    worker.stand_still(&home);
    let other = Worker::start(&home, &[]);
    home.run(&["queue", "renew", &id, "--token", "2"])
        .exits(4)
        .hints("history");
    home.run(&["queue", "renew", &id]).exits(64);
    home.run(&["queue", "renew", "nobody-here", "--token", "1"]).exits(2);
    let end = |home: &Home| home.json(&["show", &id])["fields"]["lease_expires_at"].to_string();
    let first = end(&home);
    let mut renewals = 0;
    until("it was held for longer than its worker could", || {
        let said = home.json(&["queue", "renew", &id, "--token", "1"]);
        assert!(said["leased_by"].is_string(), "{said}");
        renewals += 1;
        let now = runwarden_host::Clock::System.now().to_rfc3339();
        format!("\"{now}\"") > first && renewals > 2
    });
    assert_eq!(home.status_of(&id), "running");
    worker.signal(Signal::CONT);
    let _open = opened(&gate);
    home.until_status(&id, "completed");
    assert_eq!(home.codes_of(&id).len(), 3);
    for worker in [worker, other] {
        worker.stopped();
    }
    home.run(&["queue", "renew", &id, "--token", "1"]).exits(4);
}

/// What the store says of the machine that a row's run is on.
fn moved_elsewhere(home: &Home) {
    let store = home.database();
    store
        .execute("UPDATE runtimes SET host = 'elsewhere'", [])
        .expect("a write");
    store
        .execute(
            "UPDATE workers SET particulars = json_set(particulars, '$.place.host', 'elsewhere')",
            [],
        )
        .expect("a write");
}

/// Row 14: it ends well after all, and its row has gone on: that is evidence, and no end.
#[test]
fn a_worker_on_another_machine_is_shut_out_and_followed_once_an_operator_says_so() {
    let home = Home::new();
    let (gate, script) = waiting_at(&home, "one");
    let id = home.submit(&["--lease", "1500ms"], &["sh", "-c", &script]);
    let (worker, pid) = at_work(&home, &id, "one");
    home.run(&["queue", "confirm", &id]).exits(64);
    worker.killed();
    let here = home
        .database()
        .query_row("SELECT host FROM runtimes", [], |row| row.get::<_, String>(0));
    moved_elsewhere(&home);
    let other = Worker::start(&home, &["--lease-grace", "100ms"]);
    home.until_status(&id, "orphaned");
    other.stopped();
    assert_eq!(home.successor_of(&id), None, "nobody knows whether it lives");
    assert!(lives(&pid), "nobody signals what is elsewhere");
    let said = home.json(&["queue", "confirm", &id, "--note", "it was switched off"]);
    let next = home.successor_of(&id).expect("it follows");
    assert_eq!(
        said,
        json!({"ref": format!("schedule_run/{id}"), "successor": next["ref"]})
    );
    assert_eq!(next["lineage"]["generation"], 1, "{next}");
    home.run(&["queue", "confirm", &id]).exits(4);
    let audit = home.json(&["history", "--admin"]);
    assert!(audit.to_string().contains("it was switched off"), "{audit}");
    // The operator was wrong.
    let host = here.expect("a host");
    home.database()
        .execute("UPDATE runtimes SET host = ?1", [host])
        .expect("a write");
    let mut open = opened(&gate);
    home.over(&home.runs_of(&id)[0]);
    until("the late end is recorded", || home.late_writes() == 1);
    assert_eq!(home.status_of(&id), "orphaned");
    open.write_all(b"go\n").expect("a pipe has room");
    home.drain(&[]);
    assert_eq!(home.status_of(next["id"].as_str().expect("an id")), "completed");
}

#[test]
fn a_row_in_doubt_is_given_up_by_an_operators_word() {
    let home = Home::new();
    let (gate, script) = waiting_at(&home, "one");
    let id = home.submit(&["--lease", "1500ms"], &["sh", "-c", &script]);
    let (worker, _) = at_work(&home, &id, "one");
    worker.killed();
    let other = Worker::start(&home, &["--lease-grace", "1h", "--queue", "none"]);
    home.until_status(&id, "supervisor_unknown");
    other.stopped();
    let said = home.done(&["queue", "confirm", &id]);
    let next = home.successor_of(&id).expect("it follows");
    assert_eq!(
        said,
        format!(
            "schedule_run/{id} is given up; {} follows",
            next["ref"].as_str().expect("a reference")
        )
    );
    assert_eq!(home.status_of(&id), "orphaned");
    let queued = home.submit(&[], &["true"]);
    home.run(&["queue", "confirm", &queued]).exits(64);
    home.done(&["create", "session", "--id", "s"]);
    home.run(&["queue", "confirm", "s"]).exits(64);
    home.run(&["queue", "renew", "s", "--token", "1"]).exits(64);
    let _open = opened(&gate);
    home.over(&home.runs_of(&id)[0]);
}

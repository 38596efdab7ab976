//! Workers: what they take and in which order, how they stop, and what they say.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use runwarden_host::store::OpenMode;
use runwarden_host::verbs::Act;
use runwarden_host::verbs::lease::{Keeping, keep};
use runwarden_host::{Clock, Config, Host};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Answer, Home, answered, config, lives, opened, until, until_watching};

/// A worker that a test started; it is gone when the test ends.
pub(crate) struct Worker {
    child: Option<Child>,
}

impl Worker {
    /// Starts one with these options, and waits until it watches signals.
    pub(crate) fn start(home: &Home, options: &[&str]) -> Self {
        let child = home.start(&[&["worker"], options].concat());
        until_watching(&child);
        Self { child: Some(child) }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it is there");
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a pid"), signal).expect("it is ours");
    }

    /// Lets it stand still, at a moment when it is not writing: whoever stands still in a transaction keeps everybody from
    /// writing until he goes on.
    pub(crate) fn stand_still(&self, home: &Home) {
        let store = home.database();
        store.busy_timeout(Duration::from_millis(100)).expect("a bound");
        until("it stands still and does not write", || {
            self.signal(Signal::STOP);
            let is_free = store.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok();
            if !is_free {
                self.signal(Signal::CONT);
            }
            is_free
        });
    }

    /// Ends it by a signal that cannot be caught.
    pub(crate) fn killed(mut self) {
        self.signal(Signal::KILL);
        let mut child = self.child.take().expect("it is there");
        assert_eq!(child.wait().expect("our own child").signal(), Some(9));
    }

    /// What it says once it has ended by itself.
    pub(crate) fn answer(mut self) -> Answer {
        answered(self.child.take().expect("it is there"), "worker".to_owned())
    }

    /// Tells it to stop; what it said.
    pub(crate) fn stopped(self) -> Answer {
        self.signal(Signal::TERM);
        self.answer().exits(0)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Home {
    /// Queues something; its id.
    pub(crate) fn submit(&self, options: &[&str], program: &[&str]) -> String {
        let reference = self.done(&[&["submit"], options, &["--"], program].concat());
        let (_, id) = reference.split_once('/').expect("a reference");
        id.to_owned()
    }

    /// The status of an entity.
    pub(crate) fn status_of(&self, id: &str) -> String {
        let shown = self.json(&["show", id]);
        shown["status"].as_str().expect("a status").to_owned()
    }

    /// Waits until an entity has this status; the entity then.
    pub(crate) fn until_status(&self, id: &str, status: &str) -> Value {
        until(&format!("{id} is {status}"), || self.status_of(id) == status);
        self.json(&["show", id])
    }

    /// The codes of an entity's history, oldest first.
    pub(crate) fn codes_of(&self, id: &str) -> Vec<String> {
        let rows = self.json(&["history", id]);
        let rows = rows.as_array().expect("a list");
        rows.iter()
            .map(|row| row["reason"]["code"].as_str().expect("a code").to_owned())
            .collect()
    }

    /// The ids of the runs of a row, oldest first.
    pub(crate) fn runs_of(&self, id: &str) -> Vec<String> {
        let shown = self.json(&["show", id]);
        let children = shown["children"].as_array().expect("a list");
        children
            .iter()
            .map(|child| {
                let reference = child.as_str().expect("a reference");
                reference.split_once('/').expect("a reference").1.to_owned()
            })
            .collect()
    }

    /// Works until nothing is ready any more.
    pub(crate) fn drain(&self, options: &[&str]) -> Answer {
        self.run(&[&["worker", "--drain"], options].concat()).exits(0)
    }
}

/// The library on a home, at a time that has not come yet.
pub(crate) struct Later {
    host: Host,
    clock: Arc<AtomicI64>,
}

impl Later {
    /// Now, for a beginning.
    pub(crate) fn of(home: &Home) -> Self {
        let clock = Arc::new(AtomicI64::new(Clock::System.now().as_ms()));
        let config = Config {
            clock: Clock::Set(Arc::clone(&clock)),
            ..config(&home.home())
        };
        let host = Host::open(config, OpenMode::Existing).expect("a store");
        Self { host, clock }
    }

    /// So many hours later.
    pub(crate) fn by_hours(self, hours: i64) -> Self {
        self.clock.fetch_add(hours * 3_600_000, Ordering::Relaxed);
        self
    }

    /// Keeps the queue as whoever looks then does; what was decided, in a word for each row.
    pub(crate) fn keep(&self) -> Vec<&'static str> {
        let keeping = Keeping {
            grace: None,
            act: Act::Do,
        };
        let kept = keep(&self.host, keeping).expect("the store can be read");
        kept.iter().map(|kept| kept.decision).collect()
    }
}

/// A program that notes its pid in a file and then waits at a gate.
pub(crate) fn waiting_at(home: &Home, name: &str) -> (std::path::PathBuf, String) {
    let gate = home.gate(&format!("{name}.gate"));
    let script = format!(
        "echo $$ > {0}.new; mv {0}.new {0}; read x < {1}",
        home.path(name).display(),
        gate.display()
    );
    (gate, script)
}

#[test]
fn work_is_taken_in_order_of_priority_then_of_age() {
    let home = Home::new();
    let order = home.path("order");
    let noting = |word: &str| format!("echo {word} >> {}", order.display());
    for (word, priority) in [("c", "0"), ("d", "0"), ("a", "7"), ("e", "-3"), ("b", "7")] {
        home.submit(&["--priority", priority], &["sh", "-c", &noting(word)]);
    }
    let said = home.drain(&[]);
    assert_eq!(
        std::fs::read_to_string(&order).expect("it is written"),
        "a\nb\nc\nd\ne\n"
    );
    assert_eq!(said.out, "5 taken, 5 ended\n");
}

#[test]
fn a_worker_holds_as_much_as_it_has_slots_and_takes_from_its_queues_alone() {
    let home = Home::new();
    let (gate, script) = waiting_at(&home, "one");
    let ids: Vec<String> = (0..3)
        .map(|_| home.submit(&["--queue", "left"], &["sh", "-c", &script]))
        .collect();
    let other = home.submit(&["--queue", "right"], &["true"]);
    let worker = Worker::start(&home, &["--slots", "2", "--queue", "left"]);
    until("two of them run", || {
        ids.iter().filter(|id| home.runs_of(id).len() == 1).count() == 2
    });
    let left = &home.json(&["queue", "ls"])["queues"][0];
    assert_eq!((&left["held"], &left["ready"]), (&json!(2), &json!(1)), "{left}");
    let mut open = opened(&gate);
    until("the third has its turn", || home.runs_of(&ids[2]).len() == 1);
    open.write_all(b"go\ngo\n").expect("a pipe has room");
    for id in &ids {
        home.until_status(id, "completed");
    }
    assert_eq!(home.status_of(&other), "queued");
    assert_eq!(worker.stopped().out, "3 taken, 3 ended\n");
    home.drain(&["--queue", "right"]);
    assert_eq!(home.status_of(&other), "completed");
}

#[test]
fn once_takes_what_is_ready_now_and_drain_all_there_is() {
    let home = Home::new();
    let ids: Vec<String> = (0..3).map(|_| home.submit(&[], &["true"])).collect();
    let later = home.submit(&["--delay", "1h"], &["true"]);
    let once = home.run(&["worker", "--once", "--slots", "2", "--json"]).exits(0);
    assert_eq!(
        once.document(),
        json!({"taken": 2, "ended": 2, "handed_back": 0, "lost": 0})
    );
    assert_eq!(home.status_of(&ids[2]), "queued");
    home.drain(&["--slots", "4"]);
    assert_eq!(home.status_of(&ids[2]), "completed");
    assert_eq!(home.status_of(&later), "queued");
    home.run(&["worker", "--once", "--drain"]).exits(64);
    for slots in ["0", "1025", "-1"] {
        home.run(&["worker", "--slots", slots]).exits(64);
    }
}

#[test]
fn a_worker_that_is_told_to_stop_sees_the_end_of_what_it_has() {
    let home = Home::new();
    let (gate, script) = waiting_at(&home, "one");
    let id = home.submit(&[], &["sh", "-c", &script]);
    let waits = home.submit(&[], &["true"]);
    let worker = Worker::start(&home, &[]);
    home.told("one");
    worker.signal(Signal::TERM);
    let _open = opened(&gate);
    home.until_status(&id, "completed");
    let said = worker.answer().exits(0);
    assert_eq!(said.out, "1 taken, 1 ended\n");
    assert_eq!(home.status_of(&waits), "queued");
}

#[test]
fn a_worker_that_is_told_twice_stops_its_run_and_gives_it_back_for_another() {
    for policy in ["schedule_run@1", "schedule_run@2"] {
        let home = Home::new();
        let (gate, script) = waiting_at(&home, "one");
        let script = format!(
            "sleep 1000 & {script}; kill $!; echo $RUNWARDEN_ATTEMPT > {}",
            home.path("end").display()
        );
        let id = home.submit(&["--policy", policy], &["sh", "-c", &script]);
        let worker = Worker::start(&home, &[]);
        let pid = home.told("one");
        worker.signal(Signal::TERM);
        worker.signal(Signal::INT);
        let said = worker.answer().exits(0);
        assert_eq!(said.out, "1 taken, 0 ended, 1 given back\n", "{}", said.err);
        assert!(
            said.err.contains(&format!("schedule_run/{id} is given back")),
            "{}",
            said.err
        );
        assert!(!lives(&pid), "its run was stopped");
        let row = home.json(&["show", &id]);
        assert_eq!(
            (&row["status"], &row["reason"]["code"], &row["fields"]["leased_by"]),
            (&json!("retry_wait"), &json!("run.retry_wait.handed_back"), &Value::Null),
            "{row}"
        );
        let run = home.over(&home.runs_of(&id)[0]);
        assert_eq!(run["status"], "cancelled", "{run}");
        std::fs::remove_file(home.path("one")).expect("it was written");
        let next = Worker::start(&home, &[]);
        assert_ne!(home.told("one"), pid);
        let _open = opened(&gate);
        home.until_status(&id, "completed");
        next.stopped();
        assert_eq!(home.told("end"), "2");
        assert_eq!(
            home.codes_of(&id)[1..],
            [
                "run.started.ok",
                "run.retry_wait.handed_back",
                "run.queued.retry_due",
                "run.started.ok",
                "run.completed.ok"
            ]
        );
    }
}

#[test]
fn a_worker_that_is_told_three_times_leaves_what_it_is_stopping_which_is_given_back_all_the_same() {
    let home = Home::new();
    let (gate, script) = waiting_at(&home, "one");
    // It does not stop when it is asked to.
    let script = format!("trap '' TERM; {script}");
    let id = home.submit(&["--grace", "1h"], &["sh", "-c", &script]);
    let mut worker = Worker::start(&home, &[]);
    let pid = home.told("one");
    worker.signal(Signal::TERM);
    worker.signal(Signal::INT);
    until("its run is being stopped", || {
        home.json(&["show", &home.runs_of(&id)[0]])["runtime"]["state"] == "stopping"
    });
    worker.signal(Signal::TERM);
    let said = answered(worker.child.take().expect("it is there"), "worker".to_owned());
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(lives(&pid), "its run goes on until it has stopped");
    let _open = opened(&gate);
    let row = home.until_status(&id, "retry_wait");
    assert_eq!(row["reason"]["code"], "run.retry_wait.handed_back", "{row}");
}

#[test]
fn what_a_worker_says_goes_to_standard_error_and_its_report_to_standard_output() {
    let home = Home::new();
    let id = home.submit(&[], &["true"]);
    let said = home.drain(&[]);
    let run = &home.runs_of(&id)[0];
    let mut expected = String::new();
    let _ = writeln!(expected, "schedule_run/{id} runs as session/{run}");
    let _ = writeln!(expected, "schedule_run/{id} completed (run.completed.ok)");
    assert_eq!(said.err, expected);
    let id = home.submit(&[], &["false"]);
    let said = home.run(&["worker", "--drain", "--json"]).exits(0);
    assert_eq!(said.document()["ended"], 1);
    let events: Vec<Value> = said
        .err
        .lines()
        .map(|line| serde_json::from_str(line).expect("a document a line"))
        .collect();
    assert_eq!(events[0]["event"], "started");
    assert_eq!(
        events[1],
        json!({"event": "ended", "ref": format!("schedule_run/{id}"), "status": "retry_wait"})
    );
    home.submit(&[], &["true"]);
    assert_eq!(home.drain(&["--quiet"]).err, "");
    // Nobody reads what it says.
    home.submit(&[], &["true"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = home.command(&["worker", "--drain"]);
    let child = command.stderr(Stdio::from(writer)).spawn().expect("it starts");
    assert_eq!(answered(child, "worker".to_owned()).exits(0).out, "1 taken, 1 ended\n");
}

#[test]
fn a_worker_makes_its_home_and_a_listing_does_not() {
    let home = Home::new();
    let nothing = home.run(&["queue", "ls"]).exits(0);
    assert!(nothing.out.contains("runwarden submit"), "{}", nothing.out);
    assert_eq!(
        home.json(&["queue", "ls"]),
        json!({"queues": [], "workers": [], "late_writes": 0})
    );
    assert!(!home.home().exists());
    assert_eq!(home.drain(&[]).out, "0 taken, 0 ended\n");
    home.run(&["worker", "--drain", "--name", "a b"]).exits(64);
    home.run(&["worker", "--drain", "--queue", ""]).exits(64);
}

#[test]
fn workers_of_one_name_are_told_apart() {
    let home = Home::new();
    let workers = [
        Worker::start(&home, &["--name", "twin"]),
        Worker::start(&home, &["--name", "twin"]),
    ];
    until("both are known", || {
        home.json(&["queue", "ls"])["workers"].as_array().map(Vec::len) == Some(2)
    });
    let listed = home.json(&["queue", "ls"]);
    let (first, second) = (&listed["workers"][0], &listed["workers"][1]);
    assert_eq!((&first["name"], &second["name"]), (&json!("twin"), &json!("twin")));
    assert_ne!(first["worker"], second["worker"]);
    let ids: Vec<String> = (0..6).map(|_| home.submit(&[], &["true"])).collect();
    for id in &ids {
        home.until_status(id, "completed");
        assert_eq!(home.runs_of(id).len(), 1);
    }
    for worker in workers {
        worker.stopped();
    }
    assert_eq!(home.json(&["queue", "ls"])["workers"], json!([]));
}

#[test]
fn a_worker_that_was_killed_is_not_listed_as_at_work() {
    let home = Home::new();
    home.submit(&["--queue", "others"], &["true"]);
    let worker = Worker::start(&home, &["--queue", "none"]);
    let workers = || home.json(&["queue", "ls"])["workers"].as_array().map(Vec::len);
    until("it is listed", || workers() == Some(1));
    worker.killed();
    assert_eq!(workers(), Some(0));
    assert!(home.done(&["queue", "ls"]).contains("No worker is at work"));
}

#[test]
fn a_queue_that_is_paused_or_full_admits_nobody_until_it_is_not() {
    let home = Home::new();
    let paused = home.json(&["queue", "pause", "builds", "--note", "the registry is down"]);
    assert_eq!(
        (&paused["paused"], &paused["note"]),
        (&json!(true), &json!("the registry is down"))
    );
    let id = home.submit(&["--queue", "builds"], &["true"]);
    let worker = Worker::start(&home, &["--slots", "4"]);
    let other = home.submit(&[], &["true"]);
    home.until_status(&other, "completed");
    assert_eq!(home.status_of(&id), "queued");
    assert!(home.done(&["queue", "ls"]).contains("paused: the registry is down"));
    home.done(&["queue", "resume", "builds"]);
    home.until_status(&id, "completed");
    home.done(&["queue", "limit", "builds", "1"]);
    let (gate, script) = waiting_at(&home, "one");
    let first = home.submit(&["--queue", "builds"], &["sh", "-c", &script]);
    home.told("one");
    let second = home.submit(&["--queue", "builds"], &["true"]);
    let other = home.submit(&[], &["true"]);
    home.until_status(&other, "completed");
    assert_eq!(home.status_of(&second), "queued");
    assert!(home.done(&["queue", "ls"]).contains("1 of 1"));
    let _open = opened(&gate);
    home.until_status(&first, "completed");
    home.until_status(&second, "completed");
    home.done(&["queue", "limit", "builds", "none"]);
    for limit in ["0", "-1", "many"] {
        home.run(&["queue", "limit", "builds", limit]).exits(64);
    }
    home.run(&["queue", "pause", "a b"]).exits(64);
    worker.stopped();
    let audit = home.json(&["history", "--admin"]);
    let set_up = audit
        .as_array()
        .expect("a list")
        .iter()
        .filter(|event| event["action"] == "queue_set_up");
    assert_eq!(set_up.count(), 4);
}

#[test]
fn a_program_knows_its_row_its_token_and_its_attempt() {
    let home = Home::new();
    let told = home.path("told");
    let script = format!(
        "echo $RUNWARDEN_LEASE_REF $RUNWARDEN_LEASE_TOKEN $RUNWARDEN_ATTEMPT $RUNWARDEN_REF $FROM_WORKER $FROM_SUBMIT > {}",
        told.display()
    );
    let mut submit = home.command(&[
        "submit",
        "--id",
        "row",
        "--env",
        "FROM_SUBMIT=stored",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    submit.env("FROM_WORKER", "not this");
    assert!(submit.output().expect("it ends").status.success());
    home.run_with(&["worker", "--drain"], &[("FROM_WORKER", "here")])
        .exits(0);
    let run = &home.runs_of("row")[0];
    assert_eq!(
        home.told("told"),
        format!("schedule_run/row 1 1 session/{run} here stored")
    );
}

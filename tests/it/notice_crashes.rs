//! Dying between any two steps of planning and delivering: an end is never without its notices or the plan of them, a
//! notice never without its event, whoever wrote the end.

use runwarden_test_guests::SESSION_PAUSED;
use serde_json::{Value, json};

use crate::crashes::dies_at;
use crate::harness::{Home, PROGRAM, lives, until};
use crate::notices::{sink, told};

/// Ends that are not whole: an event without dispatch and without an owed plan, an end without its event, a dispatch
/// without its event. All that is created in these tests has a handler.
const FAULTS: &str = "SELECT
    (SELECT count(*) FROM transitions t WHERE t.envelope IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM dispatches d WHERE d.event_entity = t.entity AND d.event_version = t.version)
        AND NOT EXISTS (SELECT 1 FROM owed_plans o WHERE o.event_entity = t.entity AND o.event_version = t.version))
    + (SELECT count(*) FROM entities e WHERE e.terminal = 1 AND e.kind <> 'dispatch'
        AND NOT EXISTS (SELECT 1 FROM transitions t WHERE t.entity = e.entity AND t.status = e.status
            AND t.envelope IS NOT NULL))
    + (SELECT count(*) FROM dispatches d WHERE d.event_entity IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM transitions t WHERE t.entity = d.event_entity AND t.version = d.event_version
            AND t.envelope IS NOT NULL))";

#[track_caller]
fn whole(home: &Home, context: &str) {
    assert_eq!(home.counted(FAULTS), 0, "{context}");
}

/// An entity of these tests, and whoever is told of it.
struct Scene {
    home: Home,
    notify: String,
}

impl Scene {
    fn new() -> Self {
        let home = Home::new();
        let notify = sink(&home.path("heard"));
        Self { home, notify }
    }

    /// A session, or what else is created like one.
    fn created(kind: &str) -> Self {
        let scene = Self::new();
        scene
            .home
            .done(&["create", kind, "--id", "one", "--notify", &scene.notify]);
        scene
    }

    /// A run; the variable is handed on to whoever records its end.
    fn running(place: &str, options: &[&str], program: &[&str]) -> Self {
        let scene = Self::new();
        let run = ["run", "--detach", "--id", "one", "--notify", &scene.notify];
        let mut start = scene.home.command(&[&run, options, &["--"], program].concat());
        start.env("RUNWARDEN_CRASH_AT", place);
        assert!(start.output().expect("the program starts").status.success(), "{place}");
        scene
    }

    /// A run that nobody watches any more, and whose program is gone.
    fn unseen() -> Self {
        let scene = Self::running("nowhere", &[], &["sleep", "600"]);
        let shown = scene.home.json(&["show", "one"]);
        for who in ["shim_pid", "pid"] {
            let pid = shown["runtime"][who].as_i64().expect("a pid");
            let number = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
            let _ = rustix::process::kill_process(number, rustix::process::Signal::KILL);
            until("it is gone", || !lives(&pid.to_string()));
        }
        scene
    }

    /// Has it ended, then delivered: each of these events is heard, each with one notice.
    #[track_caller]
    fn heard(&self, context: &str, statuses: &[&str]) {
        whole(&self.home, context);
        let file = self.home.path("heard");
        let events = || -> Vec<Value> { told(&file).into_iter().map(|(_, envelope)| envelope).collect() };
        until(&format!("{context}: it is told"), || {
            self.home.run(&["show", "one"]);
            self.home.overdue();
            self.home.done(&["outbox", "deliver", "--until-empty"]);
            events().len() >= statuses.len()
        });
        whole(&self.home, context);
        let mut ids: Vec<(String, String)> = events()
            .iter()
            .map(|event| (event["event_id"].to_string(), event["status"].to_string()))
            .collect();
        // Told at least once.
        ids.dedup();
        let heard: Vec<&str> = ids.iter().map(|(_, status)| status.trim_matches('"')).collect();
        assert_eq!(heard, statuses, "{context}");
        assert_eq!(
            self.home.notices().len(),
            statuses.len(),
            "{context}: one notice an event"
        );
    }
}

const PLACES: [&str; 5] = [
    "transition.decided",
    "transition.committed",
    "deliver.claimed",
    "deliver.sent",
    "deliver.settled",
];

/// Dies at each place while a command ends what `scene` made; then it is said again. The last of the statuses is that end.
fn check(scene: fn() -> Scene, end: &[&str], statuses: &[&str]) {
    for place in PLACES {
        let scene = scene();
        let context = format!("{end:?} at {place}");
        dies_at(&scene.home, place, end);
        whole(&scene.home, &context);
        if place == "transition.decided" {
            let told = scene.home.notices().len();
            assert_eq!(
                told,
                statuses.len() - 1,
                "{context}: nothing is told of what did not happen"
            );
            scene.home.run(end);
        }
        scene.heard(&context, statuses);
    }
}

#[test]
fn an_end_by_command_is_whole_wherever_its_command_dies() {
    let end = ["transition", "one", "failed", "--reason", "run.failed.exit_nonzero"];
    check(|| Scene::created("session"), &end, &["failed"]);
    check(|| Scene::created("play"), &["kill", "one"], &["blocked"]);
}

#[test]
fn an_override_is_an_event_of_its_own_wherever_its_command_dies() {
    let moved = [
        "transition",
        "one",
        "failed",
        "--reason",
        "run.failed.exit_nonzero",
        "--override",
    ];
    let why = ["--override-actor", "ada", "--justification", "it was wrong"];
    let ended = || {
        let scene = Scene::created("session");
        let end = ["transition", "one", "completed", "--reason", "run.completed.ok"];
        scene.home.done(&end);
        scene
    };
    check(ended, &[&moved[..], &why].concat(), &["completed", "failed"]);
}

#[test]
fn an_announced_status_is_whole_wherever_its_command_dies() {
    let scene = || {
        let scene = Scene::new();
        let file = scene.home.path("paused.wasm");
        std::fs::write(&file, SESSION_PAUSED).expect("a file of the test");
        let file = file.to_string_lossy();
        let install = ["policy", "install", &file, "--activate", "--reason", "test"];
        scene.home.done(&install);
        scene
            .home
            .done(&["create", "session", "--id", "one", "--notify", &scene.notify]);
        scene
    };
    let pause = ["transition", "one", "paused", "--reason", "session.resumed.operator"];
    check(scene, &pause, &["paused"]);
}

#[test]
fn a_creation_that_is_an_end_is_whole_wherever_its_command_dies() {
    for place in [
        "create.decided",
        "create.committed",
        "deliver.claimed",
        "deliver.sent",
        "deliver.settled",
    ] {
        let scene = Scene::new();
        let create = ["create", "schedule_run", "--id", "one", "--status", "failed"];
        let create = [
            &create[..],
            &["--reason", "run.failed.spawn_error", "--notify", &scene.notify],
        ]
        .concat();
        dies_at(&scene.home, place, &create);
        whole(&scene.home, place);
        if place == "create.decided" {
            scene.home.run(&["show", "one"]).exits(2);
            scene.home.done(&create);
        }
        scene.heard(place, &["failed"]);
    }
}

#[test]
fn an_end_by_itself_is_whole_wherever_whoever_records_it_dies() {
    for place in ["settle.judged"].into_iter().chain(PLACES) {
        let scene = Scene::running(place, &[], &["sh", "-c", "exit 3"]);
        until("its end is there", || scene.home.of_run("one", "exit.json").exists());
        scene.heard(place, &["failed"]);
    }
}

#[test]
fn an_end_by_its_deadline_is_whole_wherever_whoever_records_it_dies() {
    for place in ["transition.decided", "transition.committed"] {
        let scene = Scene::running(place, &["--timeout", "100ms"], &["sleep", "600"]);
        until("its end is there", || scene.home.of_run("one", "exit.json").exists());
        scene.heard(place, &["timed_out"]);
    }
}

#[test]
fn a_kill_is_whole_wherever_whoever_records_it_dies() {
    for place in ["transition.decided", "transition.committed"] {
        let scene = Scene::running(place, &[], &["sleep", "600"]);
        // It may come to the place, or the run's own finishing command before it.
        let mut kill = scene.home.command(&["kill", "one", "--grace", "0"]);
        kill.env("RUNWARDEN_CRASH_AT", place);
        kill.output().expect("the program starts");
        until("its end is there", || scene.home.of_run("one", "exit.json").exists());
        scene.heard(place, &["cancelled"]);
    }
}

#[test]
fn a_report_is_whole_wherever_its_command_dies() {
    for place in ["transition.decided", "transition.committed"] {
        let report = format!("RUNWARDEN_CRASH_AT={place} {PROGRAM} report completed --reason run.completed.ok");
        let scene = Scene::running("nowhere", &[], &["sh", "-c", &format!("{report}; exit 0")]);
        until("its end is there", || scene.home.of_run("one", "exit.json").exists());
        scene.heard(place, &["completed"]);
    }
}

#[test]
fn an_end_that_nobody_saw_is_whole_wherever_whoever_finds_it_dies() {
    for finder in [&["kill", "--all-stale", "--older-than", "0"][..], &["doctor", "--fix"]] {
        for place in ["transition.decided", "transition.committed"] {
            let scene = Scene::unseen();
            // It may come to the place itself, or leave the end to a shim that it starts, whose command then does.
            let mut finder = scene.home.command(finder);
            finder.env("RUNWARDEN_CRASH_AT", place);
            let finder = finder.output().expect("the program starts");
            whole(&scene.home, &format!("{finder:?} at {place}"));
            let ended = scene.home.over("one");
            let status = ended["status"].as_str().expect("a status");
            scene.heard(&format!("{finder:?} at {place}"), &[status]);
        }
    }
}

#[test]
fn a_plan_that_is_owed_is_made_once_wherever_whoever_makes_it_dies() {
    for (place, left) in [("replan.asked", (1, 0)), ("replan.settled", (0, 1))] {
        let scene = Scene::created("session");
        let home = &scene.home;
        let end = ["transition", "one", "completed", "--reason", "run.completed.ok"];
        dies_at(home, "transition.committed", &end);
        // As it is when the time for planning was over before this handler was asked.
        home.done(&[
            "outbox",
            "purge",
            "--force",
            home.notice()["id"].as_str().expect("an id"),
        ]);
        let owe = "INSERT INTO owed_plans (event_entity, event_version, handler, settings, tries, due_at_ms) \
                   SELECT entity, version, 'run-1', notify, 0, 0 FROM entities WHERE notify IS NOT NULL";
        home.database().execute_batch(owe).expect("the statement fits");
        dies_at(home, place, &["outbox", "deliver", "--once"]);
        let owed = home.counted("SELECT count(*) FROM owed_plans");
        let planned = home.counted("SELECT count(*) FROM dispatches");
        assert_eq!((owed, planned), left, "{place}");
        scene.heard(place, &["completed"]);
        assert_eq!(home.counted("SELECT count(*) FROM owed_plans"), 0, "{place}");
    }
}

#[test]
fn a_notice_that_somebody_sends_is_whole_or_absent() {
    let scene = Scene::new();
    let home = &scene.home;
    home.bind("ops", &["--exec", &scene.notify]);
    let body = json!({"status": "hello"}).to_string();
    let send = ["outbox", "send", "--to", "ops", "--dedup-key", "k", &body];
    dies_at(home, "send.decided", &send);
    assert_eq!(home.notices(), [0; 0]);
    dies_at(home, "send.committed", &send);
    assert_eq!(home.notice()["status"], "pending");
    assert_eq!(home.json(&send)["again"], true, "the key is held by what was enqueued");
    home.done(&["outbox", "deliver", "--once"]);
    assert_eq!(home.notice()["status"], "delivered");
    assert_eq!(told(&home.path("heard")).len(), 1);
}

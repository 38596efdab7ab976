//! ls --health, show and why: how entities are by their policies, the worst of many, and that nothing of it costs others.

use std::fs::File;
use std::time::{Duration, SystemTime};

use runwarden_host::model::Condition;
use runwarden_host::verbs::{health, views};
use runwarden_test_guests::{Mode, hostile};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Home, host, lives, until};

const HOUR: Duration = Duration::from_secs(3_600);

/// Starts a run that says this, tells its pid, and goes on.
fn started(home: &Home, id: &str, options: &[&str], said: &str) -> String {
    let told = home.path(id).display().to_string();
    let text = format!("printf '{said}'; echo $$ > {told}; exec sleep 600");
    home.detach(id, &[options, &["--", "sh", "-c", &text]].concat());
    home.told(id)
}

/// Makes an entity, and the logs of its run if it has one, look as if nothing was written for so long.
fn silence(home: &Home, id: &str, length: Duration) {
    let then = SystemTime::now() - length;
    let since = then.duration_since(SystemTime::UNIX_EPOCH).expect("not that long");
    let store = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    let ms = i64::try_from(since.as_millis()).expect("not that long");
    let set = "UPDATE entities SET updated_at_ms = ?1 WHERE entity = (SELECT entity FROM entity_ids WHERE id = ?2)";
    assert_eq!(store.execute(set, rusqlite::params![ms, id]).expect("a write"), 1);
    written(home, id, then);
}

/// Makes the logs of a run look as if they were written last at this time.
fn written(home: &Home, id: &str, at: SystemTime) {
    for name in ["stdout.log", "stderr.log"] {
        if let Ok(log) = File::options().append(true).open(home.of_run(id, name)) {
            log.set_modified(at).expect("a file of the test");
        }
    }
}

/// Kills the shim of a run and then its program, so that nobody sees its end.
fn lose(home: &Home, id: &str, program: &str) {
    let shim = home.json(&["show", id])["runtime"]["shim_pid"].to_string();
    for pid in [shim.as_str(), program] {
        let number = pid.parse().ok().and_then(Pid::from_raw).expect("a pid");
        // A program whose shim is gone may be gone with its group.
        let _ = kill_process(number, Signal::KILL);
        until("it is gone", || !lives(pid));
    }
}

/// The health that `ls --health` says an entity has.
fn listed(home: &Home, id: &str) -> Value {
    home.json(&["ls", "--health", id])[0]["health"].clone()
}

/// How an entity is as it is stored: looked at by the library, which repairs nothing before.
fn unrepaired(home: &Home, id: &str) -> (String, String) {
    let host = host(&home.home());
    let entity = host.store().load(id).expect("a store").expect("an entity");
    let views = views(&host, vec![entity]).expect("a store");
    let conditions = health(&host, &views).expect("a store");
    let condition: &Condition = conditions[0].as_ref().expect("its policy has an opinion");
    (views[0].entity.status.clone(), condition.word().to_owned())
}

#[test]
fn a_live_run_is_idle_and_then_unresponsive_and_a_sign_of_life_makes_it_healthy() {
    let home = Home::new();
    started(&home, "one", &[], "");
    assert_eq!(
        listed(&home, "one"),
        json!({"level": "healthy", "severity": 0, "message": "its process lives, and it is active"})
    );
    silence(&home, "one", 2 * HOUR);
    assert_eq!(listed(&home, "one")["level"], "idle");
    silence(&home, "one", 7 * HOUR);
    let health = listed(&home, "one");
    assert_eq!(
        (&health["level"], &health["severity"]),
        (&json!("unresponsive"), &json!(2))
    );
    // The same everywhere.
    assert_eq!(home.json(&["show", "one"])["health"], health);
    let line = format!("unresponsive: {}", health["message"].as_str().expect("words"));
    assert!(home.done(&["show", "one"]).contains(&format!("health     {line}")));
    let facts = home.json(&["why", "one"])["facts"].clone();
    let fact = json!({"what": "health", "value": line});
    assert!(facts.as_array().expect("a list").contains(&fact), "{facts:#}");
    // What its program writes is heard, and so is a write of the entity, as a report is one.
    written(&home, "one", SystemTime::now());
    assert_eq!(listed(&home, "one")["level"], "healthy");
    silence(&home, "one", 7 * HOUR);
    assert_eq!(listed(&home, "one")["level"], "unresponsive");
    home.done(&["transition", "one", "running", "--reason", "run.started.ok"]);
    assert_eq!(listed(&home, "one")["level"], "healthy");
    home.done(&["kill", "one"]);
}

#[test]
fn work_that_waits_for_other_work_may_be_quiet_for_longer() {
    let home = Home::new();
    started(&home, "one", &["--spawn-kind", "engine"], "");
    silence(&home, "one", 7 * HOUR);
    assert_eq!(listed(&home, "one")["level"], "idle");
    silence(&home, "one", 13 * HOUR);
    assert_eq!(listed(&home, "one")["level"], "unresponsive");
    home.done(&["kill", "one"]);
}

#[test]
fn a_run_that_nobody_saw_end_is_orphaned_or_stale_by_what_it_left() {
    let home = Home::new();
    let pid = started(&home, "mute", &[], "");
    lose(&home, "mute", &pid);
    assert_eq!(unrepaired(&home, "mute"), ("running".to_owned(), "orphaned".to_owned()));
    std::fs::write(home.of_run("mute", "artifacts/found.txt"), "x").expect("its directory");
    assert_eq!(unrepaired(&home, "mute"), ("running".to_owned(), "stale".to_owned()));
    let pid = started(&home, "loud", &[], "hello");
    lose(&home, "loud", &pid);
    assert_eq!(unrepaired(&home, "loud"), ("running".to_owned(), "stale".to_owned()));
    // Whoever lists it repairs it first; where its end can still be read, another shim reads it.
    for id in ["mute", "loud"] {
        until("it is repaired", || home.json(&["ls", id])[0]["status"] == "failed");
        assert_eq!(
            listed(&home, id)["level"],
            "healthy",
            "it has ended, and nothing of it is open"
        );
    }
}

/// What was read is old when the processes are looked at: who ended in between is nobody's trouble.
#[test]
fn an_end_that_is_recorded_before_the_look_is_no_alarm() {
    let home = Home::new();
    started(&home, "one", &[], "");
    let host = host(&home.home());
    let entity = host.store().load("one").expect("a store").expect("an entity");
    let read = views(&host, vec![entity]).expect("a store");
    home.done(&["kill", "one"]);
    let conditions = health(&host, &read).expect("a store");
    assert_eq!(conditions[0].as_ref().map(Condition::word), Some("healthy"));
}

#[test]
fn what_has_ended_and_left_a_lock_is_a_zombie() {
    let home = Home::new();
    let told = home.path("left");
    let text = format!("sleep 600 & echo $! > {}; exit 0", told.display());
    home.detach("one", &["--", "sh", "-c", &text]);
    let left = home.told("left");
    until("it lingers", || {
        home.json(&["ls", "one"])[0]["runtime"]["state"] == "lingering"
    });
    assert_eq!(unrepaired(&home, "one"), ("completed".to_owned(), "healthy".to_owned()));
    lose(&home, "one", &left);
    assert_eq!(unrepaired(&home, "one"), ("completed".to_owned(), "zombie".to_owned()));
    assert_eq!(listed(&home, "one")["level"], "healthy", "repaired by whoever lists it");
}

/// A play has no process: the newest run below it that was started is who does its work.
#[test]
fn an_entity_without_a_process_is_judged_by_the_run_that_works_for_it() {
    let home = Home::new();
    home.done(&["create", "play", "--id", "p"]);
    silence(&home, "p", 2 * HOUR);
    assert_eq!(listed(&home, "p")["level"], "idle", "quiet, and nobody works for it");
    let below = ["--parent", "p"];
    let pid = started(&home, "one", &below, "");
    assert_eq!(
        listed(&home, "p")["level"],
        "healthy",
        "its run lives, and has just begun"
    );
    lose(&home, "one", &pid);
    assert_eq!(
        listed(&home, "p")["level"],
        "orphaned",
        "its run is gone without a word"
    );
    started(&home, "two", &below, "");
    assert_eq!(listed(&home, "p")["level"], "healthy", "the newest counts");
    for id in ["p", "two"] {
        silence(&home, id, 8 * HOUR);
    }
    assert_eq!(listed(&home, "p")["level"], "unresponsive");
    home.done(&["kill", "two", "one"]);
    assert_eq!(
        listed(&home, "p")["level"],
        "healthy",
        "its run has just ended, which is recorded"
    );
    home.done(&["transition", "p", "merged", "--reason", "play.merged.ok"]);
    assert_eq!(listed(&home, "p")["level"], "healthy");
}

/// Two generations of one kind, both judged by thresholds.
#[test]
fn queued_work_that_nobody_takes_is_noticed_and_so_is_the_run_that_does_it() {
    let home = Home::new();
    for (id, policy) in [("old", "schedule_run@1"), ("new", "schedule_run@2")] {
        home.done(&["create", "schedule_run", "--id", id, "--policy", policy]);
        assert_eq!(listed(&home, id)["level"], "healthy", "{policy}");
        silence(&home, id, 7 * HOUR);
        assert_eq!(listed(&home, id)["level"], "stale", "{policy}");
        let run = format!("run-{id}");
        started(&home, &run, &["--parent", id, "--spawn-kind", "flow"], "");
        silence(&home, &run, 7 * HOUR);
        assert_eq!(
            listed(&home, id)["level"],
            "idle",
            "as patient as the run it has: {policy}"
        );
        home.done(&["kill", &run]);
    }
}

#[test]
fn what_runs_elsewhere_is_never_called_gone() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "far", "--field", "num_turns=3"]);
    let words = [
        "runtime", "register", "far", "--kind", "ssh", "--host", "build7", "--handle", "7",
    ];
    home.done(&words);
    assert_eq!(listed(&home, "far")["level"], "healthy");
    silence(&home, "far", 7 * HOUR);
    let health = listed(&home, "far");
    assert_eq!(health["level"], "stale");
    assert!(!health["message"].as_str().expect("words").contains("gone"), "{health}");
}

#[test]
fn the_worst_is_told_to_people_and_its_place_on_the_scale_to_programs() {
    let home = Home::new();
    for (id, turns) in [("good", 1), ("bad", 0), ("worse", 0)] {
        home.done(&[
            "create",
            "session",
            "--id",
            id,
            "--field",
            &format!("num_turns={turns}"),
        ]);
    }
    home.done(&["create", "show", "--id", "none"]);
    let text = home.done(&["ls", "--health"]);
    assert_eq!(text.lines().last(), Some("worst: orphaned (session/worse)"), "{text}");
    assert!(
        text.lines().next().is_some_and(|heads| heads.contains("HEALTH")),
        "{text}"
    );
    let none = text.lines().find(|line| line.starts_with("show/none"));
    assert!(none.is_some_and(|line| line.contains("  -  ")), "{text}");
    let listing = home.json(&["ls", "--health"]);
    let found: Vec<(&Value, &Value)> = listing
        .as_array()
        .expect("an array")
        .iter()
        .map(|one| (&one["id"], &one["health"]["severity"]))
        .collect();
    let expected = [
        (json!("none"), Value::Null),
        (json!("worse"), json!(4)),
        (json!("bad"), json!(4)),
        (json!("good"), json!(0)),
    ];
    assert_eq!(
        found,
        expected.iter().map(|(id, severity)| (id, severity)).collect::<Vec<_>>()
    );
    assert_eq!(listing[0].get("health"), Some(&Value::Null), "a show has none");
    assert_eq!(
        home.done(&["ls", "--health", "good"]).lines().last(),
        Some("worst: healthy")
    );
    let without = home.json(&["ls"]);
    assert!(without[0].get("health").is_none(), "nobody asked");
    assert!(!home.done(&["ls", "none", "--health"]).contains("worst"));
}

#[test]
fn a_component_that_fails_costs_its_own_answer() {
    for (mode, why) in [
        (Mode::HealthPanics, "no pulse"),
        (Mode::HealthUnknownLevel, "`splendid` is no level of health"),
    ] {
        let home = Home::new();
        let file = home.path("gadget.wasm");
        std::fs::write(&file, hostile(mode)).expect("a file");
        home.done(&["policy", "install", &file.to_string_lossy(), "--activate"]);
        home.done(&["create", "session", "--id", "s", "--field", "num_turns=1"]);
        home.done(&["create", "gadget", "--id", "g"]);
        let listing = home.json(&["ls", "--health"]);
        let gadget = &listing[0]["health"];
        assert_eq!(
            (&gadget["level"], &gadget["severity"]),
            (&json!("unknown"), &Value::Null)
        );
        assert!(
            gadget["message"].as_str().is_some_and(|said| said.contains(why)),
            "{gadget}"
        );
        assert_eq!(listing[1]["health"]["level"], "healthy");
        let text = home.done(&["ls", "--health"]);
        assert!(text.contains("unknown: gadget/g: component `gadget@"), "{text}");
        assert_eq!(
            text.lines().last(),
            Some("worst: healthy"),
            "what is unknown is on no scale"
        );
        assert!(
            home.done(&["show", "g"])
                .contains("health     unknown: component `gadget@")
        );
        assert_eq!(home.json(&["show", "g"])["health"], *gadget);
    }
}

#[test]
fn what_is_over_is_shown_without_its_health_and_listed_with_it() {
    let home = Home::new();
    home.run(&["run", "--quiet", "--id", "one", "--", "true"]).exits(0);
    assert_eq!(home.json(&["show", "one"]).get("health"), Some(&Value::Null));
    assert!(!home.done(&["show", "one"]).contains("health"));
    assert_eq!(listed(&home, "one")["level"], "healthy");
}

#[test]
fn there_is_no_worst_of_nothing() {
    let home = Home::new();
    assert!(!home.done(&["ls", "--health"]).contains("worst"));
    assert_eq!(home.json(&["ls", "--health"]), json!([]));
    home.done(&["policy", "ls"]);
    assert!(!home.done(&["ls", "--health"]).contains("worst"));
}

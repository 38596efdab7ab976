//! Schedules, from the command line to what stands for their fire times.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::crashes::dies_at;
use crate::harness::{Home, until};
use crate::serving::Served;

const HOUR: i64 = 3_600_000;

/// Adds an hourly schedule with these options.
fn hourly(home: &Home, name: &str, options: &[&str]) {
    home.done(&[&["schedule", "add", name, "--every", "1h"], options, &["--", "true"]].concat());
}

/// Lets so long pass for every schedule of a home.
fn pass(home: &Home, ms: i64) {
    let store = Connection::open(home.home().join("state.db")).expect("the store");
    // A fire time is a key: none may take the place of another on the way.
    let sql = format!(
        "UPDATE schedules SET next_fire_at_ms = next_fire_at_ms - {ms}, created_at_ms = created_at_ms - {ms};
         UPDATE occurrences SET nominal_at_ms = {ms} - nominal_at_ms;
         UPDATE occurrences SET nominal_at_ms = -nominal_at_ms;"
    );
    store.execute_batch(&sql).expect("schedules");
}

/// The document of a schedule that is added with these options.
fn added(home: &Home, name: &str, options: &[&str]) -> Value {
    let all = [&["--json", "schedule", "add", name], options, &["--", "true"]].concat();
    home.run(&all).exits(0).document()
}

fn fired(home: &Home) -> Value {
    home.json(&["serve", "--once"])["fired"].clone()
}

/// Status and reason of what stands for the last fire times, newest first.
fn occurrences(home: &Home, name: &str) -> Vec<String> {
    let shown = home.json(&["schedule", "show", name]);
    let occurrences = shown["occurrences"].as_array().expect("a list");
    occurrences
        .iter()
        .map(|one| format!("{} {}", one["status"], one["reason"]).replace('"', ""))
        .collect()
}

const DUE: &str = "queued schedule.fired.due";
const OVERLAP: &str = "skipped schedule.skipped.overlap";
const MISSED: &str = "skipped schedule.skipped.missed_fire";

#[test]
fn a_schedule_is_added_listed_shown_paused_resumed_and_removed() {
    let home = Home::new();
    assert_eq!(home.json(&["schedule", "ls"]), json!([]));
    let added = added(&home, "nightly", &["--cron", "30 2 * * *", "--tz", "UTC"]);
    assert_eq!(added["cadence"], json!({"cron": "30 2 * * *", "zone": "UTC"}));
    assert_eq!((&added["overlap"], &added["missed"]), (&json!("skip"), &json!("one")));
    let shown = home.json(&["schedule", "show", "nightly"]);
    let next = shown["next"].as_array().expect("a list");
    assert_eq!(next.len(), 5);
    for one in next {
        let (at, local) = (
            one["at"].as_str().expect("a time"),
            one["local"].as_str().expect("a time"),
        );
        assert!(
            at.ends_with("T02:30:00.000Z") && local.ends_with("T02:30:00+00:00"),
            "{one}"
        );
    }
    assert_eq!(shown["submission"]["work"]["argv"], json!(["true"]));
    let text = home.done(&["schedule", "ls"]);
    assert!(
        text.contains("nightly") && text.contains("30 2 * * *") && text.contains("UTC"),
        "{text}"
    );
    home.run(&["schedule", "add", "nightly", "--every", "5m", "--", "true"])
        .exits(4)
        .hints("schedule rm nightly");
    assert_eq!(home.done(&["schedule", "pause", "nightly"]), "nightly is paused");
    assert_eq!(
        home.done(&["schedule", "pause", "nightly"]),
        "nightly is paused already"
    );
    let paused = home.json(&["schedule", "ls"]);
    assert_eq!(
        (&paused[0]["paused"], &paused[0]["next_fire_at"]),
        (&json!(true), &Value::Null)
    );
    assert!(home.done(&["schedule", "ls"]).contains("paused"));
    assert_eq!(home.json(&["schedule", "resume", "nightly"])["changed"], true);
    home.done(&["schedule", "rm", "nightly"]);
    for command in ["show", "pause", "resume", "rm"] {
        home.run(&["schedule", command, "nightly"])
            .exits(2)
            .hints("runwarden schedule ls");
    }
    let audit = home.json(&["history", "--admin"]);
    let actions: Vec<&str> = audit
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|event| {
            event["action"]
                .as_str()
                .filter(|action| action.starts_with("schedule_"))
        })
        .collect();
    let expected = [
        "schedule_added",
        "schedule_paused",
        "schedule_resumed",
        "schedule_removed",
    ];
    assert_eq!(actions, expected);
}

#[test]
fn what_a_schedule_cannot_be_is_refused_with_what_to_type() {
    let home = Home::new();
    let refused = |options: &[&str], message: &str, hint: &str| {
        let answer = home
            .run(&[&["schedule", "add", "x"], options, &["--", "true"]].concat())
            .exits(64);
        assert!(answer.err.contains(message), "{}", answer.err);
        answer.hints(hint);
    };
    refused(
        &["--cron", "0 25 * * *"],
        "the hour `25` cannot be read",
        "30 6 * * MON-FRI",
    );
    refused(&["--cron", "0 0 * *"], "five fields", "30 6 * * MON-FRI");
    refused(&["--cron", "0 0 31 2 *"], "no day is meant", "30 6 * * MON-FRI");
    refused(
        &["--cron", "0 0 * * *", "--tz", "Europe/Atlantis"],
        "Europe/Atlantis",
        "tz database",
    );
    refused(&["--every", "10ms"], "too short", "--every 1s");
    refused(&["--every", "5m", "--id", "one"], "--id", "--name");
    for options in [
        &["--every", "5m", "--cron", "@daily"][..],
        &["--every", "5m", "--tz", "UTC"],
        &["--every", "5m", "--missed", "some"],
        &[],
    ] {
        home.run(&[&["schedule", "add", "x"], options, &["--", "true"]].concat())
            .exits(64);
    }
    assert_eq!(home.json(&["schedule", "ls"]), json!([]));
}

/// bugs-queues row 50, through the program.
#[test]
fn nobody_served_for_six_hours_and_each_policy_counts_exactly() {
    let home = Home::new();
    for missed in ["skip", "one", "all"] {
        hourly(&home, missed, &["--overlap", "allow", "--missed", missed]);
    }
    assert_eq!(fired(&home), json!({"submitted": 0, "skipped": 0}));
    pass(&home, 6 * HOUR + HOUR / 2);
    assert_eq!(fired(&home), json!({"submitted": 7, "skipped": 2}));
    assert_eq!(occurrences(&home, "skip"), [MISSED]);
    assert_eq!(occurrences(&home, "one"), [DUE, MISSED]);
    assert_eq!(occurrences(&home, "all"), [DUE; 6]);
    let shown = home.json(&["ls", "--all", "--tag", "schedule=skip"]);
    let evidence = &shown[0]["reason"]["evidence"][0];
    assert_eq!(
        (&evidence["count"], &evidence["missed"]),
        (&json!(6), &json!("skip")),
        "{shown}"
    );
    assert_eq!(fired(&home), json!({"submitted": 0, "skipped": 0}), "it is dealt with");
}

#[test]
fn what_overlaps_is_skipped_queued_or_started_as_was_asked() {
    let home = Home::new();
    for overlap in ["skip", "queue", "allow"] {
        hourly(&home, overlap, &["--overlap", overlap]);
    }
    for _ in 0..2 {
        pass(&home, HOUR);
        home.done(&["serve", "--once"]);
    }
    assert_eq!(occurrences(&home, "skip"), [OVERLAP, DUE]);
    assert_eq!(occurrences(&home, "allow"), [DUE, DUE]);
    assert_eq!(
        occurrences(&home, "queue"),
        ["waiting_dependency schedule.queued.created", DUE]
    );
    assert_eq!(
        home.counted("SELECT count(*) FROM dependencies WHERE success IS NULL AND any_end = 1"),
        1
    );
}

/// bugs-queues rows 26 and 52: it dies between any two steps, and whoever comes next does it once.
#[test]
fn a_scheduler_that_is_killed_between_two_steps_leaves_one_run_for_a_fire_time() {
    for place in ["schedule.decided", "schedule.fired"] {
        let home = Home::new();
        hourly(&home, "nightly", &[]);
        pass(&home, HOUR);
        dies_at(&home, place, &["serve", "--once"]);
        let done = usize::from(place == "schedule.fired");
        assert_eq!(occurrences(&home, "nightly").len(), done, "{place}");
        assert_eq!(fired(&home)["submitted"], 1 - done, "{place}");
        assert_eq!(occurrences(&home, "nightly"), [DUE], "{place}");
    }
}

#[test]
fn a_service_fires_when_it_is_time_and_goes_on_after_a_kill() {
    let home = Home::new();
    home.done(&[
        "schedule",
        "add",
        "pulse",
        "--every",
        "1s",
        "--overlap",
        "allow",
        "--",
        "true",
    ]);
    let count = || home.counted("SELECT count(*) FROM occurrences");
    let served = Served::up(&home);
    until("it fired twice", || count() >= 2);
    // Added while it is up, without a word to it.
    hourly(&home, "late", &[]);
    pass(&home, HOUR);
    until("it found what is due now", || !occurrences(&home, "late").is_empty());
    served.kill();
    let before = count();
    let served = Served::up(&home);
    until("it goes on", || count() > before);
    assert!(served.metric("runwarden_fired_total") >= 1.0);
    assert_eq!(served.health().1["parts"]["scheduler"]["ok"], true);
    served.stop();
    let double = "SELECT count(*) - count(DISTINCT nominal_at_ms) FROM occurrences o \
                  JOIN schedules s USING (schedule) WHERE s.name = 'pulse'";
    assert_eq!(home.counted(double), 0);
}

#[test]
fn a_worker_fires_what_is_due_and_runs_it() {
    let home = Home::new();
    let lines = home.path("lines");
    let script = format!("echo \"$RUNWARDEN_LEASE_REF\" >> {}", lines.display());
    let add = [
        "schedule",
        "add",
        "pulse",
        "--every",
        "1s",
        "--missed",
        "all",
        "--overlap",
        "queue",
    ];
    home.done(&[&add[..], &["--attempts", "1", "--", "sh", "-c", &script]].concat());
    let mut worker = home.start(&["worker"]);
    let told = || std::fs::read_to_string(&lines).unwrap_or_default();
    until("three fire times were run", || told().lines().count() >= 3);
    home.done(&["schedule", "rm", "pulse"]);
    crate::harness::until_watching(&worker);
    rustix::process::kill_process(rustix::process::Pid::from_child(&worker), rustix::process::Signal::TERM)
        .expect("it is there");
    assert!(worker.wait().expect("it ends").success());
    home.done(&["worker", "--drain"]);
    let text = told();
    let mut ran: Vec<&str> = text.lines().collect();
    ran.sort_unstable();
    let total = ran.len();
    ran.dedup();
    assert_eq!(ran.len(), total, "none ran twice: {text}");
    let ended = home.json(&["ls", "schedule_run", "--all", "--tag", "schedule=pulse"]);
    let ended = ended.as_array().expect("a list");
    assert_eq!(ended.len(), total);
    for one in ended {
        assert_eq!(
            (&one["status"], &one["name"]),
            (&json!("completed"), &json!("pulse")),
            "{one}"
        );
    }
}

#[test]
fn two_services_of_which_one_only_passes_by_make_one_run() {
    let home = Home::new();
    for number in 0..20 {
        hourly(&home, &format!("schedule-{number}"), &[]);
    }
    pass(&home, HOUR);
    let passes: Vec<_> = (0..4).map(|_| home.start(&["serve", "--once", "--json"])).collect();
    let submitted: i64 = passes
        .into_iter()
        .map(|pass| crate::harness::answered(pass, "serve --once".to_owned()).document()["fired"]["submitted"].as_i64())
        .map(|count| count.expect("a count"))
        .sum();
    assert_eq!(submitted, 20);
    assert_eq!(home.counted("SELECT count(*) FROM entities"), 20);
}

#[test]
fn a_zone_is_kept_by_name_and_its_clocks_are_followed() {
    if !Path::new("/usr/share/zoneinfo/Europe/Berlin").exists() {
        return; // this machine has no tz database
    }
    let home = Home::new();
    home.done(&[
        "schedule",
        "add",
        "noon",
        "--cron",
        "0 12 * * *",
        "--tz",
        "europe/berlin",
        "--",
        "true",
    ]);
    let shown = home.json(&["schedule", "show", "noon"]);
    assert_eq!(shown["cadence"]["zone"], "Europe/Berlin");
    let local = shown["next"][0]["local"].as_str().expect("a time");
    assert!(local.contains("T12:00:00+0"), "{local}");
    // The zone of the machine is taken where none is given.
    let here = home.run_with(
        &[
            "schedule",
            "add",
            "here",
            "--cron",
            "0 12 * * *",
            "--json",
            "--",
            "true",
        ],
        &[("TZ", "Asia/Tokyo")],
    );
    assert_eq!(here.exits(0).document()["cadence"]["zone"], "Asia/Tokyo");
}

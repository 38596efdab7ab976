//! Queued work as its submitter sees it: what is queued, when it runs, and how it ends.

use runwarden_host::model::Timestamp;
use serde_json::{Value, json};

use crate::harness::{Home, PROGRAM, lives, opened, until};
use crate::notices::{sink, told};
use crate::workers::{Later, Worker, waiting_at};

#[test]
fn submit_prints_the_reference_alone_or_the_entity() {
    let home = Home::new();
    let said = home.run(&["submit", "--id", "one", "--", "true"]).exits(0);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("schedule_run/one\n", ""));
    let options = ["--json", "--name", "n", "--tag", "k=v", "--cwd", "/"];
    let program = ["--", "sh", "-c", "exit 0"];
    let entity = home.run(&[&["submit"][..], &options, &program].concat());
    let entity = entity.exits(0).document();
    assert_eq!(
        (
            &entity["kind"],
            &entity["status"],
            &entity["name"],
            &entity["tags"]["k"]
        ),
        (&json!("schedule_run"), &json!("queued"), &json!("n"), &json!("v"))
    );
    assert_eq!(entity["command"], json!({"argv": ["sh", "-c", "exit 0"], "cwd": "/"}));
    assert_eq!(entity["policy"]["version"], "2.0.0");
    let old = home.submit(&["--policy", "schedule_run@1"], &["true"]);
    let old = home.json(&["show", &old]);
    assert_eq!(old["policy"]["version"], "1.0.0");
}

#[test]
fn what_cannot_be_queued_is_refused_and_nothing_is_written() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "s"]);
    let cases: [(&[&str], i32, &str); 19] = [
        (&["--kind", "play"], 64, "no lease rule"),
        (&["--kind", "session"], 64, "no lease rule"),
        (&["--kind", "nonsense"], 2, "no kind"),
        (&["--policy", "schedule_run@9"], 2, "schedule_run@9"),
        (&["--after", "nobody-here"], 2, "nobody-here"),
        (&["--parent", "nobody-here"], 2, "nobody-here"),
        (&["--lease", "1ms"], 64, "500ms"),
        (&["--lease", "0"], 64, "500ms"),
        (&["--lease", "-1s"], 64, "-1"),
        (&["--attempts", "0"], 64, "0"),
        (&["--attempts", "-1"], 64, "-1"),
        (&["--delay", "-5s"], 64, "-5"),
        (&["--delay", "5s", "--at", "23:00"], 64, "--at"),
        (&["--at", "yesterday"], 64, "yesterday"),
        (&["--queue", "a b"], 64, "a b"),
        (&["--queue", ""], 64, "--queue"),
        (&["--unique-key", ""], 64, "--unique-key"),
        (&["--priority", "high"], 64, "high"),
        (&["--id", "s"], 4, "never used twice"),
    ];
    for (options, code, words) in cases {
        let said = home.run(&[&["submit"], options, &["--", "true"]].concat()).exits(code);
        assert!(said.err.contains(words), "{options:?}: {}", said.err);
        assert_eq!(said.out, "", "{options:?}");
    }
    home.run(&["submit"]).exits(64);
    home.run(&["submit", "--"]).exits(64);
    assert_eq!(home.json(&["ls", "schedule_run"]), json!([]));
}

#[test]
fn a_key_of_the_command_makes_it_safe_to_repeat_and_is_no_other_commands() {
    let home = Home::new();
    let first = home.submit(&["--idempotency-key", "k", "--delay", "1h"], &["true"]);
    let again = home.submit(&["--idempotency-key", "k", "--delay", "1h"], &["true"]);
    assert_eq!(first, again);
    for other in [
        &["--idempotency-key", "k", "--", "false"][..],
        &["--idempotency-key", "k", "--priority", "1", "--", "true"],
        &["--idempotency-key", "k", "--queue", "q", "--", "true"],
        &["--idempotency-key", "k", "--after", &first, "--", "true"],
        &["--idempotency-key", "k", "--attempts", "1", "--", "true"],
    ] {
        home.run(&[&["submit"], other].concat()).exits(64);
    }
}

/// Row 53: a unique key is a property of the live row, with no lock of its own that a death could leave behind.
#[test]
fn a_unique_key_is_held_by_one_live_row_and_free_with_its_end() {
    let home = Home::new();
    let first = home.submit(&["--unique-key", "sync"], &["true"]);
    let refused = home
        .run(&["submit", "--unique-key", "sync", "--", "true"])
        .exits(4)
        .hints(&first);
    assert!(refused.err.contains("`sync`"), "{}", refused.err);
    home.drain(&[]);
    home.until_status(&first, "completed");
    let second = home.submit(&["--unique-key", "sync"], &["true"]);
    home.done(&["kill", &second]);
    // Whoever made it died at once: the key is the row's, as long as it lives.
    let mut command = home.command(&["submit", "--unique-key", "sync", "--id", "third", "--", "true"]);
    command.env("RUNWARDEN_CRASH_AT", "create.committed");
    assert!(!command.output().expect("it starts").status.success());
    home.run(&["submit", "--unique-key", "sync", "--", "true"])
        .exits(4)
        .hints("third");
    home.drain(&[]);
    home.submit(&["--unique-key", "sync"], &["true"]);
}

/// Row 8: what is tried again holds its key all the while, so that nobody is in its way when it is due.
#[test]
fn a_row_between_two_attempts_holds_its_key_and_meets_nobody_when_it_is_due() {
    let home = Home::new();
    let row = home.submit(&["--unique-key", "sync", "--attempts", "2"], &["sh", "-c", "exit 1"]);
    home.run(&["worker", "--once", "--quiet"]).exits(0);
    home.until_status(&row, "retry_wait");
    home.run(&["submit", "--unique-key", "sync", "--", "true"])
        .exits(4)
        .hints(&row);
    home.done(&["transition", &row, "queued", "--reason", "run.queued.retry_due"]);
    home.run(&["submit", "--unique-key", "sync", "--", "true"])
        .exits(4)
        .hints(&row);
    home.done(&["kill", &row]);
    home.submit(&["--unique-key", "sync"], &["true"]);
}

/// Row 27: of those who come at once exactly one has the key, by an index and not by a lock.
#[test]
fn of_those_who_submit_one_key_at_once_one_is_admitted() {
    let home = Home::new();
    home.done(&["create", "session"]);
    let all: Vec<_> = (0..6)
        .map(|_| home.start(&["submit", "--unique-key", "k", "--", "true"]))
        .collect();
    let mut codes: Vec<Option<i32>> = all
        .into_iter()
        .map(|child| child.wait_with_output().expect("our own child").status.code())
        .collect();
    codes.sort();
    assert_eq!(codes, [Some(0), Some(4), Some(4), Some(4), Some(4), Some(4)]);
}

#[test]
fn what_is_stored_of_a_row_names_variables_and_shows_no_values_but_those_given() {
    let home = Home::new();
    let mut command = home.command(&[
        "submit",
        "--id",
        "row",
        "--env",
        "SECRET",
        "--env",
        "OPEN=shown",
        "--",
        "sh",
        "-c",
        "exit 0",
    ]);
    command.env("SECRET", "not-to-be-stored");
    assert!(command.output().expect("it ends").status.success());
    let shown = home.done(&["show", "--command", "row"]);
    assert!(shown.contains("SECRET") && shown.contains("shown"), "{shown}");
    assert!(shown.contains("sh -c 'exit 0'"), "{shown}");
    let all = std::fs::read(home.home().join("state.db")).expect("the store");
    let wal = std::fs::read(home.home().join("state.db-wal")).unwrap_or_default();
    for bytes in [all, wal] {
        assert!(!String::from_utf8_lossy(&bytes).contains("not-to-be-stored"));
    }
}

#[test]
fn what_a_run_submits_is_linked_below_it_unless_it_says_otherwise() {
    let home = Home::new();
    let script = format!("{PROGRAM} submit --id linked -- true; {PROGRAM} submit --no-parent --id alone -- true");
    home.run(&["run", "--id", "outer", "--", "sh", "-c", &script]).exits(0);
    assert_eq!(home.json(&["show", "linked"])["parents"], json!(["run/outer"]));
    assert_eq!(home.json(&["show", "alone"])["parents"], json!([]));
}

#[test]
fn delayed_work_waits_for_its_moment_and_a_moment_that_has_passed_is_now() {
    let home = Home::new();
    let past = home.submit(&["--at", "2001-01-01T00:00:00Z"], &["true"]);
    let late = home.submit(&["--at", "2999-01-01T00:00:00Z"], &["true"]);
    let asked = runwarden_host::Clock::System.now();
    let soon = home.submit(&["--delay", "500ms"], &["true"]);
    let worker = Worker::start(&home, &[]);
    home.until_status(&past, "completed");
    let ended = home.until_status(&soon, "completed");
    let rows = home.json(&["history", &soon]);
    let due = rows[1]["at"]
        .as_str()
        .and_then(Timestamp::parse_rfc3339)
        .expect("a time");
    assert!(due.since(asked).as_ms() >= 500, "{ended}");
    assert_eq!(home.status_of(&late), "queued");
    worker.stopped();
}

#[test]
fn work_that_waits_for_other_work_runs_after_its_success_and_ends_with_its_failure() {
    let home = Home::new();
    let (good, bad) = (
        home.submit(&["--priority", "-1"], &["true"]),
        home.submit(&["--attempts", "1"], &["false"]),
    );
    let after_good = home.submit(&["--after", &good], &["true"]);
    let after_both = home.submit(&["--after", &good, "--after", &bad], &["true"]);
    let old = home.submit(&["--policy", "schedule_run@1", "--after", &bad], &["true"]);
    for id in [&after_good, &after_both, &old] {
        assert_eq!(home.status_of(id), "waiting_dependency");
    }
    home.drain(&[]);
    assert_eq!(home.status_of(&after_good), "completed");
    let cancelled = home.json(&["show", &after_both]);
    assert_eq!(
        cancelled["reason"]["code"], "run.failed.dependency_failed",
        "{cancelled}"
    );
    assert_eq!(
        home.json(&["show", &old])["reason"]["code"],
        "run.failed.dependency_failed"
    );
    // What has ended before is no wait, and what has ended badly no hope.
    let late = home.submit(&["--after", &good], &["true"]);
    assert_eq!(home.status_of(&late), "queued");
    let never = home.submit(&["--after", &bad], &["true"]);
    assert!(home.json(&["show", &never])["terminal"] == true);
}

/// How each end of a program ends its row, when it may be tried once.
#[test]
fn the_end_of_a_run_is_the_end_of_its_row() {
    let home = Home::new();
    let cases: [(&[&str], &[&str], &str, &str); 7] = [
        (&[], &["true"], "completed", "run.completed.ok"),
        (&[], &["sh", "-c", "exit 7"], "failed", "run.failed.exit_nonzero"),
        (&[], &["sh", "-c", "kill -SEGV $$"], "failed", "run.failed.exception"),
        (
            &["--timeout", "200ms"],
            &["sleep", "1000"],
            "timed_out",
            "run.timed_out.deadline",
        ),
        (
            &["--expect-artifact", "no-such-file"],
            &["true"],
            "failed",
            "run.failed.missing_artifact",
        ),
        (&[], &["/no/such/program"], "failed", "run.failed.spawn_error"),
        (
            &["--cwd", "/no/such/directory"],
            &["true"],
            "failed",
            "run.failed.missing_cwd",
        ),
    ];
    let ids: Vec<String> = cases
        .iter()
        .map(|(options, program, ..)| home.submit(&[&["--attempts", "1"], *options].concat(), program))
        .collect();
    home.drain(&["--slots", "4"]);
    for (id, (options, program, status, code)) in ids.iter().zip(cases) {
        let row = home.json(&["show", id]);
        assert_eq!(
            (&row["status"], &row["reason"]["code"]),
            (&json!(status), &json!(code)),
            "{options:?} {program:?}: {row}"
        );
        let run = home.over(&home.runs_of(id)[0]);
        assert_eq!(run["fields"]["exit_code"], row["fields"]["exit_code"], "{row}");
        assert_eq!(run["fields"]["term_signal"], row["fields"]["term_signal"], "{row}");
        assert_eq!(run["fields"]["cause"], row["fields"]["cause"], "{row}");
    }
    let waited = home.run(&["wait", &ids[1]]).exits(1);
    assert!(
        waited.out.contains("status=failed\treason=run.failed.exit_nonzero"),
        "{}",
        waited.out
    );
    assert!(waited.out.contains("exit_code=7"), "{}", waited.out);
    assert!(!waited.out.contains("artifact_dir=-"), "{}", waited.out);
    home.run(&["wait", &ids[1], "--exit-code"]).exits(7);
}

#[test]
fn a_failed_attempt_is_a_failure_in_the_first_generation_and_tried_again_in_the_second() {
    let home = Home::new();
    let old = home.submit(&["--policy", "schedule_run@1"], &["sh", "-c", "exit 3"]);
    let new = home.submit(&["--attempts", "2"], &["sh", "-c", "exit 3"]);
    home.drain(&[]);
    assert_eq!(home.status_of(&old), "failed");
    let row = home.json(&["show", &new]);
    assert_eq!(
        (&row["status"], &row["reason"]["code"], &row["fields"]["lease_attempts"]),
        (&json!("retry_wait"), &json!("run.retry_wait.backoff"), &json!(1)),
        "{row}"
    );
    assert_eq!(home.runs_of(&new).len(), 1);
    assert_eq!(home.json(&["queue", "ls"])["queues"][0]["later"], 1);
    Later::of(&home).by_hours(1).keep();
    home.drain(&[]);
    let row = home.json(&["show", &new]);
    assert_eq!(
        (&row["status"], &row["reason"]["code"], &row["fields"]["exit_code"]),
        (&json!("failed"), &json!("run.failed.exit_nonzero"), &json!(3)),
        "{row}"
    );
    assert_eq!(home.runs_of(&new).len(), 2);
}

#[test]
fn a_run_that_an_operator_kills_is_not_tried_again() {
    for policy in ["schedule_run@1", "schedule_run@2"] {
        let home = Home::new();
        let (_gate, script) = waiting_at(&home, "one");
        let id = home.submit(&["--policy", policy], &["sh", "-c", &script]);
        let worker = Worker::start(&home, &[]);
        let pid = home.told("one");
        let run = &home.runs_of(&id)[0];
        home.run(&["kill", run, "--note", "enough"]).exits(0);
        let row = home.until_status(&id, "cancelled");
        assert_eq!(row["reason"]["code"], "run.cancelled.manual_kill", "{row}");
        assert!(!lives(&pid));
        assert_eq!(worker.stopped().out, "1 taken, 1 ended\n");
        assert_eq!(home.runs_of(&id).len(), 1);
    }
}

#[test]
fn a_kill_of_a_row_stops_its_run_and_says_so() {
    let home = Home::new();
    let worker = Worker::start(&home, &["--slots", "2"]);
    for options in [&[][..], &["--recursive"]] {
        let (_gate, script) = waiting_at(&home, "one");
        let id = home.submit(&[], &["sh", "-c", &script]);
        let pid = home.told("one");
        let said = home.json(&[&["kill", &id], options].concat());
        let target = &said["targets"][0];
        assert_eq!(
            (&target["outcome"], &target["status"], &said["complete"]),
            (&json!("killed"), &json!("cancelled"), &json!(true)),
            "{said}"
        );
        assert_eq!(target["children"][0]["outcome"], "killed", "{said}");
        assert!(!lives(&pid));
        let row = home.json(&["show", &id]);
        assert_eq!(row["reason"]["code"], "run.cancelled.manual_kill", "{row}");
        home.over(&home.runs_of(&id)[0]);
        std::fs::remove_file(home.path("one")).expect("it was written");
        std::fs::remove_file(home.path("one.gate")).expect("it was made");
    }
    assert_eq!(worker.stopped().out, "2 taken, 2 ended\n");
    let queued = home.submit(&[], &["true"]);
    home.run(&["kill", &queued]).exits(0);
    assert_eq!(home.status_of(&queued), "cancelled");
    assert_eq!(home.drain(&[]).out, "0 taken, 0 ended\n");
}

#[test]
fn a_row_is_removed_with_its_runs_and_drawn_with_them() {
    let home = Home::new();
    let id = home.submit(&[], &["true"]);
    home.drain(&[]);
    let run = home.runs_of(&id)[0].clone();
    let tree = home.done(&["ls", "--tree", "--all"]);
    let (row, below) = tree.split_once(&format!("schedule_run/{id}")).expect("it is listed");
    assert!(below.contains(&format!("session/{run}")), "{row}{below}");
    home.over(&run);
    home.done(&["rm", &id]);
    home.run(&["show", &id]).exits(2);
    home.run(&["show", &run]).exits(2);
    assert!(!home.home().join("runs").join(&run).exists());
}

#[test]
fn the_end_of_a_row_is_told_once_and_that_of_its_run_not_at_all() {
    let home = Home::new();
    home.bind("ops", &["--exec", &sink(&home.path("heard"))]);
    let good = home.submit(&[], &["true"]);
    let bad = home.submit(&["--attempts", "1"], &["false"]);
    home.submit(&["--no-notify"], &["true"]);
    home.drain(&[]);
    until("both were told", || told(&home.path("heard")).len() >= 2);
    let mut heard: Vec<Value> = told(&home.path("heard")).into_iter().map(|(_, body)| body).collect();
    heard.sort_by_key(|body| body["terminal_status"].to_string());
    let ends: Vec<(String, String, String)> = heard
        .iter()
        .map(|body| {
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (
                word(&body["entity"]["id"]),
                word(&body["terminal_status"]),
                word(&body["spawn_kind"]),
            )
        })
        .collect();
    assert_eq!(
        ends,
        [
            (good, "completed".to_owned(), "scheduled".to_owned()),
            (bad, "failed".to_owned(), "scheduled".to_owned())
        ]
    );
    let notices = home.json(&["outbox", "ls"]);
    assert_eq!(notices.as_array().map(Vec::len), Some(2), "{notices}");
}

#[test]
fn submit_to_start_needs_no_poll() {
    let home = Home::new();
    let worker = Worker::start(&home, &[]);
    let (gate, script) = waiting_at(&home, "one");
    let id = home.submit(&[], &["sh", "-c", &script]);
    home.told("one");
    let rows = home.json(&["history", &id]);
    assert_eq!(rows[1]["reason"]["code"], "run.started.ok");
    let _open = opened(&gate);
    home.until_status(&id, "completed");
    worker.stopped();
}

#[test]
fn the_logs_of_queued_work_are_those_of_its_last_attempt() {
    let home = Home::new();
    let row = home.submit(&["--attempts", "1"], &["sh", "-c", "echo attempt $RUNWARDEN_ATTEMPT"]);
    let early = home.run(&["logs", &row]).exits(2);
    assert!(early.err.contains("no attempt was made yet"), "{}", early.err);
    home.run(&["worker", "--once", "--quiet"]).exits(0);
    assert_eq!(home.run(&["logs", &row]).exits(0).out, "attempt 1\n");
}

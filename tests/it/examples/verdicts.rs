//! agent and ci-job: what the end of a program means to them, alone and in the queue.

use runwarden_test_guests::{AGENT, CI_JOB};
use serde_json::{Value, json};

use super::{live_by, moved};
use crate::harness::{Home, PROGRAM, until};
use crate::notices::{sink, told};
use crate::pruning::older;

fn run(home: &Home, kind: &str, id: &str, script: &str) -> Value {
    home.detach(id, &["--kind", kind, "--", "sh", "-c", script]);
    home.over(id)
}

/// Status and reason code of an entity.
fn stands(entity: &Value) -> (&str, &str) {
    let word = |value: &'static str| entity.pointer(value).and_then(Value::as_str).unwrap_or_default();
    (word("/status"), word("/reason/code"))
}

/// How long after it was written last an entity is due again, in seconds, rounded up to five: the moment of the write is a
/// little later than the one from which the wait was counted.
fn due_after(entity: &Value) -> i64 {
    let written: jiff::Timestamp = entity["updated_at"]
        .as_str()
        .expect("a time")
        .parse()
        .expect("RFC 3339");
    let due = entity["fields"]["next_attempt_at"].as_i64().expect("milliseconds");
    (due - written.as_millisecond() + 4_999) / 5_000 * 5
}

const LIMITED: &str = "echo working; echo 'Error: rate limited, retry in 45s' >&2; exit 1";

#[test]
fn a_rate_limited_agent_that_is_not_queued_says_when_and_where_it_would_be_tried_again() {
    let home = Home::new();
    live_by(&home, AGENT, "agent@1", &[]);
    let ended = run(&home, "agent", "a", LIMITED);
    assert_eq!(stands(&ended), ("failed", "agent.failed.rate_limited"));
    assert_eq!(ended["reason"]["evidence"][0]["retry_after_ms"], 45_000);
    let why = home.done(&["why", "a"]);
    assert!(
        why.contains("after 45s") && why.contains("runwarden submit --run-kind agent"),
        "{why}"
    );
    assert!(home.done(&["show", "a"]).contains("its policy would, after 45s"));
}

#[test]
fn a_full_context_is_a_failure_of_its_own_and_asks_for_nothing() {
    let home = Home::new();
    live_by(&home, AGENT, "agent@1", &[]);
    let ended = run(&home, "agent", "a", "echo 'context window is full'; exit 1");
    assert_eq!(stands(&ended), ("failed", "agent.failed.context_full"));
    assert!(!home.done(&["why", "a"]).contains("try again"));
}

#[test]
fn a_rate_limited_attempt_of_queued_work_waits_as_long_as_its_verdict_says() {
    let home = Home::new();
    live_by(&home, AGENT, "agent@1", &["rate_limit_wait_ms=120000"]);
    let row = home.submit(&["--run-kind", "agent"], &["sh", "-c", LIMITED]);
    let usual = home.submit(&["--run-kind", "agent"], &["sh", "-c", "echo 'rate limit'; exit 1"]);
    let capped = home.submit(
        &["--run-kind", "agent"],
        &["sh", "-c", "echo 'rate limit, retry in 5 h'; exit 1"],
    );
    let last = home.submit(&["--run-kind", "agent", "--attempts", "1"], &["sh", "-c", LIMITED]);
    home.drain(&[]);
    let shown = home.json(&["show", &row]);
    assert_eq!(
        (stands(&shown), due_after(&shown)),
        (("retry_wait", "run.retry_wait.backoff"), 45)
    );
    assert_eq!(due_after(&home.json(&["show", &usual])), 120, "its parameter says so");
    assert_eq!(
        due_after(&home.json(&["show", &capped])),
        1_800,
        "the cap of the row's policy"
    );
    assert_eq!(
        home.json(&["show", &last])["status"],
        "failed",
        "no attempt more than there are"
    );
    let why = home.done(&["why", shown["children"][0].as_str().expect("its run")]);
    assert!(why.contains("what it was queued as decides"), "{why}");
}

#[test]
fn an_attempt_that_may_be_tried_again_at_once_is_and_knows_which_it_is() {
    let home = Home::new();
    live_by(&home, AGENT, "agent@1", &[]);
    let script = "[ $RUNWARDEN_ATTEMPT = 2 ] && exit 0; echo 'rate limit, retry in 0 s'; exit 1";
    let row = home.submit(&["--run-kind", "agent"], &["sh", "-c", script]);
    until("its second attempt has ended", || {
        home.drain(&[]);
        home.json(&["show", &row])["terminal"] == true
    });
    let shown = home.json(&["show", &row]);
    assert_eq!(
        (&shown["status"], &shown["fields"]["lease_attempts"]),
        (&json!("completed"), &json!(2))
    );
}

#[test]
fn an_agent_asks_a_person_who_is_told_and_goes_on_with_the_answer() {
    let home = Home::new();
    live_by(&home, AGENT, "agent@1", &[]);
    let (notices, got) = (home.path("notices"), home.path("got"));
    let script = format!(
        r#"{PROGRAM} report awaiting_input --reason agent.awaiting_input.asked --set 'question="Which branch?"' || exit 3
        {PROGRAM} report running --reason agent.running.answered --set 'answer="mine"' && exit 4
        {PROGRAM} wait @self --until running || exit 5
        {PROGRAM} show @self --json > {}"#,
        got.display()
    );
    home.detach(
        "a",
        &[
            "--kind",
            "agent",
            "--notify",
            &sink(&notices),
            "--",
            "sh",
            "-c",
            &script,
        ],
    );
    until("a person is told", || told(&notices).len() == 1);
    let (_, envelope) = &told(&notices)[0];
    assert_eq!(
        (&envelope["schema"], &envelope["entity"]["id"]),
        (&json!("runwarden.run-status"), &json!("a"))
    );
    let waiting = home.json(&["show", "a"]);
    assert_eq!(
        (&waiting["status"], &waiting["fields"]["question"]),
        (&json!("awaiting_input"), &json!("Which branch?"))
    );
    moved(
        &home,
        "a",
        "running",
        "--reason agent.running.answered --set answer=\"main\"",
    )
    .exits(0);
    assert_eq!(home.over("a")["status"], "completed");
    let answer: Value = serde_json::from_slice(&std::fs::read(&got).expect("it was written")).expect("JSON");
    assert_eq!(answer["fields"]["answer"], "main");
}

#[test]
fn an_agent_that_waits_for_a_person_can_be_killed_and_can_die() {
    let home = Home::new();
    live_by(&home, AGENT, "agent@1", &[]);
    let asks = format!("{PROGRAM} report awaiting_input --reason agent.awaiting_input.asked --set 'question=\"?\"'");
    home.detach(
        "killed",
        &["--kind", "agent", "--", "sh", "-c", &format!("{asks}; exec sleep 600")],
    );
    until("it asks", || {
        home.json(&["show", "killed"])["status"] == "awaiting_input"
    });
    home.done(&["kill", "killed"]);
    assert_eq!(stands(&home.over("killed")), ("cancelled", "run.cancelled.manual_kill"));
    let died = run(&home, "agent", "died", &format!("{asks}; echo 'rate limit'; exit 1"));
    assert_eq!(stands(&died), ("failed", "agent.failed.rate_limited"));
}

#[test]
fn a_ci_job_ends_in_its_own_words() {
    let home = Home::new();
    live_by(&home, CI_JOB, "ci_job@1", &[]);
    let testing = format!("{PROGRAM} report testing --reason ci.testing.built >/dev/null");
    let rows = [
        ("exit 0".to_owned(), 0, ("passed", "ci.passed.green")),
        ("exit 75".to_owned(), 75, ("flaky", "ci.flaky.repeated")),
        ("exit 124".to_owned(), 124, ("timed_out", "ci.timed_out.limit")),
        ("exit 1".to_owned(), 1, ("broken", "ci.broken.build")),
        (
            format!("{testing}; echo '9 passed; 3 failed'; exit 1"),
            1,
            ("broken", "ci.broken.tests"),
        ),
        ("kill -SEGV $$".to_owned(), 139, ("broken", "ci.broken.crashed")),
    ];
    for (place, (script, code, expected)) in rows.iter().enumerate() {
        let id = format!("job-{place}");
        home.run(&[
            "run", "--kind", "ci_job", "--id", &id, "--quiet", "--", "sh", "-c", script,
        ])
        .exits(*code);
        assert_eq!(stands(&home.json(&["show", &id])), *expected, "{script}");
    }
    assert_eq!(home.json(&["show", "job-4"])["fields"]["tests_failed"], 3);
    home.run(&[
        "run",
        "--kind",
        "ci_job",
        "--id",
        "none",
        "--quiet",
        "--",
        "/no/such/program",
    ])
    .exits(127);
    assert_eq!(
        stands(&home.json(&["show", "none"])),
        ("broken", "ci.broken.not_started")
    );
    let late = [
        "run",
        "--kind",
        "ci_job",
        "--id",
        "late",
        "--timeout",
        "100ms",
        "--quiet",
        "--",
        "sleep",
        "600",
    ];
    home.run(&late).exits(124);
    assert_eq!(
        stands(&home.json(&["show", "late"])),
        ("timed_out", "ci.timed_out.limit")
    );
    home.run(&["wait", "job-0", "job-1"]).exits(0);
    let line = home.run(&["wait", "job-4"]).exits(1).out;
    assert!(line.contains("status=broken\treason=ci.broken.tests"), "{line}");
}

#[test]
fn everything_else_works_with_a_kind_that_the_host_never_heard_of() {
    let home = Home::new();
    live_by(&home, CI_JOB, "ci_job@1", &[]);
    home.detach("job", &["--kind", "ci_job", "--name", "nightly", "--", "sleep", "600"]);
    assert_eq!(
        home.json(&["ls", "ci_job", "--health"])[0]["health"]["level"],
        "healthy"
    );
    assert_eq!(
        home.json(&["ls", "ci_jobs", "--live"])[0]["ref"],
        "ci_job/job",
        "the plural is known"
    );
    home.run(&["wait", "job", "--until", "building"]).exits(0);
    home.done(&["kill", "nightly"]);
    let killed = home.over("job");
    assert_eq!(stands(&killed), ("cancelled", "ci.cancelled.asked"));
    assert!(home.done(&["why", "job"]).contains("It was killed by"));
    home.run(&["wait", "job"]).exits(1);
    run(&home, "ci_job", "old", "exit 0");
    home.done(&["rm", "job"]);
    home.run(&["show", "job"]).exits(2);
    older(&home, 15);
    let pruned = home.done(&["prune"]);
    assert!(pruned.contains("ci_job/old"), "{pruned}");
}

#[test]
fn a_queued_ci_job_is_judged_once_by_its_own_policy_and_green_at_the_second_try_is_flaky() {
    let home = Home::new();
    live_by(&home, CI_JOB, "ci_job@1", &[]);
    let script = "[ $RUNWARDEN_ATTEMPT = 2 ] && { echo '4 passed; 0 failed'; exit 0; }; exit 1";
    let own = ["--kind", "ci_job", "--run-kind", "ci_job"];
    let row = home.submit(&own, &["sh", "-c", script]);
    home.drain(&[]);
    let resting = home.json(&["show", &row]);
    assert_eq!(
        (stands(&resting), due_after(&resting)),
        (("resting", "ci.resting.red"), 20)
    );
    // Sooner than its schedule says, by an operator's word.
    moved(&home, &row, "queued", "--reason ci.queued.again").exits(0);
    home.drain(&[]);
    let ended = home.json(&["show", &row]);
    assert_eq!(stands(&ended), ("flaky", "ci.flaky.second_try"));
    assert_eq!(ended["fields"]["tests_failed"], 0, "what its verdict set");
    home.run(&["wait", &row]).exits(0);
    let repeated = home.submit(&[&own[..], &["--attempts", "1"]].concat(), &["sh", "-c", "exit 75"]);
    home.drain(&[]);
    assert_eq!(stands(&home.json(&["show", &repeated])), ("flaky", "ci.flaky.repeated"));
}

#[test]
fn what_a_worker_would_start_has_to_be_run() {
    let home = Home::new();
    let refused = home.run(&["submit", "--run-kind", "team", "--", "true"]).exits(64);
    assert!(refused.err.contains("a team is not run"), "{}", refused.err);
    home.run(&["submit", "--run-kind", "nothing", "--", "true"]).exits(2);
}

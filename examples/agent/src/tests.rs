use runwarden_kit::check::{edge_between, problems, targets};
use runwarden_kit::{Outcome, sample};

use super::*;

/// What an exit with this code and these last words means: status, code, and the rest it wants in milliseconds.
fn judged(exit_code: i64, last_output: &str) -> (String, String, Option<i64>) {
    let mut ending = sample::ending("running", exit_code, last_output);
    let (status, code) = match exit_code {
        0 => ("completed", "run.completed.ok"),
        _ => ("failed", "run.failed.exit_nonzero"),
    };
    ending.by_table = Some(Outcome {
        status: status.to_owned(),
        code: code.to_owned(),
    });
    ending.surroundings.parameters = sample::values(&[(WAIT, "90000")]);
    let judgement = Agent::verdict(ending).expect("it is no fault");
    (judgement.status, judgement.code, judgement.retry_after)
}

fn check(exit_code: i64, last_output: &str, code: &str, retry_after: Option<i64>) {
    let (_, said, wanted) = judged(exit_code, last_output);
    assert_eq!((said.as_str(), wanted), (code, retry_after), "{last_output}");
}

#[test]
fn the_table_is_sound() {
    assert_eq!(problems(&Agent::describe()), [""; 0]);
}

#[test]
fn a_rate_limit_asks_for_another_attempt_when_it_said_or_as_usual() {
    check(
        1,
        "Error: rate limited, retry in 30s",
        "agent.failed.rate_limited",
        Some(30_000),
    );
    check(1, "Error: rate limit", "agent.failed.rate_limited", Some(90_000));
}

#[test]
fn a_full_context_is_not_tried_again() {
    check(3, "context window full", "agent.failed.context_full", None);
}

#[test]
fn what_did_its_work_may_talk_of_limits_and_what_says_nothing_is_judged_by_the_table() {
    check(0, "I explained what a rate limit is", "run.completed.ok", None);
    check(2, "panicked", "run.failed.exit_nonzero", None);
}

#[test]
fn an_end_that_the_table_does_not_know_is_a_fault() {
    let ending = sample::ending("running", 2, "panicked");
    assert_eq!(
        Agent::verdict(ending).map_err(|fault| fault.code),
        Err("no_verdict".to_owned())
    );
}

#[test]
fn a_question_needs_words_and_an_answer_somebody_else() {
    let table = Agent::describe();
    let asks = edge_between(&table, "running", "awaiting_input").expect("it may ask");
    let answered = edge_between(&table, "awaiting_input", "running").expect("it is answered");
    assert_eq!((asks.required_patch[0].as_str(), asks.actors.len()), ("question", 0));
    assert_eq!(answered.required_patch, ["answer"]);
    assert!(!answered.actors.contains(&"agent".to_owned()));
    let ways_out: Vec<&str> = ["running"].iter().chain(running::ENDS).copied().collect();
    assert_eq!(targets(&table, "awaiting_input"), ways_out);
}

#[test]
fn who_waits_for_a_person_is_quiet_and_healthy() {
    let level = |status: &str, process: &str| {
        let seen = sample::observation(status, process, 10 * 86_400_000);
        Agent::assess(seen).expect("it is no fault").level
    };
    assert_eq!(level("awaiting_input", "alive"), "healthy");
    assert_eq!(level("awaiting_input", "gone"), "stale");
    assert_ne!(level("running", "alive"), "healthy");
}

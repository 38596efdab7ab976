//! CI jobs in their own words: a kind of run that nothing else knows of, and that everything else works with.
//!
//! No word of it is shared with the policies that ship. What an exit means is a table; whether a red job did not build or
//! did not pass its tests, and whether a green one was green at once, is for a function to say.

use runwarden_kit::table::{
    always, code, codes, edge, edges, exit_codes, field, kill, on_exit, on_signal, outcome, policy, retry, status,
    threshold,
};
use runwarden_kit::{
    Descriptor, Ending, Execution, ExecutionRule, Fault, Judgement, LeaseRule, Policy, ReasonCode, Status, VerdictRow,
};

/// The policy of the kind `ci_job`.
#[derive(Debug)]
pub struct CiJob;

/// Where a job ends by itself.
const ENDS: &[&str] = &["passed", "flaky", "broken", "timed_out", "cancelled"];
/// Where a kill ends it.
const OPEN: &[&str] = &["queued", "building", "testing", "resting", "silent"];

/// What a job exits with when its tests passed, but not all of them at once.
const FLAKY: i64 = 75;
/// What `timeout` exits with.
const TIMED_OUT: i64 = 124;

const MINUTE_MS: i64 = 60_000;
const ATTEMPTS: i64 = 2;
/// How much of the end of its output is read for the line that counts the tests.
const LAST_OUTPUT_BYTES: i64 = 4 << 10;

impl Policy for CiJob {
    fn describe() -> Descriptor {
        policy("ci_job", "1.0.0", "A CI job of one commit.")
            .statuses(vocabulary())
            .edges(edges("building", ENDS))
            .edges(edges("testing", ENDS))
            .edges([edge("building", "testing")])
            // Queued work: taken, tried again, doubted, given up.
            .edges(edges("queued", &["building", "broken", "cancelled"]))
            .edges(edges("building", &["resting", "silent"]))
            .edges(edges("resting", &["queued", "cancelled"]))
            .edges(edges("silent", &["building", "replaced", "broken", "cancelled"]))
            .fields([
                field("commit", "text", "What is built."),
                field("tests_failed", "integer", "How many of its tests failed."),
                field("ended_at", "timestamp", "When it ended."),
                field("exit_code", "integer", "The code it exited with; null after a signal."),
                field("term_signal", "integer", "The signal it died by; null after an exit."),
                field("cause", "text", "How it ended, observed and never guessed."),
                field("duration_ms", "integer", "From start to end, in milliseconds."),
            ])
            .codes(reasons())
            .emitting_events()
            .measuring_ends()
            .execution(execution())
            .verdicts(verdicts())
            .kill(
                kill(
                    OPEN,
                    "cancelled",
                    "ci.cancelled.asked",
                    "ci.cancelled.forced",
                    "ci.cancelled.gone",
                )
                .always_cascading(),
            )
            .lease(lease())
            .retry(retry(10_000, 10 * MINUTE_MS, ATTEMPTS))
            .health([threshold("", 5 * MINUTE_MS, 60 * MINUTE_MS)])
            .reading_last_output(LAST_OUTPUT_BYTES)
    }
}

fn vocabulary() -> Vec<Status> {
    vec![
        status("queued", "Waits for a worker.").initial("ci.queued.pushed"),
        status("building", "Is compiled.").initial("ci.building.started"),
        status("testing", "Its tests run."),
        status("resting", "Was red, and gets another try."),
        status("silent", "Its worker is not heard of."),
        status("passed", "Green.").success(),
        status("flaky", "Green, though not at once.").success(),
        status("broken", "Red.").terminal(),
        status("timed_out", "Took too long.").terminal(),
        status("replaced", "Its worker is lost; another job took its place.").terminal(),
        status("cancelled", "Was stopped.").terminal(),
    ]
}

fn reasons() -> Vec<ReasonCode> {
    let rows = codes(&[
        ("ci.queued.pushed", "A commit was pushed."),
        ("ci.queued.again", "Gets another try."),
        ("ci.building.started", "Was started."),
        ("ci.building.heard_of", "Its worker is back."),
        ("ci.testing.built", "It compiles."),
        ("ci.resting.red", "Was red, and gets another try."),
        ("ci.resting.handed_back", "Its worker gave it back unharmed."),
        ("ci.silent.worker", "Its worker is not heard of."),
        ("ci.passed.green", "Everything passed."),
        ("ci.flaky.repeated", "Tests passed only when they were repeated."),
        ("ci.flaky.second_try", "Passed, though not at the first try."),
        ("ci.broken.build", "Does not compile."),
        ("ci.broken.tests", "Tests failed."),
        ("ci.broken.no_artifact", "Left out a file that was expected of it."),
        ("ci.broken.not_started", "Could not be started."),
        ("ci.broken.crashed", "Died by a signal."),
        ("ci.broken.unseen", "Ended, and nobody saw how."),
        ("ci.broken.verdict", "Its policy could not judge its end."),
        ("ci.broken.workers_lost", "Its workers were lost, and no try is left."),
        ("ci.timed_out.limit", "Took longer than it may."),
        ("ci.replaced.worker_lost", "Its worker is lost."),
        ("ci.cancelled.asked", "Was stopped, and ended by itself."),
        ("ci.cancelled.forced", "Was stopped by force."),
        ("ci.cancelled.gone", "Its processes were gone."),
        ("ci.cancelled.outside", "What it was to live with went away."),
    ]);
    // What an operator writes by hand.
    rows.into_iter()
        .chain([code("ci.cancelled.superseded", "A newer commit was pushed.")])
        .collect()
}

fn execution() -> ExecutionRule {
    let (broken, outside) = (
        |why| outcome("broken", why),
        outcome("cancelled", "ci.cancelled.outside"),
    );
    ExecutionRule {
        start: outcome("building", "ci.building.started"),
        spawn_failed: broken("ci.broken.not_started"),
        directory_missing: broken("ci.broken.not_started"),
        identity_lost: broken("ci.broken.unseen"),
        timed_out: outcome("timed_out", "ci.timed_out.limit"),
        hung_up: outside.clone(),
        interrupted: outside.clone(),
        terminated: outside.clone(),
        parent_gone: outside,
        host_restarted: broken("ci.broken.unseen"),
        ended_unobserved: broken("ci.broken.unseen"),
        verdict_failed: broken("ci.broken.verdict"),
        ext: Vec::new(),
    }
}

fn verdicts() -> Vec<VerdictRow> {
    vec![
        on_exit(0, outcome("broken", "ci.broken.no_artifact")).evidence("artifact_missing"),
        on_exit(0, outcome("passed", "ci.passed.green")),
        on_exit(FLAKY, outcome("flaky", "ci.flaky.repeated")),
        on_exit(TIMED_OUT, outcome("timed_out", "ci.timed_out.limit")),
        exit_codes(126, 127, outcome("broken", "ci.broken.not_started")),
        exit_codes(i32::MIN.into(), i32::MAX.into(), outcome("broken", "ci.broken.build")),
        on_signal(&[], outcome("broken", "ci.broken.crashed")),
        always(outcome("broken", "ci.broken.unseen")),
    ]
}

fn lease() -> LeaseRule {
    LeaseRule {
        queued: "queued".to_owned(),
        claimed: outcome("building", "ci.building.started"),
        active: vec!["building".to_owned(), "silent".to_owned()],
        lease: 5 * MINUTE_MS,
        grace: 20_000,
        heartbeat_limit: 90_000,
        attempts: ATTEMPTS,
        lapsed: outcome("silent", "ci.silent.worker"),
        recovered: Some(outcome("building", "ci.building.heard_of")),
        fenced: Some(outcome("replaced", "ci.replaced.worker_lost")),
        exhausted: outcome("broken", "ci.broken.workers_lost"),
        backed_off: Some(outcome("resting", "ci.resting.red")),
        retry_due: Some(outcome("queued", "ci.queued.again")),
        handed_back: Some(outcome("resting", "ci.resting.handed_back")),
        dependency_waiting: None,
        dependency_met: None,
        dependency_failed: None,
        ext: Vec::new(),
    }
}

impl Execution for CiJob {
    fn verdict(ending: Ending) -> Result<Judgement, Fault> {
        let by_table = ending.by_table.clone();
        let by_table = by_table.ok_or_else(|| Fault::new("no_verdict", "the table has no row for this end"))?;
        let judgement = match by_table.status.as_str() {
            "passed" if ending.attempt > 1 => {
                Judgement::new("flaky", "ci.flaky.second_try").summary(&format!("passed at try {}", ending.attempt))
            }
            // It got as far as its tests: the same exit says something else.
            "broken" if by_table.code == "ci.broken.build" && ending.entity.status == "testing" => {
                Judgement::new("broken", "ci.broken.tests")
            }
            _ => Judgement::from(by_table),
        };
        Ok(match tests_failed(&String::from_utf8_lossy(&ending.last_output)) {
            Some(failed) => judgement.patch("tests_failed", &failed.to_string()),
            None => judgement,
        })
    }
}

/// The number before the word `failed` in the last line that has both, as most test runners end.
fn tests_failed(output: &str) -> Option<u32> {
    output.lines().rev().find_map(|line| {
        let mut words = line
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty());
        let mut before = words.next()?;
        for word in words {
            if word == "failed"
                && let Ok(number) = before.parse()
            {
                return Some(number);
            }
            before = word;
        }
        None
    })
}

runwarden_kit::export!(CiJob: policy, execution);

#[cfg(test)]
mod tests;

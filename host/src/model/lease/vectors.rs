//! The reference system's reaper, heartbeats and executions of leased work, under the first generation's policy:
//! `tests/vectors/lease.json` says what came of each case. Exceptions name the section of the semantics they rely on.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use super::tests::{claimed, end, lifecycle, submitted, terms, wall, written};
use super::*;
use crate::model::{Ended, Ending};

const VECTORS: &str = include_str!("../../../../tests/vectors/lease.json");

/// How this host differs from the reference on purpose.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Exception {
    /// Section 10.10: leased work writes its end, exit code and reason like any other; the reference leaves them null.
    EndIsWritten,
    /// Section 2: the words for actors are this host's own; a worker writes as an executor.
    ActorWords,
}

fn exception(field: &str) -> Option<Exception> {
    Some(match field {
        "exit_code" | "ended_at" | "status_reason_code" => Exception::EndIsWritten,
        "source" | "actor" | "reason_summary" => Exception::ActorWords,
        _ => return None,
    })
}

/// What a case says of the row afterwards.
fn check_row(name: &str, wanted: &Value, after: &Entity) {
    for (field, wanted) in wanted.as_object().unwrap() {
        let found = match field.as_str() {
            "status" => json!(after.status),
            "lease_expires_at" => json!(after.structural.lease_expires_at.map(|at| at.as_ms())),
            "status_reason_code" => json!(after.reason.code),
            other => after.field(other),
        };
        match exception(field) {
            Some(exception) => {
                assert_eq!(
                    (exception, wanted),
                    (Exception::EndIsWritten, &Value::Null),
                    "{name}: {field}"
                );
            }
            None if field == "lease_expires_at" => {
                assert_eq!(found, json!(moment(wanted).map(|at| at.as_ms())), "{name}: {field}");
            }
            None => assert_eq!(found, *wanted, "{name}: {field}"),
        }
    }
}

/// What a case says of one row of history.
fn check_history(name: &str, told: &Value, (before, command, after): (&Entity, &Transition, &Entity)) {
    for (field, told) in told.as_object().unwrap() {
        let found = match field.as_str() {
            "previous_status" => &before.status,
            "status" => &after.status,
            "reason_code" => &command.reason.code,
            other => {
                assert_eq!(exception(other), Some(Exception::ActorWords), "{name}: {field}");
                continue;
            }
        };
        assert_eq!(told, found, "{name}: {field}");
    }
}

fn vectors() -> Value {
    serde_json::from_str(VECTORS).unwrap()
}

fn cases(vectors: &Value, name: &str) -> Vec<Value> {
    vectors[name].as_array().unwrap().clone()
}

fn moment(seconds: &Value) -> Option<Timestamp> {
    #[expect(clippy::cast_possible_truncation, reason = "the vectors hold whole milliseconds")]
    seconds.as_f64().map(|s| Timestamp::from_ms((s * 1_000.0) as i64))
}

fn constant(name: &str) -> Value {
    vectors()["_meta"]["constants"][name].clone()
}

#[test]
fn the_rule_has_the_constants_of_the_reference() {
    let lifecycle = lifecycle("1.0.0");
    let rule = rule(&lifecycle).unwrap();
    assert_eq!(moment(&constant("lease_ttl_s")).unwrap().as_ms(), rule.lease.as_ms());
    assert_eq!(
        moment(&constant("heartbeat_ttl_s")).unwrap().as_ms(),
        rule.heartbeat_limit.as_ms()
    );
    assert_eq!(constant("max_lease_attempts"), rule.attempts);
}

#[test]
fn the_reaper_does_what_the_reference_does() {
    let lifecycle = lifecycle("1.0.0");
    let cases = cases(&vectors(), "reaper");
    assert_eq!(cases.len(), 8);
    for case in &cases {
        let name = format!("{} after {}", case["case"], case["lease_attempts"]);
        let mut row = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
        row.structural.lease_attempts = case["lease_attempts"].as_i64();
        row.structural.lease_expires_at = moment(&case["lease_expires_at"]);
        let now = Now {
            steady: moment(&case["now"]).unwrap(),
            wall: wall(0),
        };
        let told = case["history"].as_array().unwrap();
        let due = due(&lifecycle, &row, (&terms(3), None), &Awaited::Nothing, now);
        let after = match &due {
            Due::Write(write) => {
                let after = written(&lifecycle, &row, write);
                assert_eq!(told.len(), 1, "{name}");
                check_history(&name, &told[0], (&row, write, &after));
                after
            }
            Due::Nothing => {
                assert!(told.is_empty(), "{name}");
                row
            }
            Due::Judge => panic!("{name}: the first generation judges nothing"),
        };
        check_row(&name, &case["row"], &after);
        for (count, status) in [("requeued", "queued"), ("failed", "failed")] {
            assert_eq!(case["counts"][count] == 1, after.status == status, "{name}: {count}");
        }
    }
}

#[test]
fn a_heartbeat_is_stale_when_it_is_in_the_reference() {
    let lifecycle = lifecycle("1.0.0");
    let rule = rule(&lifecycle).unwrap();
    let cases = cases(&vectors(), "heartbeat");
    assert_eq!(cases.len(), 5);
    for case in &cases {
        let age = moment(&case["heartbeat_age_s"]).map(|at| DurationMs::from_ms(at.as_ms()));
        assert_eq!(may_claim(rule, age), case["stale"] == false, "{case}");
    }
}

/// How the program of a case ended, in this host's terms.
fn ending(case: &str) -> Ended {
    match case {
        "exit 0" => Ended::Exited(0),
        "exit 7 with detail" | "exit 7 no detail" => Ended::Exited(7),
        // An executor that breaks down is a run that ends with another code than 0.
        "executor raises" => Ended::Exited(1),
        other => panic!("{other} is not known"),
    }
}

#[test]
fn an_execution_goes_through_the_statuses_of_the_reference() {
    let lifecycle = lifecycle("1.0.0");
    let cases = cases(&vectors(), "execution");
    assert_eq!(cases.len(), 4);
    for case in &cases {
        let name = case["case"].as_str().unwrap();
        let told = case["history"].as_array().unwrap();
        let row = submitted(&lifecycle, None);
        let claim = claim(&lifecycle, &row, &terms(3), "w", wall(0)).unwrap();
        let taken = written(&lifecycle, &row, &claim);
        let attempt = end(&lifecycle, Ending::Natural, ending(name));
        let over = ended(&lifecycle, &taken, (&terms(3), taken.fence), &attempt, (wall(0), 0)).unwrap();
        let after = written(&lifecycle, &taken, &over);
        let steps = [(&row, &claim, &taken), (&taken, &over, &after)];
        assert_eq!(told.len(), steps.len(), "{name}");
        for (told, step) in told.iter().zip(steps) {
            check_history(name, told, step);
        }
        check_row(name, &case["row"], &after);
        assert!(
            after.structural.exit_code.is_some() && after.structural.ended_at.is_some(),
            "{name}"
        );
    }
}

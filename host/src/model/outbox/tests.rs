//! The reference system's outbox, step by step, and the rules that it lacks. `tests/vectors/dispatch.json` says what came
//! of each scenario; exceptions name the section of the semantics they rely on.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use super::*;
use crate::model::{Create, Decision, Destination, PolicyPin, Transport, create, decide};

const VECTORS: &str = include_str!("../../../../tests/vectors/dispatch.json");
const BACKOFF: &str = include_str!("../../../../tests/vectors/backoff.json");

fn lifecycle(attempts: i64) -> Lifecycle {
    let bundled = runwarden_bundled::POLICIES
        .iter()
        .find(|bundled| bundled.kind == "dispatch");
    let mut descriptor: crate::model::Descriptor = serde_json::from_str(bundled.unwrap().descriptor).unwrap();
    descriptor.retry.as_mut().unwrap().attempts = attempts;
    Lifecycle::new(descriptor)
}

/// A dispatch as it is enqueued at `now`.
fn enqueued(lifecycle: &Lifecycle, now: Timestamp) -> Entity {
    let pin = PolicyPin {
        name: "dispatch".to_owned(),
        version: "1.0.0".to_owned(),
        digest: "d".to_owned(),
        parameters: Fields::new(),
    };
    let mut command = Create::new("dispatch", "d1", Actor::system("plan"));
    command.fields = patch(&[("attempt", json!(0)), ("next_attempt_at", json!(now.as_ms()))]);
    create(lifecycle, &pin, &command, "store", now).unwrap().entity
}

fn dispatch() -> Dispatch {
    Dispatch {
        event_id: None,
        handler: Some("ops".to_owned()),
        destination: "hook".to_owned(),
        target: Destination {
            transport: Transport::File { path: "/f".to_owned() },
            timeout_ms: DurationMs::from_ms(10_000),
        },
        target_digest: "t".to_owned(),
        body: b"{}".to_vec(),
        dedup_key: "k".to_owned(),
        deadline: None,
        wants_acknowledgement: false,
    }
}

/// Applies a command as the write path would, the commit excepted.
fn applied(lifecycle: &Lifecycle, entity: &Entity, command: &Transition, now: Timestamp) -> Entity {
    match decide(lifecycle, entity, command, "store", now) {
        Decision::Apply(change) => change.after,
        other => panic!("{command:?} came to {other:?}"),
    }
}

fn claimed(lifecycle: &Lifecycle, entity: &Entity, dispatch: &Dispatch, now: Timestamp) -> Entity {
    match due(lifecycle, entity, dispatch, now) {
        Due::Claim(claim) => applied(lifecycle, entity, &claim, now),
        other => panic!("{other:?} is due for {}", entity.status),
    }
}

fn seconds(value: &Value) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "the vectors hold whole milliseconds")]
    let ms = (value.as_f64().unwrap() * 1_000.0) as i64;
    ms
}

/// What the transport of a scenario did; none where the reference's configuration has no counterpart here.
fn transport(scenario: &str, step: &Value) -> Option<Sent> {
    let error = step["last_error"].as_str().unwrap_or_default().to_owned();
    if scenario.contains("no template configured") || scenario.contains("template without") {
        // Where a destination leads is checked when it is configured (SEMANTICS 10.12); argv needs no word for it.
        return None;
    }
    let failed = Sent::Failed {
        error,
        retry_after: None,
    };
    let succeeds = scenario.contains("succeeds") || scenario.contains("transport ok") || scenario.contains("expires");
    Some(if succeeds {
        Sent::Delivered("exit 0".to_owned())
    } else {
        failed
    })
}

#[test]
fn every_scenario_of_the_reference_ends_as_it_did_there() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let mut run = 0;
    for scenario in vectors["scenarios"].as_array().unwrap() {
        let name = scenario["scenario"].as_str().unwrap();
        let args = &scenario["args"];
        let lifecycle = lifecycle(args["max_attempts"].as_i64().unwrap_or(8));
        let steps = scenario["steps"].as_array().unwrap();
        let start = Timestamp::from_ms(seconds(&steps[0]["now"]));
        let mut dispatch = dispatch();
        dispatch.wants_acknowledgement = args["ack_required"] == true;
        dispatch.deadline = (!args["expires_at"].is_null()).then(|| Timestamp::from_ms(seconds(&args["expires_at"])));
        let mut entity = enqueued(&lifecycle, start);
        for step in steps {
            let Some(sent) = transport(name, step) else { continue };
            run += 1;
            let now = Timestamp::from_ms(seconds(&step["now"]));
            entity = match due(&lifecycle, &entity, &dispatch, now) {
                Due::Claim(claim) => {
                    let entity = applied(&lifecycle, &entity, &claim, now);
                    let settled = settled(&lifecycle, &entity, &dispatch, &sent, (now, 0)).unwrap();
                    applied(&lifecycle, &entity, &settled, now)
                }
                Due::Close(close) => applied(&lifecycle, &entity, &close, now),
                Due::Nothing => panic!("{name}: nothing is due at {now:?}"),
            };
            assert_eq!(entity.status, step["status"], "{name}");
            assert_eq!(entity.field("attempt"), step["attempt"], "{name}");
            assert_eq!(entity.field("last_error"), step["last_error"], "{name}");
            if entity.status == "pending" {
                let wait = entity.due_at().unwrap().since(now).as_ms();
                assert_eq!(wait, seconds(&step["next_attempt_in"]), "{name}");
            }
        }
    }
    assert_eq!(run, 19, "the vectors were read");
}

#[test]
fn the_waits_are_those_of_the_reference_without_their_jitter() {
    let vectors: Value = serde_json::from_str(BACKOFF).unwrap();
    let lifecycle = lifecycle(8);
    let schedule = schedule(&lifecycle);
    let rows = vectors["vectors"].as_array().unwrap();
    assert!(rows.len() > 10, "the vectors were read");
    for row in rows {
        let made = row["attempt"].as_i64().unwrap();
        assert_eq!(delay(schedule, made, 0).as_ms(), seconds(&row["seconds"]), "{row}");
    }
    let most = delay(schedule, 1, 6_000).as_ms();
    assert_eq!(most, 66_000, "a tenth is the most that is added");
    assert!((0..100_000).all(|entropy| (60_000..=66_000).contains(&delay(schedule, 1, entropy * 7_919).as_ms())));
    assert_eq!(
        delay(schedule, i64::MAX, u64::MAX).as_ms() / 1_800_000,
        1,
        "never without a bound"
    );
}

/// What failed at the same moment is not tried again at the same moment: no second has twice its share.
#[test]
fn notices_that_fail_together_come_back_spread_over_the_jitter() {
    const NOTICES: u64 = 10_000;
    let lifecycle = lifecycle(8);
    let schedule = schedule(&lifecycle);
    let mut seconds = [0_u64; 6];
    for number in 0..NOTICES {
        // Stands for random bytes: odd, so that it visits every residue.
        let entropy = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let added = delay(schedule, 1, entropy).as_ms() - 60_000;
        seconds[usize::try_from(added / 1_000).unwrap().min(5)] += 1;
    }
    let mean = NOTICES / 6;
    assert!(seconds.iter().all(|count| *count <= 2 * mean), "{seconds:?}");
}

#[test]
fn a_retry_after_is_honoured_within_the_cap_and_never_shortens_the_wait() {
    let lifecycle = lifecycle(8);
    let now = Timestamp::from_ms(1_000_000);
    let dispatch = dispatch();
    for (asked, wait) in [(1, 60), (600, 600), (86_400, 1_800)] {
        let entity = claimed(&lifecycle, &enqueued(&lifecycle, now), &dispatch, now);
        let sent = Sent::Failed {
            error: "HTTP 429".to_owned(),
            retry_after: Some(DurationMs::from_ms(asked * 1_000)),
        };
        let settled = settled(&lifecycle, &entity, &dispatch, &sent, (now, 0)).unwrap();
        let entity = applied(&lifecycle, &entity, &settled, now);
        assert_eq!(
            entity.due_at().unwrap().since(now).as_ms(),
            wait * 1_000,
            "asked for {asked} s"
        );
    }
}

/// Row 16.
#[test]
fn a_claim_is_longer_than_its_transport_may_take() {
    let lifecycle = lifecycle(8);
    let now = Timestamp::from_ms(1_000_000);
    for timeout in [1, 10_000, 300_000] {
        let mut dispatch = dispatch();
        dispatch.target.timeout_ms = DurationMs::from_ms(timeout);
        let entity = claimed(&lifecycle, &enqueued(&lifecycle, now), &dispatch, now);
        assert_eq!(entity.due_at().unwrap().since(now).as_ms(), timeout + 5_000);
        let early = now.plus(DurationMs::from_ms(timeout + 4_999));
        assert_eq!(
            due(&lifecycle, &entity, &dispatch, early),
            Due::Nothing,
            "its holder may still be sending"
        );
        let late = now.plus(DurationMs::from_ms(timeout + 5_000));
        assert!(
            matches!(due(&lifecycle, &entity, &dispatch, late), Due::Claim(_)),
            "a crash left it"
        );
    }
}

#[test]
fn a_claim_that_lapsed_counts_and_the_last_one_is_given_up_with_its_outcome_unknown() {
    let lifecycle = lifecycle(2);
    let dispatch = dispatch();
    let mut now = Timestamp::from_ms(1_000_000);
    let mut entity = enqueued(&lifecycle, now);
    for attempt in 1..=2 {
        entity = claimed(&lifecycle, &entity, &dispatch, now);
        assert_eq!(entity.field("attempt"), attempt);
        now = now.plus(DurationMs::from_ms(15_000));
    }
    let Due::Close(close) = due(&lifecycle, &entity, &dispatch, now) else {
        panic!("another attempt")
    };
    let entity = applied(&lifecycle, &entity, &close, now);
    assert_eq!(
        (entity.status.as_str(), entity.reason.code.as_str()),
        ("dead_letter", "dispatch.dead_letter.max_attempts")
    );
    assert_eq!(entity.field("last_error"), "outcome of the last attempt unknown");
}

#[test]
fn who_was_slower_to_claim_or_was_taken_over_writes_nothing() {
    let lifecycle = lifecycle(8);
    let dispatch = dispatch();
    let now = Timestamp::from_ms(1_000_000);
    let entity = enqueued(&lifecycle, now);
    let Due::Claim(claim) = due(&lifecycle, &entity, &dispatch, now) else {
        panic!("it is due")
    };
    let first = applied(&lifecycle, &entity, &claim, now);
    let again = decide(&lifecycle, &first, &claim, "store", now);
    assert!(matches!(again, Decision::Conflict(_)), "{again:?}");
    let later = now.plus(DurationMs::from_ms(15_000));
    let second = claimed(&lifecycle, &first, &dispatch, later);
    let sent = Sent::Delivered("exit 0".to_owned());
    let late = settled(&lifecycle, &first, &dispatch, &sent, (later, 0)).unwrap();
    let lost = decide(&lifecycle, &second, &late, "store", later);
    assert!(matches!(lost, Decision::Conflict(_)), "{lost:?}");
}

#[test]
fn a_refusal_is_final_and_an_unread_secret_costs_no_attempt() {
    let lifecycle = lifecycle(8);
    let dispatch = dispatch();
    let now = Timestamp::from_ms(1_000_000);
    let entity = claimed(&lifecycle, &enqueued(&lifecycle, now), &dispatch, now);
    let refused = settled(
        &lifecycle,
        &entity,
        &dispatch,
        &Sent::Refused("410".to_owned()),
        (now, 0),
    )
    .unwrap();
    assert_eq!(
        applied(&lifecycle, &entity, &refused, now).reason.code,
        "dispatch.dead_letter.refused"
    );
    let unread = Sent::Unreadable("$HOOK_SECRET is not set".to_owned());
    let unread = settled(&lifecycle, &entity, &dispatch, &unread, (now, 0)).unwrap();
    let entity = applied(&lifecycle, &entity, &unread, now);
    assert_eq!((entity.status.as_str(), entity.field("attempt")), ("pending", json!(0)));
    assert_eq!(entity.field("last_error"), "$HOOK_SECRET is not set");
}

#[test]
fn what_cannot_be_attempted_stays_as_it_is_and_is_looked_at_again_ever_later() {
    let lifecycle = lifecycle(8);
    let start = Timestamp::from_ms(1_000_000);
    let mut entity = enqueued(&lifecycle, start);
    let mut now = start;
    let mut looks = 0;
    while now.since(start).as_ms() < 86_400_000 {
        let postponed = postponed(&lifecycle, &entity, "$S is not set", now).unwrap();
        entity = applied(&lifecycle, &entity, &postponed, now);
        assert_eq!((entity.status.as_str(), entity.field("attempt")), ("pending", json!(0)));
        now = entity.due_at().unwrap();
        looks += 1;
    }
    assert!(looks < 60, "{looks} rows in a day");
}

#[test]
fn an_operators_retry_is_attempted_whatever_its_deadline_and_counts_from_zero() {
    let lifecycle = lifecycle(8);
    let now = Timestamp::from_ms(1_000_000);
    let mut dispatch = dispatch();
    dispatch.deadline = Some(now);
    let entity = enqueued(&lifecycle, now);
    let Due::Close(close) = due(&lifecycle, &entity, &dispatch, now) else {
        panic!("its deadline passed")
    };
    let expired = applied(&lifecycle, &entity, &close, now);
    let by_system = revived(&lifecycle, &expired, Actor::system("deliver"), now).unwrap();
    let refused = decide(&lifecycle, &expired, &by_system, "store", now);
    assert!(matches!(refused, Decision::Rejected(_)), "{refused:?}");
    let operator = Actor::new("operator", "ada");
    let revived = revived(&lifecycle, &expired, operator, now).unwrap();
    let entity = applied(&lifecycle, &expired, &revived, now);
    assert_eq!((entity.status.as_str(), entity.field("attempt")), ("pending", json!(0)));
    assert!(matches!(due(&lifecycle, &entity, &dispatch, now), Due::Claim(_)));
}

#[test]
fn an_acknowledgement_is_taken_while_it_waits_or_is_sent_and_at_no_other_time() {
    let lifecycle = lifecycle(8);
    let now = Timestamp::from_ms(1_000_000);
    for status in ["pending", "delivering", "delivered", "acked", "dead_letter", "expired"] {
        let mut entity = enqueued(&lifecycle, now);
        entity.enter(&lifecycle, status);
        let command = acknowledged(&lifecycle, &entity, Actor::new("webhook", "receiver")).unwrap();
        let decision = decide(&lifecycle, &entity, &command, "store", now);
        let takes = matches!(status, "pending" | "delivering" | "acked");
        assert_eq!(matches!(decision, Decision::Apply(_)), takes, "{status}: {decision:?}");
    }
}

#[test]
fn a_destination_that_keeps_failing_is_paused_ever_longer_and_one_success_ends_it() {
    let dispatch = dispatch();
    let now = Timestamp::from_ms(1_000_000);
    let failed = Sent::Failed {
        error: "refused".to_owned(),
        retry_after: None,
    };
    let mut health = None;
    let mut pauses = Vec::new();
    for _ in 0..12 {
        health = destination_after(health.as_ref(), &dispatch, &failed, now);
        let pause = health.as_ref().unwrap().paused_until;
        pauses.push(pause.map_or(0, |until| until.since(now).as_ms() / 1_000));
    }
    assert_eq!(pauses, [0, 0, 0, 0, 30, 60, 120, 240, 480, 960, 1_800, 1_800]);
    let refused = destination_after(health.as_ref(), &dispatch, &Sent::Refused("410".to_owned()), now);
    assert_eq!(refused, None, "one body refused says nothing of the destination");
    let well = destination_after(health.as_ref(), &dispatch, &Sent::Delivered("exit 0".to_owned()), now).unwrap();
    assert_eq!((well.failures, well.paused_until), (0, None));
}

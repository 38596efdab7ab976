//! The lease rules of both bundled policies, each answer written through `decide` to the row it was made for.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use super::ending::WISH_MOST;
use super::*;
use crate::model::{
    Change, Create, Decision, Descriptor, Ended, Ending, Evidence, PolicyPin, Queueing, create, decide, judge,
};

/// Both generations: one puts back into the queue, one doubts.
pub(super) const VERSIONS: [&str; 2] = ["1.0.0", "2.0.0"];

/// Leases last that long in these tests.
const LEASE: i64 = 1_000;
const GRACE: i64 = 300;
/// Steady and wall time are far apart, so that one taken for the other shows.
const STEADY: i64 = 1_000_000;
const WALL: i64 = 900_000_000;

pub(super) fn lifecycle(version: &str) -> Lifecycle {
    let is_asked = |policy: &&runwarden_bundled::Bundled| policy.kind == "schedule_run" && policy.version == version;
    let bundled = runwarden_bundled::POLICIES.iter().find(is_asked).unwrap();
    let descriptor: Descriptor = serde_json::from_str(bundled.descriptor).unwrap();
    Lifecycle::new(descriptor)
}

pub(super) fn steady(after: i64) -> Timestamp {
    Timestamp::from_ms(STEADY + after)
}

pub(super) fn wall(after: i64) -> Timestamp {
    Timestamp::from_ms(WALL + after)
}

/// Both clocks, as long after the beginning.
fn now(after: i64) -> Now {
    Now {
        steady: steady(after),
        wall: wall(after),
    }
}

pub(super) fn terms(attempts: i64) -> Terms {
    Terms {
        lease: DurationMs::from_ms(LEASE),
        grace: DurationMs::from_ms(GRACE),
        attempts,
    }
}

/// A row that was just submitted.
pub(super) fn submitted(lifecycle: &Lifecycle, due_at: Option<Timestamp>) -> Entity {
    let mut command = Create::new("schedule_run", "one", Actor::new("operator", "ada"));
    command.queueing = Some(queueing(due_at));
    made(lifecycle, &command)
}

pub(super) fn queueing(due_at: Option<Timestamp>) -> Queueing {
    Queueing {
        queue: "default".to_owned(),
        priority: 0,
        due_at,
        unique_key: None,
        asked: Value::Null,
    }
}

pub(super) fn made(lifecycle: &Lifecycle, command: &Create) -> Entity {
    let pin = PolicyPin {
        name: "schedule_run".to_owned(),
        version: lifecycle.descriptor().version.clone(),
        digest: "d".to_owned(),
        parameters: Fields::new(),
    };
    create(lifecycle, &pin, command, "store", wall(0)).unwrap().entity
}

pub(super) fn decided(lifecycle: &Lifecycle, row: &Entity, command: &Transition) -> Decision {
    decide(lifecycle, row, command, "store", wall(0))
}

fn change(lifecycle: &Lifecycle, row: &Entity, command: &Transition) -> Change {
    match decided(lifecycle, row, command) {
        Decision::Apply(change) => *change,
        other => panic!("{command:?} came to {other:?}"),
    }
}

/// The row after a command that must be written.
pub(super) fn written(lifecycle: &Lifecycle, row: &Entity, command: &Transition) -> Entity {
    change(lifecycle, row, command).after
}

pub(super) fn claimed(lifecycle: &Lifecycle, row: &Entity, holder: &str) -> Entity {
    let claim = claim(lifecycle, row, &terms(3), holder, steady(0)).unwrap();
    written(lifecycle, row, &claim)
}

/// What is due for a row that waits for nothing else.
fn due_then(lifecycle: &Lifecycle, row: &Entity, attempts: i64, after: i64) -> Due {
    due(lifecycle, row, (&terms(attempts), None), &Awaited::Nothing, now(after))
}

/// The row after what is due then.
fn after_due(lifecycle: &Lifecycle, row: &Entity, after: i64) -> Entity {
    match due_then(lifecycle, row, 3, after) {
        Due::Write(write) => written(lifecycle, row, &write),
        other => panic!("{other:?} is due for a {} row", row.status),
    }
}

/// A row under 2.x whose lease ran out and was doubted at the first moment at which it can be.
fn doubted(lifecycle: &Lifecycle) -> Entity {
    let active = claimed(lifecycle, &submitted(lifecycle, None), "w1");
    after_due(lifecycle, &active, LEASE + 1)
}

/// How an attempt ended, judged by the row's own policy.
pub(super) fn end(lifecycle: &Lifecycle, ending: Ending, ended: Ended) -> AttemptEnd {
    let outcome = judge(lifecycle, "running", ending, ended, Evidence::NotWanted).unwrap();
    let mut patch = Fields::new();
    if let Ended::Exited(code) = ended {
        patch.insert("exit_code".to_owned(), json!(code));
    }
    patch.insert("ended_at".to_owned(), json!(WALL));
    AttemptEnd {
        reason: Reason::code(&outcome.code).summary("it ended"),
        outcome,
        patch,
        cause: ending.cause(ended),
        retry_after: None,
    }
}

fn exit(lifecycle: &Lifecycle, code: i64) -> AttemptEnd {
    end(lifecycle, Ending::Natural, Ended::Exited(code))
}

fn ended_at_once(lifecycle: &Lifecycle, row: &Entity, attempts: i64, end: &AttemptEnd) -> Option<Transition> {
    ended(lifecycle, row, (&terms(attempts), row.fence), end, (wall(0), 0))
}

fn stage_of(row: &Entity) -> Option<Stage> {
    row.queued.as_ref().unwrap().stage
}

fn conflict_code(decision: &Decision) -> &str {
    match decision {
        Decision::Conflict(conflict) => conflict.code,
        other => panic!("no conflict: {other:?}"),
    }
}

#[test]
fn terms_are_the_rules_unless_others_were_asked_for_and_no_lease_is_too_short() {
    let lifecycle = lifecycle("2.0.0");
    let rule = rule(&lifecycle).unwrap();
    let own = Terms::of(rule, Asked::default());
    assert_eq!(
        (own.lease, own.grace, own.attempts),
        (rule.lease, rule.grace, rule.attempts)
    );
    assert_eq!(
        (rule.lease.as_ms(), rule.grace.as_ms(), rule.attempts),
        (300_000, 20_000, 3)
    );
    for (asked, given) in [
        (-5, 500),
        (0, 500),
        (499, 500),
        (500, 500),
        (501, 501),
        (i64::MAX, i64::MAX),
    ] {
        let asked = Asked {
            lease: Some(DurationMs::from_ms(asked)),
            attempts: Some(7),
            grace: Some(DurationMs::from_ms(0)),
        };
        let terms = Terms::of(rule, asked);
        assert_eq!(
            (terms.lease.as_ms(), terms.grace.as_ms(), terms.attempts),
            (given, 0, 7)
        );
        let every = terms.renew_every().as_ms();
        assert!(
            every > 0 && every <= terms.lease.as_ms() / 3,
            "renewed every {every} of {given}"
        );
    }
}

#[test]
fn a_worker_may_claim_up_to_the_limit_of_its_heartbeat_and_not_beyond() {
    let lifecycle = lifecycle("2.0.0");
    let rule = rule(&lifecycle).unwrap();
    let may = |age: i64| may_claim(rule, Some(DurationMs::from_ms(age)));
    assert_eq!((may(0), may(90_000), may(90_001)), (true, true, false));
    assert!(may_claim(rule, None));
}

#[test]
fn a_claim_takes_the_row_under_a_new_fence_and_counts_an_attempt() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
        assert_eq!(
            (row.status.as_str(), row.reason.code.as_str()),
            ("running", "run.started.ok")
        );
        assert_eq!((row.fence, stage_of(&row)), (1, Some(Stage::Active)));
        let lease = &row.structural;
        assert_eq!(lease.leased_by.as_deref(), Some("w1"));
        assert_eq!(lease.lease_expires_at, Some(steady(LEASE)));
        assert_eq!((lease.lease_attempts, lease.next_attempt_at), (Some(1), None));
    }
}

#[test]
fn of_two_claims_of_one_version_the_second_is_a_conflict() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let row = submitted(&lifecycle, None);
        let second = claim(&lifecycle, &row, &terms(3), "w2", steady(0)).unwrap();
        let taken = claimed(&lifecycle, &row, "w1");
        assert_eq!(conflict_code(&decided(&lifecycle, &taken, &second)), "version");
    }
}

#[test]
fn nothing_but_what_is_ready_can_be_claimed() {
    let lifecycle = lifecycle("2.0.0");
    let none = |row: &Entity| claim(&lifecycle, row, &terms(3), "w2", steady(LEASE * 9)).is_none();
    let later = submitted(&lifecycle, Some(wall(5)));
    let active = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
    let handed = handed_back(&lifecycle, &active, 1, wall(0)).unwrap();
    let over = ended_at_once(&lifecycle, &active, 3, &exit(&lifecycle, 0)).unwrap();
    let after = |command: &Transition| written(&lifecycle, &active, command);
    for row in [&later, &active, &doubted(&lifecycle), &after(&handed), &after(&over)] {
        assert!(none(row), "{} ({:?})", row.status, stage_of(row));
    }
    let mut unqueued = submitted(&lifecycle, None);
    unqueued.queued = None;
    assert!(none(&unqueued), "what was put into no queue is nobody's to take");
}

#[test]
fn a_lease_holds_to_its_end_and_the_end_itself() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
        for after in [0, LEASE - 1, LEASE] {
            assert_eq!(
                due_then(&lifecycle, &row, 3, after),
                Due::Nothing,
                "{version} after {after}"
            );
        }
        assert!(
            matches!(due_then(&lifecycle, &row, 3, LEASE + 1), Due::Write(_)),
            "{version}"
        );
        let mut unleased = row.clone();
        unleased.structural.lease_expires_at = None;
        assert_eq!(due_then(&lifecycle, &unleased, 3, LEASE * 9), Due::Nothing, "{version}");
    }
}

#[test]
fn the_first_generation_puts_back_what_lapsed_and_gives_up_the_last_attempt() {
    let lifecycle = lifecycle("1.0.0");
    let active = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
    let back = after_due(&lifecycle, &active, LEASE + 1);
    assert_eq!(
        (back.status.as_str(), back.reason.code.as_str()),
        ("queued", "run.queued.lease_expired")
    );
    assert_eq!((back.fence, stage_of(&back)), (2, Some(Stage::Ready)));
    assert_eq!(
        (&back.structural.leased_by, back.structural.lease_attempts),
        (&None, Some(1))
    );
    let Due::Write(last) = due_then(&lifecycle, &active, 1, LEASE + 1) else {
        panic!("the last attempt lapsed")
    };
    let last = written(&lifecycle, &active, &last);
    assert_eq!(
        (last.status.as_str(), last.reason.code.as_str()),
        ("failed", "run.failed.lease_attempts_exhausted")
    );
    assert_eq!((last.fence, last.structural.leased_by.as_deref()), (2, Some("w1")));
}

#[test]
fn the_second_generation_doubts_first_and_judges_once_the_grace_is_over() {
    let lifecycle = lifecycle("2.0.0");
    let row = doubted(&lifecycle);
    assert_eq!(
        (row.status.as_str(), row.reason.code.as_str()),
        ("supervisor_unknown", "run.supervisor_unknown.lease_stale")
    );
    assert_eq!((row.fence, stage_of(&row)), (1, Some(Stage::Doubted)));
    assert_eq!(
        row.structural.leased_by.as_deref(),
        Some("w1"),
        "its holder may come back"
    );
    assert_eq!(row.structural.unknown_since, Some(steady(LEASE + 1)));
    let over = LEASE + 1 + GRACE;
    let stopped = Seen::Stopped("nothing of it lives".to_owned());
    let fencing = |after: i64| fence(&lifecycle, &row, &terms(3), &stopped, steady(after));
    assert_eq!(due_then(&lifecycle, &row, 3, over - 1), Due::Nothing);
    assert_eq!(fencing(over - 1), None);
    assert_eq!(due_then(&lifecycle, &row, 3, over), Due::Judge);
    assert!(matches!(fencing(over), Some(Fencing::Write(_, Next::Successor))));
}

#[test]
fn evidence_says_what_a_lapse_and_a_fence_acted_on() {
    let lifecycle = lifecycle("2.0.0");
    let row = doubted(&lifecycle);
    let of = |row: &Entity| row.reason.evidence.last().unwrap().clone();
    let lapse = of(&row);
    assert_eq!(
        (&lapse["leased_by"], &lapse["fence"], &lapse["silent_ms"]),
        (&json!("w1"), &json!(1), &json!(1))
    );
    assert_eq!(
        (&lapse["lease_ms"], &lapse["policy_digest"]),
        (&json!(LEASE), &json!("d"))
    );
    let stopped = Seen::Stopped("its cgroup is empty".to_owned());
    let Some(Fencing::Write(write, _)) = fence(&lifecycle, &row, &terms(3), &stopped, steady(LEASE * 2)) else {
        panic!("its grace is over")
    };
    let fenced = of(&written(&lifecycle, &row, &write));
    assert_eq!(
        (&fenced["observed"], &fenced["attempts"]),
        (&json!("its cgroup is empty"), &json!(3))
    );
}

#[test]
fn what_was_seen_of_a_doubted_row_decides_what_follows() {
    let lifecycle = lifecycle("2.0.0");
    let row = doubted(&lifecycle);
    let words = || "seen".to_owned();
    let after =
        |seen: &Seen, attempts: i64| fence(&lifecycle, &row, &terms(attempts), seen, steady(LEASE * 9)).unwrap();
    let stays = after(&Seen::Unconfirmed("a process is in state D".to_owned()), 3);
    assert_eq!(stays, Fencing::Stays("a process is in state D".to_owned()));
    assert!(
        matches!(after(&Seen::Unconfirmed(words()), 1), Fencing::Stays(_)),
        "at the last attempt too"
    );
    let follows = [
        (Seen::Stopped(words()), Next::Successor),
        (Seen::Elsewhere(words()), Next::OnceConfirmed),
        (Seen::Confirmed(words()), Next::Successor),
    ];
    for (seen, follows) in follows {
        for (attempts, next, status) in [(3, follows, "orphaned"), (1, Next::None, "failed")] {
            let Fencing::Write(write, found) = after(&seen, attempts) else {
                panic!("{seen:?} is enough")
            };
            let fenced = written(&lifecycle, &row, &write);
            assert_eq!(
                (found, fenced.status.as_str(), fenced.fence),
                (next, status, 2),
                "{seen:?}"
            );
            assert_eq!((fenced.terminal, stage_of(&fenced)), (true, None));
            assert_eq!(fenced.structural.leased_by.is_none(), next != Next::None);
        }
    }
}

#[test]
fn an_operators_word_need_not_wait_for_the_grace_and_nothing_fences_what_is_not_doubted() {
    let lifecycle = lifecycle("2.0.0");
    let row = doubted(&lifecycle);
    let confirmed = Seen::Confirmed("ada".to_owned());
    assert!(fence(&lifecycle, &row, &terms(3), &confirmed, steady(LEASE + 1)).is_some());
    let active = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
    assert_eq!(
        fence(&lifecycle, &active, &terms(3), &confirmed, steady(LEASE * 9)),
        None
    );
}

#[test]
fn a_successor_goes_on_with_the_chain_and_its_attempts() {
    let lifecycle = lifecycle("2.0.0");
    let row = doubted(&lifecycle);
    let lineage = lineage_after(&row);
    let mut command = Create::new("schedule_run", "two", reaper());
    command.queueing = Some(queueing(None));
    command.lineage = Some(lineage);
    let second = made(&lifecycle, &command);
    assert_eq!(
        (
            second.root.as_deref(),
            second.generation,
            second.chain_parent.as_deref()
        ),
        (Some("one"), 1, Some("one"))
    );
    assert_eq!((second.fence, stage_of(&second)), (0, Some(Stage::Ready)));
    assert_eq!(claimed(&lifecycle, &second, "w2").structural.lease_attempts, Some(2));
    assert_eq!(lineage_after(&second).root, "one", "the root stays the first of all");
}

#[test]
fn the_holder_alone_finds_its_way_back_and_only_before_the_fence() {
    let lifecycle = lifecycle("2.0.0");
    let row = doubted(&lifecycle);
    let by = || (Actor::new("executor", "w1"), "it is back");
    let back = recovered(&lifecycle, &row, (&terms(3), row.fence), by(), steady(5_000)).unwrap();
    assert_eq!(back.guards["leased_by"], json!("w1"));
    let active = written(&lifecycle, &row, &back);
    assert_eq!(
        (active.status.as_str(), active.reason.code.as_str()),
        ("running", "run.running.recovered_same_holder")
    );
    assert_eq!((active.fence, stage_of(&active)), (1, Some(Stage::Active)));
    assert_eq!(active.structural.lease_expires_at, Some(steady(5_000 + LEASE)));
    assert_eq!(
        (active.structural.unknown_since, active.structural.next_attempt_at),
        (None, None)
    );
    // The edge asks for the guard by itself.
    let mut unguarded = back.clone();
    (unguarded.guards, unguarded.expected_version) = (Fields::new(), None);
    assert!(matches!(decided(&lifecycle, &row, &unguarded), Decision::Invalid(_)));
    let late = recovered(&lifecycle, &row, (&terms(3), row.fence - 1), by(), steady(5_000)).unwrap();
    assert_eq!(conflict_code(&decided(&lifecycle, &row, &late)), "fence");
    assert_eq!(
        recovered(&lifecycle, &active, (&terms(3), 1), by(), steady(5_000)),
        None
    );
    let first = self::lifecycle("1.0.0");
    let active = claimed(&first, &submitted(&first, None), "w1");
    assert_eq!(recovered(&first, &active, (&terms(3), 1), by(), steady(5_000)), None);
}

#[test]
fn a_lapse_that_was_overtaken_by_a_renewal_is_a_conflict() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
        let Due::Write(lapse) = due_then(&lifecycle, &row, 3, LEASE + 1) else {
            panic!("it lapsed")
        };
        let mut renewed = row.clone();
        renewed.version += 1;
        renewed.structural.lease_expires_at = Some(steady(LEASE * 2));
        assert_eq!(
            conflict_code(&decided(&lifecycle, &renewed, &lapse)),
            "version",
            "{version}"
        );
    }
}

/// Under a version, an attempt ends so when so many may be made: what is written.
fn check_end(version: &str, (ending, seen): (Ending, Ended), attempts: i64, written_as: (&str, &str)) {
    let lifecycle = lifecycle(version);
    let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
    let command = ended_at_once(&lifecycle, &row, attempts, &end(&lifecycle, ending, seen)).unwrap();
    let over = written(&lifecycle, &row, &command);
    let found = (over.status.as_str(), over.reason.code.as_str());
    assert_eq!(found, written_as, "{version} {ending:?}");
    assert_eq!(command.actor, Actor::new("executor", "w1"));
    let holder = over.structural.leased_by.as_deref();
    if over.terminal {
        assert_eq!((over.fence, holder, stage_of(&over)), (1, Some("w1"), None));
        assert_eq!(
            over.structural.ended_at,
            Some(wall(0)),
            "its end is written like any other"
        );
    } else {
        assert_eq!((over.fence, holder, stage_of(&over)), (2, None, Some(Stage::Later)));
        let tells = |evidence: &Value| evidence["attempt_ended_as"].is_object();
        assert!(over.reason.evidence.iter().any(tells), "how the attempt ended is told");
    }
}

#[test]
fn an_attempt_that_ends_is_the_end_of_its_row_unless_another_is_left() {
    let exited = |code: i64| (Ending::Natural, Ended::Exited(code));
    let timed_out = (Ending::TimedOut, Ended::Signalled(9));
    let (completed, failed) = (("completed", "run.completed.ok"), ("failed", "run.failed.exit_nonzero"));
    let again = ("retry_wait", "run.retry_wait.backoff");
    check_end("1.0.0", exited(0), 3, completed);
    check_end("1.0.0", exited(7), 3, failed);
    check_end("2.0.0", exited(0), 3, completed);
    check_end("2.0.0", exited(7), 3, again);
    check_end("2.0.0", exited(7), 1, failed);
    check_end("2.0.0", timed_out, 3, again);
    check_end("2.0.0", timed_out, 1, ("timed_out", "run.timed_out.deadline"));
    check_end("2.0.0", (Ending::HostRestarted, Ended::Unobserved), 3, again);
    let unseen = ("failed", "run.failed.orphaned_parent");
    check_end("2.0.0", (Ending::Natural, Ended::Unobserved), 1, unseen);
    let killed = ("cancelled", "run.cancelled.manual_kill");
    check_end("2.0.0", (Ending::Killed, Ended::Signalled(15)), 3, killed);
    let hung_up = ("cancelled", "run.cancelled.hangup");
    check_end("2.0.0", (Ending::HungUp, Ended::Signalled(1)), 3, hung_up);
}

#[test]
fn a_failed_attempt_waits_for_its_delay_in_wall_time_and_then_is_ready() {
    let lifecycle = lifecycle("2.0.0");
    let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
    let mut failed = exit(&lifecycle, 7);
    let waits = |end: &AttemptEnd| written(&lifecycle, &row, &ended_at_once(&lifecycle, &row, 3, end).unwrap());
    assert_eq!(
        waits(&failed).structural.next_attempt_at,
        Some(wall(60_000)),
        "30 s, doubled once"
    );
    failed.retry_after = Some(DurationMs::from_ms(40));
    let later = waits(&failed);
    assert_eq!(later.structural.next_attempt_at, Some(wall(40)));
    assert_eq!(due_then(&lifecycle, &later, 3, 39), Due::Nothing);
    let ready = after_due(&lifecycle, &later, 40);
    assert_eq!(
        (ready.status.as_str(), ready.reason.code.as_str()),
        ("queued", "run.queued.retry_due")
    );
    assert_eq!(
        (ready.structural.next_attempt_at, stage_of(&ready)),
        (None, Some(Stage::Ready))
    );
    let again = claimed(&lifecycle, &ready, "w2");
    assert_eq!((again.fence, again.structural.lease_attempts), (3, Some(2)));
}

#[test]
fn a_verdict_gets_the_wait_it_asks_for_within_the_cap_and_no_attempt_more() {
    let lifecycle = lifecycle("2.0.0");
    let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
    let mut failed = exit(&lifecycle, 7);
    let mut due = |asked: i64, attempts: i64| {
        failed.retry_after = Some(DurationMs::from_ms(asked));
        let after = written(
            &lifecycle,
            &row,
            &ended_at_once(&lifecycle, &row, attempts, &failed).unwrap(),
        );
        (after.status.clone(), after.structural.next_attempt_at)
    };
    let again = |at: i64| ("retry_wait".to_owned(), Some(wall(at)));
    assert_eq!(due(90_000, 3), again(90_000), "not doubled, no jitter");
    assert_eq!(due(1_800_001, 3), again(1_800_000), "the cap of its schedule");
    assert_eq!(due(i64::MAX, 3), again(1_800_000));
    assert_eq!(
        due(90_000, 1),
        ("failed".to_owned(), None),
        "its last attempt stays its last"
    );
    let mut descriptor = lifecycle.descriptor().clone();
    descriptor.retry = None;
    let unscheduled = Lifecycle::new(descriptor);
    failed.retry_after = Some(DurationMs::from_ms(i64::MAX));
    let after = written(
        &unscheduled,
        &row,
        &ended_at_once(&unscheduled, &row, 3, &failed).unwrap(),
    );
    assert_eq!(after.structural.next_attempt_at, Some(wall(WISH_MOST.as_ms())));
}

#[test]
fn what_a_verdict_asked_for_is_found_in_the_reason_of_the_end_and_nowhere_else() {
    let mut evidence = json!({"pid": 7});
    keep_wish(&mut evidence, None);
    assert_eq!(evidence, json!({"pid": 7}));
    keep_wish(&mut evidence, Some(DurationMs::from_ms(90_000)));
    let reason = Reason::code("run.failed.exit_nonzero").evidence(evidence);
    assert_eq!(kept_wish(&reason), Some(DurationMs::from_ms(90_000)));
    for other in [
        json!({"retry_after_ms": "soon"}),
        json!([90_000]),
        json!(90_000),
        json!({"pid": 7}),
    ] {
        assert_eq!(kept_wish(&Reason::code("c").evidence(other.clone())), None, "{other}");
    }
    let first = json!({"retry_after_ms": -1});
    assert_eq!(
        kept_wish(&Reason::code("c").evidence(first)),
        Some(DurationMs::from_ms(0))
    );
}

#[test]
fn a_row_that_is_handed_back_is_due_at_once_and_its_attempt_stays_counted() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
        let back = written(&lifecycle, &row, &handed_back(&lifecycle, &row, 1, wall(7)).unwrap());
        assert_eq!(
            (back.status.as_str(), back.reason.code.as_str()),
            ("retry_wait", "run.retry_wait.handed_back")
        );
        assert_eq!((back.fence, &back.structural.leased_by), (2, &None));
        assert_eq!(
            (back.structural.lease_attempts, back.structural.lease_expires_at),
            (Some(1), None)
        );
        assert_eq!(due_then(&lifecycle, &back, 3, 6), Due::Nothing);
        assert_eq!(stage_of(&after_due(&lifecycle, &back, 7)), Some(Stage::Ready));
    }
}

#[test]
fn a_late_holder_is_refused_by_the_fence_whatever_it_writes_and_wherever_its_row_is() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let first = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
        let back = written(
            &lifecycle,
            &first,
            &handed_back(&lifecycle, &first, 1, wall(0)).unwrap(),
        );
        let ready = after_due(&lifecycle, &back, 0);
        let second = claimed(&lifecycle, &ready, "w2");
        let over = ended_at_once(&lifecycle, &second, 3, &exit(&lifecycle, 0)).unwrap();
        let over = written(&lifecycle, &second, &over);
        for row in [&back, &ready, &second, &over] {
            for code in [0, 7] {
                let end = exit(&lifecycle, code);
                let late = ended(&lifecycle, row, (&terms(3), 1), &end, (wall(0), 0)).unwrap();
                assert_eq!(
                    conflict_code(&decided(&lifecycle, row, &late)),
                    "fence",
                    "{version} {}",
                    row.status
                );
            }
            let late = handed_back(&lifecycle, row, 1, wall(0)).unwrap();
            assert_eq!(
                conflict_code(&decided(&lifecycle, row, &late)),
                "fence",
                "{version} {}",
                row.status
            );
        }
    }
}

#[test]
fn the_holder_of_the_current_fence_writes_an_end_once_and_none_of_a_doubted_row() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
        let over = written(
            &lifecycle,
            &row,
            &ended_at_once(&lifecycle, &row, 3, &exit(&lifecycle, 0)).unwrap(),
        );
        assert_eq!(
            ended_at_once(&lifecycle, &over, 3, &exit(&lifecycle, 0)),
            None,
            "{version}"
        );
        assert_eq!(handed_back(&lifecycle, &over, over.fence, wall(0)), None, "{version}");
    }
    let lifecycle = lifecycle("2.0.0");
    let row = doubted(&lifecycle);
    assert_eq!(ended_at_once(&lifecycle, &row, 3, &exit(&lifecycle, 0)), None);
    assert_eq!(handed_back(&lifecycle, &row, row.fence, wall(0)), None);
    // Its true end is written by way of the recovery.
    let by = (reaper(), "its exit record was found");
    let back = recovered(&lifecycle, &row, (&terms(3), row.fence), by, steady(LEASE * 9)).unwrap();
    let active = written(&lifecycle, &row, &back);
    let over = written(
        &lifecycle,
        &active,
        &ended_at_once(&lifecycle, &active, 3, &exit(&lifecycle, 0)).unwrap(),
    );
    assert_eq!(over.status, "completed");
}

#[test]
fn delayed_work_comes_due_at_its_moment_of_wall_time() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let later = submitted(&lifecycle, Some(wall(500)));
        assert_eq!(stage_of(&later), Some(Stage::Later));
        assert_eq!(due_then(&lifecycle, &later, 3, 499), Due::Nothing);
        let ready = after_due(&lifecycle, &later, 500);
        assert_eq!(
            (ready.status.as_str(), stage_of(&ready)),
            ("queued", Some(Stage::Ready))
        );
        assert_eq!(
            ready.reason.code, "schedule.queued.created",
            "it was created for this, and still is"
        );
        assert_eq!(due_then(&lifecycle, &ready, 3, 9_000), Due::Nothing);
    }
}

#[test]
fn work_that_waits_for_other_work_begins_when_all_of_it_succeeded() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let step = |row: &Entity, not_before: Option<Timestamp>, awaited: &Awaited| match due(
            &lifecycle,
            row,
            (&terms(3), not_before),
            awaited,
            now(0),
        ) {
            Due::Write(write) => Some(written(&lifecycle, row, &write)),
            Due::Nothing => None,
            Due::Judge => panic!("nobody has it"),
        };
        let submitted = submitted(&lifecycle, Some(wall(0)));
        let waiting = step(&submitted, None, &Awaited::Open).unwrap();
        assert_eq!(
            (waiting.status.as_str(), stage_of(&waiting)),
            ("waiting_dependency", Some(Stage::Waiting))
        );
        assert_eq!(step(&waiting, None, &Awaited::Open), None);
        let met = step(&waiting, Some(wall(0)), &Awaited::Met).unwrap();
        assert_eq!((met.status.as_str(), stage_of(&met)), ("queued", Some(Stage::Ready)));
        let delayed = step(&waiting, Some(wall(1)), &Awaited::Met).unwrap();
        assert_eq!(
            (stage_of(&delayed), delayed.structural.next_attempt_at),
            (Some(Stage::Later), Some(wall(1)))
        );
        let failed = Awaited::Failed(Reference::new("run", "before"));
        for row in [&submitted, &waiting] {
            let over = step(row, None, &failed).unwrap();
            let status = if version == "1.0.0" { "cancelled" } else { "skipped" };
            assert_eq!(
                (over.status.as_str(), over.reason.code.as_str()),
                (status, "run.failed.dependency_failed")
            );
            assert_eq!(
                (over.terminal, over.reason.evidence[0]["awaited"].as_str()),
                (true, Some("run/before"))
            );
        }
    }
}

#[test]
fn between_two_attempts_nothing_is_awaited() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
        let back = written(&lifecycle, &row, &handed_back(&lifecycle, &row, 1, wall(0)).unwrap());
        for awaited in [Awaited::Open, Awaited::Failed(Reference::new("run", "before"))] {
            let Due::Write(write) = due(&lifecycle, &back, (&terms(3), None), &awaited, now(0)) else {
                panic!("it is due")
            };
            assert_eq!(
                written(&lifecycle, &back, &write).status,
                "queued",
                "{version} {awaited:?}"
            );
        }
    }
}

#[test]
fn every_status_of_a_row_has_the_stage_that_its_rule_says() {
    let rows = [
        ("1.0.0", "running", Some(Stage::Active)),
        ("1.0.0", "waiting_dependency", Some(Stage::Waiting)),
        ("1.0.0", "retry_wait", Some(Stage::Later)),
        ("1.0.0", "queued", Some(Stage::Ready)),
        ("2.0.0", "running", Some(Stage::Active)),
        ("2.0.0", "supervisor_unknown", Some(Stage::Doubted)),
        ("2.0.0", "waiting_dependency", Some(Stage::Waiting)),
        ("2.0.0", "retry_wait", Some(Stage::Later)),
        ("2.0.0", "queued", Some(Stage::Ready)),
    ];
    for (version, status, stage) in rows {
        let lifecycle = lifecycle(version);
        let mut row = submitted(&lifecycle, None);
        row.enter(&lifecycle, status);
        row.line_up(&lifecycle);
        assert_eq!(stage_of(&row), stage, "{version} {status}");
    }
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        for status in lifecycle.descriptor().statuses.iter().filter(|status| status.terminal) {
            let mut row = submitted(&lifecycle, Some(wall(1)));
            row.enter(&lifecycle, &status.name);
            row.line_up(&lifecycle);
            assert_eq!(stage_of(&row), None, "{version} {}", status.name);
            assert_eq!(due_then(&lifecycle, &row, 3, LEASE * 9), Due::Nothing);
        }
        let mut unqueued = submitted(&lifecycle, None);
        unqueued.queued = None;
        unqueued.line_up(&lifecycle);
        assert_eq!(unqueued.queued, None);
    }
}

#[test]
fn a_kind_without_a_lease_rule_is_never_leased() {
    let bundled = runwarden_bundled::POLICIES
        .iter()
        .find(|policy| policy.kind == "run")
        .unwrap();
    let lifecycle = Lifecycle::new(serde_json::from_str(bundled.descriptor).unwrap());
    let mut command = Create::new("run", "one", Actor::new("operator", "ada"));
    command.queueing = Some(queueing(None));
    let row = made(&lifecycle, &command);
    assert_eq!((rule(&lifecycle), stage_of(&row)), (None, None));
    assert_eq!(claim(&lifecycle, &row, &terms(3), "w1", steady(0)), None);
    assert_eq!(due_then(&lifecycle, &row, 3, LEASE * 9), Due::Nothing);
}

#[test]
fn whoever_puts_work_back_by_hand_between_two_attempts_does_not_wait_for_its_delay() {
    let lifecycle = lifecycle("2.0.0");
    let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w1");
    let failed = ended_at_once(&lifecycle, &row, 3, &exit(&lifecycle, 7)).unwrap();
    let waits = written(&lifecycle, &row, &failed);
    assert_eq!(stage_of(&waits), Some(Stage::Later));
    let ada = Actor::new("operator", "ada");
    let now = Transition::new("queued", Reason::code("run.queued.retry_due"), ada);
    let ready = written(&lifecycle, &waits, &now);
    assert_eq!(
        (stage_of(&ready), ready.structural.next_attempt_at),
        (Some(Stage::Ready), None)
    );
    // What was delayed from the beginning is where it is, and stays there.
    let delayed = submitted(&lifecycle, Some(wall(500)));
    let same = written(&lifecycle, &delayed, &now);
    assert_eq!(
        (stage_of(&same), same.structural.next_attempt_at),
        (Some(Stage::Later), Some(wall(500)))
    );
}

#[test]
fn whoever_moves_held_work_by_hand_takes_it_from_its_holder_and_nobody_patches_a_lease() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w");
        let operator = || Actor::new("operator", "ada");
        let by_hand = Transition::new("retry_wait", Reason::code("run.retry_wait.backoff"), operator());
        let after = written(&lifecycle, &row, &by_hand);
        assert_eq!((after.structural.leased_by.clone(), after.fence), (None, row.fence + 1));
        let mut late = Transition::new("completed", Reason::code("run.completed.ok"), operator());
        late.lease = Some(LeaseStep::under(row.fence, LeaseChange::Keep));
        let Decision::Conflict(conflict) = decided(&lifecycle, &after, &late) else {
            panic!("its holder's write is late")
        };
        assert_eq!(conflict.code, "fence");
        let again = Transition::new("running", row.reason.clone(), operator());
        assert_eq!(
            written(&lifecycle, &row, &again).fence,
            row.fence,
            "it stays where it is"
        );
        let fields = [
            ("leased_by", json!("thief")),
            ("lease_attempts", json!(0)),
            ("lease_expires_at", json!(1)),
        ];
        for (name, value) in fields {
            let mut patch = again.clone();
            patch.patch.insert(name.to_owned(), value);
            let Decision::Invalid(invalid) = decided(&lifecycle, &row, &patch) else {
                panic!("{name} is the host's")
            };
            assert_eq!(invalid.code, "field");
            let mut unqueued = row.clone();
            unqueued.queued = None;
            let decision = decided(&lifecycle, &unqueued, &patch);
            assert!(matches!(decision, Decision::Apply(_)), "nobody queued it");
        }
    }
}

/// Row 9: a lease is renewed so often that one renewal may be late and another fail; no submission can ask for less.
#[test]
fn every_lease_is_renewed_three_times_before_it_runs_out() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        for asked in [0, 1, 499, 500, 501, 1_000, 299_999, i64::MAX] {
            let lease = Some(DurationMs::from_ms(asked));
            let asked = Asked {
                lease,
                ..Asked::default()
            };
            let terms = Terms::of(rule(&lifecycle).unwrap(), asked);
            assert!(terms.lease >= LEASE_MIN);
            assert!(terms.renew_every().as_ms() <= terms.lease.as_ms() / 3, "{terms:?}");
        }
    }
}

#[test]
fn a_last_attempt_that_had_begun_is_not_given_back_for_another() {
    for version in VERSIONS {
        let lifecycle = lifecycle(version);
        let row = claimed(&lifecycle, &submitted(&lifecycle, None), "w");
        let given_up = |attempts, begun| {
            let command = given_up(&lifecycle, &row, (&terms(attempts), row.fence), begun, wall(0)).unwrap();
            written(&lifecycle, &row, &command)
        };
        assert_eq!(
            given_up(1, Begun::Yes).reason.code,
            "run.failed.lease_attempts_exhausted"
        );
        assert_eq!(given_up(1, Begun::Yes).fence, row.fence + 1);
        for back in [given_up(2, Begun::Yes), given_up(1, Begun::No)] {
            assert_eq!(back.reason.code, "run.retry_wait.handed_back", "{version}");
        }
    }
}

//! Health by thresholds alone, and the recorded cases put to it.

use serde_json::Value;

use super::{Condition, Health, HealthLevel, ProcessSeen, Signs, by_thresholds, worst};
use crate::model::samples::entity;
use crate::model::{DurationMs, Entity, HealthThreshold, Lifecycle, Queued, Stage, Timestamp};

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

/// A bundled policy that has thresholds; its function is not asked here.
fn policy(kind: &str) -> Lifecycle {
    let bundled = runwarden_bundled::POLICIES.iter().find(|policy| policy.kind == kind);
    let descriptor = serde_json::from_str(bundled.expect("it ships").descriptor);
    Lifecycle::new(descriptor.expect("a descriptor"))
}

fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_ms(NOW.as_ms() - seconds * 1_000)
}

/// One that left a trace and was last heard of so long ago.
fn signs(process: ProcessSeen, idle_seconds: i64) -> Signs {
    Signs {
        process,
        last_activity_at: ago(idle_seconds),
        messages: 1,
        has_artifacts: false,
        has_stale_locks: false,
        spawn_kind: "agent".to_owned(),
    }
}

#[track_caller]
fn check(entity: &Entity, signs: &Signs, expected: HealthLevel) {
    let found = by_thresholds(&policy("run"), entity, signs, NOW).expect("it has thresholds");
    assert_eq!(found.level, expected, "{signs:?}: {}", found.message);
}

#[test]
fn what_never_had_a_process_is_judged_by_how_quiet_it_is() {
    let open = entity("run", "running");
    for process in [ProcessSeen::None, ProcessSeen::Ended] {
        let traceless = |idle_seconds| Signs {
            messages: 0,
            ..signs(process, idle_seconds)
        };
        check(&open, &traceless(3_600), HealthLevel::Healthy);
        check(&open, &traceless(3_601), HealthLevel::Idle);
        check(&open, &traceless(21_601), HealthLevel::Stale);
    }
}

#[test]
fn what_waits_for_its_time_is_not_quiet_until_it_has_come() {
    let mut waits = entity("run", "running");
    let old = signs(ProcessSeen::None, 1_000_000);
    waits.structural.next_attempt_at = Some(Timestamp::from_ms(NOW.as_ms() + 1));
    check(&waits, &old, HealthLevel::Healthy);
    check(&waits, &signs(ProcessSeen::Gone, 1_000_000), HealthLevel::Stale);
    waits.structural.next_attempt_at = Some(NOW);
    check(&waits, &old, HealthLevel::Stale);
}

#[test]
fn what_waits_for_other_work_is_not_quiet_and_what_waits_for_a_worker_is() {
    let old = signs(ProcessSeen::None, 1_000_000);
    for (stage, expected) in [
        (Stage::Waiting, HealthLevel::Healthy),
        (Stage::Later, HealthLevel::Stale),
        (Stage::Ready, HealthLevel::Stale),
        (Stage::Active, HealthLevel::Stale),
        (Stage::Doubted, HealthLevel::Stale),
    ] {
        let mut row = entity("run", "running");
        row.queued = Some(Queued {
            queue: "default".to_owned(),
            priority: 0,
            stage: Some(stage),
        });
        check(&row, &old, expected);
    }
}

#[test]
fn a_sign_of_life_from_the_future_is_no_silence() {
    check(
        &entity("run", "running"),
        &signs(ProcessSeen::Alive, -60),
        HealthLevel::Healthy,
    );
}

#[test]
fn a_policy_without_thresholds_says_nothing() {
    let mut descriptor = policy("run").descriptor().clone();
    descriptor.health.clear();
    let (open, quiet) = (entity("run", "running"), signs(ProcessSeen::None, 0));
    let said = |descriptor| by_thresholds(&Lifecycle::new(descriptor), &open, &quiet, NOW);
    assert_eq!(said(descriptor.clone()), None);
    // Neither does one whose thresholds are for other work.
    descriptor.health = vec![HealthThreshold {
        spawn_kind: "engine".to_owned(),
        idle: DurationMs::from_ms(1),
        stale: DurationMs::from_ms(2),
    }];
    assert_eq!(said(descriptor), None);
}

#[test]
fn the_worst_of_many_is_the_first_at_the_worst_level() {
    let at = |level| {
        Some(Condition::Known(Health {
            level,
            message: String::new(),
        }))
    };
    let failed = Some(Condition::Unknown("it trapped".to_owned()));
    let of = |all: &[Option<Condition>]| worst(all.iter().map(Option::as_ref));
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[None, failed.clone()]), None);
    let all = [
        None,
        at(HealthLevel::Idle),
        failed,
        at(HealthLevel::Stale),
        at(HealthLevel::Healthy),
        at(HealthLevel::Stale),
    ];
    assert_eq!(of(&all), Some((3, HealthLevel::Stale)));
}

#[test]
fn the_scale_is_in_the_order_of_its_words() {
    let words = ["healthy", "idle", "unresponsive", "stale", "orphaned", "zombie"];
    assert_eq!(HealthLevel::ALL.map(HealthLevel::word), words);
    assert_eq!(HealthLevel::ALL.map(HealthLevel::severity), [0, 1, 2, 3, 4, 5]);
    for level in HealthLevel::ALL {
        assert_eq!(HealthLevel::from_word(level.word()), Some(level));
    }
    assert_eq!(HealthLevel::from_word("splendid"), None);
}

const NO_STATUS: &str = "a status is never null or empty here";

/// The reference's recorded cases. Its column `staleness_check` is not adopted: nothing here sweeps by age (SEMANTICS
/// 10.19).
#[test]
fn every_recorded_case_is_judged_by_thresholds_as_recorded() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/health.json");
    let text = std::fs::read_to_string(path).expect("the vectors are in the repository");
    let vectors: Value = serde_json::from_str(&text).expect("vectors are JSON");
    let cases = vectors["vectors"].as_array().expect("cases");
    let run = policy("run");
    let (mut put, mut left) = (0, 0);
    for case in cases {
        let Some(status) = case["status"].as_str().filter(|status| !status.is_empty()) else {
            left += 1; // NO_STATUS
            continue;
        };
        let mut subject = entity("run", "");
        subject.enter(&run, status);
        let process = match case["process_alive"].as_bool() {
            Some(true) => ProcessSeen::Alive,
            Some(false) => ProcessSeen::Gone,
            None => ProcessSeen::Unknown,
        };
        let seen = Signs {
            messages: case["message_count"].as_i64().expect("a count"),
            has_artifacts: case["has_artifacts"] == true,
            has_stale_locks: case["has_stale_locks"] == true,
            spawn_kind: case["kind"].as_str().unwrap_or("agent").to_owned(),
            ..signs(process, case["idle_seconds"].as_i64().expect("an age"))
        };
        let found = by_thresholds(&run, &subject, &seen, NOW).expect("it has thresholds");
        assert_eq!(found.level.word(), case["health"], "{case}: {}", found.message);
        put += 1;
    }
    assert_eq!((put, left), (708, 12), "{NO_STATUS}");
}

//! The 720 recorded cases of health, and where the judgement is strict.

use runwarden_kit::{Entity, Observation, Reason, Surroundings};
use runwarden_policy_shared::health::assess;
use serde_json::Value;

const NOW_MS: i64 = 1_800_000_000_000;

#[test]
fn every_recorded_case_is_judged_as_recorded() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/vectors/health.json");
    let text = std::fs::read_to_string(path).expect("the vectors are in the repository");
    let recorded: Value = serde_json::from_str(&text).expect("the vectors are JSON");
    let cases = recorded["vectors"].as_array().expect("there are cases");
    assert_eq!(cases.len(), 720);
    // A status is never null here: those cases do not apply.
    for case in cases.iter().filter(|case| !case["status"].is_null()) {
        let found = assess(&observation(case)).expect("an assessment never fails");
        assert_eq!(found.level, case["health"], "{case}");
    }
}

#[test]
fn an_unknown_process_is_judged_like_none() {
    let unsure = |word: &str| {
        let mut seen = bare("running", 30_000);
        seen.process = word.to_owned();
        seen.messages = 1;
        assess(&seen).expect("an assessment never fails").level
    };
    assert_eq!(unsure("unknown"), unsure("none"));
    assert_eq!(unsure("none"), "stale");
}

fn observation(case: &Value) -> Observation {
    let status = case["status"].as_str().expect("a status");
    let idle = case["idle_seconds"].as_i64().expect("an age");
    let process = match case["process_alive"].as_bool() {
        Some(true) => "alive",
        Some(false) => "gone",
        None => "unknown",
    };
    Observation {
        process: process.to_owned(),
        messages: case["message_count"].as_i64().expect("a count"),
        has_artifacts: case["has_artifacts"] == true,
        has_stale_locks: case["has_stale_locks"] == true,
        spawn_kind: case["kind"].as_str().unwrap_or_default().to_owned(),
        ..bare(status, idle)
    }
}

fn bare(status: &str, idle_seconds: i64) -> Observation {
    Observation {
        entity: entity(status),
        process: "none".to_owned(),
        last_activity_at: NOW_MS - idle_seconds * 1000,
        messages: 0,
        has_artifacts: false,
        has_stale_locks: false,
        spawn_kind: "agent".to_owned(),
        surroundings: Surroundings {
            now: NOW_MS,
            parameters: Vec::new(),
            children: Vec::new(),
            history: Vec::new(),
            ext: Vec::new(),
        },
        ext: Vec::new(),
    }
}

fn entity(status: &str) -> Entity {
    Entity {
        kind: "session".to_owned(),
        id: "s".to_owned(),
        status: status.to_owned(),
        version: 1,
        reason: Reason {
            code: "run.started.ok".to_owned(),
            summary: None,
            evidence: Vec::new(),
        },
        fields: Vec::new(),
        tags: Vec::new(),
        created_at: 0,
        updated_at: 0,
        root: "s".to_owned(),
        generation: 0,
        chain_parent: None,
        ext: Vec::new(),
    }
}

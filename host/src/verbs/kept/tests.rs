#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use super::*;
use crate::store::{MemoryStore, samples};

#[test]
fn a_request_too_large_to_keep_leaves_its_digest_and_its_size() {
    let fits = "x".repeat(REQUEST_BYTES_MAX - 2);
    let kept = call("c", json!(fits), json!({"admitted": true}));
    assert_eq!(
        (&kept["request"], &kept["request_bytes"]),
        (&json!(fits), &json!(REQUEST_BYTES_MAX))
    );
    let large = call("c", json!(format!("{fits}x")), json!({"admitted": true}));
    assert_eq!(
        (&large["request"], &large["request_bytes"]),
        (&Value::Null, &json!(REQUEST_BYTES_MAX + 1))
    );
    assert_eq!(large["request_digest"].as_str().map(str::len), Some(64));
    assert_eq!(large["decision"], json!({"admitted": true}));
    assert_eq!(request::<KeptGuard>(&large).unwrap_err(), Missing::TooLarge);
    assert_eq!(request::<KeptGuard>(&json!({})).unwrap_err(), Missing::NotAsked);
    assert_eq!(request::<KeptGuard>(&kept).unwrap_err(), Missing::Unreadable);
}

fn reads(history: i64, all: bool) -> Reads {
    Reads {
        children: all,
        history,
        tags: all,
        last_output_bytes: if all { 8 } else { 0 },
        ext: Vec::new(),
    }
}

/// An entity in its third version with a child and its two newest history rows.
fn seen() -> (Entity, Surroundings) {
    let store = MemoryStore::named("kept0001");
    let mut new = samples::new_entity(&store, "play", "p");
    new.entity.version = 3;
    new.entity.set_field("exit_code", &json!(3));
    new.entity.set_field("words", &json!(900));
    new.entity.tags.insert("team".to_owned(), "docs".to_owned());
    let mut row = new.row.clone();
    row.version = 3;
    let child = samples::new_entity(&store, "run", "r").entity;
    let surroundings = Surroundings {
        now: samples::moment(9),
        parameters: [("quorum".to_owned(), json!(2))].into_iter().collect(),
        children: vec![child],
        history: vec![row, new.row],
    };
    (new.entity, surroundings)
}

fn asked<'a>(entity: &'a Entity, around: &'a Surroundings, more: &'a (Reason, Actor, Fields)) -> GuardRequest<'a> {
    GuardRequest {
        entity,
        target: "merged",
        reason: &more.0,
        actor: &more.1,
        patch: &more.2,
        guards: &more.2,
        overridden: true,
        surroundings: around,
    }
}

#[test]
fn a_guards_request_is_read_as_it_was_kept_and_kept_again_the_same() {
    let (entity, around) = seen();
    let fields: Fields = [("words".to_owned(), json!(900))].into_iter().collect();
    let more = (Reason::code("a.b.c"), Actor::new("agent", "x"), fields);
    let reads = reads(2, true);
    let kept = to_value(&KeptGuard::of(&asked(&entity, &around, &more), &reads));
    let read: KeptGuard = request(&call("c", kept.clone(), Value::Null)).unwrap();
    let (entity_again, around_again) = read.sight(&entity.policy, &reads).unwrap();
    assert_eq!(entity_again.all_fields(), entity.all_fields());
    assert_eq!(
        (&entity_again.structural, &entity_again.tags),
        (&entity.structural, &entity.tags)
    );
    let again = KeptGuard::of(&read.request(&entity_again, &around_again), &reads);
    assert_eq!(to_value(&again), kept);
}

#[test]
fn a_policy_that_reads_more_than_was_kept_does_not_see_it() {
    let (entity, around) = seen();
    let more = (Reason::code("a.b.c"), Actor::new("agent", "x"), Fields::new());
    let check = |kept: &Reads, read: &Reads, expected: bool| {
        let kept = KeptGuard::of(&asked(&entity, &around, &more), kept);
        assert_eq!(kept.sight(&entity.policy, read).is_some(), expected, "{read:?}");
    };
    check(&reads(2, true), &reads(2, true), true);
    check(&reads(2, true), &reads(1, false), true);
    check(&reads(2, true), &reads(3, true), false);
    check(&reads(0, true), &reads(1, true), false);
    check(&reads(2, false), &reads(2, true), false);
    check(&reads(0, false), &reads(0, false), true);
}

fn observed(last_output: &str) -> Observed {
    Observed {
        exit_code: Some(3),
        signal: None,
        cause: "exit".to_owned(),
        stop_intent: None,
        started_at: samples::moment(1),
        ended_at: samples::moment(2),
        duration: DurationMs::from_ms(1),
        usage: Some((1, 2, 3)),
        artifacts: vec![("file".to_owned(), "a".to_owned())],
        evidence_wanted: true,
        artifacts_missing: vec!["b".to_owned()],
        last_output: last_output.into(),
        of_row: Some((2, 1)),
    }
}

#[test]
fn a_verdicts_request_is_read_as_it_was_kept_and_its_output_is_cut_to_what_is_read() {
    let (entity, around) = seen();
    let reads = reads(2, true);
    let outcome = Outcome {
        status: "failed".to_owned(),
        code: "a.b.c".to_owned(),
    };
    let check = |output: &str, wanted: i64, expected: Option<&str>| {
        let kept = KeptVerdict::of(&observed(output), &entity, Some(&outcome), (&around, &reads));
        let read: KeptVerdict = request(&call("c", to_value(&kept), Value::Null)).unwrap();
        assert_eq!(to_value(&read), to_value(&kept));
        let wanted = Reads {
            last_output_bytes: wanted,
            ..reads.clone()
        };
        let sight = read.sight(&entity.policy, &wanted);
        let told = sight.map(|(_, _, observed)| observed.last_output.lossy());
        assert_eq!(told.as_deref(), expected, "{output} {wanted:?}");
    };
    check("12345678", 8, Some("12345678"));
    check("12345678", 3, Some("678"));
    check("12345678", 0, Some(""));
    check("12345678", 9, None);
    check("1234567", 9, Some("1234567"));
}

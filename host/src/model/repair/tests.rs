//! The decision, as tables through one function.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use super::*;
use crate::model::{Containment, KillRefusal, Place, Reference, RuntimeKind, Unjudged, samples};

fn entity(status: &str) -> Entity {
    Entity {
        terminal: status != "running",
        ..samples::entity("run", status)
    }
}

fn runtime() -> Runtime {
    Runtime {
        id: 1,
        owner: Reference::new("run", "one"),
        kind: RuntimeKind::Local,
        state: RuntimeState::Running,
        stop_unconfirmed: false,
        place: Place::default(),
        worker: None,
        shim: None,
        attempt_token: "t".to_owned(),
        level: None,
        containment: Containment::Subreaper,
        process_group: None,
        cgroup: None,
        cwd: None,
        run_dir: None,
        remote_handle: None,
        resume_token: None,
        stop_intent: None,
        created_at: Timestamp::from_ms(0),
        updated_at: Timestamp::from_ms(0),
    }
}

fn seen(standing: Standing, record: Recorded) -> Observed {
    Observed {
        standing,
        record,
        began: Began::Yes,
        carriers: Carriers::Unknown,
    }
}

fn unjudged() -> Standing {
    Standing::Unjudged(Unjudged {
        word: KillRefusal::Unverifiable,
        message: String::new(),
    })
}

#[track_caller]
fn check(status: &str, observed: Observed, expected: &str) {
    // Ages decide nothing but for a start: a year makes no difference.
    let decided = repair(
        &entity(status),
        &runtime(),
        &observed,
        Timestamp::from_ms(365 * 86_400_000),
    );
    assert_eq!(decided.word(), expected, "{status}, {observed:?}");
}

#[test]
fn a_run_without_a_record_ends_only_when_its_processes_are_positively_gone() {
    for (standing, alive, over) in [
        (Standing::Held, "held", "held"),
        (Standing::Nothing, "nothing", "nothing"),
        (unjudged(), "unknown", "unknown"),
        (Standing::Unheld, "adopt", "adopt"),
        (
            Standing::Gone(SeenGone::EarlierBoot),
            "end_host_restarted",
            "mark_stopped",
        ),
        (
            Standing::Gone(SeenGone::NoSuchProcess),
            "end_unobserved",
            "mark_stopped",
        ),
        (Standing::Gone(SeenGone::Recycled), "end_unobserved", "mark_stopped"),
        (Standing::Gone(SeenGone::NoMember), "end_unobserved", "mark_stopped"),
        (Standing::Gone(SeenGone::Zombie), "adopt", "mark_stopped"),
    ] {
        check("running", seen(standing.clone(), Recorded::Nothing), alive);
        check("completed", seen(standing, Recorded::Nothing), over);
    }
}

#[test]
fn what_a_record_tells_is_the_end_whatever_else_is_known() {
    let gone = [SeenGone::EarlierBoot, SeenGone::NoSuchProcess, SeenGone::Zombie].map(Standing::Gone);
    let others = [Standing::Held, Standing::Unheld, Standing::Starting, unjudged()];
    for standing in gone.iter().chain(&others) {
        for status in ["running", "completed"] {
            check(status, seen(standing.clone(), Recorded::Whole), "record");
        }
    }
    for standing in gone {
        check("running", seen(standing.clone(), Recorded::WorkerOnly), "complete");
        check("completed", seen(standing, Recorded::WorkerOnly), "complete");
    }
    check("running", seen(Standing::Held, Recorded::WorkerOnly), "record");
    check("completed", seen(Standing::Held, Recorded::WorkerOnly), "held");
    check("completed", seen(Standing::Unheld, Recorded::WorkerOnly), "adopt");
}

#[test]
fn a_worker_that_never_got_through_its_gate_executed_nothing() {
    for gone in [SeenGone::EarlierBoot, SeenGone::NoSuchProcess, SeenGone::Zombie] {
        let observed = Observed {
            began: Began::No,
            ..seen(Standing::Gone(gone), Recorded::Nothing)
        };
        check("running", observed, "end_never_began");
    }
}

#[test]
fn an_attempt_without_a_process_is_given_up_after_its_grace_and_only_if_nobody_carries_its_token() {
    let grace = START_GRACE.as_ms();
    for (age_ms, carriers, expected) in [
        (0, Carriers::Nobody, "starting"),
        (grace, Carriers::Nobody, "starting"),
        (grace + 1, Carriers::Nobody, "end_identity_lost"),
        (grace + 1, Carriers::Unknown, "starting"),
        (100 * grace, Carriers::Unknown, "starting"),
        (grace + 1, Carriers::Somebody, "adopt"),
    ] {
        let observed = Observed {
            carriers,
            ..seen(Standing::Starting, Recorded::Nothing)
        };
        let decided = repair(&entity("running"), &runtime(), &observed, Timestamp::from_ms(age_ms));
        assert_eq!(decided.word(), expected, "{age_ms} ms, {carriers:?}");
    }
}

#[test]
fn evidence_names_what_was_seen_and_the_thresholds() {
    let observed = seen(Standing::Gone(SeenGone::Recycled), Recorded::Nothing);
    let decided = repair(&entity("running"), &runtime(), &observed, Timestamp::from_ms(7));
    let evidence = repair_evidence(
        (&runtime(), &entity("running")),
        &observed,
        decided,
        Timestamp::from_ms(7),
    );
    assert_eq!(evidence["repair"], "end_unobserved");
    assert_eq!(evidence["observed"], "recycled");
    assert_eq!(
        (&evidence["age_ms"], &evidence["spawn_grace_ms"]),
        (&json!(7), &json!(30_000))
    );
    assert_eq!(evidence["policy_digest"], "d");
}

/// How a row of the reference's reapers is judged here.
enum Row {
    /// A run of which this is known.
    Run(Standing),
    /// Nothing here ends such a row: exception 18, no age alone ends anything.
    ByAge,
    /// Judged by the sweep of what is stale, never by a reaper.
    Linked,
    /// Exceptions 15 and 19: a status is never null, and sessions are not mirrored.
    NotHere,
}

fn row(table: &str, case: &str) -> Row {
    let elsewhere = || Row::Run(unjudged());
    match (table, case) {
        (_, case) if case.starts_with("null status") || case.starts_with("mirrored") => Row::NotHere,
        ("sessions", case) if case.starts_with("dead pid") => Row::Run(Standing::Gone(SeenGone::NoSuchProcess)),
        ("sessions", case) if case.starts_with("recycled pid") => Row::Run(Standing::Gone(SeenGone::Recycled)),
        ("sessions", case) if case.starts_with("live pid") => Row::Run(Standing::Held),
        ("sessions", case) if case.starts_with("no pid") => Row::Run(Standing::Nothing),
        ("sessions", case) if case.starts_with("other host") || case.starts_with("unknown identity") => elsewhere(),
        ("plays" | "shows", _) => Row::Linked,
        _ => Row::ByAge,
    }
}

#[test]
fn what_the_reference_leaves_stays_and_what_it_ends_ends_only_when_it_is_positively_gone() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/reapers.json");
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    let mut judged = 0;
    for case in cases {
        let (table, name) = (case["table"].as_str().unwrap(), case["case"].as_str().unwrap());
        let Row::Run(standing) = row(table, name) else { continue };
        let decided = repair(
            &entity("running"),
            &runtime(),
            &seen(standing.clone(), Recorded::Nothing),
            Timestamp::from_ms(61 * 60_000),
        );
        let ends = matches!(decided, Repair::End(_));
        let is_gone = matches!(standing, Standing::Gone(_));
        assert_eq!(ends, is_gone, "{table}, {name}");
        // What is positively gone is ended at once here: that needs no age either.
        let is_left = case["status_after"] == "running" && !name.starts_with("dead pid");
        assert!(!(is_left && ends), "{table}, {name}: it has to stay");
        judged += 1;
    }
    assert_eq!(judged, 7, "sessions with a status and no mirror");
}

//! The sweep, as tables through one function.

use super::*;
use crate::model::{KillRefusal, SeenGone, Unjudged, samples};

const HOUR_MS: i64 = 3_600_000;

fn candidate(kind: &str, standing: Option<Standing>, below: &[Below]) -> Candidate {
    Candidate {
        entity: samples::entity(kind, "running"),
        runs_in: (kind == "run").then(|| "running".to_owned()),
        standing,
        below: below.to_vec(),
    }
}

#[track_caller]
fn check(candidates: &[Candidate], age_ms: i64, expected: &[&str]) {
    let verdicts = plan_stale(candidates, STALE_AFTER, Timestamp::from_ms(age_ms));
    let words: Vec<&str> = verdicts.iter().map(StaleVerdict::word).collect();
    assert_eq!(words, expected, "{verdicts:?}");
}

#[test]
fn a_run_ends_only_if_it_is_old_and_its_processes_are_positively_gone() {
    let unjudged = Standing::Unjudged(Unjudged {
        word: KillRefusal::HostMismatch,
        message: "elsewhere".to_owned(),
    });
    for (standing, expected) in [
        (Some(Standing::Gone(SeenGone::Recycled)), "end"),
        (Some(Standing::Gone(SeenGone::EarlierBoot)), "end"),
        (Some(Standing::Held), "keep"),
        (Some(Standing::Unheld), "keep"),
        (Some(Standing::Starting), "keep"),
        (Some(unjudged), "undetermined"),
        (None, "undetermined"),
    ] {
        check(&[candidate("run", standing.clone(), &[])], HOUR_MS, &[expected]);
        check(&[candidate("run", standing, &[])], HOUR_MS - 1, &["keep"]);
    }
}

#[test]
fn what_waits_for_a_process_is_kept() {
    let mut waiting = candidate("run", None, &[]);
    waiting.entity.status = "queued".to_owned();
    check(&[waiting], HOUR_MS, &["keep"]);
}

#[test]
fn what_has_no_processes_follows_from_what_is_below_it() {
    let gone = || Some(Standing::Gone(SeenGone::NoSuchProcess));
    check(&[candidate("play", None, &[])], HOUR_MS, &["undetermined"]);
    check(&[candidate("play", None, &[Below::Ended])], HOUR_MS, &["end"]);
    check(
        &[candidate("play", None, &[Below::Ended, Below::Living])],
        HOUR_MS,
        &["keep"],
    );
    let show = [
        candidate("show", None, &[Below::Candidate(1)]),
        candidate("play", None, &[Below::Candidate(2), Below::Ended]),
        candidate("run", gone(), &[]),
    ];
    check(&show, HOUR_MS, &["end", "end", "end"]);
    let alive = [
        candidate("show", None, &[Below::Candidate(1)]),
        candidate("play", None, &[Below::Candidate(2), Below::Ended]),
        candidate("run", Some(Standing::Held), &[]),
    ];
    check(&alive, HOUR_MS, &["keep", "keep", "keep"]);
}

#[test]
fn a_circle_of_links_is_left() {
    let circle = [
        candidate("play", None, &[Below::Candidate(1)]),
        candidate("play", None, &[Below::Candidate(0)]),
    ];
    check(&circle, HOUR_MS, &["undetermined", "undetermined"]);
}

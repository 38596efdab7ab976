use runwarden_kit::check::{problems, targets};
use runwarden_kit::sample;

use super::*;

/// The code of the refusal; none when it is admitted. History is oldest first here.
fn asked(to: &str, actor: &str, quorum: &str, history: &[(&str, &str)]) -> Option<String> {
    let from = history.last().map_or("proposed", |(status, _)| status);
    let mut request = sample::request(from, to, actor);
    request.surroundings.parameters = sample::values(&[("quorum", quorum)]);
    let mut rows: Vec<HistoryRow> = history.iter().map(|(status, by)| sample::row(status, by)).collect();
    if let Some(first) = rows.first_mut() {
        first.previous_status = None;
    }
    rows.reverse();
    request.surroundings.history = rows;
    let decision = Change::evaluate(request).expect("it is no fault");
    (!decision.admitted).then_some(decision.code)
}

const PROPOSED: (&str, &str) = ("proposed", "agent:bob");

fn signed(by: &'static str) -> (&'static str, &'static str) {
    ("signed", by)
}

#[test]
fn the_table_is_sound() {
    assert_eq!(problems(&Change::describe()), [""; 0]);
}

#[test]
fn nobody_agrees_to_what_they_wrote_whatever_they_call_themselves() {
    let refused = |to, by| asked(to, by, "1", &[PROPOSED]);
    assert_eq!(refused("approved", "operator:bob").as_deref(), Some("same_person"));
    assert_eq!(refused("signed", "admin:bob").as_deref(), Some("same_person"));
    assert_eq!(refused("approved", "operator:ann"), None);
    let rewritten = [PROPOSED, signed("operator:ann"), ("proposed", "operator:cem")];
    assert_eq!(
        asked("approved", "operator:cem", "1", &rewritten).as_deref(),
        Some("same_person")
    );
}

#[test]
fn as_many_as_the_quorum_says_have_to_agree_each_once() {
    let check = |to, by, quorum, history: &[(&str, &str)], expected: Option<&str>| {
        assert_eq!(
            asked(to, by, quorum, history).as_deref(),
            expected,
            "{by} wants {to} after {history:?}"
        );
    };
    let one = [PROPOSED, signed("operator:ann")];
    check("approved", "operator:ann", "2", &[PROPOSED], Some("too_few"));
    check("approved", "operator:cem", "2", &one, None);
    check("approved", "operator:ann", "2", &one, Some("too_few"));
    check("signed", "operator:ann", "2", &one, Some("signed_before"));
    check("signed", "operator:cem", "3", &one, None);
    check("approved", "operator:cem", "3", &one, Some("too_few"));
}

#[test]
fn what_was_agreed_to_before_it_was_written_anew_does_not_count() {
    let anew = [
        PROPOSED,
        signed("operator:ann"),
        ("proposed", "agent:bob"),
        signed("operator:dee"),
    ];
    assert_eq!(
        asked("approved", "operator:cem", "3", &anew).as_deref(),
        Some("too_few")
    );
    assert_eq!(asked("signed", "operator:ann", "3", &anew), None, "she looks again");
}

#[test]
fn what_nobody_approved_is_not_applied_whoever_overrides() {
    let mut request = sample::request("proposed", "applied", "operator:ann");
    request.overridden = true;
    let decision = Change::evaluate(request).expect("it is no fault");
    assert_eq!((decision.admitted, decision.code.as_str()), (false, "not_approved"));
}

#[test]
fn an_author_out_of_sight_agrees_to_nothing_and_neither_does_anybody_else() {
    let mut request = sample::request("proposed", "approved", "operator:ann");
    request.surroundings.history = vec![sample::row("proposed", "operator:bob"); 100];
    let decision = Change::evaluate(request).expect("it is no fault");
    assert_eq!(decision.code, "author_unknown");
}

#[test]
fn a_quorum_that_is_no_number_refuses() {
    let mut request = sample::request("proposed", "approved", "operator:ann");
    request.surroundings.history = vec![sample::created("proposed", "operator:bob")];
    request.surroundings.parameters = sample::values(&[("quorum", "-1")]);
    assert_eq!(
        Change::evaluate(request).map_err(|fault| fault.code),
        Err("bad_quorum".to_owned())
    );
}

#[test]
fn every_way_to_approval_and_past_it_is_asked() {
    let table = Change::describe();
    let unasked = table
        .edges
        .iter()
        .filter(|edge| !edge.guarded && edge.from != "approved");
    assert!(
        unasked
            .clone()
            .all(|edge| !["signed", "approved", "applied"].contains(&edge.to.as_str()))
    );
    assert_eq!(targets(&table, "approved"), ["proposed", "applied", "withdrawn"]);
}

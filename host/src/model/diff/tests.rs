#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use proptest::prelude::*;

use super::*;

fn bundled(kind: &str, version: &str) -> Descriptor {
    let mut all = runwarden_bundled::POLICIES.iter().map(|policy| {
        let descriptor: Descriptor = serde_json::from_str(policy.descriptor).unwrap();
        descriptor
    });
    all.find(|descriptor| descriptor.kind == kind && descriptor.version.starts_with(version))
        .unwrap()
}

/// What changing `play` is told as: sort, section, what, how.
fn check(change: impl FnOnce(&mut Descriptor), expected: &[&str]) {
    let (a, mut b) = (bundled("play", ""), bundled("play", ""));
    change(&mut b);
    let told: Vec<String> = diff(&a, &b)
        .iter()
        .map(|change| {
            let how = change.how.join("; ");
            format!("{} {}: {} [{how}]", change.sort.word(), change.section, change.what)
        })
        .collect();
    assert_eq!(told, expected);
}

#[test]
fn a_policy_does_not_differ_from_itself() {
    for policy in runwarden_bundled::POLICIES {
        let descriptor: Descriptor = serde_json::from_str(policy.descriptor).unwrap();
        assert_eq!(diff(&descriptor, &descriptor), []);
    }
}

#[test]
fn each_change_is_told_once_in_its_own_words() {
    let play = bundled("play", "");
    let (edge, status) = (play.edges[0].clone(), play.statuses[0].clone());
    let way = format!("{} -> {}", edge.from, edge.to);
    check(
        |b| b.edges[0].actors = vec!["operator".to_owned()],
        &[&format!("changed edges: {way} [actors: none -> operator]")],
    );
    check(|b| drop(b.edges.remove(0)), &[&format!("removed edges: {way} []")]);
    check(
        |b| {
            b.edges.push(super::super::Edge {
                to: "gone".to_owned(),
                guarded: true,
                ..edge.clone()
            });
        },
        &[&format!("added edges: {} -> gone [guarded]", edge.from)],
    );
    check(
        |b| b.statuses[0].announced = !status.announced,
        &[&format!(
            "changed statuses: {} [announced: {} -> {}]",
            status.name, status.announced, !status.announced
        )],
    );
    check(
        |b| "9.9.9".clone_into(&mut b.version),
        &[&format!("changed policy: version [{} -> 9.9.9]", play.version)],
    );
    check(
        |b| b.lease = bundled("schedule_run", "2").lease,
        &["added lease: lease []"],
    );
    check(|b| b.reads.history = 5, &["changed reads: reads [history: 0 -> 5]"]);
}

#[test]
fn rows_that_change_places_are_told_for_the_first_that_matches_decides() {
    let run = bundled("run", "");
    let mut other = run.clone();
    other.verdicts.swap(0, 1);
    let told = diff(&run, &other);
    assert_eq!(
        (told.len(), told[0].section.as_str(), told[0].what.as_str()),
        (1, "verdicts", "order")
    );
    let mut fewer = run.clone();
    let gone = fewer.verdicts.remove(0);
    let told = diff(&run, &fewer);
    assert_eq!((told.len(), told[0].sort), (1, ChangeSort::Removed));
    assert!(
        told[0]
            .what
            .ends_with(&format!("-> {} ({})", gone.outcome.status, gone.outcome.code))
    );
}

#[test]
fn a_status_is_stranded_where_no_way_leads_to_an_end() {
    let mut play = bundled("play", "");
    let ends: Vec<String> = play
        .statuses
        .iter()
        .filter(|status| status.terminal)
        .map(|status| status.name.clone())
        .collect();
    let live: Vec<String> = play
        .statuses
        .iter()
        .filter(|status| !status.terminal)
        .map(|status| status.name.clone())
        .collect();
    let told = |play: &Descriptor, status: &str| prospect(&Lifecycle::new(play.clone()), status);
    assert!(live.iter().all(|status| told(&play, status) == Prospect::CanEnd));
    assert!(ends.iter().all(|status| told(&play, status) == Prospect::Ended));
    play.edges.retain(|edge| !ends.contains(&edge.to));
    assert!(live.iter().all(|status| told(&play, status) == Prospect::Stranded));
    assert_eq!(told(&play, "nowhere"), Prospect::Unknown);
}

/// Places of everything in a value that is no object and no list.
fn leaves(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(name, value)| leaves(value, &format!("{place}/{name}"), found)),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(at, value)| leaves(value, &format!("{place}/{at}"), found)),
        _ => found.push(place.to_owned()),
    }
}

/// The value with one leaf changed to another one of its sort.
fn altered(mut value: Value, place: &str) -> Value {
    let leaf = value.pointer_mut(place).unwrap();
    *leaf = match &*leaf {
        Value::Bool(flag) => json!(!flag),
        Value::Number(number) => json!(number.as_i64().unwrap_or(0) + 1),
        Value::String(text) => json!(format!("{text}x")),
        _ => json!("x"),
    };
    value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_changed_is_told_both_ways(policy in 0..runwarden_bundled::POLICIES.len(), at in any::<prop::sample::Index>()) {
        let text = runwarden_bundled::POLICIES[policy].descriptor;
        let value: Value = serde_json::from_str(text).unwrap();
        let mut places = Vec::new();
        leaves(&value, "", &mut places);
        let place = at.get(&places);
        let a: Descriptor = serde_json::from_value(value.clone()).unwrap();
        // A word out of a few, or one that must be there: not every leaf may be anything.
        if let Ok(b) = serde_json::from_value::<Descriptor>(altered(value, place)) {
            prop_assert!(!diff(&a, &b).is_empty(), "{place}");
            prop_assert!(!diff(&b, &a).is_empty(), "{place}");
        }
    }
}

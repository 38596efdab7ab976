//! What ships, and the example that authors copy.

use runwarden_test_guests::{AGENT, CI_JOB, COST_BUDGET, REVIEW, SESSION_PAUSED, STRICT_PLAY, TWO_PERSON_APPROVAL};

use crate::model::{Described, Finding, Severity};
use crate::policy::{Limits, compile_here, prepare};

/// Policies and handlers, with what their committed descriptors say.
fn all() -> impl Iterator<Item = (&'static runwarden_bundled::Bundled, Described)> {
    let policies = runwarden_bundled::POLICIES.iter();
    let policies = policies.map(|b| (b, Described::Policy(serde_json::from_str(b.descriptor).unwrap())));
    let handlers = runwarden_bundled::HANDLERS.iter();
    policies.chain(handlers.map(|b| (b, Described::Handler(serde_json::from_str(b.descriptor).unwrap()))))
}

#[test]
fn every_bundled_component_passes_the_checks_and_says_what_its_descriptor_says() {
    for (bundled, shipped) in all() {
        let candidate = prepare(&bundled.component(), Limits::DEFAULT, compile_here)
            .unwrap_or_else(|error| panic!("{} {}: {error:?}", bundled.name, bundled.version));
        assert_eq!(candidate.descriptor, shipped, "{} {}", bundled.name, bundled.version);
        assert_eq!(candidate.digest, bundled.digest);
        let doubts: Vec<&Finding> = candidate
            .findings
            .iter()
            .filter(|it| it.severity < Severity::Note)
            .collect();
        assert!(doubts.is_empty(), "{} {}: {doubts:?}", bundled.name, bundled.version);
        let used = candidate.describe_fuel;
        let near = Limits::DEFAULT.fuel / 100;
        assert!(used > 0 && used < near, "{} uses {used}", bundled.name);
    }
}

#[test]
fn every_example_passes_the_checks_with_the_parts_it_has() {
    let examples: [(&[u8], &str, &[&str]); 6] = [
        (AGENT, "agent@1.0.0", &["execution", "health"]),
        (CI_JOB, "ci_job@1.0.0", &["execution"]),
        (COST_BUDGET, "cost_budget@1.0.0", &["guard"]),
        (SESSION_PAUSED, "session@1.1.0", &["health"]),
        (STRICT_PLAY, "strict_play@1.0.0", &["guard"]),
        (TWO_PERSON_APPROVAL, "change@1.0.0", &["guard"]),
    ];
    for (component, label, parts) in examples {
        let candidate = prepare(component, Limits::DEFAULT, compile_here).unwrap();
        assert_eq!(candidate.descriptor.label(), label);
        assert_eq!(candidate.findings, [], "{label}");
        assert!(parts.iter().all(|part| candidate.inspected.exports(part)), "{label}");
    }
}

#[test]
fn the_example_review_passes_the_checks_with_every_part_it_has() {
    let candidate = prepare(REVIEW, Limits::DEFAULT, compile_here).unwrap();
    assert_eq!(candidate.descriptor.label(), "review@2.0.0");
    // It is never run: it only shows where a verdict function stands.
    let said: Vec<&str> = candidate
        .findings
        .iter()
        .map(|finding| finding.place.as_str())
        .collect();
    assert_eq!(said, ["kill"]);
    for part in ["guard", "execution", "health", "migrate"] {
        assert!(candidate.inspected.exports(part), "{part}");
    }
}

//! What ships, and the example that authors copy.

use runwarden_test_guests::{REVIEW, SESSION_PAUSED};

use crate::model::Descriptor;
use crate::policy::{Limits, compile_here, prepare};

#[test]
fn every_bundled_component_passes_the_checks_and_says_what_its_descriptor_says() {
    for bundled in runwarden_bundled::POLICIES {
        let candidate = prepare(bundled.component, Limits::DEFAULT, compile_here)
            .unwrap_or_else(|error| panic!("{} {}: {error:?}", bundled.name, bundled.version));
        let shipped: Descriptor = serde_json::from_str(bundled.descriptor).unwrap();
        assert_eq!(candidate.descriptor, shipped, "{} {}", bundled.name, bundled.version);
        assert_eq!(candidate.digest, bundled.digest);
        assert_eq!(candidate.warnings, [], "{} {}", bundled.name, bundled.version);
    }
}

#[test]
fn no_bundled_policy_comes_near_its_fuel() {
    for bundled in runwarden_bundled::POLICIES {
        let candidate = prepare(bundled.component, Limits::DEFAULT, compile_here).unwrap();
        let used = candidate.describe_fuel;
        assert!(
            used > 0 && used < Limits::DEFAULT.fuel / 100,
            "{} uses {used}",
            bundled.name
        );
    }
}

#[test]
fn the_example_session_paused_passes_the_checks() {
    let candidate = prepare(SESSION_PAUSED, Limits::DEFAULT, compile_here).unwrap();
    assert_eq!(candidate.descriptor.label(), "session@1.1.0");
    assert_eq!(candidate.warnings, []);
    assert!(candidate.inspected.exports("health"));
}

#[test]
fn the_example_review_passes_the_checks_with_every_part_it_has() {
    let candidate = prepare(REVIEW, Limits::DEFAULT, compile_here).unwrap();
    assert_eq!(candidate.descriptor.label(), "review@2.0.0");
    assert_eq!(candidate.warnings, []);
    for part in ["guard", "execution", "health", "migrate"] {
        assert!(candidate.inspected.exports(part), "{part}");
    }
}

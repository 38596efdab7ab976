//! The bundled components, really compiled and called.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use super::*;
use crate::model::Descriptor;

#[test]
fn every_bundled_component_passes_the_checks_and_says_what_its_descriptor_says() {
    for bundled in runwarden_bundled::POLICIES {
        let candidate = prepare(bundled.component, Limits::DEFAULT)
            .unwrap_or_else(|error| panic!("{} {}: {error:?}", bundled.name, bundled.version));
        let shipped: Descriptor = serde_json::from_str(bundled.descriptor).unwrap();
        assert_eq!(candidate.descriptor, shipped, "{} {}", bundled.name, bundled.version);
        assert_eq!(candidate.digest, bundled.digest);
        assert_eq!(candidate.warnings, [], "{} {}", bundled.name, bundled.version);
    }
}

#[test]
fn what_is_no_component_is_refused_with_its_reason() {
    let place = |bytes: &[u8]| match prepare(bytes, Limits::DEFAULT) {
        Err(InstallError::Unusable(findings)) => findings[0].place.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(place(b"#!/bin/sh\n"), "header");
    assert_eq!(place(b""), "header");
    assert_eq!(place(b"\0asm\x01\0\0\0"), "header");
    let bytes = runwarden_bundled::POLICIES[0].component;
    assert_eq!(place(&bytes[..bytes.len() / 2]), "component");
    let tight = Limits {
        component_bytes: 1_000,
        ..Limits::DEFAULT
    };
    assert!(matches!(prepare(bytes, tight), Err(InstallError::Unusable(findings)) if findings[0].place == "size"));
}

#[test]
fn each_limit_ends_the_call_as_a_fault_of_its_own() {
    let bytes = runwarden_bundled::POLICIES[0].component;
    let fault = |limits: Limits| match prepare(bytes, limits) {
        Err(InstallError::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    };
    let tight = |change: fn(&mut Limits)| {
        let mut limits = Limits::DEFAULT;
        change(&mut limits);
        fault(limits)
    };
    assert!(matches!(
        tight(|limits| limits.fuel = 1_000),
        PolicyFault::OutOfFuel { .. }
    ));
    assert!(matches!(
        tight(|limits| limits.memory_bytes = 1_000),
        PolicyFault::OutOfMemory { .. }
    ));
    assert!(matches!(
        tight(|limits| limits.answer_bytes = 100),
        PolicyFault::BadAnswer { .. }
    ));
}

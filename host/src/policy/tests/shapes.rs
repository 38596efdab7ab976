//! Files that no toolchain for policies makes: not components, components of others, damaged ones.

use std::sync::OnceLock;

use proptest::prelude::*;
use runwarden_test_guests::{Mode, hostile};

use super::guests::{fault, problems};
use crate::policy::{Limits, PolicyFault, compile_here, inspect, prepare};

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// A component with one core function, exported under these names in instances with these functions.
fn exporting(exports: &[(&str, &str)]) -> Vec<u8> {
    let mut text = String::from(
        r#"(component
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))"#,
    );
    for (number, (name, function)) in exports.iter().enumerate() {
        text += &format!(r#"(instance $n{number} (export "{function}" (func $f)))"#);
        text += &format!(r#"(export "{name}" (instance $n{number}))"#);
    }
    component(&(text + ")"))
}

#[test]
fn what_is_no_component_is_refused_with_its_reason() {
    let check = |bytes: &[u8], place: &str, words: &str| {
        let found = problems(bytes);
        assert_eq!(found[0].0, place);
        assert!(found[0].1.contains(words), "{found:?}");
    };
    check(b"", "header", "not WebAssembly");
    check(b"#!/bin/sh\n", "header", "not WebAssembly");
    check(b"\x7fELF\x02\x01\x01", "header", "not WebAssembly");
    check(b"\0asm\x01\0\0\0", "header", "a core module");
    check(&component("(module (memory 1))"), "header", "a core module");
    check(b"\0asm", "header", "");
    let honest = hostile(Mode::Honest);
    check(&honest[..honest.len() / 2], "component", "");
    check(&component("(component)"), "exports", "no policy and no handler");
}

#[test]
fn compiled_code_from_outside_is_never_admitted() {
    let engine = crate::policy::engine::engine().unwrap();
    let compiled = engine.precompile_component(&hostile(Mode::Honest)).unwrap();
    let found = problems(&compiled);
    assert_eq!(found[0].0, "header");
    assert!(found[0].1.contains("compiled"), "{found:?}");
}

#[test]
fn each_foreign_import_is_refused_by_name() {
    let bytes = component(
        r#"(component
            (import "wasi:clocks/monotonic-clock@0.2.0" (instance))
            (import "wasi:random/random@0.2.0" (instance))
            (import "acme:tools/hammer@1.0.0" (instance))
            (import "hammer" (func))
            (import "runwarden:policy/lifecycle@0.1.0" (instance))
            (import "runwarden:host/diagnostics@0.2.0" (instance)))"#,
    );
    let found = problems(&bytes);
    let check = |place: &str, words: &str| {
        let message = found
            .iter()
            .find(|(found, _)| found == place)
            .map(|(_, message)| message.as_str());
        assert!(
            message.is_some_and(|message| message.contains(words)),
            "{place}: {found:?}"
        );
    };
    check(
        "imports.wasi:clocks/monotonic-clock@0.2.0",
        "no clock, files, network or entropy",
    );
    check(
        "imports.wasi:random/random@0.2.0",
        "no clock, files, network or entropy",
    );
    check(
        "imports.acme:tools/hammer@1.0.0",
        "the only import is runwarden:host/diagnostics",
    );
    check("imports.hammer", "may not be imported");
    check("imports.runwarden:policy/lifecycle@0.1.0", "may not be imported");
    check(
        "imports.runwarden:host/diagnostics@0.2.0",
        "this runwarden speaks 0.1.x",
    );
    check("exports", "no policy and no handler");
}

#[test]
fn a_later_wit_line_is_told_in_plain_words() {
    let found = problems(&exporting(&[
        ("runwarden:policy/lifecycle@0.2.0", "describe"),
        ("runwarden:policy/guard@0.2.0", "evaluate"),
    ]));
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(
        places,
        [
            "exports.runwarden:policy/lifecycle@0.2.0",
            "exports.runwarden:policy/guard@0.2.0"
        ]
    );
    assert!(
        found[0].1.starts_with("WIT 0.2.0: this runwarden speaks 0.1.x"),
        "{found:?}"
    );
}

#[test]
fn an_interface_exported_in_two_versions_is_refused() {
    let found = problems(&exporting(&[
        ("runwarden:policy/lifecycle@0.1.0", "describe"),
        ("runwarden:policy/lifecycle@0.1.1", "describe"),
    ]));
    assert_eq!(found[0].0, "exports.runwarden:policy/lifecycle@0.1.1");
}

#[test]
fn each_export_of_another_type_is_refused_in_its_place_at_install() {
    let found = problems(&exporting(&[
        ("runwarden:policy/lifecycle@0.1.0", "describe"),
        ("runwarden:policy/guard@0.1.0", "evaluate"),
        ("runwarden:policy/health@0.1.0", "elsewhere"),
    ]));
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    let expected = [
        "exports.runwarden:policy/guard@0.1.0",
        "exports.runwarden:policy/health@0.1.0",
        "exports.runwarden:policy/lifecycle@0.1.0",
    ];
    assert_eq!(places, expected, "{found:?}");
}

#[test]
fn a_types_package_cannot_smuggle_a_function_in() {
    let bytes = component(
        r#"(component
            (import "runwarden:types/types@0.1.0" (instance $t (export "now" (func (result u64)))))
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))
            (instance $n (export "describe" (func $f)))
            (export "runwarden:policy/lifecycle@0.1.0" (instance $n)))"#,
    );
    assert!(matches!(
        fault(&bytes, Limits::DEFAULT),
        PolicyFault::NotLoadable { .. }
    ));
}

static HONEST: OnceLock<Vec<u8>> = OnceLock::new();

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_cut_and_flipped_anywhere_are_judged_without_a_panic(
        cut in 0_usize..200_000,
        flips in prop::collection::vec((0_usize..200_000, 0_u8..8), 0..4),
    ) {
        let mut bytes = HONEST.get_or_init(|| hostile(Mode::Honest)).clone();
        bytes.truncate(cut.max(1));
        for (place, bit) in flips {
            let at = place % bytes.len();
            bytes[at] ^= 1 << bit;
        }
        let _ = inspect(&bytes, Limits::DEFAULT);
    }
}

#[test]
fn damaged_components_that_still_validate_are_run_without_a_panic() {
    let honest = hostile(Mode::Honest);
    // Damage in the data and the code of the guest: a step through the whole file, some bits of each place.
    let places = (8..honest.len()).step_by(honest.len() / 12);
    for (number, place) in places.enumerate() {
        let mut bytes = honest.clone();
        bytes[place] ^= 1 << (number % 8);
        let _ = prepare(&bytes, Limits::DEFAULT, compile_here);
    }
}

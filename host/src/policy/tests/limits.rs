//! Limits on what a component holds, met by components that hold much in ways that a Rust guest does not.

use super::guests::{UNHURRIED, fault};
use crate::policy::{Limits, PolicyFault};

/// A component of several core modules, each with this in it, started one after the other.
fn holding(modules: usize, inside: &str) -> Vec<u8> {
    let mut text = String::from("(component ");
    for number in 0..modules {
        text += &format!("(core module $m{number} {inside}) (core instance (instantiate $m{number}))");
    }
    text += r#"
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (instance $n (export "describe" (func $f)))
        (export "runwarden:policy/lifecycle@0.1.0" (instance $n)))"#;
    wat::parse_str(text).unwrap()
}

fn fault_of(modules: usize, inside: &str) -> PolicyFault {
    fault(&holding(modules, inside), UNHURRIED)
}

#[test]
fn the_memories_of_a_component_are_counted_together() {
    // Each is within the limit by itself: 8 MiB of 16.
    assert!(matches!(fault_of(3, "(memory 128)"), PolicyFault::OutOfMemory { .. }));
    let growing = "(memory 1) (func $s (drop (memory.grow (i32.const 120)))) (start $s)";
    assert!(matches!(fault_of(3, growing), PolicyFault::OutOfMemory { .. }));
}

#[test]
fn the_tables_of_a_component_are_counted_together_and_are_no_memory() {
    assert!(matches!(
        fault_of(1, "(table 200000 funcref)"),
        PolicyFault::OutOfElements { limit: 100_000, .. }
    ));
    assert!(matches!(
        fault_of(3, "(table 50000 funcref)"),
        PolicyFault::OutOfElements { .. }
    ));
    let growing = "(table 1 funcref) (func $s (drop (table.grow (ref.null func) (i32.const 200000)))) (start $s)";
    assert!(matches!(fault_of(1, growing), PolicyFault::OutOfElements { .. }));
}

#[test]
fn a_growth_past_its_own_maximum_is_a_no_and_no_fault() {
    // It learns that the growth failed, goes on, and is refused for what comes after.
    let inside = "(memory 1 2) (func $s (drop (memory.grow (i32.const 5)))) (start $s)";
    let found = super::guests::problems(&holding(1, inside));
    assert_eq!(found[0].0, "exports.runwarden:policy/lifecycle@0.1.0");
}

#[test]
fn too_many_instances_make_a_component_that_cannot_be_loaded() {
    assert!(matches!(fault_of(100, "(memory 0)"), PolicyFault::NotLoadable { .. }));
}

#[test]
fn the_start_of_a_component_counts_against_every_limit() {
    let looping = "(func $s (loop $l (br $l))) (start $s)";
    assert!(matches!(fault_of(1, looping), PolicyFault::OutOfFuel { .. }));
    assert!(matches!(
        fault_of(1, "(func $s (call $s)) (start $s)"),
        PolicyFault::Trapped { .. }
    ));
    assert!(matches!(
        fault_of(1, "(func $s unreachable) (start $s)"),
        PolicyFault::Trapped { .. }
    ));
}

#[test]
fn filling_memory_again_and_again_is_ended_although_it_costs_little_fuel() {
    let filling = "(memory 128) (func $s (loop $l
        (memory.fill (i32.const 0) (i32.const 1) (i32.const 8388608)) (br $l))) (start $s)";
    let fault = fault(&holding(1, filling), Limits::DEFAULT);
    assert!(
        matches!(fault, PolicyFault::OutOfTime { .. } | PolicyFault::OutOfFuel { .. }),
        "{fault:?}"
    );
}

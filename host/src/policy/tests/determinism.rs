//! The same call gives the same answer for the same fuel, and data alone needs no engine.

use std::sync::Arc;

use runwarden_test_guests::{Mode, hostile};

use wasmtime::component::Component;

use super::fake::Components;
use super::guests::prepared;
use crate::policy::calls::Callable;
use crate::policy::engine::engine;
use crate::policy::instance::link;
use crate::policy::{InstallError, Limits, Policies, PolicyFault, engines_made};

/// Set for the child that runs one test in a process of its own.
const ALONE: &str = "RUNWARDEN_TEST_ALONE";

#[test]
fn the_same_call_uses_the_same_fuel_and_gives_the_same_answer() {
    let first = prepared(Mode::Honest).unwrap();
    for _ in 0..3 {
        let again = prepared(Mode::Honest).unwrap();
        assert_eq!(again.describe_fuel, first.describe_fuel);
        assert_eq!(again.descriptor.canonical(), first.descriptor.canonical());
    }
}

#[test]
fn the_least_fuel_that_is_enough_is_always_the_same() {
    let component = Component::new(engine().unwrap(), hostile(Mode::Honest)).unwrap();
    let linked = link(&component).unwrap();
    let with = |fuel| {
        Callable::new(
            "gadget",
            &linked,
            Limits {
                fuel,
                ..Limits::DEFAULT
            },
        )
        .describe()
    };
    let least = || {
        let (mut short, mut enough) = (0, Limits::DEFAULT.fuel);
        while short + 1 < enough {
            let fuel = u64::midpoint(short, enough);
            match with(fuel) {
                Ok(_) => enough = fuel,
                Err(InstallError::Fault(PolicyFault::OutOfFuel { .. })) => short = fuel,
                Err(other) => panic!("{other:?}"),
            }
        }
        enough
    };
    assert_eq!(least(), least());
}

#[test]
fn a_command_that_reads_descriptors_makes_no_engine() {
    if std::env::var_os(ALONE).is_none() {
        let name = "policy::tests::determinism::a_command_that_reads_descriptors_makes_no_engine";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let bundled = &runwarden_bundled::POLICIES[0];
    let mut store = Components::default();
    store.add(bundled.digest, bundled.descriptor, bundled.component());
    let directory = tempfile::tempdir().unwrap();
    let policies = Policies::new(Arc::new(store.into_store()), directory.path(), Limits::DEFAULT);
    assert!(policies.lifecycle(bundled.digest).unwrap().is_some());
    let installed = policies.installed(bundled.digest).unwrap().unwrap();
    assert!(installed.pin.parameters.is_empty());
    assert!(policies.active(bundled.kind).unwrap().is_none());
    assert!(!policies.exports(bundled.digest, "guard").unwrap());
    assert!(crate::policy::inspect(&bundled.component(), Limits::DEFAULT).is_ok());
    assert_eq!(engines_made(), 0);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

//! Every way in which a component fails, in the words of the command line: a way more without its words fails here.

use std::collections::BTreeSet;

use runwarden_host::Error;
use runwarden_host::model::{Finding, Severity};
use runwarden_host::store::StoreError;

use super::*;
use crate::errors::Failure;

/// The names of all variants of `PolicyFault`: the compiler holds it to be all of them.
fn name_of_fault(fault: &PolicyFault) -> &'static str {
    match fault {
        PolicyFault::Trapped { .. } => "trapped",
        PolicyFault::OutOfFuel { .. } => "out of fuel",
        PolicyFault::OutOfTime { .. } => "out of time",
        PolicyFault::OutOfMemory { .. } => "out of memory",
        PolicyFault::OutOfElements { .. } => "out of table elements",
        PolicyFault::BadAnswer { .. } => "bad answer",
        PolicyFault::Reported { .. } => "reported",
        PolicyFault::NotLoadable { .. } => "not loadable",
        PolicyFault::Store { .. } => "store",
    }
}

/// How many names [`name_of_fault`] knows.
const FAULTS: usize = 9;

/// Likewise of `InstallError`.
fn name_of_install(error: &InstallError) -> &'static str {
    match error {
        InstallError::TooLarge { .. } => "too large",
        InstallError::Unusable(_) => "unusable",
        InstallError::Fault(_) => "fault",
    }
}

fn every_fault() -> Vec<PolicyFault> {
    let policy = || "gadget@1.0.0".to_owned();
    let function = "guard.evaluate";
    let reported = |hint: Option<&str>| PolicyFault::Reported {
        policy: policy(),
        function,
        code: "no_quorum".into(),
        message: "nobody answered".to_owned(),
        hint: hint.map(Box::from),
    };
    vec![
        PolicyFault::Trapped {
            policy: policy(),
            function,
            message: "the table is lost at src/lib.rs:7:3".to_owned(),
            backtrace: "0: gadget!guard".to_owned(),
        },
        PolicyFault::OutOfFuel {
            policy: policy(),
            function,
            fuel: 50_000_000,
        },
        PolicyFault::OutOfTime {
            policy: policy(),
            function,
            limit_ms: 250,
        },
        PolicyFault::OutOfMemory {
            policy: policy(),
            function,
            limit_bytes: 16 << 20,
        },
        PolicyFault::OutOfElements {
            policy: policy(),
            function,
            limit: 100_000,
        },
        PolicyFault::BadAnswer {
            policy: policy(),
            function,
            why: "`Too Early` is no code: lower-case words joined by underscores".to_owned(),
        },
        reported(None),
        reported(Some("ask again tomorrow")),
        PolicyFault::NotLoadable {
            policy: policy(),
            why: "threads must be enabled for shared memories".to_owned(),
        },
        PolicyFault::Store {
            policy: policy(),
            source: StoreError::Corrupt {
                path: "components".to_owned(),
                what: "the descriptor of gadget".to_owned(),
            },
        },
    ]
}

/// Errors with a first problem in each place that has advice of its own, and every fault.
fn every_install_error() -> Vec<InstallError> {
    let places = [
        "header",
        "component",
        "imports.wasi:random/random@0.2.0",
        "exports",
        "edges[3].to",
    ];
    let unusable = places.map(|place| {
        InstallError::Unusable(vec![Finding {
            severity: Severity::Error,
            place: place.to_owned(),
            message: "is not as it should be".to_owned(),
        }])
    });
    let too_large = InstallError::TooLarge {
        bytes: 9 << 20,
        limit_bytes: 8 << 20,
    };
    let faults = every_fault().into_iter().map(InstallError::Fault);
    unusable.into_iter().chain([too_large]).chain(faults).collect()
}

/// What people see and what scripts read.
fn shown(failure: &Failure) -> String {
    assert!(!failure.hints.is_empty(), "no way on is shown: {failure:?}");
    format!("exit {}\n{:#}\n", failure.exit.code(), failure.json())
}

#[test]
fn every_fault_of_a_call_says_what_to_do() {
    let faults = every_fault();
    let names: BTreeSet<_> = faults.iter().map(name_of_fault).collect();
    assert_eq!(names.len(), FAULTS, "each variant is shown: {names:?}");
    let text: Vec<String> = faults
        .into_iter()
        .map(|fault| {
            format!(
                "## {}\n{}",
                name_of_fault(&fault),
                shown(&Failure::from(Error::Policy(fault)))
            )
        })
        .collect();
    insta::assert_snapshot!("every_fault_of_a_call", text.join("\n"));
}

#[test]
fn every_refusal_of_a_file_says_what_to_do() {
    let errors = every_install_error();
    let names: BTreeSet<_> = errors.iter().map(name_of_install).collect();
    assert_eq!(names.len(), 3, "each variant is shown: {names:?}");
    let text: Vec<String> = errors
        .into_iter()
        .map(|error| format!("## {}\n{}", name_of_install(&error), shown(&Failure::from(error))))
        .collect();
    insta::assert_snapshot!("every_refusal_of_a_file", text.join("\n"));
}

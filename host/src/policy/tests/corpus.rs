//! The hostile corpus, all of it in one table: what is asked of each file, and the exact words of the answer.

use std::fmt::Write as _;

use runwarden_test_guests::{Asked, Case, WASI_INTERFACES, corpus};

use super::compiled::compiled;
use super::guests::{Installed, UNHURRIED, pin_to, problems};
use super::handlers;
use crate::policy::{InstallError, PolicyFault, prepare, sha256_hex};

/// How many problems of one file are shown in the table.
const PROBLEMS_SHOWN: usize = 4;

/// How many characters of one line are shown in the table.
const LINE_SHOWN: usize = 300;

/// The answer to a case, a line for each thing that is told.
fn answer(case: &Case) -> String {
    let digest = sha256_hex(&case.bytes);
    let policy = || Installed::of(vec![(digest.clone(), case.bytes.clone())], UNHURRIED);
    let pin = pin_to(digest.clone());
    match case.asked {
        Asked::Install => installed(&case.bytes),
        Asked::Guard => told(policy().guard_under(&pin)),
        Asked::Verdict => told(policy().verdict_under(&pin)),
        Asked::Assess => told(policy().assess_under(&pin)),
        Asked::Plan => {
            let handler = handlers::Installed::of(vec![(digest.clone(), case.bytes.clone())], UNHURRIED);
            told(handler.plan_by(digest))
        }
    }
}

fn installed(bytes: &[u8]) -> String {
    match prepare(bytes, UNHURRIED, compiled) {
        Ok(candidate) => {
            assert_eq!(
                candidate.digest,
                sha256_hex(bytes),
                "a file has its own digest and no other"
            );
            format!("admitted as {}", candidate.descriptor.label())
        }
        Err(InstallError::Fault(fault)) => fault.to_string(),
        Err(error @ InstallError::TooLarge { .. }) => error.to_string(),
        Err(InstallError::Unusable(findings)) => {
            let more = findings.len().saturating_sub(PROBLEMS_SHOWN);
            let lines = findings.iter().take(PROBLEMS_SHOWN);
            let mut lines: Vec<String> = lines
                .map(|found| format!("{}: {}", found.place, found.message))
                .collect();
            if more > 0 {
                lines.push(format!("and {more} more"));
            }
            lines.join("\n")
        }
    }
}

fn told<T: std::fmt::Debug>(answer: Result<T, PolicyFault>) -> String {
    match answer {
        Ok(answer) => format!("answered {answer:?}"),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn each_of_the_corpus_gets_its_own_answer_and_harms_nothing() {
    let mut table = String::new();
    let corpus = corpus();
    assert!(corpus.len() >= 30, "{} cases", corpus.len());
    for case in &corpus {
        let asked = format!("{:?}", case.asked).to_lowercase();
        writeln!(table, "{} [{asked}]", case.name).unwrap();
        for line in answer(case).lines() {
            let short: String = line.chars().take(LINE_SHOWN).collect();
            writeln!(table, "    {short}").unwrap();
        }
    }
    // What changes with the toolchain and the sources: places in files, digests, and bytes that were built.
    let filters = [
        (r"component `[0-9a-f]{12}`", "component `DIGEST`"),
        (r"\.rs:\d+:\d+", ".rs:LINE:COLUMN"),
    ];
    insta::with_settings!({filters => filters, omit_expression => true, prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("hostile_corpus", table);
    });
}

#[test]
fn each_interface_of_wasi_is_refused_by_its_name() {
    for interface in WASI_INTERFACES {
        let text = format!(r#"(component (import "{interface}@0.2.6" (instance)))"#);
        let found = problems(&wat::parse_str(text).unwrap());
        let place = format!("imports.{interface}@0.2.6");
        assert!(
            found
                .iter()
                .any(|(found, message)| *found == place && message.contains("no clock")),
            "{found:?}"
        );
    }
}

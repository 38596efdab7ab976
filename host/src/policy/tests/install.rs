//! `prepare` on guests that misbehave in `describe`: each is refused, with its own fault or every problem in its place.

use runwarden_test_guests::{Mode, hostile};

use super::guests::{UNHURRIED, fault, prepared, problems};
use crate::policy::{InstallError, Limits, PolicyFault, compile_here, prepare};

#[test]
fn an_honest_guest_is_admitted_with_what_is_doubtful_about_it() {
    let candidate = prepared(Mode::Honest).unwrap();
    assert!(candidate.errors().next().is_none());
    let doubts: Vec<&str> = candidate
        .findings
        .iter()
        .map(|finding| finding.place.as_str())
        .collect();
    assert_eq!(
        doubts,
        ["statuses[1]", "statuses[2]", "statuses[2]"],
        "{:?}",
        candidate.findings
    );
    assert_eq!(candidate.descriptor.label(), "gadget@1.0.0");
}

#[test]
fn each_way_to_fail_in_describe_is_a_fault_of_its_own() {
    let fault = |mode| fault(&hostile(mode), UNHURRIED);
    assert!(matches!(
        fault(Mode::DescribeLoops),
        PolicyFault::OutOfFuel { fuel: 50_000_000, .. }
    ));
    assert!(matches!(
        fault(Mode::DescribeTakesMemory),
        PolicyFault::OutOfMemory {
            limit_bytes: 16_777_216,
            ..
        }
    ));
    assert!(matches!(fault(Mode::DescribeRecurses), PolicyFault::Trapped { .. }));
    assert!(matches!(fault(Mode::DescribeIsEnormous), PolicyFault::BadAnswer { .. }));
}

#[test]
fn a_loop_that_fuel_would_allow_is_ended_by_the_clock() {
    let limits = Limits {
        fuel: u64::MAX,
        ..Limits::DEFAULT
    };
    assert!(matches!(
        fault(&hostile(Mode::DescribeLoops), limits),
        PolicyFault::OutOfTime { limit_ms: 250, .. }
    ));
}

#[test]
fn a_panic_tells_its_own_words_its_place_and_its_frames() {
    let PolicyFault::Trapped {
        function,
        message,
        backtrace,
        ..
    } = fault(&hostile(Mode::DescribePanics), UNHURRIED)
    else {
        panic!("a panic is a trap")
    };
    assert_eq!(function, "lifecycle.describe");
    assert!(message.starts_with("the table is lost at "), "{message}");
    assert!(message.contains("tests/guests/hostile/src/table.rs:"), "{message}");
    assert!(backtrace.contains("runwarden_guest_hostile"), "{backtrace}");
}

#[test]
fn a_panic_of_megabytes_is_a_trap_with_a_short_message() {
    let PolicyFault::Trapped { message, .. } = fault(&hostile(Mode::DescribePanicsAtLength), UNHURRIED) else {
        panic!("a panic is a trap, however long its words")
    };
    assert!(
        message.starts_with("xxxx") && message.len() < 10_000,
        "{} bytes",
        message.len()
    );
}

#[test]
fn a_panic_too_long_to_cross_is_a_trap_and_no_bad_answer() {
    let limits = Limits {
        host_call_bytes: 1 << 20,
        answer_bytes: 1 << 20,
        ..UNHURRIED
    };
    let fault = fault(&hostile(Mode::DescribePanicsAtLength), limits);
    assert!(matches!(fault, PolicyFault::Trapped { .. }), "{fault:?}");
}

#[test]
fn logging_without_measure_costs_lines_and_no_installation() {
    assert!(prepared(Mode::DescribeFloodsLog).is_ok());
    assert!(prepared(Mode::DescribeLogsAtLength).is_ok());
}

#[test]
fn every_problem_of_a_descriptor_is_told_at_once_in_its_place() {
    let found = problems(&hostile(Mode::DescribeHasProblems));
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    for place in [
        "version",
        "statuses[6].name",
        "statuses[6]",
        "edges[8]",
        "edges[9].to",
        "fields[6]",
        "reads.history",
    ] {
        assert!(places.contains(&place), "{place} is not among {places:?}");
    }
}

#[test]
fn words_that_are_none_and_values_that_are_no_json_are_told_in_their_place() {
    let check = |mode, places: &[&str]| {
        let found = problems(&hostile(mode));
        assert_eq!(
            found.iter().map(|(place, _)| place.as_str()).collect::<Vec<_>>(),
            places,
            "{mode:?}: {found:?}"
        );
    };
    check(Mode::DescribeIsNoJson, &["parameters.patience"]);
    check(Mode::DescribeNestsDeep, &["parameters.patience"]);
    check(
        Mode::DescribeSpeaksUnknownWords,
        &["same_status", "fields.ended_at", "kill.cascade"],
    );
    check(Mode::DescribeIsCritical, &["ext"]);
}

#[test]
fn thousands_of_problems_are_told_as_hundreds_and_a_number() {
    let found = problems(&hostile(Mode::DescribeHasManyStatuses));
    assert!(
        found
            .iter()
            .any(|(place, message)| place == "statuses" && message.contains("at most 256")),
        "{found:?}"
    );
    assert!(found.len() <= 257, "{} problems", found.len());
}

#[test]
fn a_strangers_words_cannot_paint_the_terminal() {
    for (place, message) in problems(&hostile(Mode::DescribePaintsTerminals)) {
        assert!(
            !place.contains(char::is_control) && !message.contains(char::is_control),
            "{place:?}: {message:?}"
        );
    }
}

#[test]
fn each_limit_ends_the_call_as_a_fault_of_its_own() {
    let bytes = &runwarden_bundled::POLICIES[0].component();
    let tight = |change: fn(&mut Limits)| {
        let mut limits = UNHURRIED;
        change(&mut limits);
        fault(bytes, limits)
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
    let small = Limits {
        component_bytes: 1_000,
        ..UNHURRIED
    };
    assert!(matches!(
        prepare(bytes, small, compile_here),
        Err(InstallError::TooLarge { .. })
    ));
}

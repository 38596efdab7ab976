//! Guards, verdicts and health functions that misbehave: each fails its own call, and nothing else.

use runwarden_test_guests::Mode;
use serde_json::json;

use super::guests::{Installed, UNHURRIED};
use crate::model::{Descriptor, HealthLevel, Structural};
use crate::policy::calls::attempts;
use crate::policy::{Limits, PolicyFault};

#[test]
fn a_guard_admits_or_refuses_with_its_code_and_words() {
    let installed = Installed::new(&[Mode::Honest, Mode::GuardRefuses, Mode::GuardGivesNoCode]);
    assert_eq!(installed.guard(Mode::Honest).unwrap(), None);
    let refusal = |code: &str, words: &str| Some((code.to_owned(), words.to_owned()));
    assert_eq!(
        installed.guard(Mode::GuardRefuses).unwrap(),
        refusal("too_early", "the gadget is still warm")
    );
    let escaped = "\\u{1b}[31mno\\u{1b}[0m";
    assert_eq!(
        installed.guard(Mode::GuardGivesNoCode).unwrap(),
        refusal("guard", escaped)
    );
}

#[test]
fn each_way_to_fail_in_a_guard_is_a_fault_of_its_own() {
    let modes = [
        Mode::GuardLoops,
        Mode::GuardTakesMemory,
        Mode::GuardPanics,
        Mode::GuardFaults,
        Mode::GuardIsCritical,
        Mode::GuardContradicts,
        Mode::GuardCodeIsNone,
    ];
    let installed = Installed::new(&modes);
    let fault = |mode| installed.guard(mode).unwrap_err();
    assert!(matches!(
        fault(Mode::GuardLoops),
        PolicyFault::OutOfFuel {
            function: "guard.evaluate",
            ..
        }
    ));
    assert!(matches!(fault(Mode::GuardTakesMemory), PolicyFault::OutOfMemory { .. }));
    assert!(matches!(fault(Mode::GuardIsCritical), PolicyFault::BadAnswer { .. }));
    assert!(matches!(fault(Mode::GuardContradicts), PolicyFault::BadAnswer { .. }));
    assert!(matches!(fault(Mode::GuardCodeIsNone), PolicyFault::BadAnswer { .. }));
    let PolicyFault::Trapped { message, .. } = fault(Mode::GuardPanics) else {
        panic!("a panic is a trap")
    };
    assert!(message.starts_with("the guard gives up on g1 at "), "{message}");
    let PolicyFault::Reported { code, message, .. } = fault(Mode::GuardFaults) else {
        panic!("it reports")
    };
    assert_eq!((&*code, message.as_str()), ("no_quorum", "nobody answered"));
}

#[test]
fn a_loop_in_a_guard_is_ended_by_the_clock_where_fuel_does_not() {
    let installed = Installed::within(
        &[Mode::GuardLoops],
        Limits {
            fuel: u64::MAX,
            ..Limits::DEFAULT
        },
    );
    assert!(matches!(
        installed.guard(Mode::GuardLoops),
        Err(PolicyFault::OutOfTime { .. })
    ));
}

#[test]
fn a_fault_in_one_policy_leaves_it_and_the_others_callable() {
    let installed = Installed::new(&[
        Mode::Honest,
        Mode::GuardPanics,
        Mode::GuardTakesMemory,
        Mode::VerdictPanics,
    ]);
    for _ in 0..3 {
        assert!(installed.guard(Mode::GuardPanics).is_err());
        assert!(installed.guard(Mode::GuardTakesMemory).is_err());
        assert!(installed.verdict(Mode::VerdictPanics).is_err());
        assert_eq!(installed.guard(Mode::Honest).unwrap(), None);
        // The part that misbehaves is the guard; the same component still judges.
        assert!(installed.verdict(Mode::GuardPanics).is_ok());
    }
}

#[test]
fn a_guard_remembers_nothing_from_call_to_call() {
    let installed = Installed::new(&[Mode::GuardCounts]);
    for _ in 0..3 {
        let (code, words) = installed.guard(Mode::GuardCounts).unwrap().unwrap();
        assert_eq!((code.as_str(), words.as_str()), ("counted", "1"));
    }
}

#[test]
fn a_verdict_may_differ_from_the_table() {
    let installed = Installed::new(&[Mode::Honest, Mode::VerdictDiffers]);
    let by_table = installed.verdict(Mode::Honest).unwrap();
    assert_eq!(by_table.outcome.status, "spoiled");
    let judged = installed.verdict(Mode::VerdictDiffers).unwrap();
    assert_eq!(
        (judged.outcome.status.as_str(), judged.outcome.code.as_str()),
        ("done", "gadget.done.rescued")
    );
    assert_eq!(judged.summary.as_deref(), Some("saved by its notes"));
    assert_eq!(judged.patch.get("note"), Some(&json!("was warm")));
    assert_eq!(judged.retry_after.map(|delay| delay.as_ms()), Some(1_000));
}

#[test]
fn an_answer_that_was_not_declared_is_no_verdict() {
    let modes = [
        (Mode::VerdictUndeclaredEdge, "no edge working -> heaven"),
        (
            Mode::VerdictUndeclaredCode,
            "reason code `gadget.done.somehow` is not declared",
        ),
        (Mode::VerdictUndeclaredField, "field `soul` is not declared"),
        (Mode::VerdictIsNoJson, "field `note` is no JSON value"),
        (Mode::VerdictNestsDeep, "field `note` is no JSON value"),
        (Mode::VerdictWrongKind, "field `size` takes a whole number"),
        (Mode::VerdictOverwritesExit, "field `exit_code` says what was observed"),
        (Mode::VerdictRetriesInThePast, "in the past"),
        (Mode::VerdictGuardedEdge, "is guarded"),
        (Mode::VerdictOperatorEdge, "restricts actors"),
        (Mode::VerdictIsCritical, "critical extension `from-the-future`"),
    ];
    let installed = Installed::new(&modes.map(|(mode, _)| mode));
    for (mode, words) in modes {
        match installed.verdict(mode) {
            Err(PolicyFault::BadAnswer {
                why,
                function: "execution.verdict",
                ..
            }) => {
                assert!(why.contains(words), "{mode:?}: {why}");
            }
            other => panic!("{mode:?}: {other:?}"),
        }
    }
}

#[test]
fn each_way_to_fail_in_a_verdict_is_a_fault_of_its_own() {
    let installed = Installed::new(&[Mode::VerdictPanics, Mode::VerdictLoops, Mode::VerdictFaults]);
    assert!(matches!(
        installed.verdict(Mode::VerdictPanics),
        Err(PolicyFault::Trapped { .. })
    ));
    assert!(matches!(
        installed.verdict(Mode::VerdictLoops),
        Err(PolicyFault::OutOfFuel { .. })
    ));
    assert!(matches!(
        installed.verdict(Mode::VerdictFaults),
        Err(PolicyFault::Reported { .. })
    ));
}

#[test]
fn an_answer_over_its_limit_is_no_answer() {
    let tight = Limits {
        answer_bytes: 10,
        ..UNHURRIED
    };
    let installed = Installed::within(&[Mode::GuardRefuses, Mode::VerdictDiffers, Mode::Honest], tight);
    assert!(matches!(
        installed.guard(Mode::GuardRefuses),
        Err(PolicyFault::BadAnswer { .. })
    ));
    assert!(matches!(
        installed.verdict(Mode::VerdictDiffers),
        Err(PolicyFault::BadAnswer { .. })
    ));
    assert!(matches!(
        installed.assess(Mode::Honest),
        Err(PolicyFault::BadAnswer { .. })
    ));
}

#[test]
fn health_is_one_of_its_levels() {
    let modes = [
        Mode::Honest,
        Mode::HealthUnknownLevel,
        Mode::HealthIsCritical,
        Mode::HealthPanics,
    ];
    let installed = Installed::new(&modes);
    assert_eq!(installed.assess(Mode::Honest).unwrap().level, HealthLevel::Healthy);
    assert!(matches!(
        installed.assess(Mode::HealthUnknownLevel),
        Err(PolicyFault::BadAnswer { .. })
    ));
    assert!(matches!(
        installed.assess(Mode::HealthIsCritical),
        Err(PolicyFault::BadAnswer { .. })
    ));
    assert!(matches!(
        installed.assess(Mode::HealthPanics),
        Err(PolicyFault::Trapped { .. })
    ));
}

#[test]
fn a_policy_that_is_not_installed_is_not_loadable() {
    let installed = Installed::new(&[Mode::Honest]);
    let nowhere = crate::model::PolicyPin {
        name: "gadget".to_owned(),
        version: "9.0.0".to_owned(),
        digest: "f".repeat(64),
        parameters: crate::model::Fields::new(),
    };
    assert!(installed.policies.lifecycle(&nowhere.digest).unwrap().is_none());
    assert!(installed.policies.installed(&nowhere.digest).unwrap().is_none());
    let fault = installed.assess_under(&nowhere);
    assert!(matches!(fault, Err(PolicyFault::NotLoadable { policy, .. }) if policy == "gadget@9.0.0"));
}

#[test]
fn a_verdict_is_told_the_stop_that_was_wanted() {
    let judged = Installed::new(&[Mode::VerdictTells])
        .verdict(Mode::VerdictTells)
        .unwrap();
    let summary = judged.summary.unwrap();
    assert_eq!(summary, "stop gadget.spoiled.bad, attempt 1, left 0");
}

#[test]
fn attempts_left_are_counted_where_starts_are() {
    let descriptor = |name: &str| -> Descriptor {
        let named = |policy: &&runwarden_bundled::Bundled| format!("{}@{}", policy.name, policy.version) == name;
        let found = runwarden_bundled::POLICIES.iter().find(named);
        serde_json::from_str(found.unwrap().descriptor).unwrap()
    };
    let leased = |lease_attempts| Structural {
        lease_attempts,
        ..Structural::default()
    };
    let check = |kind, structural: Structural, expected| {
        assert_eq!(
            attempts(&descriptor(kind), &structural),
            expected,
            "{kind}: {structural:?}"
        );
    };
    check("schedule_run@2.0.0", leased(Some(1)), (1, 2));
    check("schedule_run@2.0.0", leased(Some(3)), (3, 0));
    check("schedule_run@2.0.0", leased(Some(4)), (4, 0));
    // Started by hand: no worker has it, nobody starts it again.
    check("schedule_run@2.0.0", leased(None), (1, 0));
    check("run@1.0.0", Structural::default(), (1, 0));
}

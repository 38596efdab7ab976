//! What guard, verdict and health answer in each mode.

use std::sync::atomic::{AtomicU32, Ordering};

use runwarden_kit::{Assessment, Decision, Ending, ExtField, Fault, Judgement, Request};

use crate::{Mode, harm};

/// How often the guard was asked, as far as its memory reaches.
static ASKED: AtomicU32 = AtomicU32::new(0);

fn critical() -> Vec<ExtField> {
    vec![ExtField {
        key: "from-the-future".to_owned(),
        json: "1".to_owned(),
        critical: true,
    }]
}

pub(crate) fn decide(mode: Mode, request: &Request) -> Result<Decision, Fault> {
    let asked = ASKED.fetch_add(1, Ordering::Relaxed) + 1;
    Ok(match mode {
        Mode::GuardLoops => harm::run_forever(),
        Mode::GuardPanics => panic!("the guard gives up on {}", request.entity.id),
        Mode::GuardTakesMemory => harm::take_memory(),
        Mode::GuardFaults => return Err(Fault::new("no_quorum", "nobody answered").hint("ask again")),
        Mode::GuardRefuses => Decision::refuse("too_early", "the gadget is still warm"),
        Mode::GuardIsCritical => Decision {
            ext: critical(),
            ..Decision::admit()
        },
        Mode::GuardCounts => Decision::refuse("counted", &asked.to_string()),
        Mode::GuardContradicts => Decision {
            code: "too_early".to_owned(),
            ..Decision::admit()
        },
        Mode::GuardCodeIsNone => Decision::refuse("\u{1b}[2J Too Early", "no"),
        Mode::GuardGivesNoCode => Decision::refuse("", "\u{1b}[31mno\u{1b}[0m"),
        _ => Decision::admit(),
    })
}

pub(crate) fn judge(mode: Mode, ending: &Ending) -> Result<Judgement, Fault> {
    let rescued = || Judgement::new("done", "gadget.done.rescued");
    Ok(match mode {
        Mode::VerdictUndeclaredEdge => Judgement::new("heaven", "gadget.done.ok"),
        Mode::VerdictUndeclaredCode => Judgement::new("done", "gadget.done.somehow"),
        Mode::VerdictPanics => panic!("the verdict gives up on exit code {:?}", ending.exit_code),
        Mode::VerdictLoops => harm::run_forever(),
        Mode::VerdictUndeclaredField => rescued().patch("soul", "1"),
        Mode::VerdictIsNoJson => rescued().patch("note", "{no json"),
        Mode::VerdictDiffers => rescued()
            .summary("saved by its notes")
            .patch("note", r#""was warm""#)
            .retry_after(1_000),
        Mode::VerdictSpoils => Judgement::new("spoiled", "gadget.spoiled.bad")
            .summary("it hums out of tune")
            .patch("note", r#""out of tune""#),
        Mode::VerdictTells => {
            let stop = ending.stop_intent.as_deref().unwrap_or("none");
            let (attempt, left) = (ending.attempt, ending.attempts_left);
            rescued().summary(&format!("stop {stop}, attempt {attempt}, left {left}"))
        }
        Mode::VerdictWrongKind => rescued().patch("size", r#""large""#),
        Mode::VerdictOverwritesExit => rescued().patch("exit_code", "0"),
        Mode::VerdictRetriesInThePast => rescued().retry_after(-1),
        Mode::VerdictFaults => return Err(Fault::new("no_idea", "the ending makes no sense")),
        Mode::VerdictGuardedEdge => Judgement::new("held", "gadget.held.asked"),
        Mode::VerdictOperatorEdge => Judgement::new("scrapped", "gadget.scrapped.operator"),
        Mode::VerdictIsCritical => Judgement {
            ext: critical(),
            ..rescued()
        },
        Mode::VerdictNestsDeep => rescued().patch("note", &harm::deep_json()),
        _ => match &ending.by_table {
            Some(outcome) => Judgement::from(outcome.clone()),
            None => Judgement::new("spoiled", "gadget.spoiled.bad"),
        },
    })
}

pub(crate) fn assess(mode: Mode) -> Result<Assessment, Fault> {
    Ok(match mode {
        Mode::HealthUnknownLevel => Assessment::new("splendid", "never better"),
        Mode::HealthIsCritical => Assessment {
            ext: critical(),
            ..Assessment::new("healthy", "it says")
        },
        Mode::HealthPanics => panic!("no pulse"),
        _ => Assessment::new("healthy", "it hums"),
    })
}

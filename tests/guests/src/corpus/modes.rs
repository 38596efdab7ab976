//! The hostile guests, which a toolchain makes, in every mode that is worth an answer of its own.

use super::{Asked, Case};
use crate::{Mode, hostile, hostile_handler};

pub(super) fn cases() -> Vec<Case> {
    let policy = |mode: &Mode| Case {
        name: format!("hostile guest: {mode:?}"),
        asked: asked(*mode),
        bytes: hostile(*mode),
    };
    let handler = |mode: &Mode| Case {
        bytes: hostile_handler(*mode),
        ..policy(mode)
    };
    let (handlers, policies): (Vec<Mode>, Vec<Mode>) = Mode::ALL.iter().partition(|mode| is_of_handler(**mode));
    let cases = policies.iter().map(policy).chain(handlers.iter().map(handler));
    cases.collect()
}

fn is_of_handler(mode: Mode) -> bool {
    asked(mode) == Asked::Plan || format!("{mode:?}").starts_with("Handler")
}

/// What a mode misbehaves in: the first word of its name.
fn asked(mode: Mode) -> Asked {
    let name = format!("{mode:?}");
    let starts = [
        ("Guard", Asked::Guard),
        ("Verdict", Asked::Verdict),
        ("Health", Asked::Assess),
        ("Plan", Asked::Plan),
    ];
    let found = starts.iter().find(|(start, _)| name.starts_with(start));
    found.map_or(Asked::Install, |(_, asked)| *asked)
}

//! What a descriptor counts on beside itself: the functions that its component exports.

use super::{Finding, Findings, Severity, check};
use crate::model::Descriptor;

/// An optional function of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `guard.evaluate`.
    Guard,
    /// `execution.verdict`.
    Verdict,
    /// `health.assess`.
    Health,
    /// `migrate.map`.
    Migrate,
}

impl Function {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Guard, Self::Verdict, Self::Health, Self::Migrate];

    /// The interface that has it: its last word.
    pub const fn interface(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Verdict => "execution",
            Self::Health => "health",
            Self::Migrate => "migrate",
        }
    }
}

/// Every problem of a policy that exports these functions. It may be installed when none is an error.
pub fn check_policy(descriptor: &Descriptor, exported: &[Function]) -> Vec<Finding> {
    let mut findings = Findings(check(descriptor));
    // A table of no bounded size was not looked at either.
    let is_whole = !findings.0.iter().any(|finding| finding.severity == Severity::Error);
    guards(descriptor, exported, &mut findings);
    if is_whole {
        unasked(descriptor, exported, &mut findings);
        unread(descriptor, exported, &mut findings);
    }
    findings.0
}

fn guards(descriptor: &Descriptor, exported: &[Function], findings: &mut Findings) {
    let guarded = descriptor.edges.iter().position(|edge| edge.guarded);
    match (guarded, exported.contains(&Function::Guard)) {
        (Some(index), false) => findings.error(
            format!("edges[{index}]"),
            "is guarded, and the component exports no runwarden:policy/guard",
        ),
        (None, true) => findings.warn(
            "exports",
            "runwarden:policy/guard is exported and no edge is guarded: it is never asked",
        ),
        (Some(_), true) | (None, false) => {}
    }
}

/// A function that nobody would ever ask.
fn unasked(descriptor: &Descriptor, exported: &[Function], findings: &mut Findings) {
    if exported.contains(&Function::Verdict) && descriptor.execution.is_none() {
        let message = "runwarden:policy/execution is exported and there is no execution rule: it is never asked";
        findings.warn("exports", message);
    }
}

/// What is declared for functions to see, where none is there to see it.
fn unread(descriptor: &Descriptor, exported: &[Function], findings: &mut Findings) {
    let nobody = "and the component exports no function that could see it";
    let reads = &descriptor.reads;
    if reads.last_output_bytes > 0 && !exported.contains(&Function::Verdict) {
        let message = "the output is asked for, and the component exports no runwarden:policy/execution to judge it";
        findings.warn("reads.last_output_bytes", message);
    }
    if !exported.is_empty() {
        return;
    }
    if !descriptor.parameters.is_empty() {
        findings.warn("parameters", format!("parameters are declared, {nobody}"));
    }
    let asked = [
        ("children", reads.children),
        ("history", reads.history > 0),
        ("tags", reads.tags),
    ];
    for (place, _) in asked.into_iter().filter(|(_, is_asked)| *is_asked) {
        findings.warn(format!("reads.{place}"), format!("is asked for, {nobody}"));
    }
}

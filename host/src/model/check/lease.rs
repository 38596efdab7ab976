//! The lease rule: whatever becomes of leased work, the host can write it, and none of it is left where nothing leads on.

use std::collections::BTreeSet;

use super::Findings;
use super::rules::usable_edge;
use crate::model::lease::doubts;
use crate::model::{Descriptor, Edge, LeaseRule, Outcome, SameStatus};

/// Every way that the host takes by itself exists and is open, leads where its name says, and no status means two things.
pub(super) fn lease(descriptor: &Descriptor, findings: &mut Findings) {
    let Some(rule) = &descriptor.lease else { return };
    beginning(descriptor, rule, findings);
    if doubts(rule) {
        for (place, outcome) in [("recovered", &rule.recovered), ("fenced", &rule.fenced)] {
            if outcome.is_none() {
                let message = format!(
                    "`{}` doubts a lease that ran out, and nothing leads on from there",
                    rule.lapsed.status
                );
                findings.error(format!("lease.{place}"), message);
            }
        }
    }
    places(descriptor, rule, findings);
    for (place, from, outcome) in ways(rule) {
        usable_edge(descriptor, &format!("lease.{place}"), from, &outcome.status, findings);
    }
    attempts_end(descriptor, rule, findings);
}

/// Work is submitted, put off, and comes due: all in the status that waits for a worker.
fn beginning(descriptor: &Descriptor, rule: &LeaseRule, findings: &mut Findings) {
    let queued = descriptor.statuses.iter().find(|status| status.name == rule.queued);
    if queued.is_some_and(|status| !status.initial || status.creation_code.is_none()) {
        let message = format!(
            "`{}` is not initial with a creation code: nothing could be submitted",
            rule.queued
        );
        findings.error("lease.queued", message);
    }
    let is_refreshed = |edge: &Edge| edge.from == rule.queued && edge.to == rule.queued;
    if descriptor.same_status != SameStatus::Append && !descriptor.edges.iter().any(is_refreshed) {
        let message = format!(
            "`{}` cannot be written again: what is put off would never come due",
            rule.queued
        );
        findings.error("lease.queued", message);
    }
    if descriptor.execution.is_none() {
        findings.error(
            "lease",
            "leased work is run, and there is no execution rule to judge its end by",
        );
    }
}

/// Each outcome, and from where the host writes it.
fn ways(rule: &LeaseRule) -> Vec<(&'static str, &str, &Outcome)> {
    let (queued, claimed, lapsed) = (
        rule.queued.as_str(),
        rule.claimed.status.as_str(),
        rule.lapsed.status.as_str(),
    );
    let given_up = if doubts(rule) { lapsed } else { claimed };
    let mut ways = vec![
        ("claimed", queued, &rule.claimed),
        ("lapsed", claimed, &rule.lapsed),
        ("exhausted", given_up, &rule.exhausted),
    ];
    let mut add = |place, from, outcome| {
        if let Some(outcome) = outcome {
            ways.push((place, from, outcome));
        }
    };
    add("recovered", lapsed, rule.recovered.as_ref());
    add("fenced", lapsed, rule.fenced.as_ref());
    add("backed_off", claimed, rule.backed_off.as_ref());
    add("handed_back", claimed, rule.handed_back.as_ref());
    for waits in between_attempts(rule) {
        add("retry_due", &waits.status, rule.retry_due.as_ref());
    }
    add("dependency_waiting", queued, rule.dependency_waiting.as_ref());
    add("dependency_failed", queued, rule.dependency_failed.as_ref());
    if let Some(waiting) = &rule.dependency_waiting {
        add("dependency_met", &waiting.status, rule.dependency_met.as_ref());
        add("dependency_failed", &waiting.status, rule.dependency_failed.as_ref());
    }
    ways
}

/// Where work waits for its next attempt, outside the queue.
fn between_attempts(rule: &LeaseRule) -> impl Iterator<Item = &Outcome> {
    let both = [rule.backed_off.as_ref(), rule.handed_back.as_ref()];
    both.into_iter()
        .flatten()
        .filter(|outcome| outcome.status != rule.queued)
}

/// Ends are terminal, ways back lead back, and where a row stands is told by its status alone.
fn places(descriptor: &Descriptor, rule: &LeaseRule, findings: &mut Findings) {
    let is_terminal = |name: &str| {
        descriptor
            .statuses
            .iter()
            .any(|status| status.name == name && status.terminal)
    };
    let optional = |outcome: &Option<Outcome>| outcome.as_ref().map(|outcome| outcome.status.clone());
    let ends = [
        ("exhausted", Some(rule.exhausted.status.clone())),
        ("fenced", optional(&rule.fenced)),
        ("dependency_failed", optional(&rule.dependency_failed)),
    ];
    for (place, status) in ends {
        if let Some(status) = status.filter(|status| !is_terminal(status)) {
            findings.error(
                format!("lease.{place}"),
                format!("`{status}` is not terminal: the work would hang there"),
            );
        }
    }
    for (place, outcome) in [("retry_due", &rule.retry_due), ("dependency_met", &rule.dependency_met)] {
        if let Some(outcome) = outcome.as_ref().filter(|outcome| outcome.status != rule.queued) {
            let message = format!("`{}` is not `{}`: no worker would take it", outcome.status, rule.queued);
            findings.error(format!("lease.{place}"), message);
        }
    }
    if let Some(outcome) = rule
        .recovered
        .as_ref()
        .filter(|outcome| outcome.status != rule.claimed.status)
    {
        let message = format!(
            "`{}` is not `{}`: the holder would not have it back",
            outcome.status, rule.claimed.status
        );
        findings.error("lease.recovered", message);
    }
    if rule.retry_due.is_none() && between_attempts(rule).next().is_some() {
        findings.error(
            "lease.retry_due",
            "nothing leads back into the queue from between two attempts",
        );
    }
    for (place, outcome) in [
        ("dependency_met", &rule.dependency_met),
        ("dependency_failed", &rule.dependency_failed),
    ] {
        if rule.dependency_waiting.is_some() && outcome.is_none() {
            findings.error(
                format!("lease.{place}"),
                "nothing leads on for work that waits for other work",
            );
        }
    }
    ambiguous(rule, &is_terminal, findings);
}

fn ambiguous(rule: &LeaseRule, is_terminal: &dyn Fn(&str) -> bool, findings: &mut Findings) {
    let mut live = vec![
        ("queued", rule.queued.as_str()),
        ("claimed", rule.claimed.status.as_str()),
    ];
    if doubts(rule) {
        live.push(("lapsed", &rule.lapsed.status));
    }
    live.extend(
        rule.dependency_waiting
            .iter()
            .map(|it| ("dependency_waiting", it.status.as_str())),
    );
    // Both wait for the next attempt: they may be one.
    let backed_off = rule.backed_off.iter().map(|it| ("backed_off", it.status.as_str()));
    let handed_back = rule.handed_back.iter().map(|it| ("handed_back", it.status.as_str()));
    let between: Vec<(&str, &str)> = backed_off.chain(handed_back).collect();
    for (place, status) in live.iter().chain(&between) {
        if is_terminal(status) {
            findings.error(
                format!("lease.{place}"),
                format!("`{status}` is terminal: the work goes on there"),
            );
        }
    }
    for (index, (place, status)) in live.iter().enumerate().skip(1) {
        let mut others = live[..index].iter().chain(&between);
        if let Some((other, _)) = others.find(|(_, other)| other == status) {
            let message = format!("`{status}` is also that of `{other}`: where a row stands could not be told");
            findings.error(format!("lease.{place}"), message);
        }
    }
}

/// However an attempt ends, its row can end so too. The holder writes that by its fence, whatever the version: a guard
/// would shut it out.
fn attempts_end(descriptor: &Descriptor, rule: &LeaseRule, findings: &mut Findings) {
    let claimed = rule.claimed.status.as_str();
    let execution = descriptor.execution.iter();
    let is_start = execution.clone().any(|rule| rule.start.status == claimed);
    let outcomes = execution.flat_map(|rule| rule.outcomes().into_iter().skip(1).map(|(_, outcome)| outcome));
    let verdicts = descriptor.verdicts.iter().map(|row| &row.outcome);
    let ends: BTreeSet<&str> = outcomes
        .chain(verdicts)
        .map(|outcome| outcome.status.as_str())
        .collect();
    // From where runs start, the execution rule's own check says it.
    for to in ends.iter().filter(|_| !is_start) {
        usable_edge(descriptor, "lease.claimed", claimed, to, findings);
    }
    let by_fence = [&rule.backed_off, &rule.handed_back]
        .into_iter()
        .flatten()
        .map(|it| it.status.as_str());
    for to in by_fence.chain(ends.iter().copied()) {
        let edge = descriptor
            .edges
            .iter()
            .find(|edge| edge.from == claimed && edge.to == to);
        if edge.is_some_and(|edge| !edge.required_guards.is_empty()) {
            let message = format!("uses the edge {claimed} -> {to}, which requires a guard: its fence is the holder's");
            findings.error("lease", message);
        }
    }
}

#[cfg(test)]
mod tests;

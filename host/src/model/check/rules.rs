//! The rules that the host applies by itself: they must never need a component, an actor or a field to succeed.

use std::collections::HashSet;

use super::lease::lease;
use super::{Findings, limit};
use crate::model::lease::LEASE_MIN;
use crate::model::{Cause, Descriptor, DurationMs, Evidence, VerdictRow};

/// Fields the host itself writes when the kind is run; an execution rule needs them declared.
const EXECUTION_FIELDS: [&str; 4] = ["ended_at", "exit_code", "term_signal", "cause"];

/// Rules the host applies by itself must never need a component, an actor or a field to succeed.
pub(super) fn rules(descriptor: &Descriptor, findings: &mut Findings) {
    if let Some(rule) = &descriptor.execution {
        let start = &rule.start.status;
        if !descriptor
            .statuses
            .iter()
            .any(|status| status.name == *start && status.initial)
        {
            findings.error("execution.start", format!("`{start}` is not an initial status"));
        }
        for (place, outcome) in rule.outcomes().into_iter().skip(1) {
            usable_edge(
                descriptor,
                &format!("execution.{place}"),
                start,
                &outcome.status,
                findings,
            );
        }
        for (index, row) in descriptor.verdicts.iter().enumerate() {
            usable_edge(
                descriptor,
                &format!("verdicts[{index}]"),
                start,
                &row.outcome.status,
                findings,
            );
        }
        for field in EXECUTION_FIELDS {
            if !descriptor.fields.iter().any(|declared| declared.name == field) {
                findings.error("fields", format!("a kind that is run declares the field `{field}`"));
            }
        }
    }
    for (index, row) in descriptor.kill.iter().enumerate() {
        for from in &row.killable {
            usable_edge(descriptor, &format!("kill[{index}]"), from, &row.goes_to, findings);
        }
    }
    lease(descriptor, findings);
    let reads = &descriptor.reads;
    if !(0..=limit::HISTORY_ROWS).contains(&reads.history) {
        findings.error(
            "reads.history",
            format!("{} rows, 0 to {} are admitted", reads.history, limit::HISTORY_ROWS),
        );
    }
    if !(0..=limit::OUTPUT_BYTES).contains(&reads.last_output_bytes) {
        let message = format!(
            "{} bytes, 0 to {} are admitted",
            reads.last_output_bytes,
            limit::OUTPUT_BYTES
        );
        findings.error("reads.last_output_bytes", message);
    }
}

pub(super) fn usable_edge(descriptor: &Descriptor, place: &str, from: &str, to: &str, findings: &mut Findings) {
    let Some(edge) = descriptor.edges.iter().find(|edge| edge.from == from && edge.to == to) else {
        findings.error(place, format!("uses the edge {from} -> {to}, which is not declared"));
        return;
    };
    let obstacles = [
        (edge.guarded, "is guarded"),
        (!edge.actors.is_empty(), "restricts actors"),
        (!edge.required_patch.is_empty(), "requires a patch"),
    ];
    for (_, why) in obstacles.into_iter().filter(|(holds, _)| *holds) {
        findings.error(
            place,
            format!("uses the edge {from} -> {to}, which {why}: the host must always be able to take it"),
        );
    }
}

pub(super) fn verdicts(descriptor: &Descriptor, findings: &mut Findings) {
    for (index, row) in descriptor.verdicts.iter().enumerate() {
        let place = format!("verdicts[{index}]");
        if row.exit_codes.is_some() && row.signals.is_some() {
            findings.error(&place, "asks for an exit code and a signal at once: no ending has both");
        }
        if row.exit_codes.is_some_and(|(first, last)| first > last) {
            findings.error(format!("{place}.exit_codes"), "an empty range");
        }
        for cause in &row.causes {
            if Cause::from_word(cause).is_none() {
                findings.error(format!("{place}.causes"), format!("`{cause}` is no cause"));
            }
        }
        if row
            .evidence
            .as_deref()
            .is_some_and(|word| Evidence::from_word(word).is_none())
        {
            findings.error(
                format!("{place}.evidence"),
                "is none of present, wanted_and_absent, artifact_missing",
            );
        }
    }
    let unconditional = |row: &VerdictRow| {
        row.exit_codes.is_none() && row.signals.is_none() && row.causes.is_empty() && row.evidence.is_none()
    };
    if descriptor.execution.is_some() && !descriptor.verdicts.iter().any(unconditional) {
        findings.error(
            "verdicts",
            "the last row must match everything, so that every ending has a meaning",
        );
    }
}

/// Lengths of time and counts with which the host can work.
pub(super) fn times(descriptor: &Descriptor, findings: &mut Findings) {
    let mut positive = |place: String, number: i64| {
        if number <= 0 {
            findings.error(place, format!("{number}: it must be more than zero"));
        }
    };
    let ms = DurationMs::as_ms;
    if let Some(rule) = &descriptor.lease {
        positive("lease.heartbeat_limit".to_owned(), ms(rule.heartbeat_limit));
        positive("lease.attempts".to_owned(), rule.attempts);
    }
    if let Some(retry) = &descriptor.retry {
        positive("retry.base".to_owned(), ms(retry.base));
        positive("retry.attempts".to_owned(), retry.attempts);
    }
    for (index, row) in descriptor.health.iter().enumerate() {
        positive(format!("health[{index}].idle"), ms(row.idle));
        positive(format!("health[{index}].stale"), ms(row.stale));
    }
    if let Some(rule) = &descriptor.lease {
        if rule.lease < LEASE_MIN {
            let least = LEASE_MIN.as_ms();
            let message = format!(
                "{}: it must be {least} or more, so that renewals come in time",
                ms(rule.lease)
            );
            findings.error("lease.lease", message);
        }
        if ms(rule.grace) < 0 {
            findings.error("lease.grace", format!("{}: it must not be negative", ms(rule.grace)));
        }
    }
    if let Some(retry) = &descriptor.retry {
        if ms(retry.cap) < ms(retry.base) {
            findings.error(
                "retry.cap",
                format!("{} is less than the base of {}", ms(retry.cap), ms(retry.base)),
            );
        }
        if !(0..=100).contains(&retry.jitter_percent) {
            findings.error(
                "retry.jitter_percent",
                format!("{}: 0 to 100 are admitted", retry.jitter_percent),
            );
        }
    }
    findings.duplicates(
        "health",
        "spawn kind",
        descriptor.health.iter().map(|row| row.spawn_kind.as_str()),
    );
    let killable = descriptor.kill.iter().flat_map(|row| &row.killable).map(String::as_str);
    let mut seen = HashSet::new();
    for name in killable.filter(|name| !seen.insert(*name)) {
        findings.error(
            "kill",
            format!("status `{name}` is killable in two rows: which one is meant?"),
        );
    }
}

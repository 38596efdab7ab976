//! The words that rules use are declared.

use super::Findings;
use crate::model::{Descriptor, Outcome};

/// Every code that a rule uses is declared, every status that a rule names exists.
pub(super) fn vocabulary(descriptor: &Descriptor, findings: &mut Findings) {
    for (index, status) in descriptor.statuses.iter().enumerate() {
        if let Some(code) = &status.creation_code {
            code_declared(descriptor, &format!("statuses[{index}].creation_code"), code, findings);
        }
    }
    for (place, outcome) in all_outcomes(descriptor) {
        status_declared(descriptor, &place, &outcome.status, findings);
        code_declared(descriptor, &place, &outcome.code, findings);
    }
    for (index, row) in descriptor.kill.iter().enumerate() {
        let place = format!("kill[{index}]");
        status_declared(descriptor, &format!("{place}.goes_to"), &row.goes_to, findings);
        for status in &row.killable {
            status_declared(descriptor, &format!("{place}.killable"), status, findings);
        }
        for code in [&row.term_code, &row.force_code, &row.stale_code] {
            code_declared(descriptor, &place, code, findings);
        }
    }
    if let Some(lease) = &descriptor.lease {
        status_declared(descriptor, "lease.queued", &lease.queued, findings);
        for status in &lease.active {
            status_declared(descriptor, "lease.active", status, findings);
        }
    }
    if let Some(delivery) = &descriptor.delivery {
        for status in &delivery.claimable {
            status_declared(descriptor, "delivery.claimable", status, findings);
        }
    }
}

fn all_outcomes(descriptor: &Descriptor) -> Vec<(String, &Outcome)> {
    let mut all = Vec::new();
    if let Some(rule) = &descriptor.execution {
        all.extend(
            rule.outcomes()
                .map(|(place, outcome)| (format!("execution.{place}"), outcome)),
        );
    }
    if let Some(rule) = &descriptor.lease {
        all.extend(
            rule.outcomes()
                .into_iter()
                .map(|(place, outcome)| (format!("lease.{place}"), outcome)),
        );
    }
    if let Some(rule) = &descriptor.delivery {
        all.extend(
            rule.outcomes()
                .map(|(place, outcome)| (format!("delivery.{place}"), outcome)),
        );
    }
    let rows = descriptor.verdicts.iter().enumerate();
    all.extend(rows.map(|(index, row)| (format!("verdicts[{index}].outcome"), &row.outcome)));
    all
}

pub(super) fn status_declared(descriptor: &Descriptor, place: &str, name: &str, findings: &mut Findings) {
    if !descriptor.statuses.iter().any(|status| status.name == name) {
        findings.error(place, format!("status `{name}` is not declared"));
    }
}

fn code_declared(descriptor: &Descriptor, place: &str, code: &str, findings: &mut Findings) {
    if !descriptor.reason_codes.iter().any(|reason| reason.code == code) {
        findings.error(place, format!("reason code `{code}` is not declared"));
    }
}

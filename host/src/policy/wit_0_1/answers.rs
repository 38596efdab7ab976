//! What components of this line answered, as the host keeps it.

use super::bindings::exports::runwarden::notify::notifier;
use super::bindings::exports::runwarden::policy::{execution, guard, health, migrate};
use super::bindings::runwarden::types::types as shared;
use crate::policy::unjudged::{Answered, Assessment, Decision, Dispatch, Judgement, Mapping, Reported};

pub(super) fn decision(answer: Result<guard::Decision, shared::Fault>) -> Answered<Decision> {
    let raw = answer.map_err(reported)?;
    Ok(Decision {
        admitted: raw.admitted,
        code: raw.code,
        message: raw.message,
        unknown: unknown(raw.ext),
    })
}

pub(super) fn judgement(answer: Result<execution::Judgement, shared::Fault>) -> Answered<Judgement> {
    let raw = answer.map_err(reported)?;
    Ok(Judgement {
        status: raw.status,
        code: raw.code,
        summary: raw.summary,
        patch: raw.patch.into_iter().map(|entry| (entry.name, entry.json)).collect(),
        retry_after_ms: raw.retry_after,
        unknown: unknown(raw.ext),
    })
}

pub(super) fn assessment(answer: Result<health::Assessment, shared::Fault>) -> Answered<Assessment> {
    let raw = answer.map_err(reported)?;
    Ok(Assessment {
        level: raw.level,
        message: raw.message,
        unknown: unknown(raw.ext),
    })
}

pub(super) fn mapping(answer: Result<migrate::Mapping, shared::Fault>) -> Answered<Mapping> {
    let raw = answer.map_err(reported)?;
    Ok(Mapping {
        status: raw.status,
        patch: raw.patch.into_iter().map(|entry| (entry.name, entry.json)).collect(),
        unknown: unknown(raw.ext),
    })
}

pub(super) fn plan(answer: Result<Vec<notifier::PlannedDispatch>, shared::Fault>) -> Answered<Vec<Dispatch>> {
    let dispatch = |raw: notifier::PlannedDispatch| Dispatch {
        destination: raw.destination,
        body: raw.body,
        dedup_key: raw.dedup_key,
        deadline_ms: raw.deadline,
        wants_acknowledgement: raw.wants_acknowledgement,
        unknown: unknown(raw.ext),
    };
    let planned = answer.map_err(reported)?;
    Ok(planned.into_iter().map(dispatch).collect())
}

fn reported(fault: shared::Fault) -> Reported {
    Reported {
        code: fault.code,
        message: fault.message,
        hint: fault.hint,
    }
}

/// The first part of an answer that must be understood and is not: this line's host knows no extension.
fn unknown(ext: Vec<shared::ExtField>) -> Option<String> {
    ext.into_iter()
        .find(|extension| extension.critical)
        .map(|extension| extension.key)
}

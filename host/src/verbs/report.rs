//! What a running program says of itself: a status, progress, fields, evidence, or only that it lives.

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, Entity, Fields, Lifecycle, Reason, Transition};
use crate::verbs::transition::{TransitionOutcome, transition};

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The status reported; none keeps the one it has: a sign of life.
    pub status: Option<String>,
    /// Why; none keeps the code it has.
    pub code: Option<String>,
    /// In words.
    pub message: Option<String>,
    /// Done, and of how many.
    pub progress: Option<(u64, u64)>,
    /// Fields set.
    pub fields: Fields,
    /// Files that are evidence of the work.
    pub evidence: Vec<String>,
}

/// Writes a report through the one path that writes statuses.
///
/// # Errors
/// As [`transition`].
pub fn report(host: &Host, entity: &Entity, report: &Report, actor: &Actor) -> Result<TransitionOutcome, Error> {
    let status = report.status.clone().unwrap_or_else(|| entity.status.clone());
    let code = match &report.code {
        Some(code) => code.clone(),
        None => code_for(host.lifecycle(entity)?.as_ref(), entity, &status),
    };
    let evidence = report.evidence.iter().map(|path| json!({"file": path})).collect();
    let reason = Reason {
        code,
        summary: report.message.clone(),
        evidence,
    };
    let mut command = Transition::new(&status, reason, actor.clone());
    command.patch = report.fields.clone();
    command.metadata = match report.progress {
        Some((done, total)) => json!({"progress": {"done": done, "total": total}}),
        None => Value::Null,
    };
    transition(host, entity, &command)
}

/// A sign of life keeps its reason; another status needs one, which the policy then asks for. The reason of an entity that
/// was moved to another policy may be none of that policy's: then it is the one with which that policy writes the status.
fn code_for(lifecycle: &Lifecycle, entity: &Entity, status: &str) -> String {
    if status != entity.status {
        return String::new();
    }
    if lifecycle.admits_reason(&entity.reason.code) {
        return entity.reason.code.clone();
    }
    lifecycle.usual_code(status).unwrap_or_default().to_owned()
}

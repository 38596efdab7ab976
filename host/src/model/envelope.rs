//! The envelope: what is told of an end or an announced status (SEMANTICS 3). Within version 1, fields are only added.

use serde_json::{Value, json};

use super::{Change, Entity, EventId, Tags};

/// Schema of an end.
pub const SCHEMA_TERMINAL: &str = "runwarden.run-terminal";

/// Schema of an announced status.
pub const SCHEMA_STATUS: &str = "runwarden.run-status";

/// The most artifacts an envelope lists.
const ARTIFACTS_MAX: usize = 20;

/// What an envelope tells beside the entity itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnvelopeContext {
    /// References of the entities it is linked below.
    pub parents: Vec<String>,
    /// The working directory, escaped where it is not UTF-8.
    pub cwd: Option<String>,
    /// The run directory, escaped where it is not UTF-8.
    pub run_dir: Option<String>,
    /// Kind and location of what it left.
    pub artifacts: Vec<(String, String)>,
    /// Tags the settings let out.
    pub metadata: Tags,
}

/// The envelope of a change that entered a terminal or announced status.
pub fn envelope(change: &Change, context: &EnvelopeContext) -> Value {
    of(
        &change.after,
        change.row.previous_status.as_deref(),
        &change.row.id,
        context,
    )
}

/// The envelope of an entity as it is; `previous` is none when it was created so.
pub fn of(entity: &Entity, previous: Option<&str>, event_id: &EventId, context: &EnvelopeContext) -> Value {
    let ended_at = entity.structural.ended_at.unwrap_or(entity.updated_at);
    let artifacts = context.artifacts.iter().take(ARTIFACTS_MAX);
    let artifacts: Vec<Value> = artifacts
        .map(|(kind, location)| json!({"kind": kind, "location": location}))
        .collect();
    let spawn_kind = match entity.field("spawn_kind") {
        Value::Null if entity.structural.lease_attempts.is_some() => json!("scheduled"),
        spawn_kind => spawn_kind,
    };
    json!({
        "schema": if entity.terminal { SCHEMA_TERMINAL } else { SCHEMA_STATUS },
        "schema_version": 1,
        "event_id": event_id,
        "durable": true,
        "entity": {"kind": entity.reference.kind, "id": entity.reference.id},
        "previous_status": previous,
        "terminal_status": entity.terminal.then_some(&entity.status),
        "status": entity.status,
        "success": entity.success,
        "reason": {"code": entity.reason.code, "summary": entity.reason.summary},
        "occurred_at": entity.updated_at.to_rfc3339(),
        "started_at": entity.created_at.to_rfc3339(),
        "ended_at": entity.terminal.then(|| ended_at.to_rfc3339()),
        "duration_ms": entity.terminal.then(|| ended_at.since(entity.created_at)),
        "exit_code": entity.structural.exit_code,
        "term_signal": entity.structural.term_signal,
        "spawn_kind": spawn_kind,
        "cwd": context.cwd,
        "run_dir": context.run_dir,
        "artifacts": artifacts,
        "correlation": {
            "parents": context.parents,
            "root": entity.root.as_deref().unwrap_or(&entity.reference.id),
            "generation": entity.generation,
        },
        "metadata": context.metadata,
    })
}

//! Asking a guard, and keeping what it was asked and what it said: a decision that cannot be made again from what was
//! stored could not be judged by another version of its policy either.

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{Entity, Found, HistoryRow, Lifecycle, Reads, Refusal, Transition, filled};
use crate::policy::{GuardRequest, Surroundings, sha256_hex};
use crate::store::{HistoryQuery, Scope};

/// How large the request of a guarded call may be to be kept whole; of a larger one its digest and size are kept. An
/// entity with a page of fields and its last hundred history rows is well below it.
const REQUEST_BYTES_MAX: usize = 64 << 10;

/// What a guard said, and what is kept of the call.
pub(super) struct Guarded {
    /// None when it admits.
    pub(super) refusal: Option<Refusal>,
    /// Component, request and decision.
    pub(super) record: Value,
}

/// Asks the guard; one that fails refuses.
pub(super) fn ask_guard(
    host: &Host,
    lifecycle: &Lifecycle,
    entity: &Entity,
    command: &Transition,
) -> Result<Guarded, Error> {
    let surroundings = surroundings(host, lifecycle, entity)?;
    let request = GuardRequest {
        entity,
        target: &command.target,
        reason: &command.reason,
        actor: &command.actor,
        patch: &command.patch,
        guards: &command.guards,
        overridden: command.overriding.is_some(),
        surroundings: &surroundings,
    };
    let refused = match host.policies().guard(&entity.policy, request) {
        Ok(answer) => answer,
        Err(fault) => Some(("policy_fault".to_owned(), fault.to_string())),
    };
    let decision = match &refused {
        None => json!({"admitted": true}),
        Some((code, message)) => json!({"admitted": false, "code": code, "message": message}),
    };
    let asked = asked(&request, &lifecycle.descriptor().reads);
    Ok(Guarded {
        record: record(&entity.policy.digest, asked, decision),
        refusal: refused.map(|(code, message)| Refusal {
            found: Found::of(entity),
            code,
            message,
        }),
    })
}

/// What functions of the policy may see beside the entity: what its descriptor asked for, as it is at one moment. The
/// entity and its history are those of its version, which the write repeats; what was written to it since is left out.
pub(crate) fn surroundings(host: &Host, lifecycle: &Lifecycle, entity: &Entity) -> Result<Surroundings, Error> {
    let reads = &lifecycle.descriptor().reads;
    let children = if reads.children {
        host.store().linked(entity, Scope::Children)?
    } else {
        Vec::new()
    };
    let rows = usize::try_from(reads.history).unwrap_or(0);
    let mut history = Vec::new();
    if rows > 0 {
        let id = Some(entity.reference.id.clone());
        history = host.store().history(&HistoryQuery {
            id,
            newest: Some(rows),
            ..HistoryQuery::default()
        })?;
        history.retain(|row| row.version <= entity.version);
        history.reverse();
    }
    let parameters = filled(&lifecycle.descriptor().parameters, &entity.policy.parameters);
    Ok(Surroundings {
        now: host.now(),
        parameters,
        children,
        history,
    })
}

/// The call as it is kept.
fn record(component: &str, request: Value, decision: Value) -> Value {
    let text = request.to_string();
    let digest = sha256_hex(text.as_bytes());
    let kept = if text.len() <= REQUEST_BYTES_MAX {
        request
    } else {
        Value::Null
    };
    json!({
        "component": component,
        "request": kept,
        "request_bytes": text.len(),
        "request_digest": digest,
        "decision": decision,
    })
}

/// The request as canonical JSON: what the guard saw, no more, keys sorted, times in milliseconds.
fn asked(request: &GuardRequest<'_>, reads: &Reads) -> Value {
    let entity = request.entity;
    let surroundings = request.surroundings;
    let tags = reads.tags.then_some(&entity.tags);
    let child = |child: &Entity| {
        json!({"ref": child.reference.to_string(), "status": child.status, "terminal": child.terminal,
               "success": child.success})
    };
    let row = |row: &HistoryRow| {
        json!({"previous_status": row.previous_status, "status": row.status, "version": row.version,
               "reason": row.reason, "actor": row.actor, "at_ms": row.at.as_ms()})
    };
    json!({
        "entity": {
            "ref": entity.reference.to_string(),
            "status": entity.status,
            "version": entity.version,
            "reason": entity.reason,
            "fields": entity.all_fields(),
            "tags": tags,
            "created_at_ms": entity.created_at.as_ms(),
            "updated_at_ms": entity.updated_at.as_ms(),
            "root": entity.root,
            "generation": entity.generation,
            "chain_parent": entity.chain_parent,
        },
        "target": request.target,
        "reason": request.reason,
        "actor": request.actor,
        "patch": request.patch,
        "guards": request.guards,
        "overridden": request.overridden,
        "now_ms": surroundings.now.as_ms(),
        "parameters": surroundings.parameters,
        "children": surroundings.children.iter().map(child).collect::<Vec<_>>(),
        "history": surroundings.history.iter().map(row).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_too_large_to_keep_leaves_its_digest_and_its_size() {
        let fits = "x".repeat(REQUEST_BYTES_MAX - 2);
        let kept = record("c", json!(fits), json!({"admitted": true}));
        assert_eq!(
            (&kept["request"], &kept["request_bytes"]),
            (&json!(fits), &json!(REQUEST_BYTES_MAX))
        );
        let large = record("c", json!(format!("{fits}x")), json!({"admitted": true}));
        assert_eq!(
            (&large["request"], &large["request_bytes"]),
            (&Value::Null, &json!(REQUEST_BYTES_MAX + 1))
        );
        assert_eq!(large["request_digest"].as_str().map(str::len), Some(64));
        assert_eq!(large["decision"], json!({"admitted": true}));
    }
}

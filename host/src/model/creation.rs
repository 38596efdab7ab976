//! The decision about a creation: what a command makes under its policy's graph.

use serde_json::Value;

use super::decide::{fit, unknown_status, validate_actor, validate_metadata, validate_reason};
use super::{
    Create, Entity, EventId, HistoryRow, Invalid, Lifecycle, Lineage, NewEntity, Planned, PolicyPin, Queued, Queueing,
    Reason, Reference, Status, Timestamp, validate_id,
};

/// Decides a creation: pure and total.
///
/// # Errors
/// [`Invalid`] when the command is wrong.
pub fn create(
    lifecycle: &Lifecycle,
    policy: &PolicyPin,
    command: &Create,
    store: &str,
    now: Timestamp,
) -> Result<NewEntity, Invalid> {
    if let Err(problem) = validate_id(&command.id) {
        return Err(Invalid::new("id", problem.to_string(), None));
    }
    let status = creation_status(lifecycle, command.status.as_deref())?;
    let reason = creation_reason(lifecycle, status, &command.reason)?;
    validate_actor(&command.actor)?;
    validate_metadata(&command.metadata)?;
    let fields = fit(lifecycle, &command.fields)?;
    let mut entity = Entity::new(Reference::new(lifecycle.kind(), &command.id), policy.clone(), now);
    entity.name.clone_from(&command.name);
    entity.reason = reason.clone();
    entity.tags.clone_from(&command.tags);
    entity.notify = command.notify.clone();
    for (name, value) in &fields {
        entity.set_field(name, value);
    }
    entity.enter(lifecycle, &status.name);
    if let Some(lineage) = &command.lineage {
        continue_chain(&mut entity, lineage);
    }
    if let Some(queueing) = &command.queueing {
        put_into_queue(&mut entity, queueing);
        entity.line_up(lifecycle);
    }
    let row = HistoryRow {
        id: EventId::new(store, &command.id, 1),
        reference: entity.reference.clone(),
        previous_status: None,
        status: status.name.clone(),
        reason,
        actor: command.actor.clone(),
        at: now,
        version: 1,
        policy_digest: policy.digest.clone(),
        metadata: command.metadata.clone(),
        guarded: Value::Null,
    };
    Ok(NewEntity {
        entity,
        row,
        event: None,
        planned: Planned::default(),
        admin: Vec::new(),
        parents: command.parents.clone(),
        key: None,
    })
}

fn creation_reason(lifecycle: &Lifecycle, status: &Status, given: &Reason) -> Result<Reason, Invalid> {
    let mut reason = given.clone();
    if reason.code.is_empty() {
        let own = status.creation_code.clone();
        reason.code = own.ok_or_else(|| {
            let message = format!("a {} created as `{}` needs a reason", lifecycle.kind(), status.name);
            Invalid::new("reason", message, Some("add --reason CODE".to_owned()))
        })?;
    }
    validate_reason(lifecycle, &reason)?;
    Ok(reason)
}

fn put_into_queue(entity: &mut Entity, queueing: &Queueing) {
    entity.queued = Some(Queued {
        queue: queueing.queue.clone(),
        priority: queueing.priority,
        stage: None,
    });
    if !entity.terminal {
        entity.unique_key.clone_from(&queueing.unique_key);
        entity.structural.next_attempt_at = queueing.due_at;
    }
}

fn continue_chain(entity: &mut Entity, lineage: &Lineage) {
    entity.root = Some(lineage.root.clone());
    entity.generation = lineage.generation;
    entity.chain_parent = Some(lineage.chain_parent.clone());
    entity.structural.lease_attempts = Some(lineage.lease_attempts);
}

fn creation_status<'a>(lifecycle: &'a Lifecycle, asked: Option<&str>) -> Result<&'a Status, Invalid> {
    let Some(name) = asked else {
        return lifecycle
            .first_initial()
            .ok_or_else(|| Invalid::new("status", "the policy has no initial status", None));
    };
    let status = lifecycle.status(name).ok_or_else(|| unknown_status(lifecycle, name))?;
    if status.initial {
        return Ok(status);
    }
    let initial = lifecycle.descriptor().statuses.iter().filter(|status| status.initial);
    let initial: Vec<&str> = initial.map(|status| status.name.as_str()).collect();
    let message = format!("a {} cannot be created as `{name}`", lifecycle.kind());
    Err(Invalid::new(
        "status",
        message,
        Some(format!("it begins as {}", initial.join(" or "))),
    ))
}

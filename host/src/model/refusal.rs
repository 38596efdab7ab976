//! How a refusal is kept.

use serde_json::json;

use super::{AdminEvent, Entity, Refusal, Timestamp, Transition};

/// The audit row of a refusal (ADR-0057 D4).
pub fn rejection_event(entity: &Entity, command: &Transition, refusal: &Refusal, now: Timestamp) -> AdminEvent {
    AdminEvent {
        id: 0,
        at: now,
        action: "status_transition_rejected".to_owned(),
        target: Some(entity.reference.to_string()),
        actor: command.actor.id.clone(),
        details: json!({
            "entity_type": entity.reference.kind,
            "previous_status": entity.status,
            "attempted_status": command.target,
            "reason_code": command.reason.code,
            "source": command.actor.kind,
            "code": refusal.code,
            "message": refusal.message,
        }),
    }
}

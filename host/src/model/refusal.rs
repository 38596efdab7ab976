//! How a refusal is kept.

use serde_json::json;

use super::{Actor, AdminEvent, Entity, Refusal, Timestamp, Transition};

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

/// The action of audit rows about a write under a fence that is not current any more.
pub const LATE_WRITE: &str = "lease_write_refused";

/// The audit row of a holder who learns that the row is not its own any more: what it was about to write, a renewal or an
/// end, is not written.
pub fn lost_lease_event(entity: &Entity, (holder, fence): (&str, i64), now: Timestamp) -> AdminEvent {
    AdminEvent {
        id: 0,
        at: now,
        action: LATE_WRITE.to_owned(),
        target: Some(entity.reference.to_string()),
        actor: Actor::new("executor", holder).to_string(),
        details: json!({
            "fence": fence,
            "current_fence": entity.fence,
            "leased_by": entity.structural.leased_by,
            "status": entity.status,
            "attempted": "renewal",
        }),
    }
}

/// The audit row of a write by somebody who lost the row before.
pub fn late_write_event(entity: &Entity, command: &Transition, now: Timestamp) -> AdminEvent {
    AdminEvent {
        id: 0,
        at: now,
        action: LATE_WRITE.to_owned(),
        target: Some(entity.reference.to_string()),
        actor: command.actor.to_string(),
        details: json!({
            "fence": command.lease.as_ref().and_then(|step| step.fence),
            "current_fence": entity.fence,
            "leased_by": entity.structural.leased_by,
            "status": entity.status,
            "attempted_status": command.target,
            "reason_code": command.reason.code,
            "evidence": command.reason.evidence,
        }),
    }
}

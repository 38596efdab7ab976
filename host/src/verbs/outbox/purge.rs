//! Taking dispatches out of the store before retention does, audited.

use serde_json::json;

use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, AdminEvent, Entity};
use crate::store::Removed;
use crate::verbs::outbox::acknowledge::dispatch_of;

/// How often an entity that changed meanwhile is looked at again.
const RACES_MAX: usize = 8;

/// How a purge came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeResult {
    /// It is gone; history and an audit row tell of it.
    Gone,
    /// It is still to be delivered, in this status: it goes by force alone.
    Open(String),
}

/// Whether what is still to be delivered goes too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// What ended alone.
    Ended,
    /// All of it.
    All,
}

/// Removes a dispatch.
///
/// # Errors
/// The entity is no dispatch, is gone, or the store failed: nothing was removed.
pub fn purge(host: &Host, entity: &Entity, force: Force, actor: &Actor) -> Result<PurgeResult, Error> {
    let dispatch = dispatch_of(host, entity)?;
    let mut entity = entity.clone();
    for _ in 0..RACES_MAX {
        if !entity.terminal && force == Force::Ended {
            return Ok(PurgeResult::Open(entity.status));
        }
        let event = AdminEvent {
            id: 0,
            at: host.now(),
            action: "dispatch_purged".to_owned(),
            target: Some(entity.reference.to_string()),
            actor: actor.to_string(),
            details: json!({
                "status": entity.status,
                "attempt": entity.structural.attempt,
                "last_error": entity.field("last_error"),
                "event_id": dispatch.event_id,
                "handler": dispatch.handler,
                "destination": dispatch.destination,
                "dedup_key": dispatch.dedup_key,
                "body_bytes": dispatch.body.len(),
                "forced": !entity.terminal,
            }),
        };
        match host.store().remove(&entity, &event)? {
            Removed::Gone => {
                host.wake();
                return Ok(PurgeResult::Gone);
            }
            Removed::Changed(Some(current)) => entity = *current,
            Removed::Changed(None) | Removed::Holding => break,
        }
    }
    Err(host.not_found(&entity.reference.to_string()))
}

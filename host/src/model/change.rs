//! What one write puts into the store, decided in full before anything is written.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Actor, Entity, EventId, Planned, Reason, Reference, Timestamp};

/// One row of an entity's history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryRow {
    /// The row's id, which is the event's id when it made one.
    pub id: EventId,
    /// The entity.
    pub reference: Reference,
    /// The status before; none at creation.
    pub previous_status: Option<String>,
    /// The status written.
    pub status: String,
    /// Why.
    pub reason: Reason,
    /// Who.
    pub actor: Actor,
    /// When.
    pub at: Timestamp,
    /// The version the entity got.
    pub version: i64,
    /// The policy that admitted it.
    pub policy_digest: String,
    /// What the caller added.
    pub metadata: Value,
    /// What its policy was asked: the call of the guard that admitted it, or what was seen of the end that it tells, with
    /// the call of the verdict function if there was one. Null when nothing was.
    pub guarded: Value,
}

/// An end or an announced status, as told to handlers and consumers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The id of the history row that made it.
    pub id: EventId,
    /// The envelope.
    pub envelope: Value,
}

/// Something done to the store or refused, that is no transition.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminEvent {
    /// The store's number for it; zero before it is stored.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// What: `status_transition_rejected`, `status_transition_override`, `policy_installed`, `policy_activated`, ….
    pub action: String,
    /// To what: a reference, a kind or a digest.
    pub target: Option<String>,
    /// By whom.
    pub actor: String,
    /// Particulars.
    pub details: Value,
}

/// An idempotency key that is recorded with the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// The key.
    pub key: String,
    /// SHA-256 of the command it came with, in hexadecimal.
    pub command_digest: String,
}

/// One applied transition: everything that its commit contains.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The entity as it will be.
    pub after: Entity,
    /// The version that was read: the write applies to no other.
    pub expected_version: i64,
    /// Its history row.
    pub row: HistoryRow,
    /// The event, when it makes one.
    pub event: Option<Event>,
    /// What the event adds to the outbox.
    pub planned: Planned,
    /// Audit rows of the same commit.
    pub admin: Vec<AdminEvent>,
    /// The key, when the command had one.
    pub key: Option<KeyUse>,
}

/// One creation: everything that its commit contains.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntity {
    /// The entity as it will be, `row` still zero.
    pub entity: Entity,
    /// Its first history row.
    pub row: HistoryRow,
    /// The event, when it is created in a terminal status.
    pub event: Option<Event>,
    /// What the event adds to the outbox.
    pub planned: Planned,
    /// Audit rows of the same commit.
    pub admin: Vec<AdminEvent>,
    /// Parents to link it below.
    pub parents: Vec<Reference>,
    /// The key, when the command had one.
    pub key: Option<KeyUse>,
}

//! What a caller asks for.

use serde_json::{Value, json};

use super::{Actor, Fields, LeaseStep, Lineage, Queueing, Reason, Reference, Tags};

/// Leave a terminal status or cross a missing edge, audited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Who takes responsibility; never empty.
    pub actor: String,
    /// Why; never empty.
    pub justification: String,
}

/// A request to move an entity to a status.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// The status asked for.
    pub target: String,
    /// Why. An empty code is invalid.
    pub reason: Reason,
    /// Who asks.
    pub actor: Actor,
    /// What the caller adds to the history row; null or an object.
    pub metadata: Value,
    /// The statuses it must have now; none expects nothing, an empty list never matches.
    pub expected_statuses: Option<Vec<String>>,
    /// The version it must have now.
    pub expected_version: Option<i64>,
    /// Companion fields to set.
    pub patch: Fields,
    /// Values that companion fields must have now.
    pub guards: Fields,
    /// Makes the command safe to repeat.
    pub idempotency_key: Option<String>,
    /// Leave a terminal status or cross a missing edge.
    pub overriding: Option<Override>,
    /// What it does to the lease of leased work; none: nothing, whoever has it.
    pub lease: Option<LeaseStep>,
}

impl Transition {
    /// A bare request: no expectation, patch, key or override.
    pub fn new(target: &str, reason: Reason, actor: Actor) -> Self {
        Self {
            target: target.to_owned(),
            reason,
            actor,
            metadata: Value::Null,
            expected_statuses: None,
            expected_version: None,
            patch: Fields::new(),
            guards: Fields::new(),
            idempotency_key: None,
            overriding: None,
            lease: None,
        }
    }

    /// The command as JSON without its key: what an idempotency key stands for.
    pub fn fingerprint(&self) -> Value {
        let overriding = self.overriding.as_ref().map(|o| json!([o.actor, o.justification]));
        let mut fingerprint = json!({
            "target": self.target,
            "reason": self.reason,
            "actor": self.actor,
            "metadata": self.metadata,
            "expected_statuses": self.expected_statuses,
            "expected_version": self.expected_version,
            "patch": self.patch,
            "guards": self.guards,
            "override": overriding,
        });
        if let Some(lease) = &self.lease {
            fingerprint["lease"] = lease.to_value();
        }
        fingerprint
    }
}

/// A request to make an entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Create {
    /// Its kind.
    pub kind: String,
    /// Its id; the caller draws one when the user gave none.
    pub id: String,
    /// A name that several may share.
    pub name: Option<String>,
    /// The status; none is the policy's first initial one.
    pub status: Option<String>,
    /// Why; an empty code is the status's creation code.
    pub reason: Reason,
    /// Who asks.
    pub actor: Actor,
    /// Companion fields to begin with.
    pub fields: Fields,
    /// Labels.
    pub tags: Tags,
    /// Linked below these.
    pub parents: Vec<Reference>,
    /// Notify settings as resolved.
    pub notify: Value,
    /// What the command itself says of who is told, which is part of it, as JSON; null when it leaves that to the settings.
    pub notify_asked: Value,
    /// What the caller adds to the history row; null or an object.
    pub metadata: Value,
    /// Makes the command safe to repeat.
    pub idempotency_key: Option<String>,
    /// How leased work is put into its queue.
    pub queueing: Option<Queueing>,
    /// The chain of attempts it goes on.
    pub lineage: Option<Lineage>,
}

impl Create {
    /// A bare request.
    pub fn new(kind: &str, id: &str, actor: Actor) -> Self {
        Self {
            kind: kind.to_owned(),
            id: id.to_owned(),
            name: None,
            status: None,
            reason: Reason::default(),
            actor,
            fields: Fields::new(),
            tags: Tags::new(),
            parents: Vec::new(),
            notify: Value::Null,
            notify_asked: Value::Null,
            metadata: Value::Null,
            idempotency_key: None,
            queueing: None,
            lineage: None,
        }
    }

    /// The command as JSON without its key and without an id that was drawn for it. The settings that were found are no
    /// part of it: they may have changed before it is repeated.
    pub fn fingerprint(&self) -> Value {
        let parents: Vec<String> = self.parents.iter().map(ToString::to_string).collect();
        let mut fingerprint = json!({
            "kind": self.kind,
            "name": self.name,
            "status": self.status,
            "reason": self.reason,
            "actor": self.actor,
            "fields": self.fields,
            "tags": self.tags,
            "parents": parents,
            "metadata": self.metadata,
        });
        // Absent where nothing is asked: keys of stores that never heard of it stay those of the same commands.
        if !self.notify_asked.is_null() {
            fingerprint["notify_asked"] = self.notify_asked.clone();
        }
        if let Some(queueing) = &self.queueing {
            fingerprint["queue"] = json!([queueing.queue, queueing.priority, queueing.unique_key, queueing.asked]);
        }
        fingerprint
    }
}

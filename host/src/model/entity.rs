//! An entity: one life that is followed, as one version of its row.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::queueing::stage;
use super::{Lifecycle, Queued, Reference, Timestamp};

/// Companion fields by name, those of [`Structural`] excepted.
pub type Fields = Map<String, Value>;

/// Labels the user gave.
pub type Tags = BTreeMap<String, String>;

/// Why a status was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// A code that the kind's policy admits.
    pub code: String,
    /// In words, for people.
    pub summary: Option<String>,
    /// What was observed, as JSON values.
    pub evidence: Vec<Value>,
}

impl Reason {
    /// A reason that is a code alone.
    pub fn code(code: &str) -> Self {
        Self {
            code: code.to_owned(),
            ..Self::default()
        }
    }

    /// The same reason in words.
    #[must_use]
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// The same reason with what was observed.
    #[must_use]
    pub fn evidence(mut self, evidence: Value) -> Self {
        self.evidence.push(evidence);
        self
    }
}

/// The policy version an entity was created under and keeps, with what an operator had set for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyPin {
    /// The policy's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of the component, in hexadecimal.
    pub digest: String,
    /// What was set at the activation it was created under; what was not set has its default.
    #[serde(default)]
    pub parameters: Fields,
}

/// Fields that have a column of their own, because an index, a constraint or the host needs them. They read and are
/// patched like any other field; null is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structural {
    /// When the work ended.
    pub ended_at: Option<Timestamp>,
    /// The exit code, when it exited.
    pub exit_code: Option<i64>,
    /// The signal, when it died by one.
    pub term_signal: Option<i64>,
    /// How it ended, observed: a word of [`super::Cause`].
    pub cause: Option<String>,
    /// Attempts made.
    pub attempt: Option<i64>,
    /// When the next attempt is due.
    pub next_attempt_at: Option<Timestamp>,
    /// Who holds the lease.
    pub leased_by: Option<String>,
    /// When the lease ends.
    pub lease_expires_at: Option<Timestamp>,
    /// How often it was leased.
    pub lease_attempts: Option<i64>,
    /// Since when the holder is silent.
    pub unknown_since: Option<Timestamp>,
}

/// The names of [`Structural`]'s fields.
pub(crate) const STRUCTURAL_NAMES: [&str; 10] = [
    "ended_at",
    "exit_code",
    "term_signal",
    "cause",
    "attempt",
    "next_attempt_at",
    "leased_by",
    "lease_expires_at",
    "lease_attempts",
    "unknown_since",
];

impl Structural {
    /// The value of the field of that name; none when it is not one of them.
    pub fn get(&self, name: &str) -> Option<Value> {
        let moment = |at: Option<Timestamp>| at.map_or(Value::Null, |at| Value::from(at.as_ms()));
        let number = |n: Option<i64>| n.map_or(Value::Null, Value::from);
        let text = |t: &Option<String>| t.as_ref().map_or(Value::Null, |t| Value::from(t.as_str()));
        Some(match name {
            "ended_at" => moment(self.ended_at),
            "exit_code" => number(self.exit_code),
            "term_signal" => number(self.term_signal),
            "cause" => text(&self.cause),
            "attempt" => number(self.attempt),
            "next_attempt_at" => moment(self.next_attempt_at),
            "leased_by" => text(&self.leased_by),
            "lease_expires_at" => moment(self.lease_expires_at),
            "lease_attempts" => number(self.lease_attempts),
            "unknown_since" => moment(self.unknown_since),
            _ => return None,
        })
    }

    /// Sets the field of that name; false when it is not one of them. A value of another type counts as null: values
    /// were fitted to their fields before.
    fn set(&mut self, name: &str, value: &Value) -> bool {
        let moment = || value.as_i64().map(Timestamp::from_ms);
        let text = || value.as_str().map(str::to_owned);
        match name {
            "ended_at" => self.ended_at = moment(),
            "exit_code" => self.exit_code = value.as_i64(),
            "term_signal" => self.term_signal = value.as_i64(),
            "cause" => self.cause = text(),
            "attempt" => self.attempt = value.as_i64(),
            "next_attempt_at" => self.next_attempt_at = moment(),
            "leased_by" => self.leased_by = text(),
            "lease_expires_at" => self.lease_expires_at = moment(),
            "lease_attempts" => self.lease_attempts = value.as_i64(),
            "unknown_since" => self.unknown_since = moment(),
            _ => return false,
        }
        true
    }
}

/// One version of an entity's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// The row's number in its store; meaningless elsewhere, zero before it is stored.
    pub row: i64,
    /// Kind and id.
    pub reference: Reference,
    /// A name that several runs may share.
    pub name: Option<String>,
    /// The status.
    pub status: String,
    /// Whether it is terminal under the pinned policy.
    pub terminal: bool,
    /// Whether it is a success under the pinned policy.
    pub success: bool,
    /// Grows by one with every write; 1 at creation.
    pub version: i64,
    /// Why it has the status.
    pub reason: Reason,
    /// The policy version it keeps.
    pub policy: PolicyPin,
    /// Companion fields without a column.
    pub fields: Fields,
    /// Companion fields with one.
    pub structural: Structural,
    /// Labels.
    pub tags: Tags,
    /// Whoever holds this key is the only live one with it; none when it was released or never had one.
    pub unique_key: Option<String>,
    /// The fence of the current lease; grows whenever the holder changes, 0 before the first.
    pub fence: i64,
    /// Where leased work stands in its queue; none for what was put into none.
    pub queued: Option<Queued>,
    /// The first of its chain of attempts.
    pub root: Option<String>,
    /// 0 for the first of a chain.
    pub generation: i64,
    /// The attempt before it.
    pub chain_parent: Option<String>,
    /// Notify settings as resolved at creation.
    pub notify: Value,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
}

impl Entity {
    /// The first version of an entity that has nothing yet: neither status nor reason, fields nor labels.
    pub(crate) fn new(reference: Reference, policy: PolicyPin, now: Timestamp) -> Self {
        Self {
            row: 0,
            reference,
            name: None,
            status: String::new(),
            terminal: false,
            success: false,
            version: 1,
            reason: Reason::default(),
            policy,
            fields: Fields::new(),
            structural: Structural::default(),
            tags: Tags::new(),
            unique_key: None,
            fence: 0,
            queued: None,
            root: None,
            generation: 0,
            chain_parent: None,
            notify: Value::Null,
            created_at: now,
            updated_at: now,
        }
    }

    /// The value of a companion field; null when it has none.
    pub fn field(&self, name: &str) -> Value {
        self.structural
            .get(name)
            .unwrap_or_else(|| self.fields.get(name).cloned().unwrap_or(Value::Null))
    }

    /// Sets a companion field; null removes it.
    pub fn set_field(&mut self, name: &str, value: &Value) {
        if self.structural.set(name, value) {
            return;
        }
        if value.is_null() {
            self.fields.remove(name);
        } else {
            self.fields.insert(name.to_owned(), value.clone());
        }
    }

    /// Every companion field that is not null, columns and others alike.
    pub fn all_fields(&self) -> Fields {
        let structural = STRUCTURAL_NAMES.iter().filter_map(|name| {
            let value = self.structural.get(name).filter(|value| !value.is_null())?;
            Some(((*name).to_owned(), value))
        });
        let mut all: Fields = structural.collect();
        all.extend(self.fields.clone());
        all
    }

    /// The next version, in no status yet: what the reason and the status replace is not copied, for this is done with
    /// every write.
    pub(crate) fn successor(&self, reason: &Reason, now: Timestamp) -> Self {
        Self {
            row: self.row,
            reference: self.reference.clone(),
            name: self.name.clone(),
            status: String::new(),
            terminal: false,
            success: false,
            version: self.version.saturating_add(1),
            reason: reason.clone(),
            policy: self.policy.clone(),
            fields: self.fields.clone(),
            structural: self.structural.clone(),
            tags: self.tags.clone(),
            unique_key: self.unique_key.clone(),
            fence: self.fence,
            queued: self.queued.clone(),
            root: self.root.clone(),
            generation: self.generation,
            chain_parent: self.chain_parent.clone(),
            notify: self.notify.clone(),
            created_at: self.created_at,
            updated_at: now,
        }
    }

    /// Moves to a status and takes what its policy says of it.
    pub(crate) fn enter(&mut self, lifecycle: &Lifecycle, status: &str) {
        let declared = lifecycle.status(status);
        status.clone_into(&mut self.status);
        self.terminal = declared.is_some_and(|declared| declared.terminal);
        self.success = declared.is_some_and(|declared| declared.success);
    }

    /// Takes its place in its queue, once its status and its lease are what they will be.
    pub(crate) fn line_up(&mut self, lifecycle: &Lifecycle) {
        let stage = stage(lifecycle, self);
        if let Some(queued) = &mut self.queued {
            queued.stage = stage;
        }
    }

    /// When something is due for it: the next attempt, or the end of its lease; none when nothing is, or it ended.
    pub fn due_at(&self) -> Option<Timestamp> {
        let due = self.structural.next_attempt_at.or(self.structural.lease_expires_at);
        due.filter(|_| !self.terminal)
    }
}

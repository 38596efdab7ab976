//! What a retention did, or would do.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::model::{Bytes, Timestamp};

/// What is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneKind {
    /// The directories of a run; its record stays.
    Directories,
    /// The logs of a run.
    Logs,
    /// The record of an entity, with all it has.
    Record,
    /// A run directory that no row names.
    Stray,
    /// History rows of entities that are gone.
    History,
    /// Audit rows.
    Audit,
}

impl PruneKind {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Directories => "directories",
            Self::Logs => "logs",
            Self::Record => "record",
            Self::Stray => "stray",
            Self::History => "history",
            Self::Audit => "audit",
        }
    }
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PruneOutcome {
    /// It would be taken.
    Planned,
    /// It is gone.
    Done,
    /// It stays, and why.
    Kept(String),
}

/// One step of a retention.
#[derive(Clone, Debug, PartialEq)]
pub struct PruneItem {
    /// What.
    pub kind: PruneKind,
    /// Of which entity; none for strays and journals.
    pub reference: Option<String>,
    /// Which directory; none for records without one, and journals.
    pub path: Option<PathBuf>,
    /// Rows of a journal; 0 for all else.
    pub rows: usize,
    /// What all files take that go with it, in bytes; 0 for journals.
    pub bytes: u64,
    /// When its age began.
    pub since: Timestamp,
    /// What came of it.
    pub outcome: PruneOutcome,
}

/// What a retention did, or would do.
#[derive(Clone, Debug, PartialEq)]
pub struct PruneReport {
    /// The steps, in order.
    pub items: Vec<PruneItem>,
    /// What was left unjudged, in words.
    pub notes: Vec<String>,
}

impl PruneReport {
    /// Whether nothing that was to go stays.
    pub fn is_complete(&self) -> bool {
        let stays = |item: &PruneItem| matches!(item.outcome, PruneOutcome::Kept(_));
        !self.items.iter().any(stays)
    }

    /// What the steps take, in bytes: those that are planned or done.
    pub fn bytes(&self) -> u64 {
        let goes = |item: &&PruneItem| !matches!(item.outcome, PruneOutcome::Kept(_));
        self.items.iter().filter(goes).map(|item| item.bytes).sum()
    }

    /// The JSON document.
    pub fn json(&self) -> Value {
        let items: Vec<Value> = self.items.iter().map(PruneItem::json).collect();
        json!({"items": items, "bytes": self.bytes(), "notes": self.notes, "complete": self.is_complete()})
    }
}

impl PruneItem {
    fn json(&self) -> Value {
        let (outcome, message) = match &self.outcome {
            PruneOutcome::Planned => ("planned", None),
            PruneOutcome::Done => ("done", None),
            PruneOutcome::Kept(why) => ("kept", Some(why)),
        };
        json!({
            "what": self.kind.word(),
            "ref": self.reference,
            "path": self.path.as_ref().map(|path| Bytes::from(path.as_os_str())),
            "rows": self.rows,
            "bytes": self.bytes,
            "since": self.since.to_rfc3339(),
            "outcome": outcome,
            "message": message,
        })
    }
}

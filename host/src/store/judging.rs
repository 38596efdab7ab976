//! What judging again needs of a store: what happened, from the newest back, and the policies that judge beside others.

use super::{RuntimeUpdate, StoreError};
use crate::model::{AdminEvent, Fields, HistoryRow, Timestamp};

/// What a store does for judging. A part of [`super::Store`]; the same rules hold: a method is one business step in one
/// transaction, a lost race is a value.
pub trait Judging: Send + Sync {
    /// History rows of a kind with their numbers, newest first, those of removed entities too.
    ///
    /// # Errors
    /// The store cannot be read.
    fn history_back(&self, page: &PageBack) -> Result<Vec<(i64, HistoryRow)>, StoreError>;

    /// Audit rows of an action, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn audit_back(&self, page: &PageBack) -> Result<Vec<AdminEvent>, StoreError>;

    /// The policy that judges a kind beside those that decide; none when none does. One look-up by key.
    ///
    /// # Errors
    /// The store cannot be read.
    fn shadow(&self, kind: &str) -> Result<Option<Shadow>, StoreError>;

    /// All of them, in order of their kinds.
    ///
    /// # Errors
    /// The store cannot be read.
    fn shadows(&self) -> Result<Vec<Shadow>, StoreError>;

    /// Lets an installed policy judge a kind, in the place of another one that did, with its audit row. Its counts begin
    /// at zero. False, and nothing is written, when it is not installed.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn put_shadow(&self, shadow: &Shadow, event: &AdminEvent) -> Result<bool, StoreError>;

    /// Ends it, with an audit row; false when none judges the kind.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn drop_shadow(&self, kind: &str, event: &AdminEvent) -> Result<bool, StoreError>;

    /// As [`super::Store::record`], and counts what a shadow said of the same fact in the same commit.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn record_judged(
        &self,
        events: &[AdminEvent],
        runtimes: &[RuntimeUpdate],
        judged: &Judged,
    ) -> Result<(), StoreError>;
}

/// A page of rows, read from the newest back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageBack {
    /// Of this kind, or of this action.
    pub of: String,
    /// At or after.
    pub since: Option<Timestamp>,
    /// Before this row: where the page before ended; none for the first.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: usize,
}

/// A policy that judges what happens to entities of a kind, and decides nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Shadow {
    /// The kind.
    pub kind: String,
    /// The component.
    pub digest: String,
    /// Parameters as set.
    pub parameters: Fields,
    /// Since when.
    pub at: Timestamp,
    /// By whom.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// What it was asked so far.
    pub counts: JudgedCounts,
}

/// How often a shadow was asked, and how it answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JudgedCounts {
    /// As the policy that decided.
    pub same: i64,
    /// Otherwise; each has an audit row.
    pub different: i64,
    /// It could not be asked.
    pub unjudged: i64,
}

/// Whether a shadow judged a change before it is written. Whoever writes need not look first: a change that was decided
/// without knowing of the shadow is a lost race.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ShadowSeen {
    /// Nobody was asked, and nobody need be.
    #[default]
    Unasked,
    /// There was none as far as is known.
    Absent,
    /// This one judged it.
    Asked(Judged),
}

impl ShadowSeen {
    /// Whether it was judged by the shadow that there is, of this digest.
    pub(super) fn fits(&self, present: Option<&str>) -> bool {
        match self {
            Self::Unasked => true,
            Self::Absent => present.is_none(),
            Self::Asked(judged) => present == Some(judged.digest.as_str()),
        }
    }

    /// What is to be counted.
    pub(super) const fn judged(&self) -> Option<&Judged> {
        match self {
            Self::Unasked | Self::Absent => None,
            Self::Asked(judged) => Some(judged),
        }
    }
}

/// What a shadow said of one fact, to be counted with it. Counted only while that shadow is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The kind.
    pub kind: String,
    /// The component.
    pub digest: String,
    /// What is added.
    pub counts: JudgedCounts,
}

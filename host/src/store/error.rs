//! How a store fails.

use crate::model::Reference;

/// How a store fails. A lost race is not among them: it is an answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the write lock for longer than we wait.
    #[error("the store is busy: another process has held its write lock for {waited_ms} ms")]
    Busy {
        /// How long we waited, in milliseconds.
        waited_ms: u64,
    },
    /// No room is left on the device.
    #[error("no space is left for the store at {path}")]
    Full {
        /// Where the store is.
        path: String,
    },
    /// The file or its file system cannot be written.
    #[error("the store at {path} cannot be written: {why}")]
    ReadOnly {
        /// Where the store is.
        path: String,
        /// Whether the file system or a permission forbids it.
        why: &'static str,
    },
    /// There is no store, and it was not to be made.
    #[error("there is no store at {path}")]
    Missing {
        /// Where it would be.
        path: String,
    },
    /// What is there is damaged, or no store.
    #[error("the store at {path} is damaged: {what}")]
    Corrupt {
        /// Where the store is.
        path: String,
        /// Table and row, or the database's own words.
        what: String,
    },
    /// Made by a newer Runwarden.
    #[error("the store at {path} has format {found}, this runwarden knows {known}")]
    TooNew {
        /// Where the store is.
        path: String,
        /// The store's format.
        found: i64,
        /// The newest this binary knows.
        known: i64,
    },
    /// Where the store cannot be: a network file system, an unknown scheme.
    #[error("a store cannot be at {path}: {why}")]
    Unsuitable {
        /// Where it was to be.
        path: String,
        /// Why not.
        why: String,
    },
    /// A dispatch cannot come back: another one has its deduplication key by now.
    #[error("its deduplication key is held by {holder}")]
    KeyHeld {
        /// The dispatch that has it.
        holder: Reference,
    },
    /// Anything else the database or the file system reported.
    #[error("the store failed while {doing}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// What was reported.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

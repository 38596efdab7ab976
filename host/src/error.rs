//! How a verb fails. Outcomes (applied, conflict, rejected, unchanged) are values and not here.

use crate::model::{Invalid, Reference};
use crate::policy::{InstallError, PolicyFault};
use crate::process::ProcessError;
use crate::provenance::Untrusted;
use crate::store::StoreError;

/// How a verb fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No entity is meant by the word.
    #[error("`{word}` is not found in {store}")]
    NotFound {
        /// What was asked for.
        word: String,
        /// The store that was searched.
        store: String,
    },
    /// Several entities are meant by the word.
    #[error("`{word}` is ambiguous: it means {}", .candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        word: String,
        /// References it may mean.
        candidates: Vec<String>,
    },
    /// No policy governs the kind.
    #[error("`{kind}` is no kind here")]
    UnknownKind {
        /// What was asked for.
        kind: String,
        /// Kinds that have a policy.
        known: Vec<String>,
    },
    /// No installed component is meant by the word.
    #[error("no installed policy is `{word}`")]
    UnknownPolicy {
        /// What was asked for.
        word: String,
    },
    /// The command is wrong.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The id is taken.
    #[error("`{id}` is in use, or was: ids are never used twice")]
    IdTaken {
        /// The id.
        id: String,
    },
    /// The parent is terminal or being stopped.
    #[error("nothing can be started below {parent}: it has ended or is being stopped")]
    ParentClosed {
        /// The parent.
        parent: String,
    },
    /// A live entity holds the unique key.
    #[error("{holder} holds the unique key `{key}` and has not ended")]
    UniqueKeyHeld {
        /// The key.
        key: String,
        /// Who holds it.
        holder: Reference,
    },
    /// The lease that a run was to be started for is somebody else's by now, or its row has ended.
    #[error("the lease of {reference} under fence {fence} is lost")]
    LeaseLost {
        /// The row.
        reference: Reference,
        /// The fence that is not current any more.
        fence: i64,
    },
    /// The attempt has a successor already.
    #[error("{successor} goes on where {before} ended")]
    Succeeded {
        /// The attempt.
        before: String,
        /// Its successor.
        successor: Reference,
    },
    /// The component is in use and cannot be removed.
    #[error("component {digest} is in use")]
    InUse {
        /// Its digest.
        digest: String,
        /// What needs it; empty when that began while it was being removed.
        uses: Vec<Use>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A component failed.
    #[error(transparent)]
    Policy(#[from] PolicyFault),
    /// A file is no usable component.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// Nobody whom the user trusts vouches for a component.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The operating system failed us.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A file of the home could not be read or written.
    #[error("cannot {doing} {path}")]
    Home {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// What needs a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is the policy in force for its kind.
    InForce,
    /// It judges this kind beside the policy in force.
    Shadow(String),
    /// Entities of this kind are pinned to it.
    Pinned {
        /// The kind.
        kind: String,
        /// How many of them live: they can be moved to another policy.
        live: i64,
        /// How many have ended: they keep it until they are removed.
        ended: i64,
    },
    /// The binding of this name means it.
    Bound(String),
    /// An entity that can still end keeps it in its notify settings.
    Kept(Reference),
    /// An event of this entity is still to be told through it.
    Owed(Reference),
}

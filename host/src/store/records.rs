//! What goes into a store and comes out of it, beside the model's own types.

use serde_json::Value;

use super::{HeldLease, NoRoom, ShadowSeen, Successor};

use crate::model::{
    AdminEvent, Change, Containment, DestinationHealth, Entity, Fields, RaisedLimits, Reference, Runtime, RuntimeState,
    StopIntent, Timestamp,
};
use crate::model::{Place, ProcessIdentity};

/// The work specification of a run, as stored: opaque to the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Work(pub Value);

/// What belongs to an entity beside its own row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Belongings {
    /// What it is linked directly below, in order of creation.
    pub parents: Vec<Reference>,
    /// What is linked directly below it, in order of creation.
    pub children: Vec<Reference>,
    /// Its newest runtime row.
    pub runtime: Option<Runtime>,
    /// Its work specification.
    pub work: Option<Work>,
}

/// What a creation adds when the entity has work to do: now, as a run, or later, in a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    /// The runtime row of a run, in state `starting`; none for what only waits for a worker.
    pub runtime: Option<Runtime>,
    /// Its work specification.
    pub work: Work,
    /// Directories that belong to it: absolute paths.
    pub directories: Vec<Vec<u8>>,
    /// The lease that it is run for: it is made only while that is current. A row that is doubted admits no run: its
    /// holder comes back first.
    pub lease: Option<HeldLease>,
    /// What it waits for; all of it has to succeed. What has a successor is waited for in its last one.
    pub after: Vec<Reference>,
}

/// Components, activations and audit rows of one commit.
#[derive(Clone, Debug, Default)]
pub struct Installation {
    /// Components to add.
    pub components: Vec<Component>,
    /// What is in force from then on.
    pub activations: Vec<Activation>,
    /// What is audited.
    pub events: Vec<AdminEvent>,
}

/// Everything one transition writes.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectSet {
    /// The decided change.
    pub change: Change,
    /// Runtime rows written in the same commit.
    pub runtimes: Vec<RuntimeUpdate>,
    /// How the destination of a delivery did, when this is the outcome of an attempt.
    pub destination: Option<DestinationHealth>,
    /// The attempt that follows this one, if the change ends it.
    pub successor: Option<Successor>,
    /// Whether a shadow judged the same command.
    pub shadow: ShadowSeen,
}

/// A write to one runtime row; what is none stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuntimeUpdate {
    /// The row.
    pub id: i64,
    /// Written only if the row is in one of these states; empty admits every state.
    pub only_from: Vec<RuntimeState>,
    /// The new state.
    pub state: Option<RuntimeState>,
    /// Whether a stop is unconfirmed.
    pub stop_unconfirmed: Option<bool>,
    /// Where its numbers mean something.
    pub place: Option<Place>,
    /// The worker's identity.
    pub worker: Option<ProcessIdentity>,
    /// The shim's identity.
    pub shim: Option<ProcessIdentity>,
    /// The identity level.
    pub level: Option<String>,
    /// What holds the set together.
    pub containment: Option<Containment>,
    /// The set's cgroup.
    pub cgroup: Option<Vec<u8>>,
    /// The worker's own process group.
    pub process_group: Option<i64>,
    /// Why it is being stopped; kept when there is one already.
    pub stop_intent: Option<StopIntent>,
    /// What its program needs to take up its work again.
    pub resume_token: Option<String>,
    /// When.
    pub at: Timestamp,
}

impl RuntimeUpdate {
    /// Makes the changes to the row; false when its state is not one the update admits, and nothing was changed. A row
    /// that is stopped names no process from then on: the evidence of its end does.
    pub fn change(&self, runtime: &mut Runtime) -> bool {
        if !self.only_from.is_empty() && !self.only_from.contains(&runtime.state) {
            return false;
        }
        fn set<T: Clone>(target: &mut T, given: Option<&T>) {
            if let Some(value) = given {
                *target = value.clone();
            }
        }
        fn fill<T: Clone>(target: &mut Option<T>, given: Option<&T>) {
            if let Some(value) = given {
                *target = Some(value.clone());
            }
        }
        set(&mut runtime.state, self.state.as_ref());
        set(&mut runtime.stop_unconfirmed, self.stop_unconfirmed.as_ref());
        set(&mut runtime.place, self.place.as_ref());
        fill(&mut runtime.worker, self.worker.as_ref());
        fill(&mut runtime.shim, self.shim.as_ref());
        fill(&mut runtime.level, self.level.as_ref());
        set(&mut runtime.containment, self.containment.as_ref());
        fill(&mut runtime.cgroup, self.cgroup.as_ref());
        fill(&mut runtime.process_group, self.process_group.as_ref());
        fill(&mut runtime.resume_token, self.resume_token.as_ref());
        if runtime.stop_intent.is_none() {
            fill(&mut runtime.stop_intent, self.stop_intent.as_ref());
        }
        if runtime.is_stopped() {
            // A number outlives its process: who reads the row later must not take it for a handle.
            (runtime.worker, runtime.shim, runtime.process_group) = (None, None, None);
        }
        runtime.updated_at = self.at;
        true
    }
}

/// How a creation came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Created {
    /// It is stored, with its row number; the runtime row's id when there is one.
    New {
        /// The entity as stored.
        entity: Box<Entity>,
        /// The runtime row's id.
        runtime_id: Option<i64>,
    },
    /// The idempotency key stands for this entity; `command_digest` says for which command.
    KeyUsed {
        /// The entity made with the key.
        entity: Box<Entity>,
        /// The digest of the command it was made with.
        command_digest: String,
    },
    /// The id is or was in use (removed entities included).
    IdTaken,
    /// The lease it is to be run for is not current any more: its row has ended, is doubted, or is somebody else's.
    LeaseLost,
    /// The one before it in its chain has this successor already.
    SucceededBy(Box<Entity>),
    /// This live entity holds its unique key.
    UniqueKeyHeld(Box<Entity>),
    /// A parent does not exist.
    ParentMissing(Reference),
    /// A parent is terminal or is being stopped: nothing may be started below it.
    ParentClosed(Reference),
    /// What it is to wait for does not exist.
    AwaitedMissing(Reference),
}

/// How a runtime row was added to an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeAdded {
    /// It is stored, under this number.
    New(i64),
    /// There is no such entity.
    OwnerMissing,
    /// The entity has ended.
    OwnerEnded,
    /// This one of the entity's runtimes is not stopped.
    InUse(i64),
}

/// How an applied change came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// It is durable.
    Written,
    /// Another writer was first; the entity as it is now, or none when it was removed.
    Lost(Option<Box<Entity>>),
    /// Its queue admits nobody now; nothing was written.
    NoRoom(NoRoom),
}

/// Which rows of an entity leave the inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All of them.
    All,
    /// Those without a resume token: it is kept nowhere else.
    WithoutToken,
}

/// How a removal came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Removed {
    /// It is gone; its history stays.
    Gone,
    /// Another writer was first; the entity as it is now, or none when it was removed.
    Changed(Option<Box<Entity>>),
    /// It has runtime rows or resources: they go first.
    Holding,
}

/// A journal that only retention takes rows out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// History rows; those of an entity that is there stay, however old.
    History,
    /// Audit rows.
    Audit,
}

/// Which part of a journal, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalPage {
    /// The journal.
    pub journal: Journal,
    /// After this row: where the page before ended; 0 for the first.
    pub after: i64,
    /// Only rows written before.
    pub before: Timestamp,
    /// At most so many rows are looked at.
    pub limit: usize,
}

/// What a page of a journal holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OldRows {
    /// Rows that retention may take.
    pub rows: Vec<i64>,
    /// Where the next page begins; none when nothing old comes after this one.
    pub next: Option<i64>,
}

impl OldRows {
    /// Of rows that were looked at in order: number, whether it is old, whether it may go.
    pub(super) fn of(seen: &[(i64, bool, bool)]) -> Self {
        let due = seen.iter().filter(|(_, is_old, may_go)| *is_old && *may_go);
        let any_old = seen.iter().any(|(_, is_old, _)| *is_old);
        Self {
            rows: due.map(|(row, ..)| *row).collect(),
            // Times follow the numbers: after a page without an old row nothing old comes.
            next: seen.last().filter(|_| any_old).map(|(row, ..)| *row),
        }
    }
}

/// What a user's word may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// An id, or a prefix of one, of a kind or of any; literal and case-sensitive.
    IdPrefix {
        /// The kind, when it was given.
        kind: Option<String>,
        /// The id or its prefix.
        prefix: String,
    },
    /// The newest entity of that name.
    Name(String),
    /// The newest entity that has a runtime row (a run of whatever kind).
    NewestRun,
    /// The newest run that ended without success.
    NewestFailedRun,
}

/// Which entities, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityQuery {
    /// Of this kind.
    pub kind: Option<String>,
    /// Not of this kind.
    pub except_kind: Option<String>,
    /// With one of these statuses; empty is all.
    pub statuses: Vec<String>,
    /// Terminal or not.
    pub terminal: Option<bool>,
    /// Success or not (with `terminal: Some(true)`: ended well or badly).
    pub success: Option<bool>,
    /// With all of these tags.
    pub tags: Vec<(String, String)>,
    /// Of this name.
    pub name: Option<String>,
    /// Created at or after.
    pub since: Option<Timestamp>,
    /// Older than this row number: where the page before ended.
    pub before_row: Option<i64>,
    /// At most so many; none is all.
    pub limit: Option<usize>,
}

/// Which way to follow links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Directly above.
    Parents,
    /// Directly below.
    Children,
    /// Everything below.
    Descendants,
}

/// Which history rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryQuery {
    /// Of this entity id, removed ones included.
    pub id: Option<String>,
    /// At or after.
    pub since: Option<Timestamp>,
    /// Only the newest so many (still oldest first).
    pub newest: Option<usize>,
}

/// Which audit rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdminQuery {
    /// Of this target.
    pub target: Option<String>,
    /// At or after.
    pub since: Option<Timestamp>,
}

/// A component to install.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// What it is, without bytes and counts.
    pub record: ComponentRecord,
    /// The canonical descriptor.
    pub descriptor: String,
    /// The component itself.
    pub bytes: Vec<u8>,
    /// Who signed it, verified.
    pub signatures: Vec<Signed>,
}

/// That somebody signed a component, verified when it was installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The key: Ed25519, 32 bytes.
    pub public_key: [u8; 32],
    /// What signatures name the key by.
    pub key_id: [u8; 8],
    /// The signature over the component's bytes.
    pub signature: [u8; 64],
    /// When it was verified.
    pub at: Timestamp,
}

/// A component in a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentRecord {
    /// SHA-256 in hexadecimal.
    pub digest: String,
    /// The kind it governs.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `bundled` or `installed`.
    pub source: String,
    /// The exported interfaces, with their versions.
    pub exports: Vec<String>,
    /// Size in bytes.
    pub size_bytes: i64,
    /// When it was installed.
    pub installed_at: Timestamp,
    /// Whether entities created now are pinned to it.
    pub active: bool,
    /// How many entities are pinned to it.
    pub in_use: i64,
    /// Limits that an operator raised for it.
    pub raised: RaisedLimits,
}

/// That a component became the one for entities created later.
#[derive(Clone, Debug, PartialEq)]
pub struct Activation {
    /// The kind.
    pub kind: String,
    /// The component.
    pub digest: String,
    /// Parameters as set.
    pub parameters: Fields,
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// How a store stands that is looked after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upkeep {
    /// Size of what was written lately and is kept apart, in bytes: of a write-ahead log, the file.
    pub log_bytes: u64,
    /// Pages of it that are not yet where they are kept for good: somebody still reads what was there before.
    pub waiting_pages: u64,
    /// How long the reader of this process that reads longest has been reading.
    pub oldest_reader: Option<std::time::Duration>,
    /// Statements that this handle has run so far.
    pub statements: u64,
    /// Commits that this handle has made so far.
    pub commits: u64,
}

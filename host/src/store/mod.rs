//! The store: the only module that knows SQL.
//!
//! A method is one business step in one transaction. A lost race is a value, not an error. Errors are few and typed.

#[cfg(any(test, feature = "testing"))]
pub mod contract;
#[cfg(any(test, feature = "testing"))]
pub mod samples;

mod error;
#[cfg(any(test, feature = "testing"))]
mod fault;
mod judging;
#[cfg(any(test, feature = "testing"))]
mod memory;
mod outbox;
#[cfg(test)]
mod property;
mod queue;
mod records;
mod schedules;
mod sqlite;

pub use error::StoreError;
#[cfg(any(test, feature = "testing"))]
pub use fault::{FaultyStore, PlannedFault, When};
pub use judging::{Judged, JudgedCounts, Judging, PageBack, Shadow, ShadowSeen};
#[cfg(any(test, feature = "testing"))]
pub use memory::MemoryStore;
pub use outbox::{Acknowledged, Backlog, Binding, Consumer, DueQuery, Enqueued, Outbox, Outline, Owed};
pub use queue::{
    Boot, Dependency, HeldLease, NoRoom, Queue, QueueSetup, QueueState, RENEWAL_DELAY_LIMITS, ReadyQuery, Renewal,
    RenewalDelays, Renewed, StagePlace, StagedQuery, Successor, Worker,
};
pub use records::{
    Activation, AdminQuery, Applied, Belongings, Component, ComponentRecord, Created, EffectSet, EntityQuery,
    HistoryQuery, Installation, Journal, JournalPage, Lookup, NewRun, OldRows, Removed, Rows, RuntimeAdded,
    RuntimeUpdate, Scope, Signed, Upkeep, Work,
};
pub use schedules::{Fire, Fired, KeptSchedule, Occurrence, Schedules, Steering};
pub use sqlite::{Counts, Log, OpenMode, SqliteStore, StoreHealth, Tuning, examine};

use crate::model::{AdminEvent, Entity, HistoryRow, NewEntity, RaisedLimits, Reference, Resource, Runtime};

/// What a store does. Implementations: SQLite, the in-memory model, and a wrapper that fails chosen calls; one contract
/// suite runs on all of them.
pub trait Store: Judging + Outbox + Queue + Schedules {
    /// The store's own random name, of which event ids are made; drawn once when the store is made.
    fn name(&self) -> &str;

    /// A number that changes with every commit made by anybody, as far as this handle can see.
    ///
    /// # Errors
    /// The store cannot be read.
    fn data_version(&self) -> Result<i64, StoreError>;

    /// Makes an entity with its first history row, links, and what it brings along (work, a runtime row, what it waits
    /// for): one commit. An attempt that follows another one is linked below the same entities, and whoever still waits for
    /// that one waits for it. Nothing is written unless the answer is [`Created::New`]. Judged in the order of [`Created`]'s
    /// other answers.
    ///
    /// # Errors
    /// The store failed, or the policy it is pinned to is not installed; nothing was written.
    fn create(&self, new: &NewEntity, run: Option<&NewRun>) -> Result<Created, StoreError>;

    /// Applies a decided change: compare-and-set on the version, history, event, audit rows, key and runtime rows in
    /// one commit. Nothing is written unless the answer is [`Applied::Written`]. What is fixed at creation (kind, id,
    /// name, tags, lineage, notify settings, creation time) stays whatever the change says; the policy pin may move.
    /// A key that was used before is a lost race, and so is a change that the shadow of its kind has not judged. A row of a queue that is paused or full is not taken. An end is told to
    /// whoever waits for it, unless a successor takes its place.
    ///
    /// # Errors
    /// The store failed, or a policy it names is not installed; nothing was written.
    fn apply(&self, effects: &EffectSet) -> Result<Applied, StoreError>;

    /// Applies several decided changes, of different entities, in one commit; each by itself, as [`Store::apply`] would, in
    /// their order: what one of them takes leaves less room for those after it.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn apply_all(&self, effects: &[EffectSet]) -> Result<Vec<Applied>, StoreError>;

    /// Adds a runtime row to an entity that was there before it, with its audit row. Nothing is written unless the
    /// answer is [`RuntimeAdded::New`]: an entity has at most one runtime that is not stopped.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn add_runtime(&self, runtime: &Runtime, event: &AdminEvent) -> Result<RuntimeAdded, StoreError>;

    /// Writes runtime rows alone: states, identities, stop intents.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn update_runtimes(&self, updates: &[RuntimeUpdate]) -> Result<(), StoreError>;

    /// Writes audit rows, with the runtime rows of the same fact. If runtime rows are given and none of them is in a
    /// state that its update admits, somebody else recorded the fact: nothing is written.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn record(&self, events: &[AdminEvent], runtimes: &[RuntimeUpdate]) -> Result<(), StoreError>;

    /// The entity of that id, whatever its kind.
    ///
    /// # Errors
    /// The store cannot be read.
    fn load(&self, id: &str) -> Result<Option<Entity>, StoreError>;

    /// The history row that an idempotency key of an entity stands for, with the digest of its command.
    ///
    /// # Errors
    /// The store cannot be read.
    fn key_use(&self, entity: &Entity, key: &str) -> Result<Option<(String, HistoryRow)>, StoreError>;

    /// Entities that a word may mean; at most `limit` of them, in order of their ids; an exact match alone if there is
    /// one.
    ///
    /// # Errors
    /// The store cannot be read.
    fn look_up(&self, lookup: &Lookup, limit: usize) -> Result<Vec<Entity>, StoreError>;

    /// Entities, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn list(&self, query: &EntityQuery) -> Result<Vec<Entity>, StoreError>;

    /// What an entity is linked to: directly above, directly below, or everything below (each once, nearest first, then
    /// in order of creation).
    ///
    /// # Errors
    /// The store cannot be read.
    fn linked(&self, entity: &Entity, scope: Scope) -> Result<Vec<Entity>, StoreError>;

    /// History rows, oldest first; of one entity or of all.
    ///
    /// # Errors
    /// The store cannot be read.
    fn history(&self, query: &HistoryQuery) -> Result<Vec<HistoryRow>, StoreError>;

    /// The envelope that a history row stored, by event id; none when the row made no event.
    ///
    /// # Errors
    /// The store cannot be read.
    fn envelope(&self, event_id: &str) -> Result<Option<serde_json::Value>, StoreError>;

    /// Audit rows, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn admin_events(&self, query: &AdminQuery) -> Result<Vec<AdminEvent>, StoreError>;

    /// Runtime rows of these entities, or every row that is not stopped when none are given.
    ///
    /// # Errors
    /// The store cannot be read.
    fn runtimes(&self, owners: Option<&[Reference]>) -> Result<Vec<Runtime>, StoreError>;

    /// The runtime row of that number.
    ///
    /// # Errors
    /// The store cannot be read.
    fn runtime(&self, id: i64) -> Result<Option<Runtime>, StoreError>;

    /// The work specification stored with a run.
    ///
    /// # Errors
    /// The store cannot be read.
    fn work(&self, entity: &Entity) -> Result<Option<Work>, StoreError>;

    /// The work specifications stored with these entities, in their order: one snapshot.
    ///
    /// # Errors
    /// The store cannot be read.
    fn works(&self, entities: &[Entity]) -> Result<Vec<Option<Work>>, StoreError>;

    /// What belongs to each of these entities, in their order: one snapshot, and as many statements for many entities as
    /// for one.
    ///
    /// # Errors
    /// The store cannot be read.
    fn belongings(&self, entities: &[Entity]) -> Result<Vec<Belongings>, StoreError>;

    /// Adds components with their descriptors and signatures, makes active what the activations name, and writes the audit
    /// rows: one commit. A component that is there already gets the signatures that it has not, and the limits that are
    /// raised with it, where any is; it is else left as it is.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn install(
        &self,
        components: &[Component],
        activations: &[Activation],
        events: &[AdminEvent],
    ) -> Result<(), StoreError>;

    /// Makes an installed component the one for entities created later; it judges beside no other then. False when its
    /// digest is not installed.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn activate(&self, activation: &Activation, event: &AdminEvent) -> Result<bool, StoreError>;

    /// Removes a component that no entity is pinned to, that is not active and no shadow, with its signatures, and writes
    /// the audit row. False when it is in use or not there. History goes on naming its digest.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn remove_component(&self, digest: &str, event: &AdminEvent) -> Result<bool, StoreError>;

    /// All components, without bytes, with how many entities are pinned to each.
    ///
    /// # Errors
    /// The store cannot be read.
    fn components(&self) -> Result<Vec<ComponentRecord>, StoreError>;

    /// How many entities that have not ended are pinned to each component, by digest; those without any are left out.
    ///
    /// # Errors
    /// The store cannot be read.
    fn live_pins(&self) -> Result<Vec<(String, i64)>, StoreError>;

    /// Who signed which component, by digest, in order of installation.
    ///
    /// # Errors
    /// The store cannot be read.
    fn signatures(&self) -> Result<Vec<(String, Signed)>, StoreError>;

    /// The limits that were raised for a component: none when it is not installed.
    ///
    /// # Errors
    /// The store cannot be read.
    fn raised_limits(&self, digest: &str) -> Result<RaisedLimits, StoreError>;

    /// The canonical descriptor of a component.
    ///
    /// # Errors
    /// The store cannot be read.
    fn descriptor(&self, digest: &str) -> Result<Option<String>, StoreError>;

    /// The bytes of a component.
    ///
    /// # Errors
    /// The store cannot be read.
    fn component_bytes(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// The activation in force for a kind, and those before it, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn activations(&self, kind: &str) -> Result<Vec<Activation>, StoreError>;

    /// Directories that these entities registered as theirs, in order of registration.
    ///
    /// # Errors
    /// The store cannot be read.
    fn resources(&self, owners: &[Reference]) -> Result<Vec<Resource>, StoreError>;

    /// Takes runtime rows of an entity out of the inventory and writes audit rows: one commit. False, and nothing is
    /// written, when one of its rows is not stopped.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn drop_runtimes(&self, owner: &Entity, rows: Rows, events: &[AdminEvent]) -> Result<bool, StoreError>;

    /// Takes a resource out of the inventory; one that is not there changes nothing.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn drop_resource(&self, id: i64) -> Result<(), StoreError>;

    /// Removes an entity of this version that has neither runtime rows nor resources, with its links, labels, keys and
    /// work, and writes the audit row: one commit. Whoever still waits for it is told that it ended without success. Its
    /// history stays, and its id is never used again.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn remove(&self, entity: &Entity, event: &AdminEvent) -> Result<Removed, StoreError>;

    /// Entities in order of creation, after a row number, at most `limit` of them.
    ///
    /// # Errors
    /// The store cannot be read.
    fn oldest(&self, after_row: i64, limit: usize) -> Result<Vec<Entity>, StoreError>;

    /// Rows of a journal that retention may take, a page at a time.
    ///
    /// # Errors
    /// The store cannot be read.
    fn journal_page(&self, page: &JournalPage) -> Result<OldRows, StoreError>;

    /// Takes rows of a page out of its journal and writes the audit row, in one commit; how many went. Rows that may no
    /// longer go stay. The one way past the rule that history is only added to.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn prune_journal(&self, page: &JournalPage, rows: &[i64], event: &AdminEvent) -> Result<usize, StoreError>;

    /// Works what was written lately in where it is kept for good, as far as nobody who reads needs it where it is; tells
    /// how it stands afterwards. Waits for nobody; for a process that lives long.
    ///
    /// # Errors
    /// The store failed; nothing was lost.
    fn upkeep(&self) -> Result<Upkeep, StoreError>;
}

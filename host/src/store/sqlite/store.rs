//! The handle: opening, and the trait's methods on one connection or on the writer.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;

use super::columns::json;
use super::command::{Answer, Command};
use super::connection::{Access, Counters, Counts, Db, Source, Tuning};
use super::failure::explain;
use super::readers::Readers;
use super::schema::{self, Format};
use super::upkeep::Keeper;
use super::writer::Writer;
use super::{activation, belongings, entity, history, image, place, query, removal, runtime};
use crate::model::{AdminEvent, Entity, HistoryRow, NewEntity, RaisedLimits, Reference, Resource, Runtime};
use crate::store::{
    Activation, AdminQuery, Applied, Belongings, Component, ComponentRecord, Created, EffectSet, EntityQuery,
    HistoryQuery, Installation, JournalPage, Lookup, NewRun, OldRows, Removed, Rows, RuntimeAdded, RuntimeUpdate,
    Scope, Signed, Store, StoreError, Upkeep, Work,
};

/// What opening may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Makes the store when there is none.
    Create,
    /// Reads and writes a store that is there.
    Existing,
    /// Reads a store that is there, also from a file system that cannot be written.
    ReadOnly,
}

/// A store in a SQLite file. One handle serves all threads of a process; it does not survive a fork.
pub struct SqliteStore {
    // Dropped in this order: the writer ends before the connections it does not own.
    writer: Writer,
    readers: Readers,
    watch: Mutex<Option<Db>>,
    keeper: Keeper,
    source: Arc<Source>,
    name: String,
}

impl SqliteStore {
    /// Opens the store in the file at `path`. Blocks for the time of a few file operations; making a store waits for
    /// other processes that are making it.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when it is not there and not to be made, [`StoreError::Unsuitable`] for a network file
    /// system, [`StoreError::TooNew`], [`StoreError::Corrupt`], [`StoreError::ReadOnly`], or what the system reports.
    pub fn open(path: &Path, mode: OpenMode) -> Result<Self, StoreError> {
        Self::open_tuned(path, mode, Tuning::default())
    }

    /// Makes the store in the file at `path` with these components in it, unless there is one: whole or not at all,
    /// whatever dies meanwhile. Of several processes that make it at once, one does.
    ///
    /// # Errors
    /// As [`SqliteStore::open`], or what `contents` answers, which is asked only if there is no store.
    pub fn make(path: &Path, contents: impl FnOnce() -> Result<Installation, StoreError>) -> Result<(), StoreError> {
        schema::refuse_old_sqlite(path)?;
        if place::holds_a_file(path)? {
            return Ok(());
        }
        let directory = place::directory_of(path);
        place::make_directory(path, directory)?;
        place::refuse_network(path, directory)?;
        image::publish(path, directory, &contents()?)
    }

    /// The same as [`SqliteStore::open`], with other limits.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn open_tuned(path: &Path, mode: OpenMode, tuning: Tuning) -> Result<Self, StoreError> {
        if mode == OpenMode::Create {
            Self::make(path, || Ok(Installation::default()))?;
        } else if !place::holds_a_file(path)? {
            return Err(missing(path));
        }
        schema::refuse_old_sqlite(path)?;
        place::refuse_network(path, place::directory_of(path))?;
        let counters = Arc::new(Counters::default());
        let read_only = mode == OpenMode::ReadOnly;
        let source = Arc::new(Source {
            path: path.to_owned(),
            tuning,
            read_only,
            counters,
        });
        let started = Instant::now();
        let connected = source.connect(Access::Read);
        let db = connected.map_err(|error| explain(error, path, "opening the store", started.elapsed()))?;
        let behind = match schema::format(&db, path)? {
            Format::Empty if mode == OpenMode::Create => true,
            Format::Empty => return Err(missing(path)),
            Format::Known(format) => format < schema::newest(),
        };
        if behind {
            bring_up_to_date(&source, path)?;
        }
        let name = schema::name(&db, path)?;
        Ok(Self {
            writer: Writer::new(Arc::clone(&source)),
            readers: Readers::with(db),
            watch: Mutex::default(),
            keeper: Keeper::default(),
            source,
            name,
        })
    }

    /// What this handle has done so far.
    pub fn counts(&self) -> Counts {
        self.source.counters.counts()
    }

    /// Its name.
    pub(super) fn own_name(&self) -> &str {
        &self.name
    }

    pub(super) fn read<T>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Db) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let started = Instant::now();
        let answer = self.readers.read(&self.source, read);
        answer.map_err(|error| explain(error, &self.source.path, doing, started.elapsed()))
    }

    pub(super) fn write(&self, command: Command) -> Result<Answer, StoreError> {
        if self.source.read_only {
            return Err(place::unwritable(&self.source.path));
        }
        self.writer.submit(&self.readers, command)
    }

    pub(super) fn flag(&self, command: Command) -> Result<bool, StoreError> {
        let Answer::Flag(flag) = self.write(command)? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(flag)
    }
}

fn bring_up_to_date(source: &Source, path: &Path) -> Result<(), StoreError> {
    if source.read_only {
        let why = "its format is older than this runwarden's, and it was opened for reading alone".to_owned();
        return Err(StoreError::Unsuitable {
            path: path.display().to_string(),
            why,
        });
    }
    let started = Instant::now();
    let connected = source.connect(Access::Write);
    let db = connected.map_err(|error| explain(error, path, "opening the store", started.elapsed()))?;
    schema::migrate(&db, path, source.tuning.busy_wait)
}

fn missing(path: &Path) -> StoreError {
    StoreError::Missing {
        path: path.display().to_string(),
    }
}

/// The writer answers every command with its own kind of answer.
pub(super) const ANSWER_FITS: &str = "a command is answered in its own kind";

impl Store for SqliteStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn data_version(&self) -> Result<i64, StoreError> {
        // On a connection of its own that never writes: SQLite tells a connection of everybody's commits but its own.
        let started = Instant::now();
        let told = |error| explain(error, &self.source.path, "looking for changes", started.elapsed());
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let db = match watch.take() {
            Some(db) => db,
            None => self.source.connect(Access::Read).map_err(told)?,
        };
        let version = db.row("PRAGMA data_version", [], |row| row.get(0)).map_err(told)?;
        *watch = Some(db);
        Ok(version.expect("the pragma always answers"))
    }

    fn create(&self, new: &NewEntity, run: Option<&NewRun>) -> Result<Created, StoreError> {
        let command = Command::Create(Box::new(new.clone()), run.cloned().map(Box::new));
        let Answer::Created(created) = self.write(command)? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(created)
    }

    fn apply(&self, effects: &EffectSet) -> Result<Applied, StoreError> {
        let command = Command::Apply(Box::new(effects.clone()));
        let Answer::Applied(applied) = self.write(command)? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(applied)
    }

    fn apply_all(&self, effects: &[EffectSet]) -> Result<Vec<Applied>, StoreError> {
        let Answer::AppliedAll(applied) = self.write(Command::ApplyAll(effects.to_vec()))? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(applied)
    }

    fn add_runtime(&self, runtime: &Runtime, event: &AdminEvent) -> Result<RuntimeAdded, StoreError> {
        let command = Command::AddRuntime(Box::new(runtime.clone()), event.clone());
        let Answer::RuntimeAdded(added) = self.write(command)? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(added)
    }

    fn update_runtimes(&self, updates: &[RuntimeUpdate]) -> Result<(), StoreError> {
        self.write(Command::UpdateRuntimes(updates.to_vec())).map(drop)
    }

    fn record(&self, events: &[AdminEvent], runtimes: &[RuntimeUpdate]) -> Result<(), StoreError> {
        self.write(Command::Record(events.to_vec(), runtimes.to_vec(), None))
            .map(drop)
    }

    fn load(&self, id: &str) -> Result<Option<Entity>, StoreError> {
        self.read("loading an entity", |db| entity::load(db, id))
    }

    fn key_use(&self, entity: &Entity, key: &str) -> Result<Option<(String, HistoryRow)>, StoreError> {
        self.read("looking for an idempotency key", |db| {
            history::key_use(db, entity, key, &self.name)
        })
    }

    fn look_up(&self, lookup: &Lookup, limit: usize) -> Result<Vec<Entity>, StoreError> {
        self.read("looking up a reference", |db| query::look_up(db, lookup, limit))
    }

    fn list(&self, query: &EntityQuery) -> Result<Vec<Entity>, StoreError> {
        self.read("listing entities", |db| query::list(db, query))
    }

    fn linked(&self, entity: &Entity, scope: Scope) -> Result<Vec<Entity>, StoreError> {
        self.read("following links", |db| query::linked(db, entity, scope))
    }

    fn history(&self, query: &HistoryQuery) -> Result<Vec<HistoryRow>, StoreError> {
        self.read("reading history", |db| history::history(db, query, &self.name))
    }

    fn envelope(&self, event_id: &str) -> Result<Option<Value>, StoreError> {
        self.read("reading an event", |db| history::envelope(db, event_id))
    }

    fn admin_events(&self, query: &AdminQuery) -> Result<Vec<AdminEvent>, StoreError> {
        self.read("reading audit rows", |db| history::admin_events(db, query))
    }

    fn runtimes(&self, owners: Option<&[Reference]>) -> Result<Vec<Runtime>, StoreError> {
        self.read("reading the inventory", |db| runtime::runtimes(db, owners))
    }

    fn runtime(&self, id: i64) -> Result<Option<Runtime>, StoreError> {
        self.read("reading the inventory", |db| runtime::runtime(db, id))
    }

    fn work(&self, entity: &Entity) -> Result<Option<Work>, StoreError> {
        self.read("reading a work specification", |db| runtime::work(db, entity))
    }

    fn works(&self, entities: &[Entity]) -> Result<Vec<Option<Work>>, StoreError> {
        let numbers: Vec<i64> = entities.iter().map(|entity| entity.row).collect();
        let mut works = self.read("reading work specifications", |db| runtime::works(db, &json(&numbers)))?;
        Ok(numbers.iter().map(|number| works.remove(number)).collect())
    }

    fn belongings(&self, entities: &[Entity]) -> Result<Vec<Belongings>, StoreError> {
        self.read("reading what belongs to entities", |db| {
            belongings::belongings(db, entities)
        })
    }

    fn install(
        &self,
        components: &[Component],
        activations: &[Activation],
        events: &[AdminEvent],
    ) -> Result<(), StoreError> {
        let installation = Installation {
            components: components.to_vec(),
            activations: activations.to_vec(),
            events: events.to_vec(),
        };
        self.write(Command::Install(Box::new(installation))).map(drop)
    }

    fn activate(&self, activation: &Activation, event: &AdminEvent) -> Result<bool, StoreError> {
        let command = Command::Activate(activation.clone(), event.clone());
        self.flag(command)
    }

    fn remove_component(&self, digest: &str, event: &AdminEvent) -> Result<bool, StoreError> {
        let command = Command::RemoveComponent(digest.to_owned(), event.clone());
        self.flag(command)
    }

    fn components(&self) -> Result<Vec<ComponentRecord>, StoreError> {
        self.read("listing components", activation::components)
    }

    fn live_pins(&self) -> Result<Vec<(String, i64)>, StoreError> {
        self.read("counting what is pinned", activation::live_pins)
    }

    fn signatures(&self) -> Result<Vec<(String, Signed)>, StoreError> {
        self.read("listing signatures", activation::signatures)
    }

    fn raised_limits(&self, digest: &str) -> Result<RaisedLimits, StoreError> {
        self.read("reading the limits of a component", |db| {
            activation::raised_limits(db, digest)
        })
    }

    fn descriptor(&self, digest: &str) -> Result<Option<String>, StoreError> {
        self.read("reading a descriptor", |db| activation::descriptor(db, digest))
    }

    fn component_bytes(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.read("reading a component", |db| activation::bytes(db, digest))
    }

    fn activations(&self, kind: &str) -> Result<Vec<Activation>, StoreError> {
        self.read("reading activations", |db| activation::activations(db, kind))
    }

    fn resources(&self, owners: &[Reference]) -> Result<Vec<Resource>, StoreError> {
        self.read("reading resources", |db| removal::resources(db, owners))
    }

    fn drop_runtimes(&self, owner: &Entity, rows: Rows, events: &[AdminEvent]) -> Result<bool, StoreError> {
        let command = Command::DropRuntimes(Box::new(owner.clone()), rows, events.to_vec());
        self.flag(command)
    }

    fn drop_resource(&self, id: i64) -> Result<(), StoreError> {
        self.write(Command::DropResource(id)).map(drop)
    }

    fn remove(&self, entity: &Entity, event: &AdminEvent) -> Result<Removed, StoreError> {
        let command = Command::Remove(Box::new(entity.clone()), event.clone());
        let Answer::Removed(removed) = self.write(command)? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(removed)
    }

    fn oldest(&self, after_row: i64, limit: usize) -> Result<Vec<Entity>, StoreError> {
        self.read("listing entities by age", |db| removal::oldest(db, after_row, limit))
    }

    fn journal_page(&self, page: &JournalPage) -> Result<OldRows, StoreError> {
        self.read("looking for old rows", |db| removal::journal_page(db, page))
    }

    fn prune_journal(&self, page: &JournalPage, rows: &[i64], event: &AdminEvent) -> Result<usize, StoreError> {
        let Answer::Count(pruned) = self.write(Command::PruneJournal(*page, rows.to_vec(), event.clone()))? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(pruned)
    }

    fn upkeep(&self) -> Result<Upkeep, StoreError> {
        self.keeper.keep(&self.source, &self.readers)
    }
}

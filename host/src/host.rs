//! The host: one store, its policies, and the directories beside it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::bundled;
use crate::clock::{Clock, SinceBoot};
use crate::error::Error;
use crate::model::{Entity, Lifecycle, Planned, Timestamp, generate_id};
use crate::policy::{Limits, Policies, Selected};
use crate::process::Place;
use crate::store::{Boot, OpenMode, Shadow, SqliteStore, Store, StoreError, Tuning};
use crate::wake::Wake;

/// What a host needs to know; it reads no environment itself.
#[derive(Clone, Debug)]
pub struct Config {
    /// The home: `state.db`, `runs/`, `cache/`, `wake/`, `finishing/`.
    pub home: PathBuf,
    /// The database, when it is elsewhere than in the home.
    pub database: Option<PathBuf>,
    /// What a component may use in one call.
    pub limits: Limits,
    /// Where time comes from.
    pub clock: Clock,
    /// The program that records ends: started by shims as `program --home HOME … finish REF`.
    pub program: PathBuf,
    /// The program that compiles components within bounds, started as `program --home HOME compile SECONDS BYTES`. None: they are
    /// compiled in this process, and nothing bounds what a stranger's component takes of it.
    pub compiler: Option<PathBuf>,
    /// The shim's own program, as bytes: written out into the home's cache.
    pub shim: &'static [u8],
    /// The environment: what settings name of it (secrets, variables of programs) is read when it is used.
    pub variable: fn(&str) -> Option<OsString>,
}

/// One store, its policies, and the directories beside it.
pub struct Host {
    config: Config,
    store: Arc<dyn Store>,
    policies: Policies,
    wake: Wake,
    bundled: OnceLock<()>,
    place: OnceLock<Place>,
    /// Dispatches that this process put into the outbox and did not try yet.
    enqueued: Mutex<Vec<String>>,
    /// By kind, the policies that judge beside those that decide, as far as this process has learned of them: none where
    /// that could not be told.
    shadows: Mutex<BTreeMap<String, Option<Shadow>>>,
    /// What makes steady time of the boot clock, once it was needed.
    steady_offset: OnceLock<i64>,
}

impl Host {
    /// Opens the home's store.
    ///
    /// # Errors
    /// The store is missing (unless it may be made), damaged, too new, or cannot be read.
    pub fn open(config: Config, mode: OpenMode) -> Result<Self, Error> {
        let store = SqliteStore::open(&config.database_path(), mode)?;
        Ok(Self::with_store(config, Arc::new(store)))
    }

    /// The same, with other limits of the store.
    ///
    /// # Errors
    /// As [`Host::open`].
    pub fn open_tuned(config: Config, mode: OpenMode, tuning: Tuning) -> Result<Self, Error> {
        let store = SqliteStore::open_tuned(&config.database_path(), mode, tuning)?;
        Ok(Self::with_store(config, Arc::new(store)))
    }

    /// Opens the home's store with the policies that ship with this binary in it; makes what is missing.
    ///
    /// # Errors
    /// As [`Host::open`]; nothing was written.
    pub fn create(config: Config) -> Result<Self, Error> {
        SqliteStore::make(&config.database_path(), || bundled::missing(&[], config.clock.now()))?;
        let host = Self::open(config, OpenMode::Create)?;
        host.ensure_bundled()?;
        Ok(host)
    }

    /// A host over a store that is open already.
    pub fn with_store(config: Config, store: Arc<dyn Store>) -> Self {
        let policies = Policies::new(Arc::clone(&store), &config.home.join("cache/policies"), config.limits);
        let wake = Wake::new(&config.home.join("wake"));
        Self {
            config,
            store,
            policies,
            wake,
            bundled: OnceLock::new(),
            place: OnceLock::new(),
            enqueued: Mutex::default(),
            shadows: Mutex::default(),
            steady_offset: OnceLock::new(),
        }
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// The policies.
    pub const fn policies(&self) -> &Policies {
        &self.policies
    }

    /// What it was opened with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The time of this command.
    pub fn now(&self) -> Timestamp {
        self.config.clock.now()
    }

    /// Steady time: what leases are measured by. It looks like the time of day when the machine's first lease of this boot
    /// was taken, goes on while the machine sleeps, and never jumps, whatever becomes of the time of day. Two processes of a
    /// machine agree on it. Where the store cannot be written and nobody has needed steady time in this boot, it is the
    /// time of day.
    ///
    /// # Errors
    /// The store cannot be read, or failed to keep the offset of this boot.
    pub fn steady_now(&self) -> Result<Timestamp, Error> {
        let ms = match self.config.clock.since_boot() {
            SinceBoot::Steady(now) => return Ok(now),
            SinceBoot::Ms(ms) => ms,
        };
        if let Some(offset) = self.steady_offset.get() {
            return Ok(Timestamp::from_ms(ms.saturating_add(*offset)));
        }
        let (boot, added) = self.boot();
        let kept = match self.store.steady_offset(&boot)? {
            Some(offset) => offset,
            None => {
                let now = self.now();
                let fresh = now.as_ms().saturating_sub(ms.saturating_sub(added));
                match self.store.keep_steady_offset(&boot, fresh) {
                    // No lease was taken in this boot yet: the one that is kept later may be another one.
                    Err(StoreError::ReadOnly { .. }) => return Ok(now),
                    kept => kept?,
                }
            }
        };
        let offset = *self.steady_offset.get_or_init(|| kept.saturating_sub(added));
        Ok(Timestamp::from_ms(ms.saturating_add(offset)))
    }

    /// This boot, and by how many milliseconds its clock is ahead here. Where it is known what the time namespace adds,
    /// that is taken out: every process of the machine has the same clock.
    fn boot(&self) -> (Boot, i64) {
        let place = self.place();
        let added = crate::process::boot_offset_ms();
        let namespace = place.time_namespace.and_then(|inode| i64::try_from(inode).ok());
        let boot = Boot {
            boot_id: place.boot_id.clone().unwrap_or_default(),
            time_namespace: if added.is_some() { 0 } else { namespace.unwrap_or(0) },
        };
        (boot, added.unwrap_or(0))
    }

    /// Tells everybody who waits that something changed.
    pub fn wake(&self) {
        self.wake.touch();
    }

    /// What tells that something changed.
    pub const fn wake_file(&self) -> &Wake {
        &self.wake
    }

    /// Where this process is: machine, boot and namespaces.
    pub fn place(&self) -> &Place {
        self.place.get_or_init(|| Place::here(crate::process::machine_name()))
    }

    /// The directory of a run.
    pub fn run_dir(&self, id: &str) -> PathBuf {
        self.config.home.join("runs").join(id)
    }

    /// A random id.
    ///
    /// # Errors
    /// The system has no entropy to give.
    pub fn draw_id(&self) -> Result<String, Error> {
        Ok(generate_id(entropy()?))
    }

    /// The graph of the policy that an entity is pinned to.
    ///
    /// # Errors
    /// The store cannot be read, or the component is missing from it.
    pub fn lifecycle(&self, entity: &Entity) -> Result<Arc<Lifecycle>, Error> {
        let digest = &entity.policy.digest;
        self.policies.lifecycle(digest)?.ok_or_else(|| {
            let path = self.config.database_path().display().to_string();
            Error::Store(StoreError::Corrupt {
                path,
                what: format!("{} is pinned to {digest}, which is gone", entity.reference),
            })
        })
    }

    /// The policy in force for a kind; plural names are understood.
    ///
    /// # Errors
    /// The kind has no policy, or the store cannot be read.
    pub fn active_policy(&self, kind: &str) -> Result<Selected, Error> {
        if let Some(selected) = self.policies.active(kind)? {
            return Ok(selected);
        }
        Err(Error::UnknownKind {
            kind: kind.to_owned(),
            known: self.kinds()?,
        })
    }

    /// The kinds that have a policy, sorted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn kinds(&self) -> Result<Vec<String>, Error> {
        let components = self.store.components()?;
        let mut kinds: Vec<String> = components.into_iter().filter(|c| c.active).map(|c| c.kind).collect();
        kinds.sort();
        kinds.dedup();
        Ok(kinds)
    }

    /// That no entity is meant by a word.
    pub fn not_found(&self, word: &str) -> Error {
        Error::NotFound {
            word: word.to_owned(),
            store: self.config.database_path().display().to_string(),
        }
    }

    /// What this process knows of the policies that judge beside others.
    pub(crate) fn shadows(&self) -> MutexGuard<'_, BTreeMap<String, Option<Shadow>>> {
        // Whole after every insertion, whatever panicked.
        self.shadows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps in mind which dispatches a commit of this process made.
    pub(crate) fn remember_planned(&self, planned: &Planned) {
        self.remember_dispatches(planned.dispatches.iter().map(|new| new.entity.reference.id.clone()));
    }

    /// Keeps dispatches in mind that this process made.
    pub(crate) fn remember_dispatches(&self, ids: impl IntoIterator<Item = String>) {
        let mut enqueued = self.enqueued.lock().unwrap_or_else(PoisonError::into_inner);
        enqueued.extend(ids);
    }

    /// The dispatches that this process made since it was asked last: whoever wrote an end tries its notices first.
    pub fn take_enqueued(&self) -> Vec<String> {
        std::mem::take(&mut *self.enqueued.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Installs the policies that ship with this binary, if the store does not have them: one commit, no component run.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    pub fn ensure_bundled(&self) -> Result<(), Error> {
        if self.bundled.get().is_some() {
            return Ok(());
        }
        let missing = bundled::missing(&self.store.components()?, self.now())?;
        if !missing.components.is_empty() {
            self.store
                .install(&missing.components, &missing.activations, &missing.events)?;
        }
        let _ = self.bundled.set(());
        Ok(())
    }
}

impl Config {
    /// Where the database is.
    pub fn database_path(&self) -> PathBuf {
        self.database.clone().unwrap_or_else(|| self.home.join("state.db"))
    }

    /// Where what can be made again is kept.
    pub fn cache(&self) -> PathBuf {
        self.home.join("cache")
    }

    /// The home.
    pub fn home(&self) -> &Path {
        &self.home
    }
}

/// Sixteen random bytes.
pub(crate) fn entropy() -> Result<[u8; 16], Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::Home {
        doing: "read entropy from",
        path: "the system".to_owned(),
        source: std::io::Error::other(error),
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn host(home: &Path, mode: OpenMode) -> Host {
        let config = Config {
            home: home.to_owned(),
            database: None,
            limits: Limits::DEFAULT,
            clock: Clock::System,
            compiler: None,
            program: Path::new("/nonexistent").to_owned(),
            shim: &[],
            variable: |_| None,
        };
        Host::open(config, mode).unwrap()
    }

    #[test]
    fn steady_time_is_told_where_nothing_can_be_written() {
        let home = tempfile::tempdir().unwrap();
        let writes = host(home.path(), OpenMode::Create);
        let reads = host(home.path(), OpenMode::ReadOnly);
        let before = reads.now();
        let told = reads.steady_now().unwrap();
        assert!((before..=reads.now()).contains(&told), "the time of day: {told:?}");
        assert_eq!(writes.store().steady_offset(&writes.boot().0).unwrap(), None);
        // What another process keeps afterwards holds for this one, too.
        writes.store().keep_steady_offset(&writes.boot().0, 0).unwrap();
        assert!(reads.steady_now().unwrap() < before, "time since the boot");
    }

    #[test]
    fn two_processes_of_a_boot_agree_on_steady_time_whatever_the_time_of_day() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = (
            host(home.path(), OpenMode::Create),
            host(home.path(), OpenMode::Existing),
        );
        let first = one.steady_now().unwrap();
        let kept = one.store().steady_offset(&one.boot().0).unwrap();
        let second = other.steady_now().unwrap();
        assert!(first <= second && second <= one.steady_now().unwrap());
        assert_eq!(other.store().steady_offset(&other.boot().0).unwrap(), kept);
        assert!(kept.is_some());
    }
}

//! One connection: how it is opened and set, and how statements are run and counted.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{CachedStatement, Connection, FileControl, OpenFlags, Params, Row, StatementStatus, ffi};

/// How long a write waits for another process's lock.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Statements kept prepared per connection: all of ours, with the variants of a listing that one process uses.
const STATEMENTS_KEPT: usize = 96;

/// What may be set, mostly for tests.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// How long a write waits for another process's lock before it is [`crate::store::StoreError::Busy`].
    pub busy_wait: Duration,
    /// The most pages the database may have; none is as many as the disk holds.
    pub pages_max: Option<u32>,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            busy_wait: BUSY_WAIT,
            pages_max: None,
        }
    }
}

/// What a handle has done so far, for tests, benchmarks and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections opened.
    pub connections: u64,
    /// Commits made.
    pub commits: u64,
    /// Commands those commits were made for.
    pub commands: u64,
    /// Statements run.
    pub statements: u64,
    /// Rows stepped over in scans that no constraint bounds.
    pub scan_steps: u64,
    /// Sorts that no index spared.
    pub sorts: u64,
    /// Steps of SQLite's virtual machine: the work of a statement, whatever the machine.
    pub vm_steps: u64,
    /// Pages asked for, found in the cache or not: how far statements reach into the database.
    pub pages: u64,
    /// Checkpoints made.
    pub checkpoints: u64,
    /// Statements that were prepared a second time: the schema changed, or a plan depended on a value.
    pub prepared_again: u64,
}

/// The live form of [`Counts`], shared by all connections of a handle.
#[derive(Debug, Default)]
pub(super) struct Counters {
    connections: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) commands: AtomicU64,
    statements: AtomicU64,
    scan_steps: AtomicU64,
    sorts: AtomicU64,
    vm_steps: AtomicU64,
    pages: AtomicU64,
    checkpoints: AtomicU64,
    prepared_again: AtomicU64,
}

impl Counters {
    /// The counts as they are now.
    pub(super) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            connections: read(&self.connections),
            commits: read(&self.commits),
            commands: read(&self.commands),
            statements: read(&self.statements),
            scan_steps: read(&self.scan_steps),
            sorts: read(&self.sorts),
            vm_steps: read(&self.vm_steps),
            pages: read(&self.pages),
            checkpoints: read(&self.checkpoints),
            prepared_again: read(&self.prepared_again),
        }
    }

    /// Counts a checkpoint.
    pub(super) fn note_checkpoint(&self) {
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
    }

    fn note(&self, statement: &CachedStatement<'_>) {
        let add = |counter: &AtomicU64, status| {
            let count = u64::try_from(statement.reset_status(status)).unwrap_or(0);
            counter.fetch_add(count, Ordering::Relaxed);
        };
        self.statements.fetch_add(1, Ordering::Relaxed);
        add(&self.scan_steps, StatementStatus::FullscanStep);
        add(&self.sorts, StatementStatus::Sort);
        add(&self.vm_steps, StatementStatus::VmStep);
        add(&self.prepared_again, StatementStatus::RePrepare);
    }
}

/// Whether a connection may write, and whether the file may be written at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads; the file may be written by others of this process.
    Read,
    /// Reads and writes.
    Write,
    /// The file is never written.
    ReadOnlyFile,
}

/// What every connection of a handle is opened with.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) tuning: Tuning,
    pub(super) read_only: bool,
    pub(super) counters: Arc<Counters>,
}

impl Source {
    /// Opens and sets a connection.
    pub(super) fn connect(&self, access: Access) -> rusqlite::Result<Db> {
        let access = if self.read_only { Access::ReadOnlyFile } else { access };
        let mode = match access {
            Access::ReadOnlyFile => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Read | Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE, // never CREATE: `place` makes the file
        };
        // A connection is used by one thread at a time, so SQLite need not lock it; a path is no URI.
        let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let connection = match access {
            Access::ReadOnlyFile if self.is_at_rest() => {
                Connection::open_with_flags(immutable(&self.path), flags | OpenFlags::SQLITE_OPEN_URI)?
            }
            _ => Connection::open_with_flags(&self.path, flags)?,
        };
        self.counters.connections.fetch_add(1, Ordering::Relaxed);
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        connection.busy_timeout(self.tuning.busy_wait)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        // A plan that may depend on a value is made anew for each value, and any comparison with one may: a partial index
        // could be left out for NULL. All of ours are meant to be the same for all values.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // The log stays when the last connection closes, or the store could not be read on a read-only mount; and a
        // short command does not pay for a checkpoint.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        let mut persist = 1;
        connection.file_control(rusqlite::MAIN_DB.into(), FileControl::PersistWal(&mut persist))?;
        connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0")?;
        if let Some(pages) = self.tuning.pages_max {
            connection.execute_batch(&format!("PRAGMA max_page_count = {pages}"))?;
        }
        let db = Db {
            connection,
            counters: Arc::clone(&self.counters),
        };
        if access == Access::Read {
            db.only_reads(Reads::Only)?;
        }
        Ok(db)
    }

    /// Whether nobody has the store open and nothing waits in its log: the database file is all there is.
    fn is_at_rest(&self) -> bool {
        let beside = |ending: &str| {
            let mut name = self.path.clone().into_os_string();
            name.push(ending);
            fs::metadata(name)
        };
        beside("-shm").is_err() && beside("-wal").map_or(true, |log| log.len() == 0)
    }
}

/// The address by which SQLite reads a file without locks and without files beside it, which it could not make.
fn immutable(path: &Path) -> String {
    let encoded = path.as_os_str().as_bytes().iter().map(|byte| match byte {
        b'/' | b'-' | b'_' | b'.' => char::from(*byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    format!("file:{}?immutable=1", encoded.collect::<String>())
}

/// Whether a connection refuses to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// It refuses.
    Only,
    /// It writes too.
    AndWrites,
}

/// A connection whose statements are kept and counted.
pub(super) struct Db {
    pub(super) connection: Connection,
    counters: Arc<Counters>,
}

impl Db {
    /// An empty database in memory, which keeps the same rules as a file.
    pub(super) fn in_memory() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
        Ok(Self {
            connection,
            counters: Arc::default(),
        })
    }

    /// Makes the connection refuse writes, or admit them again.
    pub(super) fn only_reads(&self, reads: Reads) -> rusqlite::Result<()> {
        self.connection.execute_batch(match reads {
            Reads::Only => "PRAGMA query_only = ON",
            Reads::AndWrites => "PRAGMA query_only = OFF",
        })
    }

    /// Counts the pages that were asked for since the last time.
    pub(super) fn note_pages(&self) {
        let pages = [ffi::SQLITE_DBSTATUS_CACHE_HIT, ffi::SQLITE_DBSTATUS_CACHE_MISS]
            .into_iter()
            .map(|status| {
                let (mut current, mut highest) = (0, 0);
                // SAFETY: the handle is open as long as the connection is, nobody else uses it meanwhile, and both
                // numbers are ours; the last argument sets the count to nothing.
                unsafe {
                    ffi::sqlite3_db_status(self.connection.handle(), status, &raw mut current, &raw mut highest, 1);
                }
                u64::try_from(current).unwrap_or(0)
            })
            .sum();
        self.counters.pages.fetch_add(pages, Ordering::Relaxed);
    }

    /// Every row of a query.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        decode: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params, decode)?.collect();
        self.counters.note(&statement);
        rows
    }

    /// The first row of a query, if it has any.
    pub(super) fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        decode: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = {
            let mut rows = statement.query(params)?;
            rows.next()?.map(decode).transpose()
        };
        self.counters.note(&statement);
        found
    }

    /// Runs a statement that writes; how many rows it changed.
    pub(super) fn write(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let changed = statement.execute(params);
        self.counters.note(&statement);
        changed
    }

    /// The number of the row that was inserted last.
    pub(super) fn inserted(&self) -> i64 {
        self.connection.last_insert_rowid()
    }
}

//! The format of the file: which it has, and bringing it to the one this binary knows.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{ErrorCode, params};

use super::connection::Db;
use super::failure::explain;
use crate::model::Timestamp;
use crate::store::StoreError;

/// Marks a SQLite file as ours: "RWDN".
const APPLICATION_ID: i64 = 0x5257_444E;

/// SQLite before this loses committed data when a checkpoint races a writer.
const SQLITE_OLDEST: i32 = 3_051_003;

/// Every migration, in order; the n-th brings a file to format n. Released ones are never changed.
pub(super) const MIGRATIONS: [&str; 5] = [
    include_str!("migrations/0001_store.sql"),
    include_str!("migrations/0002_resources.sql"),
    include_str!("migrations/0003_outbox.sql"),
    include_str!("migrations/0004_queue.sql"),
    include_str!("migrations/0005_policies.sql"),
];

/// The pause before a lost race for the file is tried again while it is made.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Letters of a store's name.
const NAME_LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What a file is.
pub(super) enum Format {
    /// Empty: a store that was never made, or whose making was cut off.
    Empty,
    /// Ours, of an older or the current format.
    Known(usize),
}

/// Refuses a SQLite library that loses data.
pub(super) fn refuse_old_sqlite(path: &Path) -> Result<(), StoreError> {
    if rusqlite::version_number() >= SQLITE_OLDEST {
        return Ok(());
    }
    let why = format!(
        "SQLite {} is older than 3.51.3 and can lose committed data",
        rusqlite::version()
    );
    Err(StoreError::Unsuitable {
        path: path.display().to_string(),
        why,
    })
}

/// The newest format this binary knows.
pub(super) const fn newest() -> usize {
    MIGRATIONS.len()
}

/// The format of the file, from one snapshot: another process may be making it.
pub(super) fn format(db: &Db, path: &Path) -> Result<Format, StoreError> {
    let started = Instant::now();
    let told = |error| explain(error, path, "reading the store's format", started.elapsed());
    db.connection.execute_batch("SAVEPOINT format").map_err(told)?;
    let format = format_seen(db, path, started);
    db.connection.execute_batch("RELEASE format").map_err(told)?;
    format
}

fn format_seen(db: &Db, path: &Path, started: Instant) -> Result<Format, StoreError> {
    let number = |sql| {
        let found = db.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        found.map_err(|error| explain(error, path, "reading the store's format", started.elapsed()))
    };
    let found = number("PRAGMA user_version")?;
    let application = number("PRAGMA application_id")?;
    if application != APPLICATION_ID {
        if found == 0 && application == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0 {
            return Ok(Format::Empty);
        }
        let what = "it is the database of another program".to_owned();
        return Err(StoreError::Corrupt {
            path: path.display().to_string(),
            what,
        });
    }
    match usize::try_from(found) {
        Ok(format) if (1..=newest()).contains(&format) => Ok(Format::Known(format)),
        Ok(0) | Err(_) => Err(StoreError::Corrupt {
            path: path.display().to_string(),
            what: format!("format {found}"),
        }),
        Ok(_) => {
            let known = i64::try_from(newest()).unwrap_or(i64::MAX);
            Err(StoreError::TooNew {
                path: path.display().to_string(),
                found,
                known,
            })
        }
    }
}

/// Brings the file to the newest format. Several processes may do so at once: one does the work.
#[expect(clippy::disallowed_methods, reason = "nothing tells when another process is done")]
pub(super) fn migrate(db: &Db, path: &Path, wait: Duration) -> Result<(), StoreError> {
    let started = Instant::now();
    loop {
        match attempt(db, path, started) {
            // Switching an empty file to a write-ahead log fails at once when another process has it open.
            Err(StoreError::Busy { .. }) if started.elapsed() < wait => thread::sleep(RETRY_PAUSE),
            outcome => return outcome,
        }
    }
}

fn attempt(db: &Db, path: &Path, started: Instant) -> Result<(), StoreError> {
    let told = |error| explain(error, path, "making the store", started.elapsed());
    let mode = db
        .connection
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
    let mode = mode.map_err(told)?;
    if mode != "wal" {
        let why = format!("its file system admits no write-ahead log (journal mode `{mode}`)");
        return Err(StoreError::Unsuitable {
            path: path.display().to_string(),
            why,
        });
    }
    db.connection.execute_batch("BEGIN IMMEDIATE").map_err(told)?;
    let outcome = from_here(db, path).and_then(|()| db.connection.execute_batch("COMMIT").map_err(told));
    if outcome.is_err() && !db.connection.is_autocommit() {
        let _ = db.connection.execute_batch("ROLLBACK"); // the first error is the one to tell
    }
    outcome
}

/// Applies the migrations that are missing, in the transaction that is open.
pub(super) fn from_here(db: &Db, path: &Path) -> Result<(), StoreError> {
    let applied = match format(db, path)? {
        Format::Empty => 0,
        Format::Known(format) => format,
    };
    let now = Timestamp::from_ms(now_ms());
    for (index, sql) in MIGRATIONS.iter().enumerate().skip(applied) {
        let step = || -> rusqlite::Result<()> {
            db.connection.execute_batch(sql)?;
            let number = i64::try_from(index + 1).unwrap_or(i64::MAX);
            let insert = "INSERT INTO schema_version (version, applied_at_ms) VALUES (?1, ?2)";
            db.connection.execute(insert, params![number, now.as_ms()])?;
            db.connection.pragma_update(None, "user_version", number)
        };
        step().map_err(|error| {
            explain(
                error,
                path,
                "bringing the store to this version's format",
                Duration::ZERO,
            )
        })?;
    }
    if applied > 0 {
        return Ok(());
    }
    let name = random_name()?;
    let found = || -> rusqlite::Result<()> {
        let insert = "INSERT INTO store_info (one, name, created_at_ms) VALUES (1, ?1, ?2)";
        db.connection.execute(insert, params![name, now.as_ms()])?;
        db.connection.pragma_update(None, "application_id", APPLICATION_ID)
    };
    found().map_err(|error| explain(error, path, "making the store", Duration::ZERO))
}

/// The store's name, as it was drawn when it was made.
pub(super) fn name(db: &Db, path: &Path) -> Result<String, StoreError> {
    let found = db
        .connection
        .query_row("SELECT name FROM store_info", [], |row| row.get(0));
    found.map_err(|error| match error.sqlite_error_code() {
        None | Some(ErrorCode::Unknown) => StoreError::Corrupt {
            path: path.display().to_string(),
            what: format!("store_info: {error}"),
        },
        Some(_) => explain(error, path, "reading the store's name", Duration::ZERO),
    })
}

/// Eight random letters.
///
/// # Errors
/// The machine gives no randomness.
pub(crate) fn random_name() -> Result<String, StoreError> {
    let mut entropy = [0_u8; 8];
    getrandom::fill(&mut entropy).map_err(|error| StoreError::Failed {
        doing: "drawing the store's name",
        source: Box::new(error),
    })?;
    Ok(entropy
        .iter()
        .map(|byte| char::from(NAME_LETTERS[usize::from(byte % 32)]))
        .collect())
}

/// The machine's time: a store is made at no caller's request whose time could be taken.
fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

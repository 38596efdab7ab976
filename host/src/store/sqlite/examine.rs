//! Looks a store over without changing it: for diagnosis, not for use.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::connection::{Access, Counters, Db, Source, Tuning};
use super::failure::explain;
use super::schema::{self, Format};
use super::{place, reserve};
use crate::store::StoreError;

/// A larger database is checked without comparing its indexes with its tables, which takes the time of reading all of
/// it several times.
const WHOLE_CHECK_BYTES_MAX: u64 = 256 << 20;

/// The format from which on a store has an outbox.
const OUTBOX_FORMAT: usize = 3;

/// The format from which on a store has queues.
const QUEUE_FORMAT: usize = 4;

/// How many problems are told.
const PROBLEMS_MAX: usize = 10;

/// What was found of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHealth {
    /// The file's format; older than [`StoreHealth::format_known`] is brought up to date by the next command that writes.
    pub format: usize,
    /// The format this binary writes.
    pub format_known: usize,
    /// The version of the SQLite library.
    pub sqlite: &'static str,
    /// What is damaged, in the database's own words; empty when nothing was found.
    pub problems: Vec<String>,
    /// Whether indexes were compared with their tables, too.
    pub indexes_compared: bool,
    /// Size of the database file, in bytes.
    pub bytes: u64,
    /// The write-ahead log.
    pub log: Log,
    /// Size of the reserve that is given up when the disk is full, in bytes; none when it is missing.
    pub reserve_bytes: Option<u64>,
}

/// What was found of a write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// Size of its file, in bytes. The file is kept and used again, so that it says how long the log once was.
    pub bytes: u64,
    /// Pages in it that are not in the database file yet; none where it cannot be known.
    pub waiting_pages: Option<u64>,
}

/// Looks the store in the file at `path` over. Blocks for as long as reading the database takes.
///
/// # Errors
/// As [`super::SqliteStore::open`] for reading; and that it is so damaged that it cannot be read at all.
pub fn examine(path: &Path) -> Result<StoreHealth, StoreError> {
    schema::refuse_old_sqlite(path)?;
    // Also where it would be made.
    let directory = place::directory_of(path).ancestors().find(|place| place.exists());
    place::refuse_network(path, directory.unwrap_or(Path::new(".")))?;
    if !place::holds_a_file(path)? {
        return Err(missing(path));
    }
    let source = Source {
        path: path.to_owned(),
        tuning: Tuning::default(),
        read_only: true,
        counters: Arc::new(Counters::default()),
    };
    let told = |error| explain(error, path, "looking the store over", Duration::ZERO);
    let db = source.connect(Access::ReadOnlyFile).map_err(told)?;
    let Format::Known(format) = schema::format(&db, path)? else {
        return Err(missing(path));
    };
    let bytes = fs::metadata(path).map_or(0, |found| found.len());
    let indexes_compared = bytes <= WHOLE_CHECK_BYTES_MAX;
    Ok(StoreHealth {
        format,
        format_known: schema::newest(),
        sqlite: rusqlite::version(),
        problems: problems(&db, indexes_compared, format).map_err(told)?,
        indexes_compared,
        bytes,
        log: log(&db, path),
        reserve_bytes: reserve::kept_bytes(path),
    })
}

fn missing(path: &Path) -> StoreError {
    StoreError::Missing {
        path: path.display().to_string(),
    }
}

/// What the database says is wrong with it.
fn problems(db: &Db, compare_indexes: bool, format: usize) -> rusqlite::Result<Vec<String>> {
    let check = if compare_indexes {
        "integrity_check"
    } else {
        "quick_check"
    };
    let sql = format!("PRAGMA {check}({PROBLEMS_MAX})");
    let mut found: Vec<String> = db.rows(&sql, [], |row| row.get(0))?;
    found.retain(|line| line != "ok");
    let dangling = db.rows("PRAGMA foreign_key_check", [], |row| {
        let (table, row_number): (String, Option<i64>) = (row.get(0)?, row.get(1)?);
        let parent: String = row.get(2)?;
        let at = row_number.map_or_else(String::new, |number| format!(" {number}"));
        Ok(format!("{table}{at} names a row of {parent} that is not there"))
    })?;
    found.extend(dangling);
    if format >= OUTBOX_FORMAT {
        found.extend(halves(db)?);
    }
    if format >= QUEUE_FORMAT {
        found.extend(left_waiting(db)?);
    }
    found.truncate(PROBLEMS_MAX);
    Ok(found)
}

/// Dispatches of which a part is missing: no constraint of the database says that both must be there.
fn halves(db: &Db) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT printf('dispatches %d has no body', d.entity) FROM dispatches d \
                   WHERE NOT EXISTS (SELECT 1 FROM dispatch_bodies b WHERE b.entity = d.entity) \
               UNION ALL SELECT printf('entities %d names a destination and is no dispatch', e.entity) FROM entities e \
                   WHERE e.destination IS NOT NULL AND NOT EXISTS (SELECT 1 FROM dispatches d WHERE d.entity = e.entity) \
               UNION ALL SELECT printf('dispatches %d names no destination', d.entity) FROM dispatches d \
                   CROSS JOIN entities e ON e.entity = d.entity WHERE e.destination IS NULL \
               UNION ALL SELECT printf('owed_plans %d is for what made no event', o.owed_plan) FROM owed_plans o \
                   CROSS JOIN transitions t ON t.entity = o.event_entity AND t.version = o.event_version \
                   WHERE t.envelope IS NULL \
               LIMIT ?1";
    let most = i64::try_from(PROBLEMS_MAX).unwrap_or(i64::MAX);
    db.rows(sql, [most], |row| row.get(0))
}

/// Work that waits for an end that came: nobody would ever look at it again.
fn left_waiting(db: &Db) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT printf('dependencies of %d name %d, which has ended', d.entity, d.awaited) FROM dependencies d \
               WHERE d.success IS NULL AND NOT EXISTS \
                   (SELECT 1 FROM entities e WHERE e.entity = d.awaited AND e.terminal = 0) LIMIT ?1";
    let most = i64::try_from(PROBLEMS_MAX).unwrap_or(i64::MAX);
    db.rows(sql, [most], |row| row.get(0))
}

fn log(db: &Db, path: &Path) -> Log {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    // A checkpoint that does nothing tells how many pages are in the log, and how many of them are in the database.
    let pages = db.row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
        Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    });
    let waiting = pages
        .ok()
        .flatten()
        .and_then(|(all, done)| u64::try_from(all - done).ok());
    Log {
        bytes: fs::metadata(name).map_or(0, |found| found.len()),
        waiting_pages: waiting,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use rusqlite::Connection;

    use super::super::tests::place;
    use super::*;
    use crate::store::{Created, OpenMode, SqliteStore, Store, samples};

    #[test]
    fn a_sound_store_has_no_problems_and_is_not_touched() {
        let (directory, path) = place();
        let store = SqliteStore::open(&path, OpenMode::Create).unwrap();
        samples::install(&store).unwrap();
        // The writer makes the reserve after it has answered: until then it is the one who touches the home.
        let until = std::time::Instant::now() + Duration::from_secs(10);
        while reserve::kept_bytes(&path).is_none() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        let listing = || {
            let files = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap());
            let mut files: Vec<_> = files
                .map(|file| (file.file_name(), file.metadata().unwrap().modified().unwrap()))
                .collect();
            files.sort();
            files
        };
        let before = listing();
        let found = examine(&path).unwrap();
        assert_eq!(found.problems, Vec::<String>::new());
        assert_eq!((found.format, found.format_known), (schema::newest(), schema::newest()));
        assert!(found.bytes > 0 && found.log.bytes > 0 && found.indexes_compared);
        assert!(
            found.log.waiting_pages.is_some_and(|pages| pages > 0),
            "{:?}",
            found.log
        );
        assert!(found.reserve_bytes.is_some());
        assert_eq!(listing(), before);
        drop(store);
        assert_eq!(examine(&path).unwrap().problems, Vec::<String>::new());
    }

    #[test]
    fn what_is_damaged_is_told() {
        let (_directory, path) = place();
        let store = SqliteStore::open(&path, OpenMode::Create).unwrap();
        samples::install(&store).unwrap();
        drop(store);
        let harm = Connection::open(&path).unwrap();
        harm.execute_batch(
            "PRAGMA foreign_keys = OFF; INSERT INTO links (parent, child) VALUES (7, 8);
             PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'entities_live';",
        )
        .unwrap();
        drop(harm);
        let found = examine(&path).unwrap();
        let told = |words: &str| found.problems.iter().any(|problem| problem.contains(words));
        assert!(
            told("links names a row of entities") || told("entities that is not there"),
            "{:?}",
            found.problems
        );
        assert!(found.problems.len() > 1, "{:?}", found.problems);
    }

    #[test]
    fn work_that_waits_for_what_has_ended_is_told() {
        let (_directory, path) = place();
        let store = SqliteStore::open(&path, OpenMode::Create).unwrap();
        samples::install(&store).unwrap();
        let make = |new: &crate::model::NewEntity, run| match store.create(new, run).unwrap() {
            Created::New { entity, .. } => *entity,
            other => panic!("{other:?}"),
        };
        let awaited = make(&samples::new_entity(&store, "run", "awaited"), None);
        let new = samples::new_queued(&store, "waits");
        make(&new, Some(&samples::new_work(&new.entity.reference, &[&awaited])));
        store
            .apply(&samples::ending(&store, &awaited, samples::Success::Yes))
            .unwrap();
        assert_eq!(examine(&path).unwrap().problems, Vec::<String>::new());
        let harm = Connection::open(&path).unwrap();
        harm.execute_batch("UPDATE dependencies SET success = NULL, is_news = 0")
            .unwrap();
        drop(harm);
        assert_eq!(
            examine(&path).unwrap().problems,
            ["dependencies of 2 name 1, which has ended"]
        );
    }

    #[test]
    fn what_is_no_store_is_an_error() {
        let (_directory, path) = place();
        assert!(matches!(examine(&path), Err(StoreError::Missing { .. })));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(
            &path,
            "not a database, but long enough to look like a file of one".repeat(100),
        )
        .unwrap();
        assert!(matches!(examine(&path), Err(StoreError::Corrupt { .. })));
    }
}

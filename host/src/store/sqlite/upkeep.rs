//! Looking after a store that is open for long: its log is worked into the database, and emptied when it grew long.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::connection::{Access, Db, Source};
use super::failure::explain;
use super::readers::Readers;
use crate::store::{StoreError, Upkeep};

/// A log file that is longer than this is emptied when nobody reads from it: 64 MiB. A shorter one is used again.
const LOG_HIGH_WATER_BYTES: u64 = 64 << 20;

/// A connection that does nothing else, made when it is first needed.
#[derive(Default)]
pub(super) struct Keeper(Mutex<Option<Db>>);

impl Keeper {
    /// See [`crate::store::Store::upkeep`].
    pub(super) fn keep(&self, source: &Source, readers: &Readers) -> Result<Upkeep, StoreError> {
        let told = |error| explain(error, &source.path, "looking after the log", Duration::ZERO);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let db = match kept.take() {
            Some(db) => db,
            None => connect(source).map_err(told)?,
        };
        let waiting_pages = work_in(source, &db).map_err(told)?;
        *kept = Some(db);
        let counts = source.counters.counts();
        Ok(Upkeep {
            log_bytes: log_bytes(source),
            waiting_pages,
            oldest_reader: readers.oldest(),
            statements: counts.statements,
            commits: counts.commits,
        })
    }
}

/// Nobody waits for the log: a checkpoint that somebody is in the way of is made the next time.
fn connect(source: &Source) -> rusqlite::Result<Db> {
    let db = source.connect(Access::Write)?;
    db.connection.busy_timeout(Duration::ZERO)?;
    Ok(db)
}

/// Works the log in; how many of its pages still wait.
fn work_in(source: &Source, db: &Db) -> rusqlite::Result<u64> {
    let waiting = |sql| {
        let pages = db.row(sql, [], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))?;
        Ok::<_, rusqlite::Error>(pages.map_or(0, |pages| u64::try_from(pages).unwrap_or(0)))
    };
    if source.read_only || waiting("PRAGMA wal_checkpoint(NOOP)")? == 0 {
        return Ok(0);
    }
    let left = waiting("PRAGMA wal_checkpoint(PASSIVE)")?;
    source.counters.note_checkpoint();
    if left == 0 && log_bytes(source) > LOG_HIGH_WATER_BYTES {
        waiting("PRAGMA wal_checkpoint(TRUNCATE)")?;
    }
    Ok(left)
}

fn log_bytes(source: &Source) -> u64 {
    let mut name = source.path.as_os_str().to_owned();
    name.push("-wal");
    // Its size is asked for; it is never opened.
    fs::metadata(name).map_or(0, |found| found.len())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use rusqlite::Connection;

    use super::super::tests::place;
    use crate::store::{OpenMode, SqliteStore, Store as _, samples};

    #[test]
    fn the_log_is_worked_in_but_for_what_somebody_still_reads() {
        let (_directory, path) = place();
        let store = SqliteStore::open(&path, OpenMode::Create).unwrap();
        samples::install(&store).unwrap();
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM entities").unwrap();
        let read = reader.query_row("SELECT count(*) FROM entities", [], |row| row.get::<_, i64>(0));
        assert_eq!(read.unwrap(), 0);
        store
            .create(&samples::new_entity(&store, "run", "later"), None)
            .unwrap();
        let pinned = store.upkeep().unwrap();
        assert!(pinned.waiting_pages > 0 && pinned.log_bytes > 0, "{pinned:?}");
        assert_eq!(pinned.oldest_reader, None, "it is not of this process's pool");
        reader.execute_batch("COMMIT").unwrap();
        assert_eq!(store.upkeep().unwrap().waiting_pages, 0);
        let checkpoints = store.counts().checkpoints;
        assert_eq!(store.upkeep().unwrap().waiting_pages, 0);
        assert_eq!(store.counts().checkpoints, checkpoints, "there was nothing to do");
    }
}

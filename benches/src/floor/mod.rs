//! The lean floor: what a compare-and-set with history costs at least on SQLite.
//!
//! FIXED. Schema, statements and settings here are never changed: every figure that was ever written down beside this
//! floor is comparable with every later one only because of that. A better floor would be a second one.

use std::path::Path;

use anyhow::{Result, ensure};
use rusqlite::{Connection, params};

/// An entity row, and history by an integer key; two indexes.
const SCHEMA: &str = "
CREATE TABLE entities (
    entity INTEGER PRIMARY KEY, id TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL,
    version INTEGER NOT NULL, reason TEXT NOT NULL, fields TEXT, updated_at_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX entities_by_id ON entities (id);
CREATE TABLE history (
    number INTEGER PRIMARY KEY, entity INTEGER NOT NULL, version INTEGER NOT NULL, previous_status TEXT,
    status TEXT NOT NULL, reason TEXT NOT NULL, actor TEXT NOT NULL, at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX history_by_entity ON history (entity, version);
";

/// A lean store.
#[derive(Debug)]
pub struct Floor {
    connection: Connection,
}

impl Floor {
    /// Makes one with `entities` entities, numbered from 1.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn make(path: &Path, entities: i64) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0")?;
        connection.execute_batch(SCHEMA)?;
        let fill = "INSERT INTO entities WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) \
                    SELECT n, 'entity-' || n, 'ping', 'left', 1, 'ping.made', NULL, 1700000000000 FROM n";
        connection.execute(fill, [entities])?;
        Ok(Self { connection })
    }

    /// One transition in one commit: compare-and-set and history.
    ///
    /// # Errors
    /// What SQLite reports, or the version was another.
    pub fn transition(&self, entity: i64, version: i64) -> Result<()> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.write(entity, version)?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// The same inside a transaction that is open.
    ///
    /// # Errors
    /// What SQLite reports, or the version was another.
    pub fn write(&self, entity: i64, version: i64) -> Result<()> {
        let (from, to) = if version % 2 == 1 {
            ("left", "right")
        } else {
            ("right", "left")
        };
        let update = "UPDATE entities SET status = ?3, version = version + 1, reason = ?4, updated_at_ms = ?5 \
                      WHERE entity = ?1 AND version = ?2";
        let at = 1_700_000_000_000_i64 + version;
        let mut update = self.connection.prepare_cached(update)?;
        let changed = update.execute(params![entity, version, to, "ping.moved", at])?;
        ensure!(changed == 1, "the version was another");
        let insert = "INSERT INTO history (entity, version, previous_status, status, reason, actor, at_ms) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let mut insert = self.connection.prepare_cached(insert)?;
        insert.execute(params![
            entity,
            version + 1,
            from,
            to,
            "ping.moved",
            "operator:bench",
            at
        ])?;
        Ok(())
    }
}

//! What a program without Runwarden would do: the statements of a transition on the same schema, by hand.

use std::path::Path;

use anyhow::{Result, ensure};
use rusqlite::{Connection, params};

/// A connection to a store, set as the host sets its own.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) connection: Connection,
}

impl Raw {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON")?;
        Ok(Self { connection })
    }

    pub(super) fn run(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    /// One transition in one commit.
    pub(super) fn transition(&self, entity: i64, version: i64) -> Result<()> {
        self.run("BEGIN IMMEDIATE")?;
        self.write(entity, version)?;
        self.run("COMMIT")
    }

    /// The statements of a transition in a transaction that is open: the pin, the compare-and-set, the history row.
    pub(super) fn write(&self, entity: i64, version: i64) -> Result<()> {
        let at = 1_700_000_000_000_i64 + version;
        let (from, to) = if version % 2 == 1 {
            ("left", "right")
        } else {
            ("right", "left")
        };
        let pin = "SELECT e.component, c.component FROM entities e \
                   LEFT JOIN components c ON c.digest = ?3 AND c.removed_at_ms IS NULL \
                   WHERE e.entity = ?1 AND e.version = ?2";
        let digest = "b1b1000000000000000000000000000000000000000000000000000000000000";
        let mut pin = self.connection.prepare_cached(pin)?;
        let component: i64 = pin.query_row(params![entity, version, digest], |row| row.get(1))?;
        let update = "UPDATE entities SET status = ?3, terminal = 0, success = 0, version = ?4, reason_code = ?5, \
                          reason_summary = ?7, reason_evidence = ?7, component = ?6, fields = ?7, ended_at_ms = ?7, \
                          exit_code = ?7, term_signal = ?7, cause = ?7, attempt = ?7, next_attempt_at_ms = ?7, \
                          leased_by = ?7, lease_expires_at_ms = ?7, lease_attempts = ?7, unknown_since_ms = ?7, \
                          unique_key = ?7, fence = 0, updated_at_ms = ?8, due_at_ms = ?7 \
                      WHERE entity = ?1 AND version = ?2";
        let nothing: Option<i64> = None;
        let mut update = self.connection.prepare_cached(update)?;
        let values = params![entity, version, to, version + 1, "ping.moved", component, nothing, at];
        ensure!(update.execute(values)? == 1, "the version was another");
        let insert = "INSERT INTO transitions (entity, version, previous_status, status, reason_code, reason_summary, \
                          reason_evidence, actor_kind, actor_id, at_ms, component, metadata, envelope, guarded) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?9, ?9, ?6, ?7, ?8, ?10, ?9, ?9, ?9)";
        let mut insert = self.connection.prepare_cached(insert)?;
        let values = params![
            entity,
            version + 1,
            from,
            to,
            "ping.moved",
            "operator",
            "bench",
            at,
            nothing,
            component
        ];
        insert.execute(values)?;
        Ok(())
    }
}

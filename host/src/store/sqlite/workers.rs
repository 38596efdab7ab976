//! Who takes work, and the time that leases are measured by.

use rusqlite::{Row, params};

use super::columns::{Columns, json};
use super::connection::Db;
use crate::model::Timestamp;
use crate::store::{Boot, Worker};

/// Adds a worker, or notes its heartbeat.
pub(super) fn put_worker(db: &Db, worker: &Worker) -> rusqlite::Result<()> {
    let sql = "INSERT INTO workers (holder, particulars, heartbeat_at_ms, stopped_at_ms) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (holder) DO UPDATE SET particulars = excluded.particulars, \
                   heartbeat_at_ms = excluded.heartbeat_at_ms, stopped_at_ms = excluded.stopped_at_ms";
    let stopped = worker.stopped_at.map(|at| at.as_ms());
    db.write(
        sql,
        params![worker.holder, json(worker), worker.heartbeat_at.as_ms(), stopped],
    )?;
    Ok(())
}

/// Takes away workers that stopped before that moment and that no row names as its holder.
pub(super) fn forget_workers(db: &Db, before: Timestamp) -> rusqlite::Result<usize> {
    // Held rows are few: their index is walked.
    let sql = "DELETE FROM workers AS w WHERE w.stopped_at_ms < ?1 \
               AND NOT EXISTS (SELECT 1 FROM entities e WHERE e.stage >= 4 AND e.leased_by = w.holder)";
    db.write(sql, [before.as_ms()])
}

fn decode_worker(row: &Row<'_>) -> rusqlite::Result<Worker> {
    let mut columns = Columns::of(row, "workers");
    let _number: i64 = columns.take()?;
    let worker: Worker = columns.given_json()?;
    Ok(Worker {
        heartbeat_at: columns.moment()?,
        stopped_at: columns.maybe_moment()?,
        ..worker
    })
}

/// Workers that are at work.
pub(super) fn workers(db: &Db) -> rusqlite::Result<Vec<Worker>> {
    let sql = "SELECT worker, particulars, heartbeat_at_ms, stopped_at_ms FROM workers \
               WHERE stopped_at_ms IS NULL ORDER BY worker";
    db.rows(sql, [], decode_worker)
}

/// The worker of that name for itself.
pub(super) fn worker(db: &Db, holder: &str) -> rusqlite::Result<Option<Worker>> {
    let sql = "SELECT worker, particulars, heartbeat_at_ms, stopped_at_ms FROM workers WHERE holder = ?1";
    db.row(sql, [holder], decode_worker)
}

/// The offset that is kept for a boot.
pub(super) fn steady_offset(db: &Db, boot: &Boot) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT offset_ms FROM boots WHERE boot_id = ?1 AND time_namespace = ?2";
    db.row(sql, params![boot.boot_id, boot.time_namespace], |row| row.get(0))
}

/// Keeps an offset unless there is one.
pub(super) fn keep_steady_offset(db: &Db, boot: &Boot, offset_ms: i64) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO boots (boot_id, time_namespace, offset_ms) VALUES (?1, ?2, ?3) \
               ON CONFLICT (boot_id, time_namespace) DO NOTHING";
    db.write(sql, params![boot.boot_id, boot.time_namespace, offset_ms])?;
    Ok(steady_offset(db, boot)?.unwrap_or(offset_ms))
}

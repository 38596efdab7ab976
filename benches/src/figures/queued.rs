//! Queued work, made with SQL in one transaction: through the interface a million rows would take an hour.

use std::path::Path;

use anyhow::{Result, ensure};
use rusqlite::{Connection, params};

/// Where the rows that are made stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// They may be taken.
    Ready,
    /// Their holder is silent, and its grace is over.
    Doubted,
}

/// The statements; `?1` is the number before the first row, `?2` how many, `?3` whether they are doubted.
const FILL: [&str; 4] = [
    "INSERT INTO entity_ids (entity, id, kind) \
     WITH RECURSIVE n(n) AS (SELECT ?1 + 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1 + ?2) \
     SELECT n, printf('%08x%07d', (n * 2654435761) % 4294967296, n), 'schedule_run' FROM n WHERE ?3 IS NOT NULL",
    "INSERT INTO entities (entity, kind, status, terminal, success, version, reason_code, component, leased_by, \
         lease_expires_at_ms, lease_attempts, unknown_since_ms, next_attempt_at_ms, due_at_ms, fence, generation, \
         created_at_ms, updated_at_ms, queue, priority, stage) \
     SELECT i.entity, 'schedule_run', iif(?3, 'supervisor_unknown', 'queued'), 0, 0, 1, \
         iif(?3, 'run.supervisor_unknown.lease_stale', 'schedule.queued.created'), c.component, iif(?3, 'gone', NULL), \
         iif(?3, 1, NULL), iif(?3, 1, NULL), iif(?3, 2, NULL), iif(?3, 3, NULL), iif(?3, 3, NULL), ?3, 0, \
         1600000000000 + i.entity, 1700000000000 + i.entity, 'default', 0, iif(?3, 5, 3) \
     FROM (SELECT entity FROM entity_ids WHERE entity > ?1 LIMIT ?2) i \
     CROSS JOIN (SELECT component FROM components WHERE kind = 'schedule_run' AND version LIKE '2.%' LIMIT 1) c",
    "INSERT INTO transitions (entity, version, status, reason_code, actor_kind, actor_id, at_ms, component) \
     SELECT entity, 1, status, reason_code, 'operator', 'bench', created_at_ms, component FROM entities \
     WHERE entity > ?1 AND ?3 IS NOT NULL LIMIT ?2",
    "INSERT INTO works (entity, work) \
     SELECT entity, '{\"argv\":[\"make\",\"release\"],\"cwd\":\"/srv/build\",\"grace_ms\":10000,\
                     \"queue\":{\"run_kind\":\"session\"}}' \
     FROM entities WHERE entity > ?1 AND ?3 IS NOT NULL LIMIT ?2",
];

/// Adds so many rows to a store that has its policies; the number before the first.
pub(super) fn add(database: &Path, rows: usize, standing: Standing) -> Result<i64> {
    let mut connection = Connection::open(database)?;
    connection.busy_timeout(std::time::Duration::from_secs(60))?;
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000")?;
    let write = connection.transaction()?;
    let before: i64 = write.query_row("SELECT coalesce(max(entity), 0) FROM entity_ids", [], |row| row.get(0))?;
    for sql in FILL {
        let made = write.execute(
            sql,
            params![before, i64::try_from(rows)?, standing == Standing::Doubted],
        )?;
        ensure!(made == rows, "{made} of {rows} were made");
    }
    let used = "UPDATE components SET in_use = in_use + ?1 WHERE kind = 'schedule_run' AND version LIKE '2.%'";
    write.execute(used, [i64::try_from(rows)?])?;
    write.commit()?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(before)
}

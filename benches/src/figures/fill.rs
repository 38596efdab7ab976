//! Large stores, made with SQL in one transaction: through the interface a million runs would take an hour.

use std::path::Path;

use anyhow::Result;
use rusqlite::Connection;

/// The statements; `?1` is the number of runs. Every run ended but the newest eight in a hundred thousand.
const FILL: [&str; 5] = [
    "INSERT INTO entity_ids (entity, id, kind) \
     WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) \
     SELECT n, printf('%08x%07d', (n * 2654435761) % 4294967296, n), 'run' FROM n",
    "INSERT INTO entities (entity, kind, status, terminal, success, version, reason_code, component, exit_code, cause, \
         ended_at_ms, fence, generation, created_at_ms, updated_at_ms) \
     SELECT i.entity, 'run', iif(live, 'running', iif(i.entity % 10, 'completed', 'failed')), NOT live, \
         NOT live AND i.entity % 10 <> 0, iif(live, 1, 2), \
         iif(live, 'run.started.ok', iif(i.entity % 10, 'run.completed.ok', 'run.failed.exit_nonzero')), c.component, \
         iif(live, NULL, i.entity % 10 = 0), iif(live, NULL, 'exit'), iif(live, NULL, 1700000000000 + i.entity), 0, 0, \
         1600000000000 + i.entity, 1700000000000 + i.entity \
     FROM (SELECT entity, entity % 100000 BETWEEN 1 AND 8 AS live FROM entity_ids LIMIT ?1) i \
     CROSS JOIN (SELECT component FROM components WHERE kind = 'run' LIMIT 1) c",
    "INSERT INTO transitions (entity, version, previous_status, status, reason_code, actor_kind, actor_id, at_ms, \
         component) \
     SELECT e.entity, v.version, iif(v.version = 1, NULL, 'running'), iif(v.version = 1, 'running', e.status), \
         iif(v.version = 1, 'run.started.ok', e.reason_code), 'operator', 'bench', e.created_at_ms, e.component \
     FROM (SELECT * FROM entities LIMIT ?1) e JOIN (SELECT 1 AS version UNION ALL SELECT 2) v ON v.version <= e.version",
    "INSERT INTO runtimes (owner, kind, state, stop_unconfirmed, host, boot_id, attempt_token, containment, \
         created_at_ms, updated_at_ms) \
     SELECT entity, 'other', 'stopped', 0, 'bench', 'bench', 'bench', 'none', created_at_ms, updated_at_ms \
     FROM entities LIMIT ?1",
    "INSERT INTO works (entity, work) SELECT entity, '{\"argv\":[\"make\",\"release\"],\"cwd\":\"/srv/build\"}' \
     FROM entities LIMIT ?1",
];

/// Fills a store that has its policies and no entity.
pub(super) fn fill(database: &Path, runs: usize) -> Result<()> {
    let mut connection = Connection::open(database)?;
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000")?;
    let write = connection.transaction()?;
    for sql in FILL {
        write.execute(sql, [i64::try_from(runs)?])?;
    }
    write.execute(
        "UPDATE components SET in_use = ?1 WHERE kind = 'run'",
        [i64::try_from(runs)?],
    )?;
    write.commit()?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

/// The id that [`fill`] gave to a number.
pub(super) fn id(number: usize) -> String {
    format!(
        "{:08x}{number:07}",
        (number as u64).wrapping_mul(2_654_435_761) % (1 << 32)
    )
}

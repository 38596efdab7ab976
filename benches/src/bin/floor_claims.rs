//! The floor of a claim: a process that takes what is queued by hand. `floor_claims DATABASE BATCH`: says that it is ready,
//! waits for a line, takes until nothing is left, says how much it took.
#![expect(clippy::print_stdout, reason = "who started it waits for what it says")]

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

const READY: &str = "SELECT e.entity, e.version, e.priority, e.fence, w.work FROM entities e JOIN works w USING (entity) \
                     WHERE e.queue = 'default' AND e.stage = 3 ORDER BY e.priority DESC, e.entity LIMIT ?1";

const TAKE: &str = "UPDATE entities SET status = 'running', version = version + 1, reason_code = 'run.started.ok', \
                        reason_summary = ?3, leased_by = ?4, lease_expires_at_ms = ?5, lease_attempts = 1, \
                        fence = fence + 1, stage = 4, due_at_ms = ?5, updated_at_ms = ?5 \
                    WHERE entity = ?1 AND version = ?2";

const TOLD: &str = "INSERT INTO transitions (entity, version, previous_status, status, reason_code, reason_summary, \
                        actor_kind, actor_id, at_ms, component) \
                    SELECT entity, version, 'queued', 'running', 'run.started.ok', ?2, 'executor', ?3, ?4, component \
                    FROM entities WHERE entity = ?1";

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (database, batch) = arguments
        .next()
        .zip(arguments.next())
        .context("usage: floor_claims DATABASE BATCH")?;
    let batch: i64 = batch.parse()?;
    let mut connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON")?;
    let holder = format!("bench-{}", std::process::id());
    let summary = format!("taken by {holder}, attempt 1 of 3");
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    let mut taken = 0;
    loop {
        let claimed = claim(&mut connection, batch, (&holder, &summary))?;
        if claimed == 0 {
            break;
        }
        taken += claimed;
    }
    println!("{taken}");
    Ok(())
}

/// Takes a batch in one transaction; how many.
fn claim(connection: &mut Connection, batch: i64, (holder, summary): (&str, &str)) -> Result<usize> {
    let at = 1_700_000_000_000_i64;
    let write = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let rows: Vec<(i64, i64, String)> = {
        let mut ready = write.prepare_cached(READY)?;
        let rows = ready.query_map([batch], |row| Ok((row.get(0)?, row.get(1)?, row.get(4)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (entity, version, _) in &rows {
        let mut take = write.prepare_cached(TAKE)?;
        let changed = take.execute(params![entity, version, summary, holder, at])?;
        ensure!(changed == 1, "somebody else has it");
        write
            .prepare_cached(TOLD)?
            .execute(params![entity, summary, holder, at])?;
    }
    write.commit()?;
    Ok(rows.len())
}

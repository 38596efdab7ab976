//! The floor of a run's end: a process that makes the same writes by hand. `floor_end DATABASE ENTITY`.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (database, entity) = arguments
        .next()
        .zip(arguments.next())
        .context("usage: floor_end DATABASE ENTITY")?;
    let entity: i64 = entity.parse()?;
    let mut connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0")?;
    let write = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let end = "UPDATE entities SET status = 'completed', terminal = 1, success = 1, version = 2, \
                   reason_code = 'run.completed.ok', ended_at_ms = ?2, exit_code = 0, cause = 'exit', updated_at_ms = ?2 \
               WHERE entity = ?1 AND version = 1";
    let at = 1_700_000_000_000_i64;
    ensure!(write.execute(end, params![entity, at])? == 1, "it ended already");
    let envelope = format!(
        "{{\"event_id\":\"{entity}\",\"status\":\"completed\",\"reason\":\"{}\"}}",
        "x".repeat(900)
    );
    let row = "INSERT INTO transitions (entity, version, previous_status, status, reason_code, actor_kind, actor_id, \
                   at_ms, component, envelope) \
               SELECT ?1, 2, 'running', 'completed', 'run.completed.ok', 'executor', 'shim', ?2, component, ?3 \
               FROM entities WHERE entity = ?1";
    write.execute(row, params![entity, at, envelope])?;
    write.execute(
        "UPDATE runtimes SET state = 'stopped', updated_at_ms = ?2 WHERE owner = ?1",
        params![entity, at],
    )?;
    write.commit()?;
    Ok(())
}

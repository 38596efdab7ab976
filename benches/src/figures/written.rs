//! What operations write: bytes of the log and commits, whichever processes make them.

use std::fs::OpenOptions;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use runwarden_host::model::Entity;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::{ping, transitions};
use crate::harness::{Effort, Home, Row, Written};

const OPERATIONS: u64 = 8;
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);

/// Creations, starts, ends, and transitions of one and of 64 callers.
pub(super) fn figure(_: Effort) -> Result<Vec<Row>> {
    let mut rows = vec![creations()?];
    rows.extend(runs()?);
    rows.push(caller()?);
    rows.push(callers()?);
    Ok(rows)
}

// Each in a home of its own, whose log stays below the size at which a command begins it anew.

fn creations() -> Result<Row> {
    let home = Home::new()?;
    drop(home.open()?);
    let create = |number| done(&home, &["create", "session", "--id", &format!("session-{number}")]);
    row(&home, "create", "1: itself", || (0..OPERATIONS).try_for_each(create))
}

fn runs() -> Result<[Row; 2]> {
    let home = Home::new()?;
    drop(home.open()?);
    let gate = home.path().join("gate");
    rustix::fs::mknodat(rustix::fs::CWD, &gate, rustix::fs::FileType::Fifo, 0o600.into(), 0)?;
    let holder = OpenOptions::new().read(true).write(true).open(&gate)?;
    let script = format!("read x < {}", gate.display());
    let start = |number| {
        let id = format!("run-{number}");
        done(&home, &["run", "--detach", "--id", &id, "--", "/bin/sh", "-c", &script])
    };
    let started = row(&home, "run --detach", "3: itself, shim, program", || {
        (0..OPERATIONS).try_for_each(start)
    })?;
    let ended = row(&home, "an end, one of 8 at once", "1: finish", || {
        drop(holder);
        until_ended(&home)
    })?;
    Ok([started, ended])
}

fn caller() -> Result<Row> {
    let home = Home::new()?;
    let host = transitions::prepared(&home)?;
    let mut entity = ping::make(&host, "one")?;
    let steps = || -> Result<()> {
        for _ in 0..OPERATIONS {
            entity = ping::step(&host, &entity)?;
        }
        Ok(())
    };
    row(&home, "a transition of one caller", "0", steps)
}

fn callers() -> Result<Row> {
    const STEPS: usize = 2;
    let home = Home::new()?;
    let host = transitions::prepared(&home)?;
    let entities = (0..transitions::CALLERS).map(|number| ping::make(&host, &format!("entity-{number}")));
    let mut entities: Vec<Entity> = entities.collect::<Result<_>>()?;
    let empty = "PRAGMA wal_checkpoint(TRUNCATE)"; // the making of so many may leave it nearly full
    Connection::open(home.database())?.query_row(empty, [], |_| Ok(()))?;
    let before = Written::of(&home.database())?;
    transitions::callers(&host, &mut entities, STEPS)?;
    let operations = u64::try_from(entities.len() * STEPS)?;
    let each = Written::of(&home.database())?.each(before, operations)?;
    Ok(fact("a transition of one of 64 callers", &each, "0"))
}

/// What `OPERATIONS` operations wrote each.
fn row(home: &Home, what: &str, processes: &str, operate: impl FnOnce() -> Result<()>) -> Result<Row> {
    let before = Written::of(&home.database())?;
    operate()?;
    let each = Written::of(&home.database())?.each(before, OPERATIONS)?;
    Ok(fact(what, &each, processes))
}

fn fact(what: &str, each: &str, processes: &str) -> Row {
    let what = format!("{what}: log, commits, processes of each");
    Row::fact(&what, format!("{each}, {processes}"), String::new())
}

fn done(home: &Home, arguments: &[&str]) -> Result<()> {
    let ended = home.command(arguments)?.spawn()?.wait()?;
    ensure!(ended.success(), "{arguments:?} ended with {ended}");
    Ok(())
}

fn until_ended(home: &Home) -> Result<()> {
    let connection = Connection::open(home.database())?;
    // The last connection that closes would take the log away.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let sql = "SELECT count(*) FROM entities WHERE terminal = 0 AND kind = 'run'";
    let started = Instant::now();
    while connection.query_row(sql, [], |row| row.get::<_, i64>(0))? > 0 {
        ensure!(started.elapsed() < PATIENCE, "ends are not recorded");
        std::thread::park_timeout(PAUSE);
    }
    Ok(())
}

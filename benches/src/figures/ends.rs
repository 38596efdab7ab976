//! Three hundred runs that end at once, without any service: each end is recorded by a process of its own.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rusqlite::{Connection, OpenFlags};
use rustix::process::WaitOptions;

use super::time;
use crate::harness::{Effort, Home, Row, Target, cpu_time, cpu_time_of_living, sibling};

const SECONDS_MAX: f64 = 3.0;
/// Nothing that takes longer is worth waiting for.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// Until every end is durable, and the processor time of it all, beside as many raw processes with the same writes.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let runs = effort.choose(30, 300);
    let home = Home::new()?;
    drop(home.open()?);
    let gate = home.path().join("gate");
    rustix::fs::mknodat(rustix::fs::CWD, &gate, rustix::fs::FileType::Fifo, 0o600.into(), 0)?;
    // Open for both, so that a run's own opening does not block; closing it is the end for all of them.
    let holder = OpenOptions::new().read(true).write(true).open(&gate)?;
    for number in 0..runs {
        let id = format!("end-{number}");
        let argv = [
            "run",
            "--detach",
            "--id",
            &id,
            "--",
            "/bin/sh",
            "-c",
            &format!("read x < {}", gate.display()),
        ];
        ensure!(home.command(&argv)?.spawn()?.wait()?.success(), "a run did not start");
    }
    std::thread::park_timeout(Duration::from_secs(2)); // the last of them opens the gate's file
    reap();
    let (cpu, started) = (cpu_time() + cpu_time_of_living(), Instant::now());
    drop(holder);
    let (durable, ended) = until_ended(&home.database(), runs, started)?;
    let gone = until_gone(started);
    let cpu = cpu_time().saturating_sub(cpu);
    let failed = runs - ended;
    let (floor_wall, floor_cpu) = floor(runs)?;
    let ratio = cpu.as_secs_f64() / floor_cpu.as_secs_f64();
    let what = format!("{runs} ends at once: all durable after");
    Ok(vec![
        Row::value(&what, durable.as_secs_f64(), "s", Target::AtMost(SECONDS_MAX)),
        Row::fact(
            "every process gone; raw processes all done",
            time(gone.as_secs_f64()),
            time(floor_wall.as_secs_f64()),
        ),
        Row::ratio(
            "processor time of it all, their starts left out",
            time(cpu.as_secs_f64()),
            time(floor_cpu.as_secs_f64()),
            ratio,
            Target::None,
        ),
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        Row::value(
            "ends that were not recorded (busy, or lost)",
            failed as f64,
            "",
            Target::AtMost(0.0),
        ),
    ])
}

/// When every end is in the store, and how many are when patience is over.
fn until_ended(database: &Path, runs: usize, started: Instant) -> Result<(Duration, usize)> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let sql = "SELECT count(*) FROM entities WHERE terminal = 1";
    loop {
        let ended: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        let ended = usize::try_from(ended)?;
        if ended == runs || started.elapsed() > PATIENCE {
            return Ok((started.elapsed(), ended));
        }
        std::thread::park_timeout(PAUSE);
    }
}

/// Reaps what runs left behind until there is nothing.
fn until_gone(started: Instant) -> Duration {
    while started.elapsed() < PATIENCE && reap() {
        std::thread::park_timeout(PAUSE);
    }
    started.elapsed()
}

/// Reaps what has ended; whether there is more to come.
fn reap() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// As many processes that open the store and write an end each, started as fast as they can be.
fn floor(runs: usize) -> Result<(Duration, Duration)> {
    let home = Home::new()?;
    drop(home.open()?);
    super::fill::fill(&home.database(), runs)?;
    let reopen = "UPDATE entities SET status = 'running', terminal = 0, success = 0, version = 1, ended_at_ms = NULL";
    let connection = Connection::open(home.database())?;
    connection.execute_batch(&format!("{reopen}; UPDATE runtimes SET state = 'running'"))?;
    let gone = "BEGIN; INSERT INTO retention_gate (open) VALUES (1); DELETE FROM transitions WHERE version = 2; \
                DELETE FROM retention_gate; COMMIT";
    connection.execute_batch(gone)?;
    drop(connection);
    let program = sibling("floor_end")?;
    let (cpu, started) = (cpu_time(), Instant::now());
    let mut children = Vec::new();
    for number in 1..=runs {
        children.push(
            Command::new(&program)
                .arg(home.database())
                .arg(number.to_string())
                .spawn()?,
        );
    }
    for mut child in children {
        ensure!(child.wait()?.success(), "a raw process failed");
    }
    Ok((started.elapsed(), cpu_time().saturating_sub(cpu)))
}

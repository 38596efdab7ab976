//! From the submission of work until its program runs, with a worker that has nothing to do.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};

use super::start::drain;
use crate::harness::{Effort, Home, Row, Target, median};

const START_MILLISECONDS_MAX: f64 = 50.0;
/// Nothing that takes longer is worth waiting for.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);

/// The median and what 19 of 20 stay below, from the moment `submit` returned, and from its start.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let home = Home::new()?;
    drop(home.open()?);
    let mut worker = started(&home, 1)?;
    let times: Result<Vec<Times>> = (0..=effort.choose(4, 40))
        .map(|number| submitted(&home, number))
        .collect();
    ended(&mut worker)?;
    // The first installs the shim.
    let times = times?.split_off(1);
    let returned: Vec<f64> = times.iter().map(|times| times.returned * 1e3).collect();
    let called: Vec<f64> = times.iter().map(|times| times.called * 1e3).collect();
    let most = Target::AtMost(START_MILLISECONDS_MAX);
    let row = |what, value, target| Row::value(what, value, "ms", target);
    Ok(vec![
        row(
            "submitted until its program runs, median",
            median(returned.clone()),
            most,
        ),
        row(
            "submitted until its program runs, 95 of 100",
            quantile(returned, 0.95),
            most,
        ),
        Row::fact(
            "with the command `submit` itself, median",
            format!("{:.2} ms", median(called)),
            String::new(),
        ),
    ])
}

/// Seconds until the program ran, since the command was started and since it returned.
struct Times {
    called: f64,
    returned: f64,
}

fn submitted(home: &Home, number: usize) -> Result<Times> {
    let file = home.path().join(format!("began-{number}"));
    let script = format!("date +%s%N > {}", file.display());
    let called = SystemTime::now();
    let submitted = home.command(&["submit", "--", "/bin/sh", "-c", &script])?.output()?;
    let returned = SystemTime::now();
    ensure!(submitted.status.success(), "it was not queued");
    until_none(&home.database(), "SELECT count(*) FROM entities WHERE terminal = 0")?;
    let began = std::fs::read_to_string(&file).context("its program ran")?;
    let began = SystemTime::UNIX_EPOCH + Duration::from_nanos(began.trim().parse()?);
    let since = |moment| began.duration_since(moment).unwrap_or_default().as_secs_f64();
    // Its shim and its finishing command leave, and nothing happens.
    drain(Instant::now());
    Ok(Times {
        called: since(called),
        returned: since(returned),
    })
}

/// A worker that is known to the store.
pub(super) fn started(home: &Home, slots: usize) -> Result<Child> {
    let slots = slots.to_string();
    let worker = home.command(&["worker", "--quiet", "--slots", &slots])?.spawn()?;
    until_none(&home.database(), "SELECT NOT EXISTS (SELECT 1 FROM workers)")?;
    Ok(worker)
}

/// Tells a worker to give back what it has, and waits for its end.
pub(super) fn ended(worker: &mut Child) -> Result<()> {
    let pid = Pid::from_child(worker);
    let started = Instant::now();
    while worker.try_wait()?.is_none() {
        ensure!(started.elapsed() < PATIENCE, "the worker does not end");
        kill_process(pid, Signal::TERM)?;
        std::thread::park_timeout(Duration::from_millis(500));
        if worker.try_wait()?.is_some() {
            break;
        }
    }
    Ok(())
}

/// Waits until a query counts nothing.
pub(super) fn until_none(database: &Path, sql: &str) -> Result<()> {
    let connection = Connection::open(database)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let started = Instant::now();
    loop {
        let left: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        if left == 0 {
            return Ok(());
        }
        ensure!(started.elapsed() < PATIENCE, "{left} are left: {sql}");
        std::thread::park_timeout(PAUSE);
    }
}

/// What this part of some values stays below; 0 of none.
fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some dozens"
    )]
    let place = (values.len() as f64 * part).ceil() as usize;
    values.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
}

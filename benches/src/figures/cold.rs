//! Commands from a cold start: a process, a store to open, an answer.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use super::fill::{fill, id};
use super::time;
use crate::harness::{Effort, Home, Row, Sample, Target, interleave, measured, median, sibling};

/// `show` at most three times a program that reads one row.
const SHOW_RATIO_MAX: f64 = 3.0;
/// `ls` and `show` at a million runs.
const COLD_MILLISECONDS_MAX: f64 = 10.0;
/// What the first command on a new home takes beyond a later one.
const NEW_HOME_MILLISECONDS_MAX: f64 = 30.0;

/// `show`, `ls` and the first command on a new home.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for runs in [100, effort.choose(10_000, 1_000_000)] {
        rows.extend(in_store(effort, runs)?);
    }
    rows.push(new_home(effort)?);
    Ok(rows)
}

fn in_store(effort: Effort, runs: usize) -> Result<Vec<Row>> {
    let home = Home::new()?;
    drop(home.open()?);
    fill(&home.database(), runs)?;
    let shown = id(runs / 2);
    let rounds = effort.choose(5, 41);
    let floor = || {
        let mut command = Command::new(sibling("floor_read")?);
        command
            .env_clear()
            .arg(home.database())
            .arg(&shown)
            .stdout(Stdio::null());
        once(command)
    };
    let show = || once(home.command(&["show", &format!("run/{shown}")])?);
    let ls = || once(home.command(&["ls", "--limit", "20"])?);
    let (ours, floors) = interleave(rounds, show, floor)?;
    let what = format!("show, {runs} runs / one row by hand");
    let ratio = median(ours.iter().zip(&floors).map(|(ours, floor)| ours.each() / floor.each()));
    let mut rows = vec![Row::ratio(
        &what,
        wall(&ours),
        wall(&floors),
        ratio,
        Target::AtMost(SHOW_RATIO_MAX),
    )];
    rows.push(Row::fact("processor time", cpu(&ours), cpu(&floors)));
    rows.push(milliseconds(
        &format!("show, {runs} runs"),
        &ours,
        COLD_MILLISECONDS_MAX,
    ));
    let (ours, _) = interleave(rounds, ls, floor)?;
    rows.push(milliseconds(
        &format!("ls --limit 20, {runs} runs"),
        &ours,
        COLD_MILLISECONDS_MAX,
    ));
    rows.push(Row::fact("processor time", cpu(&ours), String::new()));
    Ok(rows)
}

fn new_home(effort: Effort) -> Result<Row> {
    let old = Home::new()?;
    drop(old.open()?);
    let first = || {
        let home = Home::new()?;
        once(home.command(&["create", "team"])?)
    };
    let later = || once(old.command(&["create", "team"])?);
    let (first, later) = interleave(effort.choose(3, 15), first, later)?;
    let more = median(
        first
            .iter()
            .zip(&later)
            .map(|(first, later)| first.each() - later.each()),
    );
    let what = "create, on a new home: how much more";
    Ok(Row::value(
        what,
        more * 1e3,
        "ms",
        Target::AtMost(NEW_HOME_MILLISECONDS_MAX),
    ))
}

/// Runs a command to its end.
pub(super) fn once(mut command: Command) -> Result<Sample> {
    measured(1, || {
        let ended = command.spawn()?.wait()?;
        ensure!(ended.success(), "{command:?} ended with {ended}");
        Ok(())
    })
}

fn milliseconds(what: &str, samples: &[Sample], most: f64) -> Row {
    Row::value(
        what,
        median(samples.iter().map(Sample::each)) * 1e3,
        "ms",
        Target::AtMost(most),
    )
}

fn wall(samples: &[Sample]) -> String {
    time(median(samples.iter().map(Sample::each)))
}

fn cpu(samples: &[Sample]) -> String {
    time(median(samples.iter().map(Sample::each_cpu)))
}

//! Eight processes that take what is queued, beside eight that do so by hand.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::queued::{Standing, add};
use crate::harness::{Effort, Home, Row, Sample, Target, interleave, measured, median, sibling};

const PROCESSES: usize = 8;
/// As many as a worker of 16 slots has room for.
const BATCH: usize = 16;
/// Of what the same claims cost by hand, at least this.
const RATIO_MIN: f64 = 0.5;

/// Rows taken in a second, all processes together, from the first to the last.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let rows = effort.choose(800, 8_000);
    let (home, by_hand) = (Home::new()?, Home::new()?);
    drop((home.open()?, by_hand.open()?));
    let ours = || round(&home, &mut command("queue_claims", &home.path())?, rows);
    let floor = || round(&by_hand, &mut command("floor_claims", &by_hand.database())?, rows);
    let (ours, floor) = interleave(effort.choose(2, 7), ours, floor)?;
    let speed = |samples: &[Sample]| format!("{:.0}/s", 1.0 / median(samples.iter().map(Sample::each)));
    let ratio = median(ours.iter().zip(&floor).map(|(ours, floor)| floor.each() / ours.each()));
    let what = format!("claims, {PROCESSES} processes, {BATCH} at once / raw, BEGIN IMMEDIATE");
    Ok(vec![Row::ratio(
        &what,
        speed(&ours),
        speed(&floor),
        ratio,
        Target::AtLeast(RATIO_MIN),
    )])
}

fn command(name: &str, place: &std::path::Path) -> Result<Command> {
    let mut command = Command::new(sibling(name)?);
    command.arg(place).arg(BATCH.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    Ok(command)
}

/// Has the processes open the store, says when, and waits until nothing is left; all of it has to be taken, once.
fn round(home: &Home, command: &mut Command, rows: usize) -> Result<Sample> {
    add(&home.database(), rows, Standing::Ready)?;
    let mut children = Vec::new();
    for _ in 0..PROCESSES {
        let mut child = command.spawn()?;
        let lines = BufReader::new(child.stdout.take().context("it was asked for")?);
        children.push((child, lines));
    }
    let mut line = String::new();
    for (_, lines) in &mut children {
        lines.read_line(&mut line)?;
    }
    measured(u64::try_from(rows)?, || {
        for (child, _) in &mut children {
            tell(child)?;
        }
        let mut taken = 0;
        for (mut child, mut lines) in children {
            let mut line = String::new();
            lines.read_line(&mut line)?;
            taken += line.trim().parse::<usize>()?;
            ensure!(child.wait()?.success(), "a process failed");
        }
        ensure!(taken == rows, "{taken} of {rows} were taken");
        Ok(())
    })
}

fn tell(child: &mut Child) -> Result<()> {
    child.stdin.take().context("it was asked for")?.write_all(b"go\n")?;
    Ok(())
}

//! Starting a run, and learning of its end.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result};

use super::cold::once;
use crate::harness::{Effort, Home, Row, Sample, Target, median};

const START_MILLISECONDS_MAX: f64 = 30.0;
const WAIT_MILLISECONDS_MAX: f64 = 20.0;

/// `run --detach -- true` until it returns; `wait` from the end of the program until its line, with the parts.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let home = Home::new()?;
    drop(home.open()?);
    let start = || once(home.command(&["run", "--detach", "--", "true"])?);
    start()?;
    let rounds = effort.choose(5, 25);
    let started: Vec<Sample> = (0..rounds).map(|_| start()).collect::<Result<_>>()?;
    let version: Vec<Sample> = (0..rounds)
        .map(|_| once(home.command(&["--version"])?))
        .collect::<Result<_>>()?;
    let ms = |samples: &[Sample]| median(samples.iter().map(Sample::each)) * 1e3;
    let cpu = median(started.iter().map(Sample::each_cpu)) * 1e3;
    let mut rows = vec![
        Row::value(
            "run --detach -- true",
            ms(&started),
            "ms",
            Target::AtMost(START_MILLISECONDS_MAX),
        ),
        Row::fact(
            "a process that does nothing (--version)",
            format!("{:.2} ms", ms(&version)),
            String::new(),
        ),
        Row::fact(
            "processor time, ours and the children reaped",
            format!("{cpu:.2} ms"),
            String::new(),
        ),
    ];
    let waits: Vec<Wait> = (0..effort.choose(3, 15)).map(|_| wait(&home)).collect::<Result<_>>()?;
    let part = |of: fn(&Wait) -> Duration| median(waits.iter().map(|wait| of(wait).as_secs_f64())) * 1e3;
    let line = part(|wait| wait.line);
    rows.push(Row::value(
        "wait: end to line",
        line,
        "ms",
        Target::AtMost(WAIT_MILLISECONDS_MAX),
    ));
    let exit_file = part(|wait| wait.exit_file);
    rows.push(Row::fact(
        "of which until the exit file is there",
        format!("{exit_file:.2} ms"),
        String::new(),
    ));
    Ok(rows)
}

/// Times since the program's end.
struct Wait {
    exit_file: Duration,
    line: Duration,
}

/// The program writes the moment of its end, as its last act, into a file whose name it is given.
fn wait(home: &Home) -> Result<Wait> {
    let ended = home.path().join("ended");
    let script = format!("sleep 0.3; date +%s%N > {}", ended.display());
    let mut command = home.command(&["run", "--detach", "--", "/bin/sh", "-c", &script])?;
    let output = command.stdout(Stdio::piped()).output()?;
    let reference = String::from_utf8(output.stdout)?;
    let reference = reference
        .split_whitespace()
        .next()
        .context("`run` prints a reference")?
        .to_owned();
    let mut waiting = home.command(&["wait", &reference])?.stdout(Stdio::piped()).spawn()?;
    let mut stdout = waiting.stdout.take().context("it was asked for")?;
    stdout.read_exact(&mut [0_u8])?;
    let (line, at) = (SystemTime::now(), Instant::now());
    waiting.wait()?;
    let text = std::fs::read_to_string(&ended)?;
    let end = SystemTime::UNIX_EPOCH + Duration::from_nanos(text.trim().parse()?);
    let id = reference.rsplit('/').next().context("a reference has an id")?;
    let exit = std::fs::metadata(home.path().join("runs").join(id).join("exit.json"))?.modified()?;
    drain(at);
    Ok(Wait {
        exit_file: exit.duration_since(end).unwrap_or_default(),
        line: line.duration_since(end).unwrap_or_default(),
    })
}

/// Reaps what the run left, for a moment: its shim is still leaving when `wait` tells.
pub(super) fn drain(since: Instant) {
    while since.elapsed() < Duration::from_millis(100) {
        let _ = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

//! Stopping a run: from the command to the proof, beside the kernel's own means by hand.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::time;
use crate::harness::{Effort, Home, Row, Target, median, sibling};

/// A tree; it says "ready" when it stands.
struct Shape {
    name: &'static str,
    script: &'static str,
    rounds: (usize, usize),
}

const SHAPES: [Shape; 4] = [
    Shape {
        name: "one process",
        script: "echo ready; exec sleep 600",
        rounds: (5, 25),
    },
    Shape {
        name: "fifty deaf to TERM, in sessions of their own",
        script: "trap '' TERM; i=0; while [ $i -lt 50 ]; do setsid sleep 600 & i=$((i+1)); done; echo ready; wait",
        rounds: (5, 15),
    },
    Shape {
        name: "one that hops from pid to pid",
        script: "h=$(mktemp); echo 'setsid sh $0 $0 &' > $h; sh $h & echo ready; sleep 600",
        rounds: (5, 15),
    },
    Shape {
        name: "a thousand processes",
        script: "i=0; while [ $i -lt 1000 ]; do sleep 600 & i=$((i+1)); done; echo ready; wait",
        rounds: (2, 7),
    },
];

/// `kill --grace 0` of each shape, for each containment, beside what kills it by hand.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let home = Home::new()?;
    drop(home.open()?);
    let mut rows = Vec::new();
    for shape in &SHAPES {
        let rounds = effort.choose(shape.rounds.0, shape.rounds.1);
        for contain in ["cgroup", "subreaper"] {
            if started(&home, contain, "exit 0").is_err() {
                rows.push(Row::fact(
                    &format!("kill, {contain}"),
                    "not to be had here".to_owned(),
                    String::new(),
                ));
                continue;
            }
            rows.push(compared(&home, shape, contain, rounds)?);
        }
    }
    let by_pidfd: Vec<Duration> = (0..effort.choose(5, 25))
        .map(|_| floor(&home, "pidfd", SHAPES[0].script))
        .collect::<Result<_>>()?;
    rows.push(Row::fact("one process by a pidfd", String::new(), middle(&by_pidfd)));
    Ok(rows)
}

/// Ours and the floor in turn.
fn compared(home: &Home, shape: &Shape, contain: &str, rounds: usize) -> Result<Row> {
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if round % 2 == 0 {
            ours.push(killed(home, contain, shape.script)?);
            floors.push(floor(home, contain, shape.script)?);
        } else {
            floors.push(floor(home, contain, shape.script)?);
            ours.push(killed(home, contain, shape.script)?);
        }
    }
    let ratio = median(
        ours.iter()
            .zip(&floors)
            .map(|(ours, floor)| ours.as_secs_f64() / floor.as_secs_f64()),
    );
    let what = format!("kill of {}, {contain}", shape.name);
    Ok(Row::ratio(&what, middle(&ours), middle(&floors), ratio, Target::None))
}

fn middle(times: &[Duration]) -> String {
    time(median(times.iter().map(Duration::as_secs_f64)))
}

/// Starts a script as a run; its reference.
fn started(home: &Home, contain: &str, script: &str) -> Result<String> {
    let words = ["run", "--detach", "--contain", contain, "--", "/bin/sh", "-c", script];
    let mut command = home.command(&words)?;
    command.env("PATH", "/usr/bin:/bin").env("TMPDIR", home.path());
    let output = command.stdout(Stdio::piped()).output()?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// From starting the command that kills to its end: process start, proof and record.
fn killed(home: &Home, contain: &str, script: &str) -> Result<Duration> {
    let reference = started(home, contain, script)?;
    let id = reference.strip_prefix("run/").context("`run` prints a reference")?;
    ready(&home.path().join("runs").join(id).join("stdout.log"))?;
    let mut kill = home.command(&["kill", "--grace", "0", &reference])?;
    let since = Instant::now();
    let ended = kill.spawn()?.wait()?;
    let took = since.elapsed();
    ensure!(ended.success(), "{kill:?} ended with {ended}");
    Ok(took)
}

/// Waits for a script to have said that its tree stands.
#[expect(
    clippy::disallowed_methods,
    reason = "between two looks at what another process writes"
)]
fn ready(log: &Path) -> Result<()> {
    let since = Instant::now();
    while std::fs::read(log).unwrap_or_default() != b"ready\n" {
        ensure!(since.elapsed() < Duration::from_secs(60), "the tree does not stand");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn floor(home: &Home, means: &str, script: &str) -> Result<Duration> {
    let mut command = Command::new(sibling("floor_stop")?);
    let output = command.args([means, script]).env("TMPDIR", home.path()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let took = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(Duration::from_micros(took))
}

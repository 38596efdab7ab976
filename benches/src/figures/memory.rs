//! What an idle shim holds.

use std::process::Stdio;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::harness::{Effort, Home, Row, Target};

const PRIVATE_MEBIBYTES_MAX: f64 = 1.0;
const RESIDENT_MEBIBYTES_MAX: f64 = 4.0;

/// Of the shim of a run that sleeps.
pub(super) fn figure(_effort: Effort) -> Result<Vec<Row>> {
    let home = Home::new()?;
    let mut run = home.command(&["run", "--detach", "--id", "idle", "--", "sleep", "600"])?;
    run.output()?;
    let shown = home
        .command(&["--json", "show", "run/idle"])?
        .stdout(Stdio::piped())
        .output()?;
    let shown: Value = serde_json::from_slice(&shown.stdout).context("`show --json` prints a document")?;
    let shim = shown
        .pointer("/runtime/shim_pid")
        .and_then(Value::as_i64)
        .context("a run has a shim")?;
    let rollup = std::fs::read_to_string(format!("/proc/{shim}/smaps_rollup"))?;
    home.command(&["kill", "--grace", "0s", "run/idle"])?.output()?;
    let mebibytes = |names: &[&str]| {
        let of = |line: &str| {
            let (name, rest) = line.split_once(':')?;
            names
                .contains(&name)
                .then(|| rest.trim().trim_end_matches(" kB").parse::<f64>().ok())?
        };
        rollup.lines().filter_map(of).sum::<f64>() / 1024.0
    };
    let private = mebibytes(&["Private_Clean", "Private_Dirty"]);
    let pss = mebibytes(&["Pss"]);
    Ok(vec![
        Row::value(
            "idle shim, private",
            private,
            "MiB",
            Target::AtMost(PRIVATE_MEBIBYTES_MAX),
        ),
        Row::value(
            "idle shim, resident",
            mebibytes(&["Rss"]),
            "MiB",
            Target::AtMost(RESIDENT_MEBIBYTES_MAX),
        ),
        Row::fact("proportional", format!("{pss:.2} MiB"), String::new()),
    ])
}

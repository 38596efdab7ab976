//! `runwarden-benches`: measures and prints.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use anyhow::{Result, bail};
use runwarden_benches::figures::FIGURES;
use runwarden_benches::harness::{Effort, table};

const USAGE: &str = "usage: runwarden-benches [--filter NAME] [--quick]";

fn main() -> Result<()> {
    let (mut effort, mut filter) = (Effort::Full, String::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.len()) {
            ("--quick", _) => effort = Effort::Quick,
            ("--filter", 1..) => filter = arguments.next().unwrap_or_default(),
            _ => bail!("{USAGE}"),
        }
    }
    // What runs leave behind becomes ours to reap, so that its processor time is counted.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut all = Vec::new();
    for (name, figure) in FIGURES.iter().filter(|(name, _)| name.contains(&filter)) {
        let rows = figure(effort)?;
        println!("## {name}\n\n{}", table(&rows));
        all.extend(rows);
    }
    if all.is_empty() {
        let names: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        bail!("no figure is named like `{filter}`; there are {}", names.join(", "));
    }
    Ok(())
}

//! A process that takes what is queued, and runs none of it. `queue_claims HOME BATCH`: says that it is ready, waits for a
//! line, takes until nothing is left, says how much it took.
#![expect(clippy::print_stdout, reason = "who started it waits for what it says")]

use anyhow::{Context as _, Result};
use runwarden_benches::harness::library;
use runwarden_host::store::ReadyQuery;
use runwarden_host::verbs::lease::claim;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (home, batch) = arguments
        .next()
        .zip(arguments.next())
        .context("usage: queue_claims HOME BATCH")?;
    let batch: usize = batch.parse()?;
    let host = library(home.into())?;
    let holder = format!("bench-{}", std::process::id());
    let heartbeat = host.steady_now()?;
    let first = ReadyQuery {
        queues: Vec::new(),
        limit: 1,
    };
    host.store().ready(&first)?;
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    let mut taken = 0;
    loop {
        let claimed = claim(&host, (&holder, heartbeat), &[], batch)?.len();
        taken += claimed;
        // Others may have been faster with all of a batch.
        if claimed == 0 && host.store().ready(&first)?.is_empty() {
            break;
        }
    }
    println!("{taken}");
    Ok(())
}

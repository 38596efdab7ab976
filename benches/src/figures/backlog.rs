//! What a claim costs with nothing else queued, and with a million rows behind it.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use runwarden_host::Host;
use runwarden_host::store::{Counts, OpenMode, SqliteStore, Store};
use runwarden_host::verbs::lease::claim;

use super::queued::{Standing, add};
use super::time;
use crate::harness::{Effort, Home, Row, Target, median};

const CLAIMS: usize = 40;
/// A tree that is two levels deeper asks for so much more.
const PAGES_RATIO_MAX: f64 = 2.0;

/// The medians of some claims of one row each.
struct Cost {
    wall: f64,
    statements: f64,
    pages: f64,
    /// Rows stepped over and sorts, in all of them.
    scans: u64,
}

/// Statements, pages, time; scans and sorts.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let large = effort.choose(50_000, 1_000_000);
    let (few, many) = (cost(CLAIMS)?, cost(large)?);
    let what = |what: &str| format!("claim: {what} at {large} queued / at {CLAIMS}");
    let count = |count: f64| format!("{count:.0}");
    let ratio = |of: fn(&Cost) -> f64| of(&many) / of(&few);
    Ok(vec![
        Row::ratio(
            &what("statements"),
            count(many.statements),
            count(few.statements),
            ratio(|cost| cost.statements),
            Target::AtMost(1.0),
        ),
        Row::ratio(
            &what("pages"),
            count(many.pages),
            count(few.pages),
            ratio(|cost| cost.pages),
            Target::AtMost(PAGES_RATIO_MAX),
        ),
        Row::ratio(
            &what("time"),
            time(many.wall),
            time(few.wall),
            ratio(|cost| cost.wall),
            Target::None,
        ),
        #[expect(clippy::cast_precision_loss, reason = "none, or few")]
        Row::value(
            "  scans and sorts",
            (few.scans + many.scans) as f64,
            "",
            Target::AtMost(0.0),
        ),
    ])
}

fn cost(rows: usize) -> Result<Cost> {
    let home = Home::new()?;
    drop(home.open()?);
    // One warms up.
    add(&home.database(), rows + 1, Standing::Ready)?;
    let store = Arc::new(SqliteStore::open(&home.database(), OpenMode::Existing)?);
    let shared: Arc<dyn Store> = Arc::clone(&store) as _;
    let host = Host::with_store(home.config(), shared);
    let heartbeat = host.steady_now()?;
    let one = || -> Result<()> {
        let taken = claim(&host, ("bench", heartbeat), &[], 1)?.len();
        ensure!(taken == 1, "nothing was taken");
        Ok(())
    };
    one()?;
    let (mut walls, mut pages, mut statements, mut scans) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..CLAIMS {
        let (before, started) = (store.counts(), Instant::now());
        one()?;
        walls.push(started.elapsed().as_secs_f64());
        let after: Counts = store.counts();
        #[expect(clippy::cast_precision_loss, reason = "some dozens")]
        let since = |of: fn(&Counts) -> u64| (of(&after) - of(&before)) as f64;
        pages.push(since(|counts| counts.pages));
        statements.push(since(|counts| counts.statements));
        scans += after.scan_steps - before.scan_steps + after.sorts - before.sorts;
    }
    Ok(Cost {
        wall: median(walls),
        statements: median(statements),
        pages: median(pages),
        scans,
    })
}

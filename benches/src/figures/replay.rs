//! History judged again under a policy that is a table, beside reading the rows alone.

use std::hint::black_box;

use anyhow::{Result, ensure};
use runwarden_host::Host;
use runwarden_host::store::PageBack;
use runwarden_host::verbs::{Replaying, Tried, replay};

use super::{fill, time};
use crate::harness::{Effort, Home, Row, Sample, interleave, measured, median};

/// As many rows as `replay` reads at once.
const PAGE: usize = 512;

/// Two rows for each run: its creation and its end.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let home = Home::new()?;
    drop(home.open()?);
    let runs = effort.choose(2_000, 50_000);
    fill::fill(&home.database(), runs)?;
    let host = home.open()?;
    let digest = host.active_policy("run")?.pin.digest;
    let rows = u64::try_from(read(&host)?)?;
    let ours = || {
        measured(rows, || {
            let replaying = Replaying {
                candidate: Tried::Installed(&digest),
                kind: None,
                since: None,
                limit: None,
            };
            let tally = replay(&host, &replaying)?.tally;
            ensure!(tally.judged_in_all() == rows, "every row is judged: {tally:?}");
            Ok(())
        })
    };
    let floor = || {
        measured(rows, || {
            read(&host).map(|rows| {
                black_box(rows);
            })
        })
    };
    let (ours, floor) = interleave(effort.choose(3, 7), ours, floor)?;
    let rate = |samples: &[Sample]| format!("{:.0}/s", 1.0 / median(samples.iter().map(Sample::each)));
    let each = |samples: &[Sample]| time(median(samples.iter().map(Sample::each_cpu)));
    let what = format!("{rows} rows judged again / read alone");
    Ok(vec![
        Row::fact(&what, rate(&ours), rate(&floor)),
        Row::fact("processor time of each", each(&ours), each(&floor)),
    ])
}

/// Reads the history of runs as `replay` does; how many rows it has.
fn read(host: &Host) -> Result<usize> {
    let mut page = PageBack {
        of: "run".to_owned(),
        since: None,
        before: None,
        limit: PAGE,
    };
    let mut count = 0;
    loop {
        let rows = host.store().history_back(&page)?;
        count += rows.len();
        page.before = rows.last().map(|(number, _)| *number);
        if rows.len() < PAGE {
            return Ok(count);
        }
    }
}

//! `schedule ls`: every schedule with its next fire time and its last one.

use runwarden_host::verbs::schedule::{ScheduleView, looks};
use serde_json::Value;

use super::words::{cadence, document, status, zone_name};
use crate::context::Context;
use crate::errors::Outcome;
use crate::output::{Column, Page, Report, Style, Table, Text, ago, between};

/// List schedules: when each fires, next and last
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

const EXAMPLES: &str = "EXAMPLES
  runwarden schedule ls
  runwarden schedule ls --json | jq -r '.[] | select(.paused | not) | [.name, .next_fire_at] | @tsv'";

/// Schedules, by name.
pub(crate) struct Listing(Vec<ScheduleView>);

/// Lists.
pub(crate) fn execute(context: &Context) -> Outcome<Listing> {
    let Some(host) = context.read_if_present()? else {
        return Ok(Listing(Vec::new()));
    };
    Ok(Listing(looks(&host)?))
}

impl Report for Listing {
    fn json(&self) -> Value {
        self.0.iter().map(document).collect()
    }

    fn text(&self, page: &Page) -> Text {
        if self.0.is_empty() {
            return Text::of("No schedules. `runwarden schedule add NAME --cron '30 6 * * *' -- PROGRAM` makes one.");
        }
        let mut table = Table::new(&[
            Column::kept("NAME"),
            Column::expendable("WHEN", 1),
            Column::expendable("ZONE", 3),
            Column::kept("NEXT"),
            Column::expendable("LAST", 2),
            Column::expendable("FIRED", 4),
        ]);
        for view in &self.0 {
            let schedule = &view.kept.schedule;
            let last = view.occurrences.first();
            table.row(vec![
                Text::styled(Style::Strong, &schedule.name),
                Text::of(cadence(&schedule.cadence)),
                Text::of(zone_name(&schedule.cadence).unwrap_or_default()),
                next(view, page),
                last.map(status).unwrap_or_default(),
                Text::styled(
                    Style::Dim,
                    last.map(|last| ago(last.fired_at, page)).unwrap_or_default(),
                ),
            ]);
        }
        table.text(page)
    }
}

fn next(view: &ScheduleView, page: &Page) -> Text {
    if view.kept.schedule.paused {
        return Text::styled(Style::Notice, "paused");
    }
    if view.problem.is_some() {
        return Text::styled(Style::Bad, "unknown");
    }
    match view.upcoming.first() {
        Some(next) => Text::of(format!("in {}", between(page.now, *next))),
        None => Text::styled(Style::Dim, "never"),
    }
}

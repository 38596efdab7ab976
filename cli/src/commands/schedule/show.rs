//! `schedule show`: one schedule, what it starts, what is to come and what has been.

use runwarden_host::verbs::schedule::{ScheduleView, look};
use serde_json::{Value, json};

use super::words::{cadence, document, in_both, local, occurrence, status, unknown, zone_name};
use crate::commands::entity::{command_line, text_of};
use crate::context::Context;
use crate::errors::Outcome;
use crate::output::{Page, Report, Style, Text, moment};

/// How many fire times to come are told.
const NEXT: usize = 5;

/// How many past ones are told when nothing is said of it.
const LAST: usize = 10;

/// Show one schedule: what it starts, its next fire times, what became of the last ones
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    /// So many of its last fire times
    #[arg(long, value_name = "N", default_value_t = LAST)]
    limit: usize,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden schedule show nightly
  runwarden schedule show nightly --json | jq -r '.next[].at'";

/// A schedule.
pub(crate) struct Shown(ScheduleView);

/// Reads it.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Shown> {
    let host = context.read()?;
    let view = look(&host, &args.name, (NEXT, args.limit)).map_err(unknown)?;
    Ok(Shown(view))
}

impl Report for Shown {
    fn json(&self) -> Value {
        let view = &self.0;
        let cadence = &view.kept.schedule.cadence;
        let mut document = document(view);
        document["next"] = view
            .upcoming
            .iter()
            .map(|at| json!({"at": at.to_rfc3339(), "local": local(*at, cadence)}))
            .collect();
        document["occurrences"] = view.occurrences.iter().map(occurrence).collect();
        document
    }

    fn text(&self, page: &Page) -> Text {
        let view = &self.0;
        let schedule = &view.kept.schedule;
        let mut text = Text::styled(Style::Strong, &schedule.name);
        if schedule.paused {
            text = text.and("  ").and_styled(Style::Notice, "paused");
        }
        let mut fact = |name: &str, said: Text| {
            text.line(Text::styled(Style::Dim, format!("  {name:<10}")).with(said));
        };
        let when = match zone_name(&schedule.cadence) {
            Some(zone) => format!("{} in {zone}", cadence(&schedule.cadence)),
            None => format!(
                "{} from {}",
                cadence(&schedule.cadence),
                moment(schedule.created_at, page)
            ),
        };
        fact("when", Text::of(when));
        fact("overlap", Text::of(schedule.overlap.word()));
        fact("missed", Text::of(schedule.missed.word()));
        let work = view.submitted.work();
        fact("command", Text::of(command_line(&work["argv"])));
        fact("directory", Text::of(text_of(&work["cwd"])));
        fact(
            "added",
            Text::of(format!("{} by {}", moment(schedule.created_at, page), view.kept.actor)),
        );
        if let Some(problem) = &view.problem {
            fact("problem", Text::styled(Style::Bad, problem));
        }
        for (place, at) in view.upcoming.iter().enumerate() {
            let name = if place == 0 { "next" } else { "" };
            fact(name, Text::of(in_both(*at, &schedule.cadence, page)));
        }
        for (place, last) in view.occurrences.iter().enumerate() {
            let name = if place == 0 { "last" } else { "" };
            let said =
                Text::of(format!("{}  {}  ", moment(last.nominal, page), last.entity.reference)).with(status(last));
            fact(name, said);
        }
        text
    }
}

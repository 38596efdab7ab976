//! `schedule add`: work that is submitted again and again.

use std::ffi::OsString;

use jiff::tz::TimeZone;
use runwarden_host::model::schedule::{Cadence, Missed, Overlap};
use runwarden_host::model::{DurationMs, Outcome as Entered};
use runwarden_host::verbs::schedule::{
    NewSchedule, ScheduleView, Submitted, Words, add, cron_cadence, interval_cadence, look,
};
use serde_json::Value;

use super::words::{cadence, document, in_both, zone_name};
use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::notify::warn;
use crate::output::{Page, Report, Style, Text};
use crate::parse;
use crate::queueing::QueueArgs;
use crate::work::WorkArgs;

/// Submit work by a cron expression or an interval, from now on
///
/// Each fire time makes one entity, whoever fires it. Schedules are fired by `serve`, `serve --once` and workers.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("cadence").required(true).args(["cron", "every"]))]
pub(crate) struct Args {
    /// What the schedule is called: letters, digits, `.`, `_`, `-`
    #[arg(value_name = "NAME")]
    schedule: String,
    /// Minute, hour, day of month, month, day of week; or @hourly, @daily, @weekly, @monthly, @yearly
    #[arg(long, value_name = "EXPR", help_heading = "When")]
    cron: Option<String>,
    /// An interval of elapsed time, counted from now
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true, help_heading = "When")]
    every: Option<DurationMs>,
    /// The zone in which --cron is read, such as Europe/Berlin [default: this machine's]
    #[arg(long, value_name = "Z", conflicts_with = "every", help_heading = "When")]
    tz: Option<String>,
    /// While an earlier one has not ended: skip, queue, allow
    #[arg(long, value_name = "HOW", value_parser = overlap, default_value = "skip", help_heading = "When")]
    overlap: Overlap,
    /// Of fire times that nobody was there for, start: skip (none), one (the newest), all
    #[arg(long, value_name = "HOW", value_parser = missed, default_value = "one", help_heading = "When")]
    missed: Missed,
    #[command(flatten)]
    queueing: QueueArgs,
    #[command(flatten)]
    work: WorkArgs,
    /// The program and its arguments, executed as they are
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    argv: Vec<OsString>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden schedule add nightly --cron '30 2 * * *' --tz Europe/Berlin -- ./backup.sh
  runwarden schedule add report --cron '0 9 * * MON-FRI' --missed skip --timeout 1h -- ./report
  runwarden schedule add probe --every 10m --overlap allow --attempts 1 -- ./probe
  runwarden schedule add sync --cron @hourly --overlap queue --missed all --queue slow -- ./sync

Times of the day fire once a day, whatever clocks are changed. docs/schedules.md says how.";

/// A schedule that was added.
pub(crate) struct Added(ScheduleView);

/// Adds it.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Added> {
    let host = context.create()?;
    if args.work.id.is_some() {
        return Err(
            Failure::usage("--id is of one entity, and each fire time makes another")
                .hint("leave --id out; --name gives all of them a name"),
        );
    }
    let cadence = cadence_of(args)?;
    let mut submission = args.queueing.submission(&host, &args.work, &args.argv)?;
    let settings = args.work.notify.resolved(&host, args.work.directory().as_deref())?;
    warn(context, &settings);
    submission.create.notify = settings.stored();
    let new = NewSchedule {
        name: args.schedule.clone(),
        cadence,
        overlap: args.overlap,
        missed: args.missed,
        submitted: Submitted::of(submission, words()),
    };
    if add(&host, new, &operator())?.is_none() {
        let name = &args.schedule;
        return Err(
            Failure::new(Exit::CONFLICT, "name_taken", format!("there is a schedule `{name}`")).hint(format!(
                "`runwarden schedule rm {name}` takes it away; what it started stays"
            )),
        );
    }
    Ok(Added(look(&host, &args.schedule, (1, 0))?))
}

fn cadence_of(args: &Args) -> Outcome<Cadence> {
    let cadence = match (&args.cron, args.every) {
        (Some(expression), _) => {
            let zone = args.tz.clone().unwrap_or_else(machine_zone);
            cron_cadence(expression, &zone)
        }
        (None, every) => interval_cadence(every.unwrap_or_default()),
    };
    cadence.map_err(|invalid| Failure::from(runwarden_host::Error::from(invalid)))
}

/// The machine's zone by its name; UTC where it has none.
fn machine_zone() -> String {
    let zone = TimeZone::system();
    let name = zone.iana_name().filter(|_| !zone.is_unknown());
    name.unwrap_or("UTC").to_owned()
}

/// How the bundled policies of queued work call what becomes of a fire time.
fn words() -> Words {
    let skipped = |code: &str| Entered {
        status: "skipped".to_owned(),
        code: code.to_owned(),
    };
    Words {
        due: "schedule.fired.due".to_owned(),
        overlaps: skipped("schedule.skipped.overlap"),
        missed: skipped("schedule.skipped.missed_fire"),
        refused: skipped("schedule.skipped.precondition"),
    }
}

fn overlap(word: &str) -> Result<Overlap, String> {
    Overlap::parse(word).ok_or_else(|| "one of skip, queue, allow".to_owned())
}

fn missed(word: &str) -> Result<Missed, String> {
    Missed::parse(word).ok_or_else(|| "one of skip, one, all".to_owned())
}

impl Report for Added {
    fn json(&self) -> Value {
        document(&self.0)
    }

    fn text(&self, page: &Page) -> Text {
        let schedule = &self.0.kept.schedule;
        let mut text = Text::styled(Style::Strong, &schedule.name).and(format!("  {}", cadence(&schedule.cadence)));
        if let Some(zone) = zone_name(&schedule.cadence) {
            text = text.and(format!(" in {zone}"));
        }
        if let Some(next) = self.0.upcoming.first() {
            let lead = Text::styled(Style::Dim, "next  ");
            text.line(lead.and(in_both(*next, &schedule.cadence, page)));
        }
        text
    }
}

//! `schedule add`: work that is submitted again and again.

use std::ffi::OsString;

use jiff::tz::TimeZone;
use runwarden_host::QueueTerms;
use runwarden_host::model::schedule::{Cadence, Missed, Overlap};
use runwarden_host::model::{DurationMs, Outcome as Entered, QUEUE_DEFAULT, Tags};
use runwarden_host::verbs::known_kind;
use runwarden_host::verbs::schedule::{
    NewSchedule, ScheduleView, Submitted, Words, add, cron_cadence, interval_cadence, look,
};
use serde_json::Value;

use super::words::{cadence, document, in_both, zone_name};
use crate::context::{Context, meant, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::notify::warn;
use crate::output::{Page, Report, Style, Text};
use crate::parse;
use crate::work::WorkArgs;

/// The kind of what is made for each fire time.
const KIND: &str = "schedule_run";

/// The kind of the run that a worker makes for each attempt.
const RUN_KIND: &str = "session";

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
    /// The queue that it is put into [default: default]
    #[arg(long, value_name = "Q", help_heading = "How it is queued")]
    queue: Option<String>,
    /// Higher is taken first
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true,
        help_heading = "How it is queued"
    )]
    priority: i64,
    /// How many starts each has, whatever ended the earlier ones [default: as its policy says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..), help_heading = "How it is queued")]
    attempts: Option<i64>,
    /// How long a worker holds it without a sign of life [default: as its policy says]
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true, help_heading = "How it is queued")]
    lease: Option<DurationMs>,
    /// Make it under this installed policy [default: the active one of its kind, each time]
    #[arg(long, value_name = "NAME@VERSION", help_heading = "How it is queued")]
    policy: Option<String>,
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
    let mut parents = Vec::new();
    for word in &args.work.parents {
        parents.push(meant(&host, word)?.reference);
    }
    let settings = args.work.notify.resolved(&host, args.work.directory().as_deref())?;
    warn(context, &settings);
    let mut work = args.work.work(&args.argv)?;
    work.queue = Some(QueueTerms {
        run_kind: RUN_KIND.to_owned(),
        lease_ms: args.lease,
        attempts: args.attempts,
        not_before: None,
    });
    let submitted = Submitted {
        kind: known_kind(&host, KIND)?,
        policy: args.policy.clone(),
        name: args.work.name.clone(),
        tags: args.work.tags.iter().cloned().collect::<Tags>(),
        parents,
        notify: settings.stored(),
        queue: args.queue.clone().unwrap_or_else(|| QUEUE_DEFAULT.to_owned()),
        priority: args.priority,
        work,
        words: words(),
    };
    let new = NewSchedule {
        name: args.schedule.clone(),
        cadence,
        overlap: args.overlap,
        missed: args.missed,
        submitted,
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

/// How the bundled policy of [`KIND`] calls what becomes of a fire time.
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

//! `worker`: runs what is queued.

use std::sync::Arc;

use runwarden_host::model::DurationMs;
use runwarden_host::verbs::lease::{Bidding, Done, Progress, Until, WorkerOptions, Working, work};
use serde_json::{Value, json};

use crate::app;
use crate::context::Context;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::notify::lease_grace;
use crate::output::{Form, Output, Page, Report, Style, Text, compact};
use crate::parse;
use crate::queueing::queue_name;
use crate::signals::Signals;
use crate::work::{inherited, machine};

/// Run what is queued: take it on lease, start it, see it end
///
/// Each piece of work is a supervised run of its own. A worker that is killed leaves its runs going; their ends are recorded.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// How much at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    slots: u16,
    /// Its name, for people [default: this machine's]
    #[arg(long, value_name = "W", value_parser = queue_name)]
    name: Option<String>,
    /// Take from this queue; several: from any of them [default: all]
    #[arg(long = "queue", value_name = "Q", value_parser = queue_name)]
    queues: Vec<String>,
    /// Take what is ready now, as much as there are slots, and end with it
    #[arg(long, conflicts_with = "drain")]
    once: bool,
    /// End when nothing is ready any more
    #[arg(long)]
    drain: bool,
    /// From the end of a lease to giving its worker up [default: lease_grace of the settings, else as the policies say, 20s]
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true)]
    lease_grace: Option<DurationMs>,
    /// Say nothing of what it does
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden worker
  runwarden worker --slots 4 --queue builds --queue nightly
  runwarden worker --drain                       # all that is ready, then end
  */5 * * * * runwarden worker --drain --quiet   # as a line for cron

TERM or Ctrl-C: nothing new is taken, and what runs goes on to its end; once more: what runs is stopped and given back; a
third time: the worker does not wait for that, and each run gives its row back when it has stopped.

EXIT CODES
  0 it was told to stop, or is done   3 it was told to leave what it was stopping";

/// Works until it is told to stop, or is done.
pub(crate) fn execute(context: &Context, args: &Args) -> Exit {
    attempt(context, args).unwrap_or_else(|failure| context.output.failure(&failure))
}

fn attempt(context: &Context, args: &Args) -> Outcome<Exit> {
    let host = context.create()?;
    let working = Arc::new(Working::new());
    let options = WorkerOptions {
        name: args.name.clone().unwrap_or_else(machine),
        slots: usize::from(args.slots),
        queues: args.queues.clone(),
        until: match (args.once, args.drain) {
            (true, _) => Until::Once,
            (false, true) => Until::Drained,
            (false, false) => Until::Stopped,
        },
        grace: lease_grace(context, args.lease_grace),
        environment: inherited(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::IO, "system", "cannot wait").cause(error.to_string()))?;
    let (at_work, talk) = (Arc::clone(&working), Talk::of(context, args));
    let worker = move || work(&host, &options, &at_work, &|progress| talk.tell(progress));
    let exit = runtime.block_on(async {
        let mut signals = Signals::watch()?;
        let mut task = tokio::task::spawn_blocking(worker);
        for bidding in [Some(Bidding::Closed), Some(Bidding::GivingBack), None] {
            tokio::select! {
                ended = &mut task => return outcome(context, ended),
                () = signals.next() => match bidding {
                    Some(bidding) => working.bid(bidding),
                    None => return Ok(Exit::UNFINISHED),
                },
            }
        }
        Ok(Exit::UNFINISHED)
    });
    // Who was told three times to stop waits for nothing any more.
    runtime.shutdown_background();
    exit
}

fn outcome(
    context: &Context,
    ended: Result<Result<Done, runwarden_host::Error>, tokio::task::JoinError>,
) -> Outcome<Exit> {
    match ended {
        Ok(done) => Ok(app::report(context, done.map(Finished).map_err(Failure::from))),
        Err(_) => Ok(Exit::FAULT), // its panic was told
    }
}

/// What a worker says as it goes.
#[derive(Clone, Copy)]
struct Talk {
    output: Output,
    quiet: bool,
}

impl Talk {
    fn of(context: &Context, args: &Args) -> Self {
        Self {
            output: context.output,
            quiet: args.quiet,
        }
    }

    /// One line of what happened, on standard error; with `--json`, one document.
    fn tell(self, progress: &Progress<'_>) {
        let (style, words) = match progress {
            Progress::Started { row, run } => (Style::Dim, format!("{} runs as {}", row.reference, run.reference)),
            Progress::Ended(row) => (
                Style::of_status(row.terminal, row.success),
                format!("{} {} ({})", row.reference, row.status, row.reason.code),
            ),
            Progress::HandedBack(row) => (Style::Notice, format!("{} is given back", row.reference)),
            Progress::Lost(row) => (Style::Bad, format!("{} is lost: its run is stopped", row.reference)),
            Progress::Failed(what) => {
                self.output.warn(what);
                return;
            }
        };
        if self.quiet {
            return;
        }
        if self.output.form() == Form::Json {
            let line = compact(&document(progress));
            self.output.note(&Text::of(line.trim_end()));
        } else {
            self.output.note(&Text::styled(style, words));
        }
    }
}

fn document(progress: &Progress<'_>) -> Value {
    match progress {
        Progress::Started { row, run } => {
            json!({"event": "started", "ref": row.reference.to_string(), "run": run.reference.to_string()})
        }
        Progress::Ended(row) => json!({"event": "ended", "ref": row.reference.to_string(), "status": row.status}),
        Progress::HandedBack(row) => json!({"event": "handed_back", "ref": row.reference.to_string()}),
        Progress::Lost(row) => json!({"event": "lost", "ref": row.reference.to_string()}),
        Progress::Failed(what) => json!({"event": "failed", "message": what}),
    }
}

/// What a worker did.
struct Finished(Done);

impl Report for Finished {
    fn json(&self) -> Value {
        let done = self.0;
        json!({"taken": done.taken, "ended": done.ended, "handed_back": done.handed_back, "lost": done.lost})
    }

    fn text(&self, _: &Page) -> Text {
        let done = self.0;
        let mut words = format!("{} taken, {} ended", done.taken, done.ended);
        for (count, what) in [(done.handed_back, "given back"), (done.lost, "lost")] {
            if count > 0 {
                words.push_str(&format!(", {count} {what}"));
            }
        }
        Text::of(words)
    }
}

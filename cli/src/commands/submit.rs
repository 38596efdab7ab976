//! `submit`: puts work into a queue.

use std::ffi::OsString;

use runwarden_host::model::{DurationMs, Timestamp};
use runwarden_host::verbs::lease::submit;
use runwarden_host::verbs::{Enclosing, EntityView, enclosing, view};
use serde_json::Value;

use crate::context::{Context, meant};
use crate::errors::Outcome;
use crate::notify;
use crate::output::{Page, Report, Text};
use crate::parse;
use crate::queueing::{QueueArgs, claimed_parent, moment};
use crate::work::WorkArgs;

/// Queue a program for a worker: now, later, after other work, until it succeeds
///
/// The variables of the environment are those of the worker that runs it, not those of this command; --env K=V stores a value.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    queueing: QueueArgs,
    /// Not before this has ended with success; several: all of them
    #[arg(long = "after", value_name = "REF", help_heading = "When it runs")]
    after: Vec<String>,
    /// Not before this moment: RFC 3339, '2030-01-31 23:00', or 23:00
    #[arg(long, value_name = "T", value_parser = moment, conflicts_with = "delay", help_heading = "When it runs")]
    at: Option<Timestamp>,
    /// Not before so long from now
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true, help_heading = "When it runs")]
    delay: Option<DurationMs>,
    /// Makes the command safe to repeat
    #[arg(long, value_name = "K", help_heading = "What it is")]
    idempotency_key: Option<String>,
    /// The program and its arguments, executed as they are
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    argv: Vec<OsString>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden submit -- make nightly
  runwarden submit --queue builds --priority 5 --attempts 1 -- ./release.sh
  runwarden submit --at 23:00 --timeout 2h -- ./backup.sh
  build=$(runwarden submit -- make) && runwarden submit --after \"$build\" -- make test
  runwarden submit --unique-key sync --delay 10m -- ./sync.sh
  runwarden submit --policy schedule_run@1 -- ./old-ways.sh
  runwarden submit --run-kind agent -- ./solve.sh      # each attempt is judged as an agent's

`runwarden worker` runs what is queued, or `runwarden serve --slots N`. `runwarden queue ls` shows what waits, and
`runwarden why REF` what it waits for. What its program gets: RUNWARDEN_REF names the run of the attempt,
RUNWARDEN_LEASE_REF what was queued, RUNWARDEN_ATTEMPT which attempt it is.

EXIT CODES
  0 it is queued   2 what it waits for is not there   4 the id or the unique key is taken   5 a parent has ended";

/// What was queued.
pub(crate) struct Queued(EntityView);

/// Puts it into its queue.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Queued> {
    let host = context.create()?;
    let mut submission = args.queueing.submission(&host, &args.work, &args.argv)?;
    if let Some(id) = claimed_parent(&args.work) {
        match enclosing(&host, &id)? {
            Enclosing::Inside(entity) => submission.create.parents.push(entity.reference),
            Enclosing::Unproven => context.output.warn(&format!(
                "RUNWARDEN_ID names {id}, and this process is not inside it: not linked below it"
            )),
        }
    }
    for word in &args.after {
        submission.after.push(meant(&host, word)?.reference);
    }
    submission.not_before = args.at.or_else(|| args.delay.map(|delay| host.now().plus(delay)));
    submission.create.idempotency_key.clone_from(&args.idempotency_key);
    let settings = args.work.notify.resolved(&host, args.work.directory().as_deref())?;
    notify::warn(context, &settings);
    submission.create.notify = settings.stored();
    submission.create.notify_asked = args.work.notify.words();
    let made = submit(&host, submission)?;
    Ok(Queued(view(&host, made.entity)?))
}

impl Report for Queued {
    fn json(&self) -> Value {
        self.0.json.clone()
    }

    fn text(&self, _: &Page) -> Text {
        Text::of(self.0.entity.reference.to_string())
    }
}

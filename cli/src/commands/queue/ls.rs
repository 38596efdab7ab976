//! `queue ls`: what waits where, and who is at work.

use runwarden_host::Host;
use runwarden_host::model::{DurationMs, Stage, Timestamp};
use runwarden_host::store::{QueueState, Worker};
use runwarden_host::verbs::lease::at_work;
use serde_json::{Value, json};

use crate::context::Context;
use crate::errors::Outcome;
use crate::output::{Column, Page, Report, Style, Table, Text, between, span};

/// List queues: what waits, what is held, what is in doubt; and the workers
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

const EXAMPLES: &str = "EXAMPLES
  runwarden queue ls
  runwarden queue ls --json | jq '.queues[] | select(.doubted > 0)'
  runwarden ls schedule_runs --status queued      # what waits, one by one

ready can be taken; later waits for a moment, waiting for other work; held runs under a lease; doubted has a worker that is
not heard of, and is judged when its grace is over.";

/// Queues and workers.
pub(crate) struct Listing {
    queues: Vec<QueueState>,
    workers: Vec<Worker>,
    late_writes: u64,
    /// Steady time, by which leases are measured.
    steady: Timestamp,
}

/// Lists.
pub(super) fn execute(context: &Context, _: &Args) -> Outcome<Option<Listing>> {
    let Some(host) = context.read_if_present()? else {
        return Ok(None);
    };
    listing(&host).map(Some)
}

fn listing(host: &Host) -> Outcome<Listing> {
    let store = host.store();
    Ok(Listing {
        queues: store.queues()?,
        workers: at_work(host)?,
        late_writes: store.late_writes()?,
        steady: host.steady_now()?,
    })
}

impl Listing {
    fn doubted_for(&self, queue: &QueueState) -> Option<DurationMs> {
        queue.doubted_since.map(|since| self.steady.since(since))
    }
}

fn count(queue: &QueueState, stage: Stage) -> u64 {
    let found = queue.counts.iter().find(|(counted, _)| *counted == stage);
    found.map_or(0, |(_, count)| *count)
}

impl Report for Option<Listing> {
    fn json(&self) -> Value {
        let Some(listing) = self else {
            return json!({"queues": [], "workers": [], "late_writes": 0});
        };
        let queue = |queue: &QueueState| {
            json!({
                "queue": queue.setup.name,
                "paused": queue.setup.paused_at.is_some(),
                "note": queue.setup.note,
                "limit": queue.setup.limit,
                "ready": count(queue, Stage::Ready),
                "later": count(queue, Stage::Later),
                "waiting": count(queue, Stage::Waiting),
                "held": count(queue, Stage::Active),
                "doubted": count(queue, Stage::Doubted),
                "ready_since": queue.ready_since.map(|at| at.to_rfc3339()),
                "doubted_for_ms": listing.doubted_for(queue).map(DurationMs::as_ms),
            })
        };
        let worker = |worker: &Worker| {
            json!({
                "worker": worker.holder,
                "name": worker.name,
                "host": worker.place.host,
                "pid": worker.identity.pid,
                "slots": worker.slots,
                "queues": worker.queues,
                "started_at": worker.started_at.to_rfc3339(),
                "silent_ms": listing.steady.since(worker.heartbeat_at).as_ms(),
            })
        };
        json!({
            "queues": listing.queues.iter().map(queue).collect::<Vec<_>>(),
            "workers": listing.workers.iter().map(worker).collect::<Vec<_>>(),
            "late_writes": listing.late_writes,
        })
    }

    fn text(&self, page: &Page) -> Text {
        let Some(listing) = self.as_ref().filter(|listing| !listing.queues.is_empty()) else {
            return Text::of("Nothing is queued. `runwarden submit -- PROGRAM` queues something.");
        };
        let mut table = Table::new(&[
            Column::kept("QUEUE"),
            Column::kept("READY"),
            Column::expendable("LATER", 3),
            Column::expendable("WAITING", 4),
            Column::kept("HELD"),
            Column::kept("DOUBTED"),
            Column::expendable("OLDEST READY", 5),
            Column::expendable("", 2),
        ]);
        for queue in &listing.queues {
            let number = |stage| Text::of(count(queue, stage).to_string());
            let limit = queue
                .setup
                .limit
                .map(|limit| format!(" of {limit}"))
                .unwrap_or_default();
            let doubted = match (count(queue, Stage::Doubted), listing.doubted_for(queue)) {
                (0, _) | (_, None) => number(Stage::Doubted),
                (many, Some(long)) => Text::styled(Style::Bad, format!("{many} for {}", span(long))),
            };
            let oldest = queue
                .ready_since
                .map(|since| between(since, page.now))
                .unwrap_or_default();
            let state = match (&queue.setup.paused_at, &queue.setup.note) {
                (None, _) => Text::new(),
                (Some(_), None) => Text::styled(Style::Notice, "paused"),
                (Some(_), Some(note)) => Text::styled(Style::Notice, format!("paused: {note}")),
            };
            table.row(vec![
                Text::styled(Style::Strong, &queue.setup.name),
                number(Stage::Ready),
                number(Stage::Later),
                number(Stage::Waiting),
                Text::of(format!("{}{limit}", count(queue, Stage::Active))),
                doubted,
                Text::of(oldest),
                state,
            ]);
        }
        let mut text = table.text(page);
        text.line(Text::new());
        for line in workers(listing, page) {
            text.line(line);
        }
        text
    }
}

/// Who is at work.
fn workers(listing: &Listing, page: &Page) -> Vec<Text> {
    if listing.workers.is_empty() {
        return vec![Text::styled(
            Style::Notice,
            "No worker is at work: `runwarden worker` runs what is ready.",
        )];
    }
    let line = |worker: &Worker| {
        let silent = listing.steady.since(worker.heartbeat_at);
        let from = if worker.queues.is_empty() {
            "all queues".to_owned()
        } else {
            worker.queues.join(", ")
        };
        let lead = Text::styled(Style::Strong, format!("{} ", worker.name));
        let words = format!(
            "process {}, {} at once from {from}, heard of {} ago",
            worker.identity.pid,
            worker.slots,
            span(silent)
        );
        Text::hanging(lead, 2, words, page)
    };
    listing.workers.iter().map(line).collect()
}

//! `kill`: stops runs, and says only what was observed.

use runwarden_host::model::{DurationMs, Entity};
use runwarden_host::verbs::{Kill, KillResult, Killed, kill};
use runwarden_host::{GRACE_DEFAULT, Host};
use serde_json::{Value, json};

use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};
use crate::parse;
use crate::select::{SelectorArgs, choose};

/// Stop a run and everything it started; "stopped" is said of what was seen to be gone
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Entities: kind/id, an id, a prefix of one, a name, @, @failed or @self
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
    /// From the first signal to KILL [default: 10s]
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true)]
    grace: Option<DurationMs>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden kill @
  runwarden kill run/7kq2 nightly
  runwarden kill --grace 1m 7kq2

EXIT CODES
  0 all of them are stopped, or had ended before   1 something could not be stopped or confirmed
  2 some are not found or ambiguous: nothing was signalled";

/// What was observed of each; a kill that failed was told as it did, and decides how the command ends.
pub(crate) struct Stopped {
    killed: Vec<Killed>,
    failed: Option<Exit>,
}

/// Resolves every word first; then stops them all side by side, so that each has its grace period and no longer, and one
/// that fails keeps none of the others from being stopped and told.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<impl Report> {
    let host = context.open()?;
    let chosen = choose(&host, &args.references, &SelectorArgs::default(), &Default::default())?;
    if let Some(failure) = chosen.failures.into_iter().next() {
        return Err(failure.cause("nothing was signalled"));
    }
    let asked = Kill {
        grace: args.grace.unwrap_or(GRACE_DEFAULT),
        actor: operator(),
        note: None,
    };
    let outcomes: Vec<Outcome<Killed>> = std::thread::scope(|scope| {
        let stop = |entity| scope.spawn(|| stopped(&host, entity, &asked));
        let stopping: Vec<_> = chosen.entities.into_iter().map(stop).collect();
        let panicked = |_| {
            Err(Failure::new(
                Exit::FAULT,
                "fault",
                "a kill ended in a fault of runwarden",
            ))
        };
        stopping
            .into_iter()
            .map(|one| one.join().unwrap_or_else(panicked))
            .collect()
    });
    let mut report = Stopped {
        killed: Vec::new(),
        failed: None,
    };
    for outcome in outcomes {
        match outcome {
            Ok(killed) => report.killed.push(killed),
            Err(failure) => {
                context.output.complain(&failure);
                report.failed.get_or_insert(failure.exit);
            }
        }
    }
    Ok(report)
}

fn stopped(host: &Host, entity: Entity, asked: &Kill) -> Outcome<Killed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::IO, "system", "cannot wait").cause(error.to_string()))?;
    let reference = entity.reference.to_string();
    let killed = runtime.block_on(kill(host, entity, asked));
    killed.map_err(|error| Failure::from(error).cause(format!("{reference} was not killed")))
}

impl Stopped {
    fn complete(&self) -> bool {
        let done = self
            .killed
            .iter()
            .all(|killed| matches!(killed.result, KillResult::Killed | KillResult::Unchanged));
        done && self.failed.is_none()
    }
}

impl Report for Stopped {
    fn json(&self) -> Value {
        let targets: Vec<Value> = self.killed.iter().map(Killed::json).collect();
        json!({"targets": targets, "complete": self.complete()})
    }

    fn text(&self, _: &Page) -> Text {
        let mut text = Text::new();
        for killed in &self.killed {
            text.line(line(killed));
            for survivor in &killed.survivors {
                let uid = survivor.uid.map_or_else(|| "?".to_owned(), |uid| uid.to_string());
                let words = format!(
                    "pid {} {} state {} uid {uid}",
                    survivor.pid, survivor.comm, survivor.state
                );
                text.line(Text::styled(Style::Bad, "  lives on:").and(" ").and(words));
            }
        }
        text
    }

    fn exit(&self) -> Exit {
        match (self.failed, self.complete()) {
            (Some(exit), _) => exit,
            (None, true) => Exit::DONE,
            (None, false) => Exit::NO,
        }
    }
}

fn line(killed: &Killed) -> Text {
    let style = match killed.result {
        KillResult::Killed | KillResult::Unchanged => Style::Good,
        KillResult::Refused | KillResult::Incomplete => Style::Bad,
    };
    let pid = killed.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    let observed = if killed.stopped { ", nothing of it is left" } else { "" };
    let text = Text::styled(style, killed.result.word()).and(format!(
        " {} {} ({}{pid}{observed})",
        killed.reference, killed.status, killed.signal
    ));
    match &killed.message {
        Some(message) => text.and(format!(": {message}")),
        None => text,
    }
}

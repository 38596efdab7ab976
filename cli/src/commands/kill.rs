//! `kill`: stops runs, and says only what was observed.

use runwarden_host::GRACE_DEFAULT;
use runwarden_host::model::DurationMs;
use runwarden_host::verbs::{Kill, KillResult, Killed, kill};
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

/// What was observed of each.
pub(crate) struct Stopped(Vec<Killed>);

/// Resolves every word first; then stops them all, side by side.
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::IO, "system", "cannot wait").cause(error.to_string()))?;
    let mut killed = Vec::new();
    for entity in chosen.entities {
        killed.push(runtime.block_on(kill(&host, entity, &asked))?);
    }
    Ok(Stopped(killed))
}

impl Stopped {
    fn complete(&self) -> bool {
        self.0
            .iter()
            .all(|killed| matches!(killed.result, KillResult::Killed | KillResult::Unchanged))
    }
}

impl Report for Stopped {
    fn json(&self) -> Value {
        let targets: Vec<Value> = self.0.iter().map(Killed::json).collect();
        json!({"targets": targets, "complete": self.complete()})
    }

    fn text(&self, _: &Page) -> Text {
        let mut text = Text::new();
        for killed in &self.0 {
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
        if self.complete() { Exit::DONE } else { Exit::NO }
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

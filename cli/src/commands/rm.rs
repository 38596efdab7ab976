//! `rm`: removes entities with everything linked below them, once all of it is confirmed to be stopped.

use runwarden_host::model::{Bytes, DurationMs};
use runwarden_host::verbs::{ClearResult, Clearance, Cleared, Clearing, Keep, clear};
use runwarden_host::{GRACE_DEFAULT, Host};
use serde_json::Value;

use crate::context::{Context, operator, precious};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text, size};
use crate::parse;
use crate::select::{SelectorArgs, choose};

/// Remove entities with what is linked below them, once all of it is seen to be stopped
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Entities: kind/id, an id, a prefix of one, a name, @, @failed or @self
    #[arg(value_name = "REF")]
    references: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    /// Keep the entities; their directories go
    #[arg(long, help_heading = "How")]
    keep_record: bool,
    /// From the first signal to KILL, for what has to be stopped [default: 10s]
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true, help_heading = "How")]
    grace: Option<DurationMs>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden rm 7kq2
  runwarden rm play/opening-night --grace 1m
  runwarden rm --failed --tag batch=7 --keep-record

With an entity go its run directory, the directories it was given with `run --own-dir`, and everything linked below it.
Its history stays until retention: `runwarden history REF` still answers, and its id is never used again.

EXIT CODES
  0 all of it is gone   1 something could not be stopped, confirmed or removed: it has its row still, try again
  2 some are not found or ambiguous: nothing was done";

/// Resolves every word first; then removes each with what is linked below it.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Clearance> {
    if args.references.is_empty() && args.selectors.is_empty() {
        return Err(Failure::usage("nothing to remove is given").hint("`runwarden rm REF` removes one entity"));
    }
    let host = context.open()?;
    let chosen = choose(&host, &args.references, &args.selectors, &args.selectors.query())?;
    if let Some(failure) = chosen.failures.into_iter().next() {
        return Err(failure.cause("nothing was removed"));
    }
    let asked = Clearing {
        keep: if args.keep_record { Keep::Record } else { Keep::Nothing },
        grace: args.grace.unwrap_or(GRACE_DEFAULT),
        actor: operator(),
        protected: precious(),
    };
    let clearance = cleared(&host, &chosen.entities, &asked)?;
    for (target, error) in &clearance.failures {
        let failure = Failure::new(Exit::IO, "system", format!("{target} was not removed"));
        context
            .output
            .complain(&failure.cause(error.to_string()).caused_by(error));
    }
    Ok(clearance)
}

fn cleared(host: &Host, targets: &[runwarden_host::model::Entity], asked: &Clearing) -> Outcome<Clearance> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::IO, "system", "cannot wait").cause(error.to_string()))?;
    Ok(runtime.block_on(clear(host, targets, asked))?)
}

impl Report for Clearance {
    fn json(&self) -> Value {
        Self::json(self)
    }

    fn text(&self, page: &Page) -> Text {
        let mut text = Text::new();
        for cleared in &self.cleared {
            add(&mut text, cleared, page);
        }
        if text.is_empty() && self.failures.is_empty() {
            return Text::of("Nothing to remove.");
        }
        text
    }

    fn exit(&self) -> Exit {
        match (self.failures.is_empty(), self.is_complete()) {
            (false, _) => Exit::IO,
            (true, true) => Exit::DONE,
            (true, false) => Exit::NO,
        }
    }
}

fn add(text: &mut Text, cleared: &Cleared, page: &Page) {
    let style = match cleared.result {
        ClearResult::Removed | ClearResult::Cleared => Style::Good,
        ClearResult::Shared => Style::Notice,
        ClearResult::Kept => Style::Bad,
    };
    let signal = cleared
        .signal
        .as_deref()
        .map(|signal| format!(", {signal}"))
        .unwrap_or_default();
    let said = cleared
        .message
        .as_deref()
        .map(|message| format!(": {message}"))
        .unwrap_or_default();
    let words = format!("{} ({}{signal}){said}", cleared.reference, cleared.status);
    text.line(Text::hanging(
        Text::styled(style, cleared.result.word()).and(" "),
        2,
        words,
        page,
    ));
    for directory in &cleared.directories {
        text.line(Text::styled(Style::Dim, "  gone:").and(format!(" {}", Bytes(directory.clone()).lossy())));
    }
    if cleared.freed_bytes > 0 {
        text.line(Text::styled(
            Style::Dim,
            format!("  freed: {}", size(cleared.freed_bytes)),
        ));
    }
    for survivor in &cleared.survivors {
        let uid = survivor.uid.map_or_else(|| "?".to_owned(), |uid| uid.to_string());
        let words = format!(
            "pid {} {} state {} uid {uid}",
            survivor.pid, survivor.comm, survivor.state
        );
        text.line(Text::styled(Style::Bad, "  lives on:").and(" ").and(words));
    }
}

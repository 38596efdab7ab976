//! `policy replay`: what a policy that is not in force would have made of what happened.

use runwarden_host::model::Timestamp;
use runwarden_host::verbs::{Replayed, Replaying, Tried, known_kind, replay};
use serde_json::{Value, json};

use super::limits::LimitArgs;
use super::{find, tally};
use crate::context::Context;
use crate::errors::Outcome;
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};
use crate::select::parse_since;

/// Judge recorded history again by another policy
///
/// Every transition of the kind, of entities that ended or were removed too, and every refusal is judged as it was asked
/// for. Where a guard or verdict function was asked, the candidate's is asked the same. What was not recorded is not made
/// up: it is counted as not judged. Nothing is written. Ends with 1 when something would have come out otherwise.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The path of a component, which need not be installed, or NAME@V
    #[arg(value_name = "FILE|NAME@V")]
    candidate: String,
    /// The kind whose history it is [default: the candidate's]
    #[arg(long, value_name = "K", help_heading = "What is judged")]
    kind: Option<String>,
    /// Since: 2h, a date, yesterday, boot, or RFC 3339
    #[arg(long, value_name = "T", value_parser = parse_since, help_heading = "What is judged")]
    since: Option<Timestamp>,
    /// The newest N transitions, and the newest N refusals
    #[arg(long, value_name = "N", help_heading = "What is judged")]
    limit: Option<usize>,
    #[command(flatten)]
    limits: LimitArgs,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy replay ./strict_play.wasm
  runwarden policy replay session@2 --since 2w
  runwarden policy replay ./my_run.wasm --kind run --limit 10000 --json | jq .groups";

/// What it made of it.
pub(crate) struct Told(Replayed);

/// Judges.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Told> {
    let host = context.read()?;
    let raised = args.limits.raised();
    let found = find::candidate(&host, &args.candidate, &raised)?;
    let candidate = match &found {
        find::Found::File(bytes) => Tried::Bytes(bytes, &raised),
        find::Found::Installed(digest) => Tried::Installed(digest),
    };
    let kind = args.kind.as_ref().map(|kind| known_kind(&host, kind)).transpose()?;
    let replaying = Replaying {
        candidate,
        kind,
        since: args.since,
        limit: args.limit,
    };
    Ok(Told(replay(&host, &replaying)?))
}

impl Report for Told {
    fn json(&self) -> Value {
        let replayed = &self.0;
        let pin = &replayed.candidate;
        let mut document = replayed.tally.to_value();
        document["candidate"] = json!({"name": pin.name, "version": pin.version, "digest": pin.digest});
        document["kind"] = json!(replayed.kind);
        document["judged_in_part"] = json!(replayed.in_part);
        document
    }

    fn text(&self, page: &Page) -> Text {
        let replayed = &self.0;
        let label = format!("{}@{}", replayed.candidate.name, replayed.candidate.version);
        let mut text = Text::styled(Style::Strong, label).and(format!(" on the history of {}", replayed.kind));
        text.line(tally::text(&replayed.tally, page));
        if replayed.in_part > 0 {
            let words = format!(
                "{} of them by status, reason and actor alone: what they set and guarded was not recorded",
                replayed.in_part
            );
            text.line(Text::new());
            text.line(Text::hanging(Text::new(), 2, words, page));
        }
        text
    }

    fn exit(&self) -> Exit {
        if self.0.tally.differing() == 0 {
            Exit::DONE
        } else {
            Exit::NO
        }
    }
}

//! `outbox deliver`: sends what is due, by hand.

use runwarden_host::verbs::outbox::{Bounds, Delivered, Extent, deliver};
use serde_json::{Value, json};

use crate::context::Context;
use crate::errors::Outcome;
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};

/// Deliver the notices that are due now, and make the plans that are owed
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// One pass over what is due now; so it does without either
    #[arg(long, conflicts_with = "until_empty")]
    once: bool,
    /// Repeat until nothing is due now; what waits for its next attempt goes on waiting
    #[arg(long)]
    until_empty: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden outbox deliver --once
  runwarden outbox deliver --until-empty --json | jq .delivered

Each notice is sent at least once; its id tells a receiver that it had it. `runwarden serve` does this by itself.

EXIT CODES
  0 whatever was tried was taken   1 something failed: it is tried again, or given up, as `outbox ls` shows";

/// Delivers.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Delivered> {
    debug_assert!(!(args.once && args.until_empty), "the arguments exclude each other");
    let host = context.open()?;
    let extent = if args.until_empty {
        Extent::UntilEmpty
    } else {
        Extent::Once
    };
    Ok(deliver(&host, extent, Bounds::STANDARD)?)
}

impl Report for Delivered {
    fn json(&self) -> Value {
        let problem = |(id, error): &(String, String)| json!({"id": id, "error": error});
        json!({
            "looked_at": self.looked_at,
            "delivered": self.delivered,
            "unacknowledged": self.unacknowledged,
            "retried": self.retried,
            "dead": self.dead,
            "expired": self.expired,
            "postponed": self.postponed,
            "lost": self.lost,
            "planned": self.planned,
            "problems": self.problems.iter().map(problem).collect::<Vec<_>>(),
        })
    }

    fn text(&self, page: &Page) -> Text {
        let mut said = Vec::new();
        for (count, words) in [
            (self.delivered, "delivered"),
            (self.unacknowledged, "sent, to be acknowledged"),
            (self.retried, "to be tried again"),
            (self.dead, "given up"),
            (self.expired, "expired"),
            (self.postponed, "not attempted"),
        ] {
            if count > 0 {
                said.push(format!("{count} {words}"));
            }
        }
        if said.is_empty() {
            return Text::of("Nothing is due.");
        }
        let mut text = Text::own(said.join(", "));
        for (id, error) in &self.problems {
            text.line(Text::hanging(
                Text::styled(Style::Bad, format!("  {id} ")),
                4,
                error.clone(),
                page,
            ));
        }
        text
    }

    fn exit(&self) -> Exit {
        if self.retried + self.dead + self.expired + self.postponed == 0 {
            Exit::DONE
        } else {
            Exit::NO
        }
    }
}

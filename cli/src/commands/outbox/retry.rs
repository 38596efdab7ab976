//! `outbox retry`: another round.

use runwarden_host::model::{DISPATCH_KIND, Entity};
use runwarden_host::store::EntityQuery;
use runwarden_host::verbs::outbox::{Retried, retry};
use serde_json::{Value, json};

use super::ack::rejected;
use super::dispatch_meant;
use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::output::{Page, Report, Style, Text};

/// Ask for another round of notices that were given up, or for the next attempt of waiting ones now
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Dispatches: ids, or prefixes of them
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Every notice that was given up or has expired
    #[arg(long, conflicts_with = "ids")]
    all_dead: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden outbox retry 7kq2m3vxhc
  runwarden outbox retry --all-dead
  runwarden outbox retry --all-dead && runwarden outbox deliver --once

The body stays as it was, and so does the id by which a receiver tells that it had it. Attempts count from zero.
With a service running they go out at once; without one, `runwarden outbox deliver` sends them.";

/// What is due again.
pub(crate) struct Again(Vec<(String, bool)>);

/// Revives them.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Again> {
    if args.ids.is_empty() && !args.all_dead {
        return Err(
            Failure::usage("no dispatch is given").hint("`runwarden outbox ls --status dead_letter` lists the dead")
        );
    }
    let host = context.open()?;
    let mut entities: Vec<Entity> = Vec::new();
    for id in &args.ids {
        entities.push(dispatch_meant(&host, id)?);
    }
    if args.all_dead {
        entities = host.store().list(&EntityQuery {
            kind: Some(DISPATCH_KIND.to_owned()),
            terminal: Some(true),
            success: Some(false),
            ..EntityQuery::default()
        })?;
    }
    let mut again = Vec::new();
    for entity in entities {
        let reference = entity.reference.to_string();
        match retry(&host, &entity, &operator())? {
            Retried::Due(_) => again.push((reference, false)),
            Retried::Sooner(_) => again.push((reference, true)),
            Retried::Rejected(outcome) => return Err(rejected(&reference, &entity.status, outcome)),
        }
    }
    Ok(Again(again))
}

impl Report for Again {
    fn json(&self) -> Value {
        self.0
            .iter()
            .map(|(reference, sooner)| json!({"ref": reference, "attempts_counted": sooner}))
            .collect()
    }

    fn text(&self, _page: &Page) -> Text {
        let mut text = Text::new();
        for (reference, sooner) in &self.0 {
            let words = if *sooner {
                " is tried next, now"
            } else {
                " is due again"
            };
            text.line(Text::styled(Style::Good, reference).and(words));
        }
        if text.is_empty() {
            return Text::of("Nothing was given up.");
        }
        text
    }
}

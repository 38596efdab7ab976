//! `outbox retry`: another round.

use runwarden_host::model::{DISPATCH_KIND, Entity};
use runwarden_host::store::EntityQuery;
use runwarden_host::verbs::outbox::{Retried, retry};
use serde_json::{Value, json};

use super::ack::rejected;
use super::dispatch_meant;
use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
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
With a service running they go out at once; without one, `runwarden outbox deliver` sends them.

EXIT CODES
  0 all of them are due   4 the deduplication key of one is held by another by now: it stays as it is   5 the policy forbids it";

/// What became of each.
pub(crate) struct Again(Vec<(String, Retried)>);

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
            retried @ (Retried::Due(_) | Retried::Sooner(_)) => again.push((reference, retried)),
            Retried::Held(holder) => {
                let said = format!("{reference} stays as it is: {holder} has its deduplication key by now");
                let hint = format!("`runwarden outbox show {holder}` shows what tells it instead");
                let failure = Failure::new(Exit::CONFLICT, "held", said);
                context.output.complain(&failure.hint(hint));
                again.push((reference, Retried::Held(holder)));
            }
            Retried::Rejected(outcome) => return Err(rejected(&reference, &entity.status, outcome)),
        }
    }
    Ok(Again(again))
}

impl Report for Again {
    fn json(&self) -> Value {
        self.0
            .iter()
            .map(|(reference, retried)| match retried {
                Retried::Held(holder) => json!({"ref": reference, "held_by": holder.to_string()}),
                _ => json!({"ref": reference, "attempts_counted": matches!(retried, Retried::Sooner(_))}),
            })
            .collect()
    }

    fn text(&self, _page: &Page) -> Text {
        let mut text = Text::new();
        if self.0.is_empty() {
            return Text::of("Nothing was given up.");
        }
        for (reference, retried) in &self.0 {
            let words = match retried {
                Retried::Sooner(_) => " is tried next, now",
                Retried::Due(_) => " is due again",
                Retried::Held(_) | Retried::Rejected(_) => continue,
            };
            text.line(Text::styled(Style::Good, reference).and(words));
        }
        text
    }

    fn exit(&self) -> Exit {
        let is_held = |(_, retried): &(String, Retried)| matches!(retried, Retried::Held(_));
        match self.0.iter().any(is_held) {
            true => Exit::CONFLICT,
            false => Exit::DONE,
        }
    }
}

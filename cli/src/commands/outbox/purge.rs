//! `outbox purge`: notices go before retention takes them.

use runwarden_host::verbs::outbox::{Force, PurgeResult, purge};
use serde_json::{Value, json};

use super::dispatch_meant;
use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};

/// Remove notices that ended; what was purged is audited
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Dispatches: ids, or prefixes of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Also those that are still to be delivered
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden outbox purge 7kq2m3vxhc
  runwarden outbox purge --force 7kq2m3vxhc";

/// What came of each.
pub(crate) struct Purged(Vec<(String, PurgeResult)>);

/// Resolves every word first, then removes.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Purged> {
    let host = context.open()?;
    let entities: Vec<_> = args
        .ids
        .iter()
        .map(|id| dispatch_meant(&host, id))
        .collect::<Outcome<_>>()?;
    let force = if args.force { Force::All } else { Force::Ended };
    let mut purged = Vec::new();
    for entity in entities {
        let result = purge(&host, &entity, force, &operator())?;
        if let PurgeResult::Open(status) = &result {
            let failure = Failure::new(
                Exit::NO,
                "open",
                format!("{} is {status}: it is still to be delivered", entity.reference),
            );
            context
                .output
                .complain(&failure.hint("`--force` removes it all the same"));
        }
        purged.push((entity.reference.to_string(), result));
    }
    Ok(Purged(purged))
}

impl Report for Purged {
    fn json(&self) -> Value {
        self.0
            .iter()
            .map(|(reference, result)| json!({"ref": reference, "purged": *result == PurgeResult::Gone}))
            .collect()
    }

    fn text(&self, _page: &Page) -> Text {
        let mut text = Text::new();
        for (reference, _) in self.0.iter().filter(|(_, result)| *result == PurgeResult::Gone) {
            text.line(Text::styled(Style::Good, "purged").and(format!(" {reference}")));
        }
        text
    }

    fn exit(&self) -> Exit {
        if self.0.iter().all(|(_, result)| *result == PurgeResult::Gone) {
            Exit::DONE
        } else {
            Exit::NO
        }
    }
}

//! `runtime release`: that something which ran elsewhere is over.

use runwarden_host::model::Runtime;
use runwarden_host::verbs::{Released, inventory_json, release};
use serde_json::{Value, json};

use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Text};

/// Say that something which ran elsewhere is over
///
/// It counts as stopped from then on, by your word, which is kept in the audit. The entity stays as it is, and so does the
/// resume token. A runtime of this machine that may be alive is refused: `kill` stops it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The runtime's number, as `runtime ls` tells it
    #[arg(value_name = "ID")]
    id: i64,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden runtime release 12
  runwarden history --admin session/7kq2

EXIT CODES
  0 released, or stopped before   1 it is of this machine and may be alive   2 there is no such runtime";

/// The runtime, and whether that is news.
pub(crate) struct Over {
    runtime: Runtime,
    changed: bool,
}

/// Releases.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Over> {
    let host = context.open()?;
    match release(&host, args.id, &operator())? {
        Released::Done(runtime) => Ok(Over {
            runtime: *runtime,
            changed: true,
        }),
        Released::Unchanged(runtime) => Ok(Over {
            runtime: *runtime,
            changed: false,
        }),
        Released::Refused { runtime, why } => Err(Failure::new(
            Exit::NO,
            "not_released",
            format!("runtime {} of {} is of this machine: {why}", runtime.id, runtime.owner),
        )
        .hint(format!("runwarden why {}", runtime.owner))),
        Released::Unknown => Err(
            Failure::new(Exit::UNKNOWN, "not_found", format!("there is no runtime {}", args.id))
                .hint("`runwarden runtime ls` lists what may be running"),
        ),
    }
}

impl Report for Over {
    fn json(&self) -> Value {
        let mut document = inventory_json(&self.runtime);
        document["outcome"] = json!(if self.changed { "released" } else { "unchanged" });
        document
    }

    fn text(&self, _: &Page) -> Text {
        let (id, owner) = (self.runtime.id, &self.runtime.owner);
        Text::of(if self.changed {
            format!("released {id} of {owner}")
        } else {
            format!("unchanged {id} of {owner}: it was stopped before")
        })
    }
}

//! `queue confirm`: an operator's word that nothing of an attempt lives.

use runwarden_host::verbs::lease::{Confirmed, confirm};
use serde_json::{Value, json};

use crate::context::{Context, meant, operator};
use crate::errors::Outcome;
use crate::output::{Page, Report, Text};

/// Say that nothing of an attempt lives whose worker is lost, where that cannot be seen from here; the next one follows
///
/// For a worker on another machine, or one whose processes cannot be looked at. It is audited.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What was held
    #[arg(value_name = "REF")]
    reference: String,
    /// How that is known, in words
    #[arg(long, value_name = "T")]
    note: Option<String>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden queue confirm schedule_run/7kq2m3vxhc --note 'build7 was switched off'

Two copies run if this is said of an attempt that lives. `runwarden why REF` says what is known of it.";

/// What followed.
pub(crate) struct Followed(Confirmed);

/// Takes the word for it.
pub(super) fn execute(context: &Context, args: &Args) -> Outcome<Followed> {
    let host = context.open()?;
    let entity = meant(&host, &args.reference)?;
    Ok(Followed(confirm(&host, entity, (&operator(), args.note.as_deref()))?))
}

impl Report for Followed {
    fn json(&self) -> Value {
        json!({
            "ref": self.0.given_up.to_string(),
            "successor": self.0.successor.as_ref().map(ToString::to_string),
        })
    }

    fn text(&self, _: &Page) -> Text {
        match &self.0.successor {
            Some(successor) => Text::of(format!("{} is given up; {successor} follows", self.0.given_up)),
            None => Text::of(format!("{} is given up; no attempt is left", self.0.given_up)),
        }
    }
}

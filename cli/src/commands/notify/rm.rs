//! `notify rm`: takes a binding away.

use runwarden_host::verbs::unbind;
use serde_json::{Value, json};

use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Text};

/// Take a handler out of the store; what was created before keeps telling it
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden notify rm ops

A handler of a settings file is taken out there; state = \"disabled\" turns one off that is bound here.

EXIT CODES
  0 removed   2 the store has no such binding";

/// What was removed.
pub(crate) struct Removed(String);

/// Removes.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Removed> {
    let host = context.open()?;
    if unbind(&host, &args.name, &operator())? {
        return Ok(Removed(args.name.clone()));
    }
    let message = format!("the store has no binding `{}`", args.name);
    Err(Failure::new(Exit::UNKNOWN, "not_found", message)
        .hint("`runwarden notify ls` lists the handlers, and where each is from"))
}

impl Report for Removed {
    fn json(&self) -> Value {
        json!({"name": self.0, "removed": true})
    }

    fn text(&self, _: &Page) -> Text {
        Text::of(format!("{} is removed", self.0))
    }
}

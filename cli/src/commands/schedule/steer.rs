//! `schedule pause`, `resume` and `rm`.

use runwarden_host::verbs::schedule as verbs;
use serde_json::{Value, json};

use super::words::unknown;
use crate::context::{Context, operator};
use crate::errors::Outcome;
use crate::output::{Page, Report, Style, Text};

/// One schedule.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

/// What was done.
pub(crate) struct Steered {
    name: String,
    state: &'static str,
    changed: bool,
}

/// Pauses it.
pub(crate) fn pause(context: &Context, args: &Args) -> Outcome<Steered> {
    let host = context.create()?;
    let changed = verbs::pause(&host, &args.name, &operator()).map_err(unknown)?;
    Ok(steered(args, "paused", changed))
}

/// Lets it go on.
pub(crate) fn resume(context: &Context, args: &Args) -> Outcome<Steered> {
    let host = context.create()?;
    let changed = verbs::resume(&host, &args.name, &operator()).map_err(unknown)?;
    Ok(steered(args, "going on", changed))
}

/// Takes it away.
pub(crate) fn remove(context: &Context, args: &Args) -> Outcome<Steered> {
    let host = context.create()?;
    verbs::remove(&host, &args.name, &operator()).map_err(unknown)?;
    Ok(steered(args, "removed", true))
}

fn steered(args: &Args, state: &'static str, changed: bool) -> Steered {
    Steered {
        name: args.name.clone(),
        state,
        changed,
    }
}

impl Report for Steered {
    fn json(&self) -> Value {
        json!({"name": self.name, "state": self.state, "changed": self.changed})
    }

    fn text(&self, _: &Page) -> Text {
        let again = if self.changed { "" } else { " already" };
        Text::styled(Style::Strong, &self.name).and(format!(" is {}{again}", self.state))
    }
}

//! `policy rm`: removes a component that nothing needs.

use runwarden_host::model::HANDLER_KIND;
use runwarden_host::store::ComponentRecord;
use runwarden_host::verbs::remove;
use serde_json::{Value, json};

use crate::context::{Context, operator};
use crate::errors::Outcome;
use crate::output::{Page, Report, Style, Text};

/// Remove a policy or handler that nothing needs
///
/// A policy is needed while it is active, judges beside the active one, or an entity is pinned to it; a handler while a binding names it, or something
/// that it is to tell of has not ended or is not yet told.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Its digest, or 8 characters or more of it; or NAME@V
    #[arg(value_name = "DIGEST")]
    digest: String,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy rm 3f7a9c21be04
  runwarden policy rm strict_play@1.1.0
  runwarden policy rm mail@1";

/// What was removed.
pub(crate) struct Removed(ComponentRecord);

/// Removes.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Removed> {
    let host = context.create()?;
    Ok(Removed(remove(&host, &args.digest, &operator())?))
}

impl Report for Removed {
    fn json(&self) -> Value {
        let record = &self.0;
        json!({"kind": record.kind, "name": record.name, "version": record.version, "digest": record.digest, "removed": true})
    }

    fn text(&self, _: &Page) -> Text {
        let record = &self.0;
        let what = if record.kind == HANDLER_KIND {
            "(a handler)".to_owned()
        } else {
            format!("for {}", record.kind)
        };
        let label = format!("{}@{}", record.name, record.version);
        Text::styled(Style::Strong, label).and(format!(" {what} is removed ({})", &record.digest[..12]))
    }
}

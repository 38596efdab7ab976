//! `policy rm`: removes a component that nothing needs.

use runwarden_host::store::ComponentRecord;
use runwarden_host::verbs::remove;
use serde_json::{Value, json};

use crate::context::{Context, operator};
use crate::errors::Outcome;
use crate::output::{Page, Report, Style, Text};

/// Remove a policy that is not active and that no entity is pinned to
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Its digest, or 8 characters or more of it; or NAME@V
    #[arg(value_name = "DIGEST")]
    digest: String,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy rm 3f7a9c21be04
  runwarden policy rm strict_play@1.1.0";

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
        Text::styled(Style::Strong, format!("{}@{}", record.name, record.version)).and(format!(
            " for {} is removed ({})",
            record.kind,
            &record.digest[..12]
        ))
    }
}

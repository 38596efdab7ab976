//! `runtime ls`: what may be running.

use runwarden_host::model::{Reference, Runtime};
use runwarden_host::verbs::inventory_json;
use serde_json::Value;

use super::super::entity::settled;
use super::elsewhere;
use crate::context::{Context, meant};
use crate::errors::Outcome;
use crate::output::{Column, Page, Report, Style, Table, Text, ago};

/// List what may be running, or every runtime that an entity had
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The entity whose runtimes are listed, stopped ones too [default: whatever is not stopped]
    #[arg(value_name = "REF")]
    reference: Option<String>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden runtime ls
  runwarden runtime ls session/7kq2
  runwarden runtime ls --json | jq -r '.[] | select(.kind != \"local\") | .id'";

/// Runtimes, oldest first.
pub(crate) struct Listing(Vec<Runtime>);

/// Lists, after the ends that wait were recorded.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Listing> {
    let owner = |host, word: &String| -> Outcome<Vec<Reference>> { Ok(vec![meant(host, word)?.reference]) };
    let host = match &args.reference {
        Some(_) => Some(context.read()?),
        None => context.read_if_present()?,
    };
    let Some(host) = host else {
        return Ok(Listing(Vec::new()));
    };
    let owners = args.reference.as_ref().map(|word| owner(&host, word)).transpose()?;
    for runtime in host.store().runtimes(owners.as_deref())? {
        if let Some(entity) = host.store().load(&runtime.owner.id)? {
            settled(context, &host, entity)?;
        }
    }
    Ok(Listing(host.store().runtimes(owners.as_deref())?))
}

impl Report for Listing {
    fn json(&self) -> Value {
        self.0.iter().map(inventory_json).collect()
    }

    fn text(&self, page: &Page) -> Text {
        if self.0.is_empty() {
            return Text::of("Nothing is running as far as the inventory knows.");
        }
        let mut table = Table::new(&[
            Column::kept("ID"),
            Column::kept("REFERENCE"),
            Column::kept("STATE"),
            Column::expendable("WHERE", 1).cut_to(12),
            Column::expendable("AGE", 2),
        ]);
        for runtime in &self.0 {
            let pid = || runtime.worker.as_ref().map(|worker| format!("pid {}", worker.pid));
            let place = elsewhere(&inventory_json(runtime)).or_else(pid);
            let state = if runtime.stop_unconfirmed {
                Text::styled(Style::Bad, format!("{}, stop unconfirmed", runtime.state.word()))
            } else {
                Text::of(runtime.state.word())
            };
            table.row(vec![
                Text::of(runtime.id.to_string()),
                Text::styled(Style::Strong, runtime.owner.to_string()),
                state,
                Text::of(place.unwrap_or_default()),
                Text::styled(Style::Dim, ago(runtime.created_at, page)),
            ]);
        }
        table.text(page)
    }
}

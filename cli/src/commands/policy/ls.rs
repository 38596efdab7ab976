//! `policy ls`: what is installed.

use runwarden_host::store::ComponentRecord;
use runwarden_host::verbs::in_use;
use serde_json::{Value, json};

use super::limits::raised_words;
use crate::context::Context;
use crate::errors::Outcome;
use crate::output::{Column, Page, Report, Style, Table, Text};

/// List installed policies and handlers, and what is in use
///
/// A policy is in use by the entities that are pinned to it; a handler by bindings, and by entities and events that are
/// still to be told through it. What is active or in use is not removed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy ls
  runwarden policy ls --json | jq -r '.[] | select(.active) | .kind'";

/// Installed policies, by kind and version, `in_use` as a removal counts it, and the digests of those that judge beside
/// others.
pub(crate) struct Listing(Vec<ComponentRecord>, Vec<String>);

/// Lists.
pub(crate) fn execute(context: &Context) -> Outcome<Listing> {
    let host = context.read_or_create()?;
    let mut components = host.store().components()?;
    for record in &mut components {
        record.in_use = in_use(&host, record)?;
    }
    components.sort_by(|a, b| (&a.kind, &a.name, &a.version).cmp(&(&b.kind, &b.name, &b.version)));
    let shadows = host.store().shadows()?;
    Ok(Listing(
        components,
        shadows.into_iter().map(|shadow| shadow.digest).collect(),
    ))
}

impl Report for Listing {
    fn json(&self) -> Value {
        let entry = |record: &ComponentRecord| {
            json!({
                "kind": record.kind,
                "name": record.name,
                "version": record.version,
                "digest": record.digest,
                "active": record.active,
                "shadow": self.1.contains(&record.digest),
                "in_use": record.in_use,
                "installed_at": record.installed_at.to_rfc3339(),
                "source": record.source,
                "raised": record.raised,
            })
        };
        self.0.iter().map(entry).collect()
    }

    fn text(&self, page: &Page) -> Text {
        let mut columns = vec![
            Column::kept("KIND"),
            Column::kept("POLICY"),
            Column::kept("ACTIVE"),
            Column::expendable("IN USE", 1),
            Column::expendable("SOURCE", 3),
            Column::expendable("DIGEST", 2),
        ];
        let some_raised = self.0.iter().any(|record| !record.raised.is_empty());
        if some_raised {
            columns.push(Column::expendable("RAISED LIMITS", 4));
        }
        let mut table = Table::new(&columns);
        for record in &self.0 {
            let mut row = vec![
                Text::styled(Style::Strong, &record.kind),
                Text::of(format!("{}@{}", record.name, record.version)),
                if record.active {
                    Text::styled(Style::Good, "yes")
                } else if self.1.contains(&record.digest) {
                    Text::styled(Style::Notice, "shadow")
                } else {
                    Text::of("")
                },
                Text::of(record.in_use.to_string()),
                Text::of(&record.source),
                Text::styled(Style::Dim, &record.digest[..record.digest.len().min(12)]),
            ];
            if some_raised {
                row.push(Text::of(raised_words(&record.raised)));
            }
            table.row(row);
        }
        table.text(page)
    }
}

//! `policy ls`: what is installed.

use runwarden_host::verbs::{Held, installed};
use serde_json::{Value, json};

use super::find::Signer;
use super::limits::raised_words;
use crate::context::Context;
use crate::errors::Outcome;
use crate::output::{Column, Page, Report, Style, Table, Text};

/// List installed policies and handlers, and what is in use
///
/// A policy is in use by the entities that are pinned to it, those that live and those that have ended; a handler by
/// bindings, and by entities and events that are still to be told through it. What is active or in use is not removed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy ls
  runwarden policy ls --json | jq -r '.[] | select(.active) | .kind'";

/// Installed policies and handlers, by kind and version, each with who signed it; and the digests of those that judge
/// beside others.
pub(crate) struct Listing(Vec<(Held, Vec<Signer>)>, Vec<String>);

/// Lists.
pub(crate) fn execute(context: &Context) -> Outcome<Listing> {
    let host = context.read_or_create()?;
    let mut installed = installed(&host)?;
    installed.sort_by(|a, b| {
        let key = |held: &Held| {
            (
                held.record.kind.clone(),
                held.record.name.clone(),
                held.record.version.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    let signers = Signer::all(&host)?;
    let listed = installed.into_iter().map(|held| {
        let its = signers.iter().filter(|(digest, _)| *digest == held.record.digest);
        let its = its.map(|(_, signer)| signer.clone()).collect();
        (held, its)
    });
    let shadows = host.store().shadows()?.into_iter();
    Ok(Listing(listed.collect(), shadows.map(|shadow| shadow.digest).collect()))
}

impl Report for Listing {
    fn json(&self) -> Value {
        let entry = |(held, signers): &(Held, Vec<Signer>)| {
            let record = &held.record;
            json!({
                "kind": record.kind,
                "name": record.name,
                "version": record.version,
                "digest": record.digest,
                "active": record.active,
                "shadow": self.1.contains(&record.digest),
                "in_use": record.in_use,
                "live": held.live,
                "ended": held.live.map(|live| record.in_use - live),
                "signed_by": signers.iter().map(Signer::json).collect::<Vec<_>>(),
                "installed_at": record.installed_at.to_rfc3339(),
                "source": record.source,
                "raised": record.raised,
            })
        };
        self.0.iter().map(entry).collect()
    }

    fn text(&self, page: &Page) -> Text {
        let is_any_signed = self.0.iter().any(|(_, signers)| !signers.is_empty());
        let is_any_raised = self.0.iter().any(|(held, _)| !held.record.raised.is_empty());
        let mut columns = vec![
            Column::kept("KIND"),
            Column::kept("POLICY"),
            Column::kept("ACTIVE"),
            Column::expendable("IN USE", 1),
            Column::expendable("SOURCE", 4),
            Column::expendable("DIGEST", 2),
        ];
        if is_any_signed {
            columns.push(Column::expendable("SIGNED BY", 3));
        }
        if is_any_raised {
            columns.push(Column::expendable("RAISED LIMITS", 5));
        }
        let mut table = Table::new(&columns);
        for (held, signers) in &self.0 {
            let record = &held.record;
            let signers: Vec<String> = signers.iter().map(Signer::words).collect();
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
                Text::of(in_use(held)),
                Text::of(&record.source),
                Text::styled(Style::Dim, &record.digest[..record.digest.len().min(12)]),
            ];
            if is_any_signed {
                row.push(Text::of(signers.join(", ")));
            }
            if is_any_raised {
                row.push(Text::of(raised_words(&record.raised)));
            }
            table.row(row);
        }
        table.text(page)
    }
}

/// How much needs it, entities that live apart from those that have ended.
fn in_use(held: &Held) -> String {
    let all = held.record.in_use;
    match held.live {
        None | Some(0) if all == 0 => String::new(),
        None => all.to_string(),
        Some(live) if live == all => format!("{live} live"),
        Some(0) => format!("{all} ended"),
        Some(live) => format!("{live} live, {} ended", all - live),
    }
}

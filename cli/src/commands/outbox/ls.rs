//! `outbox ls`: notices, newest first.

use runwarden_host::model::{DISPATCH_KIND, DestinationHealth, Entity};
use runwarden_host::store::{EntityQuery, Outline};
use serde_json::Value;

use super::{dispatch_json, pause, pause_text, paused, place};
use crate::context::Context;
use crate::errors::Outcome;
use crate::output::{Column, Page, Report, Style, Table, Text, ago, between};

/// How many are listed when nothing is said of it.
const LIMIT: usize = 50;

/// List notices, newest first: where each goes, how far it has come, what is wrong with it
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// With this status; several admit any of them
    #[arg(long = "status", value_name = "S")]
    statuses: Vec<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = LIMIT)]
    limit: usize,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden outbox ls
  runwarden outbox ls --status dead_letter
  runwarden outbox ls --json | jq -r '.[] | select(.last_error) | [.id, .last_error] | @tsv'";

/// Dispatches, newest first.
pub(crate) struct Listing {
    dispatches: Vec<(Entity, Outline)>,
    paused: Vec<DestinationHealth>,
    more: bool,
}

/// Lists.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Listing> {
    let Some(host) = context.read_if_present()? else {
        return Ok(Listing {
            dispatches: Vec::new(),
            paused: Vec::new(),
            more: false,
        });
    };
    let mut entities = host.store().list(&EntityQuery {
        kind: Some(DISPATCH_KIND.to_owned()),
        statuses: args.statuses.clone(),
        limit: Some(args.limit.saturating_add(1)),
        ..EntityQuery::default()
    })?;
    let more = entities.len() > args.limit;
    entities.truncate(args.limit);
    let outlines = host.store().outlines(&entities)?;
    let dispatches = entities.into_iter().zip(outlines);
    Ok(Listing {
        dispatches: dispatches
            .filter_map(|(entity, outline)| Some((entity, outline?)))
            .collect(),
        paused: paused(&host)?,
        more,
    })
}

impl Report for Listing {
    fn json(&self) -> Value {
        self.dispatches
            .iter()
            .map(|(entity, outline)| dispatch_json(entity, outline, pause(&self.paused, entity, outline)))
            .collect()
    }

    fn text(&self, page: &Page) -> Text {
        if self.dispatches.is_empty() {
            return Text::of("No notices. `runwarden notify add NAME --exec 'prog {payload}'` has ends told.");
        }
        let mut table = Table::new(&[
            Column::kept("ID"),
            Column::kept("STATUS"),
            Column::expendable("TO", 1).cut_to(12),
            Column::expendable("TRIES", 3),
            Column::expendable("NEXT", 2),
            Column::expendable("AGE", 4),
            Column::expendable("LAST ERROR", 5).cut_to(16),
        ]);
        for (entity, outline) in &self.dispatches {
            let style = match (entity.terminal, entity.success) {
                (true, true) => Style::Good,
                (true, false) => Style::Bad,
                _ => Style::Notice,
            };
            let next = entity.due_at().map(|due| {
                if pause(&self.paused, entity, outline).is_some() {
                    "paused".to_owned()
                } else if due <= page.now {
                    "now".to_owned()
                } else {
                    format!("in {}", between(page.now, due))
                }
            });
            table.row(vec![
                Text::styled(Style::Strong, &entity.reference.id),
                Text::styled(style, &entity.status),
                Text::of(place(outline)),
                Text::of(entity.structural.attempt.unwrap_or(0).to_string()),
                Text::of(next.unwrap_or_default()),
                Text::styled(Style::Dim, ago(entity.created_at, page)),
                Text::of(entity.field("last_error").as_str().unwrap_or_default()),
            ]);
        }
        let mut text = table.text(page);
        for health in &self.paused {
            let lead = Text::styled(Style::Bad, format!("{} ", health.label));
            text.line(Text::hanging(lead, 4, pause_text(health), page));
        }
        if self.more {
            text.line(Text::styled(Style::Dim, "There are more: --limit N lists them."));
        }
        text
    }
}

//! `notify ls`: the handlers that are told of what is created here.

use runwarden_host::model::NotifySettings;
use runwarden_host::notify::settings::Asked;
use runwarden_host::verbs::notices;
use serde_json::{Value, json};

use super::words::{filter, targets};
use crate::context::Context;
use crate::errors::Outcome;
use crate::notify::{files, warn};
use crate::output::{Column, Page, Report, Style, Table, Text};

/// List the handlers that are told when something created here ends
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

const EXAMPLES: &str = "EXAMPLES
  runwarden notify ls
  runwarden notify ls --json | jq -r '.[].name'

They are those of .runwarden/settings.toml here or above, of the user's settings.toml, and of the store, in this order.";

/// Handlers, by name.
pub(crate) struct Listing(NotifySettings);

/// Lists.
pub(crate) fn execute(context: &Context) -> Outcome<Listing> {
    let host = context.read_or_create()?;
    let settings = notices(&host, &files(), &Asked::Settings)?.settings;
    warn(context, &settings);
    Ok(Listing(settings))
}

impl Report for Listing {
    fn json(&self) -> Value {
        json!(self.0.handlers)
    }

    fn text(&self, page: &Page) -> Text {
        if self.0.handlers.is_empty() {
            return Text::of("Nobody is told. `runwarden notify add --help` shows how to begin.");
        }
        let mut table = Table::new(&[
            Column::kept("NAME"),
            Column::expendable("FROM", 1),
            Column::expendable("COMPONENT", 3),
            Column::expendable("WHEN", 2),
            Column::kept("TO").cut_to(16),
        ]);
        for handler in &self.0.handlers {
            table.row(vec![
                Text::styled(Style::Strong, &handler.name),
                Text::of(handler.layer.word()),
                Text::of(&handler.component),
                Text::of(filter(&handler.filter)),
                Text::of(targets(handler)),
            ]);
        }
        table.text(page)
    }
}

//! `why`: what an entity waits for or is stuck on, or how it ended, and what to type.

use runwarden_host::verbs::{Why, why};
use serde_json::Value;

use crate::context::{Context, own_id};
use crate::errors::Outcome;
use crate::output::{Page, Report, Style, Text};

/// Say what an entity waits for, or how it ended, and what to type
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The entity: kind/id, an id, a prefix of one, a name, @, @failed or @self
    #[arg(value_name = "REF")]
    reference: String,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden why @
  runwarden why @failed
  runwarden why play/release-42
  runwarden why nightly --json | jq -r '.next[0]'";

/// Columns before what is known.
const INDENT: usize = 2;

/// Explains.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Why> {
    let host = context.read()?;
    let told = why(&host, &args.reference, own_id().as_deref())?;
    if told.end_waits {
        context.warn_that_an_end_waits(&told.entity.reference);
    }
    Ok(told)
}

impl Report for Why {
    fn json(&self) -> Value {
        Self::json(self)
    }

    fn text(&self, page: &Page) -> Text {
        let entity = &self.entity;
        let style = Style::of_status(entity.terminal, entity.success);
        let mut text = Text::styled(Style::Strong, entity.reference.to_string())
            .and("  ")
            .and_styled(style, &entity.status);
        text.line(Text::hanging(
            Text::new(),
            0,
            format!("{}.", capital(&self.explanation.headline)),
            page,
        ));
        for fact in &self.explanation.facts {
            let what = Text::of(format!("{:INDENT$}", "")).and_styled(Style::Dim, format!("{}:", fact.what));
            text.line(Text::hanging(what.and(" "), 2 * INDENT, &fact.value, page));
        }
        for (place, command) in self.explanation.next.iter().enumerate() {
            let lead = if place == 0 { "next: " } else { "      " };
            text.line(Text::styled(Style::Strong, lead).and(command));
        }
        text
    }
}

/// The sentence with a capital letter.
fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

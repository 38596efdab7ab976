//! `notify show`: the settings as resolved, and where each value is from.

use std::path::PathBuf;

use runwarden_host::model::{BoundHandler, Layer, NotifySettings};
use runwarden_host::notify::settings::{Asked, Decided};
use runwarden_host::verbs::notices;
use serde_json::{Value, json};

use super::words::{filter, secret, target};
use crate::context::{Context, meant};
use crate::errors::Outcome;
use crate::notify::files;
use crate::output::{Page, Report, Style, Text, span};

/// Show the notify settings as resolved, and which layer each value is from
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Those that an entity keeps since it was created [default: those of here and now]
    #[arg(long = "ref", value_name = "REF")]
    reference: Option<String>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden notify show
  runwarden notify show --ref @
  runwarden notify show --json | jq .diagnostics

Layers, the first that says anything about a handler decides: run, project, global, store. What is malformed is off.";

/// What is shown.
pub(crate) struct Shown {
    settings: NotifySettings,
    decided: Vec<Decided>,
    tags_from: Option<Layer>,
    files: Vec<(Layer, PathBuf)>,
    of: Option<String>,
}

/// Shows.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Shown> {
    if let Some(word) = &args.reference {
        let host = context.read()?;
        let entity = meant(&host, word)?;
        return Ok(Shown {
            settings: NotifySettings::of_stored(&entity.notify).unwrap_or_default(),
            decided: Vec::new(),
            tags_from: None,
            files: Vec::new(),
            of: Some(entity.reference.to_string()),
        });
    }
    let host = context.read_or_create()?;
    let notices = notices(&host, &files(), &Asked::Settings)?;
    Ok(Shown {
        settings: notices.settings,
        decided: notices.decided,
        tags_from: notices.tags_from,
        files: notices.files,
        of: None,
    })
}

impl Shown {
    /// What each layer says of the handlers, by name.
    fn says(&self) -> Value {
        let says = |decided: &Decided| -> Value {
            let says = decided
                .says
                .iter()
                .map(|(layer, word)| (layer.word().to_owned(), json!(word)));
            Value::Object(says.collect())
        };
        let all = self.decided.iter().map(|decided| (decided.name.clone(), says(decided)));
        Value::Object(all.collect())
    }

    /// The handlers that are off, with what each layer says of them.
    fn off(&self) -> Vec<String> {
        let is_on = |decided: &Decided| {
            self.settings
                .handlers
                .iter()
                .any(|handler| handler.name == decided.name)
        };
        let says = |decided: &Decided| {
            let words = decided.says.iter().filter(|(_, word)| *word != "unset");
            let words: Vec<String> = words.map(|(layer, word)| format!("{} {word}", layer.word())).collect();
            format!("{} ({})", decided.name, words.join(", "))
        };
        self.decided
            .iter()
            .filter(|decided| !is_on(decided))
            .map(says)
            .collect()
    }
}

impl Report for Shown {
    fn json(&self) -> Value {
        let mut document = json!({
            "ref": self.of,
            "handlers": self.settings.handlers,
            "metadata_tags": self.settings.metadata_tags,
            "diagnostics": self.settings.diagnostics,
        });
        if self.of.is_none() {
            let files = self
                .files
                .iter()
                .map(|(layer, path)| json!({"layer": layer, "path": path.to_string_lossy()}));
            document["files"] = files.collect();
            document["layers"] = self.says();
            document["metadata_tags_from"] = json!(self.tags_from);
        }
        document
    }

    fn text(&self, page: &Page) -> Text {
        let mut lines = Lines {
            text: Text::new(),
            page,
        };
        for (layer, path) in &self.files {
            lines.add(layer.word(), &path.to_string_lossy());
        }
        if self.settings.handlers.is_empty() {
            lines.text.line(match &self.of {
                Some(reference) => Text::of(format!("Nobody is told of {reference}.")),
                None => Text::of("Nobody is told. `runwarden notify add --help` shows how to begin."),
            });
        }
        for handler in &self.settings.handlers {
            lines.handler(handler);
        }
        lines.add("off", &self.off().join(", "));
        let from = self
            .tags_from
            .map(|layer| format!(" ({})", layer.word()))
            .unwrap_or_default();
        if !self.settings.metadata_tags.is_empty() {
            lines.add("tags", &format!("{}{from}", self.settings.metadata_tags.join(", ")));
        }
        for told in &self.settings.diagnostics {
            let whose = told
                .handler
                .as_ref()
                .map(|name| format!("{name}: "))
                .unwrap_or_default();
            let words = format!("{whose}{} [{}, {}]", told.message, told.code, told.layer.word());
            let heading = Text::styled(Style::Bad, "wrong     ").and(" ");
            lines.text.line(Text::hanging(heading, 11, words, page));
        }
        lines.text
    }
}

/// A name on each line, with what it has.
struct Lines<'a> {
    text: Text,
    page: &'a Page,
}

impl Lines<'_> {
    fn add(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            let heading = Text::styled(Style::Dim, format!("{name:<10}")).and(" ");
            self.text.line(Text::hanging(heading, 11, value, self.page));
        }
    }

    fn handler(&mut self, handler: &BoundHandler) {
        self.text.line(
            Text::styled(Style::Strong, &handler.name)
                .and(format!("  {}  ", handler.component))
                .and_styled(Style::Dim, format!("from {}", handler.layer.word())),
        );
        for (name, destination) in &handler.destinations {
            let time = span(destination.timeout_ms);
            self.add(
                &format!("  {name}"),
                &format!("{}, at most {time}", target(destination)),
            );
            if let runwarden_host::model::Transport::Webhook { secrets, .. } = &destination.transport {
                let secrets: Vec<String> = secrets.iter().map(secret).collect();
                self.add("  signed", &secrets.join(", "));
            }
        }
        self.add("  when", &filter(&handler.filter));
        if !handler.config.is_empty() {
            self.add("  config", &json!(handler.config).to_string());
        }
    }
}

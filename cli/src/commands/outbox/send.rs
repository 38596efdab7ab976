//! `outbox send`: a notice of one's own.

use std::io::Read as _;
use std::path::PathBuf;

use runwarden_host::model::{DurationMs, Entity};
use runwarden_host::verbs::outbox::{Sending, send};
use serde_json::{Value, json};

use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::output::{Page, Report, Style, Text};
use crate::parse;

/// Send a notice to a destination of the settings in force here
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// HANDLER/DESTINATION, or a handler that has one destination
    #[arg(long, value_name = "DESTINATION")]
    to: String,
    /// What is sent: one JSON value
    #[arg(value_name = "JSON", conflicts_with = "file", required_unless_present = "file")]
    body: Option<String>,
    /// The same out of a file; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Ask the receiver to present the token
    #[arg(long)]
    ack: bool,
    /// It is no longer sent after so long
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true)]
    deadline: Option<DurationMs>,
    /// While a notice with this key is neither dead nor expired no other is made
    #[arg(long, value_name = "K")]
    dedup_key: Option<String>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden outbox send --to ops/hook '{\"text\": \"deploy begins\"}'
  runwarden outbox send --to ops --file notice.json --dedup-key deploy-2026-11-30";

/// A notice in the outbox.
pub(crate) struct Enqueued {
    entity: Entity,
    again: bool,
}

/// Puts it there; it is tried at once.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Enqueued> {
    let text = match (&args.body, &args.file) {
        (Some(body), _) => body.clone(),
        (None, Some(file)) => read(file)?,
        (None, None) => return Err(Failure::usage("nothing to send is given")),
    };
    let body: Value = serde_json::from_str(&text).map_err(|error| {
        Failure::usage("what is to be sent is no JSON value")
            .cause(error.to_string())
            .hint("text is JSON between quotes: '\"hello\"'")
    })?;
    let host = context.create()?;
    let settings = crate::notify::in_force(&host)?;
    let sending = Sending {
        to: args.to.clone(),
        body,
        dedup_key: args.dedup_key.clone(),
        deadline: args.deadline,
        wants_acknowledgement: args.ack,
    };
    let (entity, again) = send(&host, &settings, &sending, &operator())?;
    Ok(Enqueued { entity, again })
}

fn read(file: &std::path::Path) -> Outcome<String> {
    let mut text = String::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(file).map(|found| text = found)
    };
    read.map_err(|error| Failure::file("read", file, &error))?;
    Ok(text)
}

impl Report for Enqueued {
    fn json(&self) -> Value {
        json!({"ref": self.entity.reference.to_string(), "id": self.entity.reference.id, "status": self.entity.status,
               "again": self.again})
    }

    fn text(&self, _page: &Page) -> Text {
        Text::styled(Style::Strong, self.entity.reference.to_string())
    }
}

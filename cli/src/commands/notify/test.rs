//! `notify test`: what a handler would send, sending nothing.

use std::path::PathBuf;

use runwarden_host::model::{BoundHandler, NotifySettings, PlannedDispatch};
use runwarden_host::notify::settings::{Asked, Spec};
use runwarden_host::notify::{Outlined, outline};
use runwarden_host::verbs::{newest_event, notices, preview};
use runwarden_host::{Error, Host};
use serde_json::{Value, json};

use super::words::{filter, target};
use crate::context::{Context, meant};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::notify::files;
use crate::output::{Page, Report, Style, Text};

/// Show what a handler would send of an event; nothing is sent
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The handler, by name
    #[arg(value_name = "NAME")]
    name: String,
    /// Of the newest event that this entity made; the handler is as the entity keeps it, if it does
    #[arg(
        long = "ref",
        value_name = "REF",
        required_unless_present = "sample",
        conflicts_with = "sample"
    )]
    reference: Option<String>,
    /// Of the event in this file, as JSON
    #[arg(long, value_name = "FILE")]
    sample: Option<PathBuf>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden notify test ops --ref @
  runwarden notify test ops --sample event.json --json | jq -r '.dispatches[].body'

EXIT CODES
  0 it planned, or its filter does not admit the event   2 no such handler, entity or event   5 the handler failed";

/// What would be sent.
pub(crate) struct Plan {
    handler: BoundHandler,
    is_admitted: bool,
    event_id: String,
    dispatches: Vec<(PlannedDispatch, Outlined)>,
}

/// Plans.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Plan> {
    let host = context.read_or_create()?;
    let (envelope, kept) = match &args.sample {
        Some(path) => (sample(path)?, None),
        None => of_entity(&host, args)?,
    };
    let handler = match kept {
        Some(handler) => handler,
        None => of_here(&host, &args.name)?,
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let is_admitted = handler
        .filter
        .admits(&text(&envelope["entity"]["kind"]), &text(&envelope["status"]));
    let planned = match is_admitted {
        true => preview(&host, &handler, &envelope).map_err(|error| Failure {
            hints: vec![format!(
                "`runwarden policy show {}` shows what it is",
                handler.component
            )],
            ..Failure::from(error)
        })?,
        false => Vec::new(),
    };
    let dispatches = planned.into_iter().filter_map(|planned| {
        let destination = handler.destinations.get(&planned.destination)?;
        let with = outline(destination, planned.wants_acknowledgement);
        Some((planned, with))
    });
    Ok(Plan {
        is_admitted,
        event_id: text(&envelope["event_id"]),
        dispatches: dispatches.collect(),
        handler,
    })
}

/// The newest event of the entity, and the handler as it keeps it.
fn of_entity(host: &Host, args: &Args) -> Outcome<(Value, Option<BoundHandler>)> {
    let entity = meant(host, args.reference.as_deref().unwrap_or("@"))?;
    let Some(envelope) = newest_event(host, &entity)? else {
        let message = format!("{} has made no event", entity.reference);
        return Err(Failure::new(Exit::UNKNOWN, "no_event", message)
            .hint("an event is made when it ends; --sample FILE gives one of your own"));
    };
    let kept = NotifySettings::of_stored(&entity.notify).unwrap_or_default().handlers;
    Ok((envelope, kept.into_iter().find(|handler| handler.name == args.name)))
}

/// The handler of that name here and now.
fn of_here(host: &Host, name: &str) -> Outcome<BoundHandler> {
    let asked = Asked::Told(vec![Spec::Named(name.to_owned())]);
    let off = |error: Error| match error {
        error @ Error::Invalid(_) => Failure {
            exit: Exit::UNKNOWN,
            ..Failure::from(error)
        },
        error => error.into(),
    };
    let settings = notices(host, &files(), &asked).map_err(off)?.settings;
    let found = settings.handlers.into_iter().find(|handler| handler.name == name);
    Ok(found.expect("a handler that was asked for by name is there or an error"))
}

fn sample(path: &std::path::Path) -> Outcome<Value> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::new(Exit::UNUSABLE, "unusable", format!("{} is no JSON", path.display()))
            .cause(error.to_string())
            .hint("`runwarden notify test NAME --ref REF` takes a past event")
    })
}

/// A body as JSON has it: text, or its bytes.
fn body(bytes: &[u8]) -> Value {
    json!(runwarden_host::model::Bytes(bytes.to_vec()))
}

impl Report for Plan {
    fn json(&self) -> Value {
        let dispatch = |(planned, with): &(PlannedDispatch, Outlined)| {
            json!({
                "destination": planned.destination,
                "transport": self.handler.destinations[&planned.destination].transport.word(),
                "target": self.handler.destinations[&planned.destination],
                "headers": with.headers,
                "environment": with.environment,
                "dedup_key": planned.dedup_key,
                "deadline": planned.deadline.map(|at| at.to_rfc3339()),
                "wants_acknowledgement": planned.wants_acknowledgement,
                "body": body(&planned.body),
            })
        };
        json!({
            "handler": self.handler.name,
            "component": self.handler.component,
            "event_id": self.event_id,
            "admitted": self.is_admitted,
            "dispatches": self.dispatches.iter().map(dispatch).collect::<Vec<_>>(),
        })
    }

    fn text(&self, page: &Page) -> Text {
        let name = &self.handler.name;
        if !self.is_admitted {
            let when = filter(&self.handler.filter);
            return Text::of(format!("{name} would not be told: its filter admits {when}"));
        }
        if self.dispatches.is_empty() {
            return Text::of(format!("{name} would send nothing"));
        }
        let mut text = Text::new();
        for (planned, with) in &self.dispatches {
            let destination = &self.handler.destinations[&planned.destination];
            let heading = Text::styled(Style::Strong, &planned.destination).and("  ");
            text.line(Text::hanging(heading, 2, target(destination), page));
            for (header, value) in with.headers.iter().chain(&with.environment) {
                let heading = Text::styled(Style::Dim, format!("  {header}")).and(": ");
                text.line(Text::hanging(heading, 4, value, page));
            }
            text.line(Text::of(String::from_utf8_lossy(&planned.body)));
        }
        text.line(Text::styled(Style::Dim, "Nothing was sent."));
        text
    }
}

//! `outbox show`: one notice, whole.

use runwarden_host::model::{DestinationHealth, Entity, HistoryRow};
use runwarden_host::store::{HistoryQuery, Outline};
use serde_json::{Value, json};

use super::{body, dispatch_json, dispatch_meant, pause, pause_text, paused, place};
use crate::context::Context;
use crate::errors::{Failure, Outcome};
use crate::output::{Page, Report, Style, Text, ago, between};

/// Show one notice: where it goes, its attempts, its body; never its token
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A dispatch: its id, a prefix of it, or dispatch/ID
    #[arg(value_name = "ID")]
    id: String,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden outbox show 7kq2m3vxhc
  runwarden outbox show 7kq2 --json | jq .body";

/// A dispatch with its attempts.
pub(crate) struct Shown {
    entity: Entity,
    outline: Outline,
    pause: Option<DestinationHealth>,
    body: Value,
    history: Vec<HistoryRow>,
}

/// Reads it.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Shown> {
    let host = context.read()?;
    let entity = dispatch_meant(&host, &args.id)?;
    let outlines = host.store().outlines(std::slice::from_ref(&entity))?;
    let dispatch = host.store().dispatch(&entity.reference.id)?;
    let history = host.store().history(&HistoryQuery {
        id: Some(entity.reference.id.clone()),
        ..HistoryQuery::default()
    })?;
    match (outlines.into_iter().next().flatten(), dispatch) {
        (Some(outline), Some(dispatch)) => Ok(Shown {
            pause: pause(&paused(&host)?, &entity, &outline).cloned(),
            entity,
            outline,
            body: body(&dispatch.body),
            history,
        }),
        _ => {
            Err(Failure::usage(format!("{} is no dispatch", entity.reference)).hint("`runwarden outbox ls` lists them"))
        }
    }
}

impl Report for Shown {
    fn json(&self) -> Value {
        let mut document = dispatch_json(&self.entity, &self.outline, self.pause.as_ref());
        document["body"] = self.body.clone();
        document["history"] = self.history.iter().map(row).collect();
        document
    }

    fn text(&self, page: &Page) -> Text {
        let (entity, dispatch) = (&self.entity, &self.outline.dispatch);
        let style = match (entity.terminal, entity.success) {
            (true, true) => Style::Good,
            (true, false) => Style::Bad,
            _ => Style::Notice,
        };
        let mut text = Text::styled(Style::Strong, entity.reference.to_string())
            .and(" ")
            .and_styled(style, &entity.status);
        let mut fact = |name: &str, said: String| {
            let lead = Text::styled(Style::Dim, format!("  {name}: "));
            text.line(Text::hanging(lead, 4, said, page));
        };
        fact("to", format!("{} ({})", place(&self.outline), target(dispatch)));
        if let Some(event) = &dispatch.event_id {
            fact("tells", event.to_string());
        }
        fact("attempts", entity.structural.attempt.unwrap_or(0).to_string());
        if let Some(due) = entity.due_at() {
            let when = if due <= page.now {
                "now".to_owned()
            } else {
                format!("in {}", between(page.now, due))
            };
            fact("next", when);
        }
        if let Some((health, until)) = self.pause.as_ref().and_then(|pause| Some((pause, pause.paused_until?))) {
            let left = between(page.now, until);
            fact("destination", format!("{}; tried again in {left}", pause_text(health)));
        }
        if let Some(error) = entity.field("last_error").as_str() {
            fact("last error", error.to_owned());
        }
        if let Some(deadline) = dispatch.deadline {
            fact("deadline", deadline.to_rfc3339());
        }
        if dispatch.wants_acknowledgement {
            fact("acknowledgement", "wanted".to_owned());
        }
        fact(
            "body",
            self.body.as_str().map_or_else(|| self.body.to_string(), str::to_owned),
        );
        for row in &self.history {
            let said = row.reason.summary.clone().unwrap_or_else(|| row.reason.code.clone());
            let lead = Text::styled(Style::Dim, format!("  {} ", ago(row.at, page)));
            text.line(Text::hanging(lead, 4, format!("{}: {said}", row.status), page));
        }
        text
    }
}

fn row(row: &HistoryRow) -> Value {
    json!({
        "status": row.status,
        "reason": {"code": row.reason.code, "summary": row.reason.summary},
        "at": row.at.to_rfc3339(),
        "version": row.version,
    })
}

/// What its transport reaches.
fn target(dispatch: &runwarden_host::model::Dispatch) -> String {
    use runwarden_host::model::{Source, Transport};
    match &dispatch.target.transport {
        Transport::Exec { argv, .. } => format!("exec {}", argv.join(" ")),
        Transport::File { path } => format!("file {path}"),
        Transport::Webhook { url, .. } => match url {
            Source::Given(url) => format!("webhook {url}"),
            Source::Env(name) => format!("webhook at ${name}"),
            Source::File(path) => format!("webhook at what is in {path}"),
        },
    }
}

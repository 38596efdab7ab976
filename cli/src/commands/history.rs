//! `history`: what happened, oldest first.

use runwarden_host::Host;
use runwarden_host::model::{AdminEvent, HistoryRow, Timestamp};
use runwarden_host::store::{AdminQuery, HistoryQuery};
use runwarden_host::verbs::{admin_json, history_json};
use serde_json::Value;

use super::entity::settled;
use crate::context::{Context, meant};
use crate::errors::Outcome;
use crate::exit::Exit;
use crate::output::{Column, Page, Report, Style, Table, Text, moment};
use crate::select::parse_since;

/// Show what happened, oldest first, of one entity or of all
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The entity [default: all of them]
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Show refusals, overrides, purges and activations instead
    #[arg(long, help_heading = "What is shown")]
    admin: bool,
    /// Since: 2h, a date, yesterday, boot, or RFC 3339
    #[arg(long, value_name = "T", value_parser = parse_since, help_heading = "What is shown")]
    since: Option<Timestamp>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden history @
  runwarden history play/release-42 --json
  runwarden history --since 1h
  runwarden history --admin --since yesterday";

/// What happened.
pub(crate) enum Told {
    /// Transitions, of all entities or of one.
    History(Vec<HistoryRow>, Scope),
    /// Audit rows.
    Admin(Vec<AdminEvent>),
}

/// Whether rows are of one entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Of one.
    One,
    /// Of all.
    All,
}

/// Reads the history.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Told> {
    let host = context.read()?;
    if args.admin {
        let target = args.reference.as_ref().map(|word| audited(&host, word));
        let query = AdminQuery {
            target: target.transpose()?,
            since: args.since,
        };
        return Ok(Told::Admin(host.store().admin_events(&query)?));
    }
    let Some(word) = &args.reference else {
        let query = HistoryQuery {
            since: args.since,
            ..HistoryQuery::default()
        };
        return Ok(Told::History(host.store().history(&query)?, Scope::All));
    };
    let of = |id: &str| -> Outcome<Vec<HistoryRow>> {
        let query = HistoryQuery {
            id: Some(id.to_owned()),
            since: args.since,
            newest: None,
        };
        Ok(host.store().history(&query)?)
    };
    let rows = match meant(&host, word) {
        Ok(entity) => {
            let entity = settled(context, &host, entity)?;
            of(&entity.reference.id)?
        }
        // A removed entity keeps its history, and only its whole id means it.
        Err(failure) if failure.exit == Exit::UNKNOWN => {
            let rows = of(word.rsplit('/').next().unwrap_or(word))?;
            if rows.is_empty() {
                return Err(failure);
            }
            rows
        }
        Err(failure) => return Err(failure),
    };
    Ok(Told::History(rows, Scope::One))
}

/// What audit rows call what a word means: an entity, one that was removed by its whole id, or else the word itself.
fn audited(host: &Host, word: &str) -> Outcome<String> {
    if let Ok(entity) = meant(host, word) {
        return Ok(entity.reference.to_string());
    }
    let query = HistoryQuery {
        id: Some(word.to_owned()),
        newest: Some(1),
        ..HistoryQuery::default()
    };
    let removed = host.store().history(&query)?.into_iter().next();
    Ok(removed.map_or_else(|| word.to_owned(), |row| row.reference.to_string()))
}

impl Report for Told {
    fn json(&self) -> Value {
        match self {
            Self::History(rows, _) => rows.iter().map(history_json).collect(),
            Self::Admin(events) => events.iter().map(admin_json).collect(),
        }
    }

    fn text(&self, page: &Page) -> Text {
        match self {
            Self::History(rows, scope) => history_text(rows, *scope, page),
            Self::Admin(events) => admin_text(events, page),
        }
    }
}

fn history_text(rows: &[HistoryRow], scope: Scope, page: &Page) -> Text {
    if rows.is_empty() {
        return Text::of("Nothing happened.");
    }
    let mut columns = vec![Column::expendable("WHEN", 1)];
    if scope == Scope::All {
        columns.push(Column::kept("REFERENCE"));
    }
    columns.extend([
        Column::kept("STATUS"),
        Column::expendable("REASON", 2),
        Column::expendable("BY", 3),
        Column::expendable("SUMMARY", 4).cut_to(16),
    ]);
    let mut table = Table::new(&columns);
    for row in rows {
        let mut cells = vec![Text::styled(Style::Dim, moment(row.at, page))];
        if scope == Scope::All {
            cells.push(Text::styled(Style::Strong, row.reference.to_string()));
        }
        cells.extend([
            Text::of(&row.status),
            Text::of(&row.reason.code),
            Text::of(row.actor.to_string()),
            Text::of(row.reason.summary.as_deref().unwrap_or_default()),
        ]);
        table.row(cells);
    }
    if table.shows("REASON", page) {
        table.text(page)
    } else {
        stacked(rows, scope, page)
    }
}

/// For a narrow page: when and what on a line, and below it why and by whom.
fn stacked(rows: &[HistoryRow], scope: Scope, page: &Page) -> Text {
    let mut text = Text::new();
    for row in rows {
        let mut first = Text::styled(Style::Dim, moment(row.at, page)).and("  ");
        if scope == Scope::All {
            first = first.and_styled(Style::Strong, row.reference.to_string()).and("  ");
        }
        text.line(first.and(&row.status));
        let why = format!("{} by {}", row.reason.code, row.actor);
        for words in [Some(&why), row.reason.summary.as_ref()].into_iter().flatten() {
            text.line(Text::hanging(Text::of("  "), 2, words, page));
        }
    }
    text
}

fn admin_text(events: &[AdminEvent], page: &Page) -> Text {
    if events.is_empty() {
        return Text::of("Nothing was refused, overridden, purged or activated.");
    }
    let mut table = Table::new(&[
        Column::expendable("WHEN", 1),
        Column::kept("ACTION"),
        Column::expendable("TARGET", 2).cut_to(24),
        Column::expendable("BY", 3),
        Column::expendable("DETAILS", 4).cut_to(20),
    ]);
    for event in events {
        let target = event.target.as_deref().unwrap_or_default();
        let is_digest = target.len() == 64 && target.bytes().all(|byte| byte.is_ascii_hexdigit());
        table.row(vec![
            Text::styled(Style::Dim, moment(event.at, page)),
            Text::styled(Style::Strong, &event.action),
            Text::of(if is_digest { &target[..12] } else { target }),
            Text::of(&event.actor),
            Text::of(in_brief(event).to_string()),
        ]);
    }
    table.text(page)
}

/// The particulars of an audit row without a guard's call, which is for programs.
fn in_brief(event: &AdminEvent) -> Value {
    let mut details = event.details.clone();
    if let Some(members) = details.as_object_mut() {
        members.remove("guarded");
    }
    details
}

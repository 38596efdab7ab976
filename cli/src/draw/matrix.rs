//! What happens for every ordered pair of statuses.

use runwarden_host::model::{Cell, CellResult, Lifecycle};
use serde_json::{Value, json};

use crate::output::{Column, Page, Style, Table, Text};

/// The document of `policy matrix --json`.
pub(crate) fn matrix_json(lifecycle: &Lifecycle, digest: &str) -> Value {
    let descriptor = lifecycle.descriptor();
    let statuses: Vec<&str> = descriptor.statuses.iter().map(|status| status.name.as_str()).collect();
    let cells: Vec<Value> = lifecycle.matrix().iter().map(cell_json).collect();
    json!({
        "kind": descriptor.kind,
        "version": descriptor.version,
        "digest": digest,
        "statuses": statuses,
        "cells": cells,
    })
}

fn cell_json(cell: &Cell<'_>) -> Value {
    let actors = cell.edge.map(|edge| &edge.actors).filter(|actors| !actors.is_empty());
    json!({
        "from": cell.from.name,
        "to": cell.to.name,
        "result": cell.result.word(),
        "terminal_exit": cell.from.terminal && cell.from.name != cell.to.name && cell.result == CellResult::Allowed,
        "actors": actors,
        "required_patch": cell.edge.map(|edge| edge.required_patch.as_slice()).unwrap_or_default(),
        "required_guards": cell.edge.map(|edge| edge.required_guards.as_slice()).unwrap_or_default(),
        "guarded": cell.edge.is_some_and(|edge| edge.guarded),
    })
}

/// The matrix for people: a row for each status left, a numbered column for each entered.
pub(crate) fn matrix_text(lifecycle: &Lifecycle, page: &Page) -> Text {
    let statuses = &lifecycle.descriptor().statuses;
    let width = page.width.map_or(usize::MAX, usize::from);
    let longest = statuses
        .iter()
        .map(|status| status.name.chars().count())
        .max()
        .unwrap_or_default();
    // A number, a name, and three columns for each status.
    if longest + 6 + statuses.len() * 4 > width {
        return as_list(lifecycle, page);
    }
    let headings: Vec<&'static str> = (1..=statuses.len()).map(heading).collect();
    let mut columns = vec![Column::kept(""), Column::kept("FROM \\ TO")];
    columns.extend(headings.into_iter().map(Column::kept));
    let mut table = Table::new(&columns);
    let cells = lifecycle.matrix();
    for (place, (status, row)) in statuses.iter().zip(cells.chunks(statuses.len())).enumerate() {
        let name = Style::of_status(status.terminal, status.success);
        let mut shown = vec![
            Text::styled(Style::Dim, (place + 1).to_string()),
            Text::styled(name, &status.name),
        ];
        shown.extend(row.iter().map(mark));
        table.row(shown);
    }
    let mut text = table.text(page);
    text.line(Text::styled(
        Style::Dim,
        "● allowed   ◐ allowed on conditions   = same status   · rejected",
    ));
    text
}

fn mark(cell: &Cell<'_>) -> Text {
    let conditional = cell.edge.is_some_and(|edge| !super::graph::conditions(edge).is_empty());
    match (cell.result, conditional) {
        (CellResult::Allowed, false) => Text::styled(Style::Good, "●"),
        (CellResult::Allowed, true) => Text::styled(Style::Notice, "◐"),
        (CellResult::SameStatus, _) => Text::of("="),
        (CellResult::Rejected, _) => Text::styled(Style::Dim, "·"),
    }
}

/// The numbers of columns; a matrix wider than this is listed instead.
fn heading(number: usize) -> &'static str {
    const NUMBERS: [&str; 32] = [
        "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20",
        "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32",
    ];
    NUMBERS.get(number - 1).copied().unwrap_or("…")
}

/// For a narrow page: what each status may become.
fn as_list(lifecycle: &Lifecycle, page: &Page) -> Text {
    let mut text = Text::new();
    for line in super::words::edge_lines(lifecycle) {
        text.line(Text::hanging(Text::new(), 2, line, page));
    }
    text
}

//! Every ordered pair of statuses, as the reference system judges it.
//!
//! Two exceptions are relied on: an actor that an edge does not admit is rejected here, and invalid there; and a status
//! is never null here, so the rows that start from null do not apply.

use runwarden_kit::{Descriptor, check};
use serde_json::Value;

use crate::policies;

const ACTORS: &[&str] = &[
    "executor",
    "agent",
    "admin",
    "system",
    "scheduler",
    "operator",
    "webhook",
];

#[test]
fn every_ordered_pair_of_statuses_is_judged_as_recorded() {
    let rows = rows();
    assert_eq!(rows.len(), 358);
    for row in &rows {
        let table = policies::of_reference(text(row, "entity"));
        for actor in actors(row) {
            check_row(&table, row, &actor);
        }
    }
}

#[test]
fn every_ordered_pair_of_statuses_is_recorded() {
    let rows = rows();
    let recorded = |kind: &str, from: &str, to: &str| {
        let pair = [("entity", kind), ("from", from), ("to", to)];
        let is_pair = |row: &Value| pair.iter().all(|(key, value)| row[key] == *value);
        rows.iter().any(is_pair)
    };
    for (_, table) in policies::all() {
        if table.kind == "run" || table.version != "1.0.0" {
            continue; // The reference system has neither.
        }
        for from in &table.statuses {
            for to in &table.statuses {
                assert!(
                    recorded(&table.kind, &from.name, &to.name),
                    "{} {} -> {}",
                    table.kind,
                    from.name,
                    to.name
                );
            }
        }
    }
}

fn rows() -> Vec<Value> {
    let recorded = policies::vectors("transitions.json");
    let rows = recorded["rows"].as_array().expect("there are rows");
    let applies = |row: &&Value| !row["from"].is_null();
    rows.iter().filter(applies).cloned().collect()
}

fn check_row(table: &Descriptor, row: &Value, actor: &str) {
    let (from, to) = (text(row, "from"), text(row, "to"));
    let edge = check::edge_between(table, from, to);
    let admits = edge.is_none_or(|edge| edge.actors.is_empty() || edge.actors.iter().any(|kind| kind == actor));
    for column in ["plain", "full", "override", "full_override"] {
        let expected = if admits { text(row, column) } else { "rejected" };
        let found = judge(table, (from, to), actor, column);
        assert_eq!(found, expected, "{} {from} -> {to} by {actor}, {column}", table.kind);
    }
    let ends = |name: &str| {
        table
            .statuses
            .iter()
            .any(|status| status.name == name && status.terminal)
    };
    for (column, outcome) in [("emits", "full"), ("override_emits", "full_override")] {
        let applied = admits && text(row, outcome) == "applied";
        let emits = applied && table.emits_events && from != to && ends(to);
        assert_eq!(row[column], emits, "{} {from} -> {to}, {column}", table.kind);
    }
}

/// What the table says of one write. A full one brings every required field and an expected version.
fn judge(table: &Descriptor, pair: (&str, &str), actor: &str, column: &str) -> &'static str {
    let complete = column.starts_with("full");
    let overridden = column.ends_with("override");
    let (from, to) = pair;
    let Some(edge) = check::edge_between(table, from, to) else {
        let same = from == to && table.same_status == "append";
        return if same || overridden { "applied" } else { "rejected" };
    };
    if !edge.actors.is_empty() && !edge.actors.iter().any(|kind| kind == actor) {
        return "rejected";
    }
    let requires = !edge.required_patch.is_empty() || !edge.required_guards.is_empty();
    if requires && !complete { "invalid" } else { "applied" }
}

fn actors(row: &Value) -> Vec<String> {
    match &row["actors"] {
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds.map(str::to_owned).collect()
        }
        _ => ACTORS.iter().map(|kind| (*kind).to_owned()).collect(),
    }
}

fn text<'a>(row: &'a Value, column: &str) -> &'a str {
    row[column].as_str().expect("the column is text")
}

//! The graph in words.

use runwarden_host::model::{Lifecycle, Status};

use super::graph::conditions;

/// A line for each status: its name, and what it is.
pub(crate) fn status_lines(lifecycle: &Lifecycle, current: Option<&str>) -> Vec<String> {
    let statuses = &lifecycle.descriptor().statuses;
    let longest = statuses
        .iter()
        .map(|status| status.name.len())
        .max()
        .unwrap_or_default();
    let line = |status: &Status| {
        let present = if Some(status.name.as_str()) == current {
            "*"
        } else {
            " "
        };
        let words = words(status);
        format!("{present} {:<longest$}  {words}", status.name)
            .trim_end()
            .to_owned()
    };
    statuses.iter().map(line).collect()
}

fn words(status: &Status) -> String {
    let marks = [
        (status.initial, "initial"),
        (status.terminal, "terminal"),
        (status.success, "success"),
        (status.announced, "announced"),
    ];
    marks
        .iter()
        .filter(|(has, _)| *has)
        .map(|(_, word)| *word)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A line for each edge; edges of one status that ask nothing share a line.
pub(crate) fn edge_lines(lifecycle: &Lifecycle) -> Vec<String> {
    let descriptor = lifecycle.descriptor();
    let mut lines = Vec::new();
    for status in &descriptor.statuses {
        let edges = descriptor.edges.iter().filter(|edge| edge.from == status.name);
        let (plain, conditional): (Vec<_>, Vec<_>) = edges.partition(|edge| conditions(edge).is_empty());
        if !plain.is_empty() {
            let targets: Vec<&str> = plain.iter().map(|edge| edge.to.as_str()).collect();
            lines.push(format!("{} → {}", status.name, targets.join(" | ")));
        }
        for edge in conditional {
            lines.push(format!("{} → {} ({})", edge.from, edge.to, conditions(edge).join(", ")));
        }
    }
    lines
}

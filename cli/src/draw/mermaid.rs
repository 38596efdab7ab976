//! Mermaid's state diagrams.

use std::fmt::Write as _;

use super::graph::{Graph, Node, Role};
use super::route::numbers;

/// The graph in the language of Mermaid.
pub(crate) fn mermaid(graph: &Graph<'_>) -> String {
    let mut text = format!("---\ntitle: \"{}\"\n---\nstateDiagram-v2\n", words(&graph.label));
    for (place, node) in graph.nodes.iter().enumerate() {
        writeln!(text, "    state \"{}\" as s{place}", words(&named(node))).expect(WRITES);
        if node.status.initial {
            writeln!(text, "    [*] --> s{place}").expect(WRITES);
        }
    }
    for line in &graph.edges {
        let label = line.label();
        let label = if label.is_empty() {
            label
        } else {
            format!(" : {}", words(&label))
        };
        writeln!(text, "    s{} --> s{}{label}", line.from, line.to).expect(WRITES);
    }
    for (place, node) in graph.nodes.iter().enumerate() {
        if node.status.terminal {
            writeln!(text, "    s{place} --> [*]").expect(WRITES);
        }
        let class = match (node.role, node.status.success, node.status.terminal) {
            (Role::Present, ..) => "present",
            (Role::Other, ..) if !node.visits.is_empty() => "visited",
            (Role::Other, true, _) => "success",
            (Role::Other, false, true) => "terminal",
            (Role::Other, false, false) => continue,
        };
        writeln!(text, "    class s{place} {class}").expect(WRITES);
    }
    text.push_str("    classDef success fill:#d9f2d9\n    classDef terminal fill:#eeeeee\n");
    text.push_str("    classDef present fill:#ffe9a8,stroke-width:3px\n");
    if graph.nodes.iter().any(|node| !node.visits.is_empty()) {
        text.push_str("    classDef visited stroke-width:3px\n");
    }
    text
}

/// The name, with the steps at which an entity entered it.
fn named(node: &Node<'_>) -> String {
    match node.visits.as_slice() {
        [] => node.status.name.clone(),
        visits => format!("{} ({})", node.status.name, numbers(visits)),
    }
}

const WRITES: &str = "writing to a string cannot fail";

/// Words that cannot end the quotes or the line they stand in.
fn words(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() || matches!(c, '"' | ';' | ':' | '#' | '\\') {
                ' '
            } else {
                c
            }
        })
        .collect()
}

//! Graphviz.

use std::fmt::Write as _;

use super::graph::{Graph, Node, Role, Sort};
use super::route::numbers;

/// The graph in the language of Graphviz.
pub(crate) fn dot(graph: &Graph<'_>) -> String {
    let mut text = format!("digraph {} {{\n", quoted(&graph.label));
    text.push_str(
        "    rankdir=TB;\n    node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\"];\n",
    );
    text.push_str("    edge [fontname=\"sans-serif\", fontsize=10];\n");
    for (place, node) in graph.nodes.iter().enumerate() {
        writeln!(
            text,
            "    n{place} [label={}{}];",
            quoted(&named(node)),
            attributes(node)
        )
        .expect(WRITES);
        if node.status.initial {
            writeln!(
                text,
                "    start{place} [shape=point, width=0.15, fillcolor=black];\n    start{place} -> n{place};"
            )
            .expect(WRITES);
        }
    }
    for line in &graph.edges {
        let label = line.label();
        let mut attributes = Vec::new();
        if !label.is_empty() {
            attributes.push(format!("label={}", quoted(&label)));
        }
        match line.sort() {
            Sort::Plain => {}
            Sort::Guarded => attributes.push("style=dashed".to_owned()),
            Sort::Restricted => attributes.push("style=dotted".to_owned()),
            Sort::Jump => attributes.push("style=dashed, arrowhead=empty, constraint=false".to_owned()),
        }
        if !line.taken.is_empty() {
            attributes.push("penwidth=3".to_owned());
        }
        let attributes = if attributes.is_empty() {
            String::new()
        } else {
            format!(" [{}]", attributes.join(", "))
        };
        writeln!(text, "    n{} -> n{}{attributes};", line.from, line.to).expect(WRITES);
    }
    text.push_str("}\n");
    text
}

const WRITES: &str = "writing to a string cannot fail";

/// The name, with the steps at which an entity entered it.
fn named(node: &Node<'_>) -> String {
    match node.visits.as_slice() {
        [] => node.status.name.clone(),
        visits => format!("{}\n{}", node.status.name, numbers(visits)),
    }
}

fn attributes(node: &Node<'_>) -> String {
    let mut text = String::new();
    if node.status.terminal {
        text.push_str(", peripheries=2");
    }
    match (node.role, node.status.success, node.status.terminal) {
        (Role::Present, ..) => text.push_str(", fillcolor=\"#ffe9a8\", penwidth=3"),
        (Role::Other, true, _) => text.push_str(", fillcolor=\"#d9f2d9\""),
        (Role::Other, false, true) => text.push_str(", fillcolor=\"#eeeeee\""),
        (Role::Other, false, false) => {}
    }
    text
}

fn quoted(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
    )
}

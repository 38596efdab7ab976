//! What every drawing shows: statuses with what they are, edges with what they ask.

use runwarden_host::model::{Edge, Lifecycle, Status};

/// A policy's graph, with the status that is marked as the present one.
pub(crate) struct Graph<'a> {
    /// `name@version`.
    pub(super) label: String,
    /// The statuses, in declared order.
    pub(super) nodes: Vec<Node<'a>>,
    /// The edges, self-edges left out.
    pub(super) edges: Vec<Line<'a>>,
}

/// A status.
pub(super) struct Node<'a> {
    /// Its declaration.
    pub(super) status: &'a Status,
    /// Whether the entity asked about has it.
    pub(super) role: Role,
}

/// Whether a status is the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It is.
    Present,
    /// It is one of the others.
    Other,
}

/// An edge, by the places of its statuses.
pub(super) struct Line<'a> {
    /// Place of the status left.
    pub(super) from: usize,
    /// Place of the status entered.
    pub(super) to: usize,
    /// Its declaration.
    pub(super) edge: &'a Edge,
}

impl<'a> Graph<'a> {
    /// The graph of a policy.
    pub(crate) fn new(lifecycle: &'a Lifecycle, current: Option<&str>) -> Self {
        let descriptor = lifecycle.descriptor();
        let role = |status: &Status| {
            if Some(status.name.as_str()) == current {
                Role::Present
            } else {
                Role::Other
            }
        };
        let nodes = descriptor
            .statuses
            .iter()
            .map(|status| Node {
                status,
                role: role(status),
            })
            .collect();
        let place = |name: &str| descriptor.statuses.iter().position(|status| status.name == name);
        let edges = descriptor
            .edges
            .iter()
            .filter(|edge| edge.from != edge.to)
            .filter_map(|edge| {
                Some(Line {
                    from: place(&edge.from)?,
                    to: place(&edge.to)?,
                    edge,
                })
            })
            .collect();
        Self {
            label: descriptor.label(),
            nodes,
            edges,
        }
    }
}

impl Graph<'_> {
    /// Whether a layout is found in reasonable time; Graphviz takes what is larger.
    pub(crate) fn is_drawable(&self) -> bool {
        const STATUSES_MAX: usize = 64;
        const EDGES_MAX: usize = 300;
        self.nodes.len() <= STATUSES_MAX && self.edges.len() <= EDGES_MAX
    }
}

impl Line<'_> {
    /// Who or what decides the edge, without the fields it needs; empty when anybody may take it.
    pub(super) fn short_label(&self) -> String {
        let edge = Edge {
            required_patch: Vec::new(),
            required_guards: Vec::new(),
            ..self.edge.clone()
        };
        conditions(&edge).join(", ")
    }

    /// What the edge asks, in a few words; empty when it asks nothing.
    pub(super) fn label(&self) -> String {
        conditions(self.edge).join(", ")
    }
}

/// What an edge asks of a command.
pub(super) fn conditions(edge: &Edge) -> Vec<String> {
    let mut words = Vec::new();
    if edge.guarded {
        words.push("guarded".to_owned());
    }
    if !edge.actors.is_empty() {
        words.push(format!("{} only", edge.actors.join(" or ")));
    }
    if !edge.required_patch.is_empty() {
        words.push(format!("sets {}", edge.required_patch.join(" ")));
    }
    if !edge.required_guards.is_empty() {
        words.push(format!("if {}", edge.required_guards.join(" ")));
    }
    words
}

/// Whether an edge asks more than its declaration's ends.
pub(super) fn is_conditional(edge: &Edge) -> bool {
    edge.guarded || !edge.actors.is_empty()
}

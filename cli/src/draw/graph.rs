//! What every drawing shows: statuses with what they are, edges with what they ask.

use runwarden_host::model::{Edge, Lifecycle, Status};

use super::route::{Route, numbers};

/// A policy's graph, with the way that an entity took through it.
pub(crate) struct Graph<'a> {
    /// `name@version`.
    pub(super) label: String,
    /// The kind.
    pub(super) kind: &'a str,
    /// The statuses, in declared order.
    pub(super) nodes: Vec<Node<'a>>,
    /// The edges, those from a status to itself left out; then the jumps that an entity made where there is none.
    pub(super) edges: Vec<Line<'a>>,
}

/// A status.
pub(super) struct Node<'a> {
    /// Its declaration.
    pub(super) status: &'a Status,
    /// Whether the entity asked about has it.
    pub(super) role: Role,
    /// The steps at which the entity entered it, from 1.
    pub(super) visits: Vec<usize>,
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
#[derive(Clone)]
pub(super) struct Line<'a> {
    /// Place of the status left.
    pub(super) from: usize,
    /// Place of the status entered.
    pub(super) to: usize,
    /// Its declaration; none for a jump.
    pub(super) edge: Option<&'a Edge>,
    /// The jump led from another policy; any other was made by override.
    pub(super) carried: bool,
    /// The steps at which the entity took it.
    pub(super) taken: Vec<usize>,
}

impl<'a> Graph<'a> {
    /// The graph of a policy, with the route of an entity; an empty one marks nothing.
    pub(crate) fn new(lifecycle: &'a Lifecycle, route: &Route) -> Self {
        let descriptor = lifecycle.descriptor();
        let present = route.present();
        let node = |status: &'a Status| Node {
            status,
            role: if Some(status.name.as_str()) == present {
                Role::Present
            } else {
                Role::Other
            },
            visits: route.visits(&status.name),
        };
        let place = |name: &str| descriptor.statuses.iter().position(|status| status.name == name);
        let line = |from: &str, to: &str, edge| {
            Some(Line {
                from: place(from)?,
                to: place(to)?,
                edge,
                carried: false,
                taken: route.taken(from, to),
            })
        };
        let between = descriptor.edges.iter().filter(|edge| edge.from != edge.to);
        let mut edges: Vec<Line<'a>> = between
            .filter_map(|edge| line(&edge.from, &edge.to, Some(edge)))
            .collect();
        for pair in route.steps.windows(2) {
            let jump = line(&pair[0].status, &pair[1].status, None);
            let jump = jump.map(|jump| Line {
                carried: pair[1].carried,
                ..jump
            });
            let is_known = |jump: &Line<'_>| edges.iter().any(|known| (known.from, known.to) == (jump.from, jump.to));
            edges.extend(jump.filter(|jump| !is_known(jump)));
        }
        Self {
            label: descriptor.label(),
            kind: &descriptor.kind,
            nodes: descriptor.statuses.iter().map(node).collect(),
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
    /// What the edge asks, in a few words, with the steps at which it was taken; empty when there is nothing to say.
    pub(super) fn label(&self) -> String {
        let asks = self.edge.map_or_else(|| vec![self.jump().to_owned()], conditions);
        let steps = (!self.taken.is_empty()).then(|| format!("step {}", numbers(&self.taken)));
        steps.into_iter().chain(asks).collect::<Vec<_>>().join(", ")
    }

    /// What a jump is called.
    pub(super) const fn jump(&self) -> &'static str {
        if self.carried { "carried over" } else { "override" }
    }

    /// How it is drawn.
    pub(super) fn sort(&self) -> Sort {
        match self.edge {
            None => Sort::Jump,
            Some(edge) if edge.guarded => Sort::Guarded,
            Some(edge) if !edge.actors.is_empty() => Sort::Restricted,
            Some(_) => Sort::Plain,
        }
    }
}

/// What keeps an edge from being anybody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Nothing.
    Plain,
    /// A guard is asked.
    Guarded,
    /// It is for some actors only.
    Restricted,
    /// It is not declared.
    Jump,
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

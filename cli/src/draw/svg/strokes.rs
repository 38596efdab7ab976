//! Which lines are drawn for the edges of a graph: fewer than there are edges, where that says the same.

use crate::draw::canvas::Pen;
use crate::draw::graph::{Graph, Line, Sort, conditions};
use crate::draw::route::numbers;

/// An edge that leads from every live status is drawn once when there are so many of them.
const LIVE_MIN: usize = 3;

/// A line that is drawn.
pub(super) struct Stroke {
    pub(super) from: End,
    pub(super) to: End,
    pub(super) label: String,
    pub(super) pen: Pen,
}

/// Where a line ends.
pub(super) enum End {
    /// At a status, by its place.
    Status(usize),
    /// At the box that stands for every live status.
    Any,
}

/// The lines of a graph. Edges that ask nothing are drawn as one with the edge that leads back, and those that lead to an end
/// from every live status as one from a box that stands for all of these. What an entity took is always a line of its own.
pub(super) fn strokes(graph: &Graph<'_>) -> Vec<Stroke> {
    let common = common_ends(graph);
    let mut strokes = Vec::new();
    for (place, line) in graph.edges.iter().enumerate() {
        let back = graph
            .edges
            .iter()
            .position(|back| (back.from, back.to) == (line.to, line.from));
        let joined = back.filter(|back| is_free(line) && is_free(&graph.edges[*back]));
        let is_common = is_free(line) && common.contains(&line.to) && !graph.nodes[line.from].status.terminal;
        if is_common || joined.is_some_and(|back| back < place) {
            continue;
        }
        strokes.push(Stroke {
            from: End::Status(line.from),
            to: End::Status(line.to),
            label: short_label(line),
            pen: Pen {
                class: class(line),
                both_ways: joined.is_some(),
                aside: back.is_some() && joined.is_none(),
            },
        });
    }
    strokes.extend(common.into_iter().map(|to| Stroke {
        from: End::Any,
        to: End::Status(to),
        label: String::new(),
        pen: Pen {
            class: "edge".to_owned(),
            ..Pen::default()
        },
    }));
    strokes
}

/// Whether it asks nothing of anybody, and no entity is shown to have taken it.
fn is_free(line: &Line<'_>) -> bool {
    line.taken.is_empty() && line.edge.is_some_and(|edge| conditions(edge).is_empty())
}

/// Ends that are reached from every live status without conditions.
fn common_ends(graph: &Graph<'_>) -> Vec<usize> {
    let is_live = |place: &usize| !graph.nodes[*place].status.terminal;
    let live: Vec<usize> = (0..graph.nodes.len()).filter(is_live).collect();
    if live.len() < LIVE_MIN {
        return Vec::new();
    }
    let asks_nothing = |line: &&Line<'_>| line.edge.is_some_and(|edge| conditions(edge).is_empty());
    let leads = |from: usize, to: usize| {
        graph
            .edges
            .iter()
            .filter(asks_nothing)
            .any(|line| (line.from, line.to) == (from, to))
    };
    let ends = (0..graph.nodes.len()).filter(|place| !is_live(place));
    ends.filter(|end| live.iter().all(|from| leads(*from, *end))).collect()
}

fn class(line: &Line<'_>) -> String {
    let sort = match line.sort() {
        Sort::Plain => "edge",
        Sort::Guarded => "edge guarded",
        Sort::Restricted => "edge restricted",
        Sort::Jump => "edge jump",
    };
    if line.taken.is_empty() {
        sort.to_owned()
    } else {
        format!("{sort} taken")
    }
}

/// Who or what decides the edge, without the fields it needs, and the steps at which it was taken.
fn short_label(line: &Line<'_>) -> String {
    let steps = (!line.taken.is_empty()).then(|| numbers(&line.taken));
    let guarded = line.edge.is_some_and(|edge| edge.guarded).then(|| "guarded".to_owned());
    let actors = line.edge.filter(|edge| !edge.actors.is_empty());
    let actors = actors.map(|edge| format!("{} only", edge.actors.join(" or ")));
    let jump = line.edge.is_none().then(|| line.jump().to_owned());
    let words = [steps, guarded, actors, jump];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

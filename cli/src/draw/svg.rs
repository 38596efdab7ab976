//! A drawing that every browser shows, on a light page and on a dark one, and that a printer without colours prints.

mod strokes;
#[cfg(test)]
mod tests;

use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::geometry::Point;
use layout::core::style::{LineStyleKind, StyleAttr};
use layout::std_shapes::shapes::{Arrow, Element, LineEndKind, ShapeKind};
use layout::topo::layout::VisualGraph;

use super::canvas::{Box, Canvas};
use super::graph::{Graph, Node, Role};
use super::route::numbers;
use strokes::{End, Stroke, strokes};

const FONT_SIZE: usize = 14;
const LABEL_FONT_SIZE: usize = 11;
const CHARACTER_WIDTH: f64 = 9.0;
const NODE_HEIGHT: f64 = 34.0;
const UNTANGLED_EDGES_MAX: usize = 80;

/// Stands for every status that is no end, where an edge leads from each of them.
const ANY: &str = "any live status";

/// The graph as SVG, with its title and a legend of the marks that are in it.
pub(crate) fn svg(graph: &Graph<'_>) -> String {
    let strokes = strokes(graph);
    let mut boxes: Vec<Box> = graph.nodes.iter().map(shown).collect();
    if strokes.iter().any(|stroke| matches!(stroke.from, End::Any)) {
        boxes.push(Box {
            class: "status any".to_owned(),
            ..Box::default()
        });
    }
    let mut visual = VisualGraph::new(Orientation::TopToBottom);
    let marks = |place: usize| if boxes[place].success { 58.0 } else { 36.0 };
    let names = graph.nodes.iter().map(|node| node.status.name.as_str()).chain([ANY]);
    let handles: Vec<_> = (0..)
        .zip(names.take(boxes.len()))
        .map(|(place, name)| visual.add_node(element(place, name, marks(place))))
        .collect();
    for (place, stroke) in strokes.iter().enumerate() {
        let end = |end: &End| match end {
            End::Status(place) => handles[*place],
            End::Any => handles[graph.nodes.len()],
        };
        visual.add_edge(arrow(place, stroke), end(&stroke.from), end(&stroke.to));
    }
    // Untangling crossings takes longer than anybody waits once there are many.
    let disable_optimisation = strokes.len() > UNTANGLED_EDGES_MAX;
    let pens = strokes.into_iter().map(|stroke| stroke.pen).collect();
    let mut canvas = Canvas::new(boxes, pens);
    let (debug, disable_layout) = (false, false);
    visual.do_it(debug, disable_optimisation, disable_layout, &mut canvas);
    canvas.finished(&graph.label, graph.kind)
}

/// How a status is shown.
fn shown(node: &Node<'_>) -> Box {
    let status = node.status;
    let classes = [
        (status.initial, "initial"),
        (status.terminal, "terminal"),
        (status.success, "success"),
        (!node.visits.is_empty(), "visited"),
        (node.role == Role::Present, "present"),
    ];
    let classes = classes.iter().filter(|(is, _)| *is).map(|(_, class)| *class);
    let present = if node.role == Role::Present { " now" } else { "" };
    Box {
        class: std::iter::once("status").chain(classes).collect::<Vec<_>>().join(" "),
        initial: status.initial,
        terminal: status.terminal,
        success: status.success,
        badge: (!node.visits.is_empty()).then(|| format!("{}{present}", numbers(&node.visits))),
    }
}

/// A box of the layout's; the canvas knows by its number how it looks.
fn element(place: usize, name: &str, marks: f64) -> Element {
    let characters = u32::try_from(name.chars().count()).unwrap_or(u32::MAX);
    let size = Point::new(f64::from(characters) * CHARACTER_WIDTH + marks, NODE_HEIGHT);
    let (shape, number) = (ShapeKind::new_box(name), place.to_string());
    Element::create_with_properties(shape, look(FONT_SIZE), Orientation::TopToBottom, size, number)
}

/// A line of the layout's, likewise.
fn arrow(place: usize, stroke: &Stroke) -> Arrow {
    let head = |is: bool| if is { LineEndKind::Arrow } else { LineEndKind::None };
    Arrow::with_properties(
        head(stroke.pen.both_ways),
        LineEndKind::Arrow,
        LineStyleKind::Normal,
        &stroke.label,
        &look(LABEL_FONT_SIZE),
        place.to_string(),
        &None,
        &None,
    )
}

/// What the layout wants to know; the canvas asks its style sheet instead.
fn look(font_size: usize) -> StyleAttr {
    StyleAttr::new(Color::fast("black"), 1, None, 8, font_size)
}

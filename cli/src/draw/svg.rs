//! A drawing that every browser shows, on a light page and on a dark one.

use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::geometry::Point;
use layout::core::style::{LineStyleKind, StyleAttr};
use layout::std_shapes::shapes::{Arrow, Element, LineEndKind, ShapeKind};
use layout::topo::layout::VisualGraph;

use super::canvas::Canvas;
use super::graph::{Graph, Line, Node, Role, is_conditional};

const FONT_SIZE: usize = 14;
const LABEL_FONT_SIZE: usize = 11;
const CHARACTER_WIDTH: f64 = 9.0;
const NODE_HEIGHT: f64 = 34.0;
const UNTANGLED_EDGES_MAX: usize = 80;

/// The graph as SVG: initial statuses have a thick border, terminal ones are grey, successes green, the present one
/// yellow; dashed edges are guarded or for some actors only.
pub(crate) fn svg(graph: &Graph<'_>) -> String {
    let mut visual = VisualGraph::new(Orientation::TopToBottom);
    let handles: Vec<_> = graph.nodes.iter().map(|node| visual.add_node(element(node))).collect();
    for line in &graph.edges {
        visual.add_edge(arrow(line), handles[line.from], handles[line.to]);
    }
    let mut canvas = Canvas::new(LABEL_FONT_SIZE);
    // Untangling crossings takes longer than anybody waits once there are many.
    let disable_optimisation = graph.edges.len() > UNTANGLED_EDGES_MAX;
    let (debug, disable_layout) = (false, false);
    visual.do_it(debug, disable_optimisation, disable_layout, &mut canvas);
    canvas.finished(&graph.label)
}

/// What a node is, for the style sheet; how it looks is said there alone.
fn element(node: &Node<'_>) -> Element {
    let name = &node.status.name;
    let characters = u32::try_from(name.chars().count()).unwrap_or(u32::MAX);
    let size = Point::new(f64::from(characters) * CHARACTER_WIDTH + 24.0, NODE_HEIGHT);
    let status = node.status;
    let classes = [
        (status.initial, "initial"),
        (status.terminal, "terminal"),
        (status.success, "success"),
        (node.role == Role::Present, "present"),
    ];
    let classes = classes.iter().filter(|(is, _)| *is).map(|(_, class)| *class);
    let properties = std::iter::once("status").chain(classes).collect::<Vec<_>>().join(" ");
    Element::create_with_properties(
        ShapeKind::new_box(name),
        look(FONT_SIZE),
        Orientation::TopToBottom,
        size,
        properties,
    )
}

fn arrow(line: &Line<'_>) -> Arrow {
    let style = if is_conditional(line.edge) {
        LineStyleKind::Dashed
    } else {
        LineStyleKind::Normal
    };
    let class = match (line.edge.guarded, line.edge.actors.is_empty()) {
        (true, _) => "edge guarded",
        (false, false) => "edge restricted",
        (false, true) => "edge",
    };
    Arrow::with_properties(
        LineEndKind::None,
        LineEndKind::Arrow,
        style,
        &line.short_label(),
        &look(LABEL_FONT_SIZE),
        class,
        &None,
        &None,
    )
}

/// What the layout wants to know; the canvas asks its style sheet instead.
fn look(font_size: usize) -> StyleAttr {
    StyleAttr::new(Color::fast("black"), 1, None, 8, font_size)
}

#[cfg(test)]
mod tests {
    use runwarden_host::model::{Edge, Status};

    use super::*;

    fn status(name: &str) -> Status {
        Status {
            name: name.to_owned(),
            summary: String::new(),
            initial: false,
            creation_code: None,
            terminal: false,
            success: false,
            announced: false,
            ext: Vec::new(),
        }
    }

    fn edge(from: &str, to: &str) -> Edge {
        Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            actors: Vec::new(),
            required_patch: Vec::new(),
            required_guards: Vec::new(),
            guarded: false,
            ext: Vec::new(),
        }
    }

    /// Heights at which each edge begins and ends.
    fn heights(drawing: &str) -> Vec<(f64, f64)> {
        let paths = drawing
            .lines()
            .filter_map(|line| line.split_once(" d=\"")?.1.split_once('"'));
        paths
            .map(|(path, _)| {
                let numbers: Vec<f64> = path.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
                (numbers[1], numbers[numbers.len() - 1])
            })
            .collect()
    }

    #[test]
    fn an_edge_that_leads_back_up_has_its_head_at_the_top() {
        let statuses = [status("waiting"), status("going")];
        let edges = [edge("waiting", "going"), edge("going", "waiting")];
        let node = |status| Node {
            status,
            role: Role::Other,
        };
        let graph = Graph {
            label: "there_and_back@1.0.0".to_owned(),
            nodes: statuses.iter().map(node).collect(),
            edges: vec![
                Line {
                    from: 0,
                    to: 1,
                    edge: &edges[0],
                },
                Line {
                    from: 1,
                    to: 0,
                    edge: &edges[1],
                },
            ],
        };
        let heights = heights(&svg(&graph));
        assert_eq!(heights.len(), 2);
        assert!(heights[0].0 < heights[0].1, "down: {heights:?}");
        assert!(heights[1].0 > heights[1].1, "up: {heights:?}");
    }

    #[test]
    fn the_largest_graph_that_is_drawn_is_drawn() {
        let status = |place: usize| Status {
            initial: place == 0,
            terminal: place > 20,
            success: place == 21,
            ..status(&format!("status_{place}"))
        };
        let statuses: Vec<Status> = (0..64).map(status).collect();
        let edge = |from: usize, to: usize| Edge {
            guarded: (from + to).is_multiple_of(7),
            ..edge(&format!("status_{from}"), &format!("status_{to}"))
        };
        let pairs: Vec<(usize, usize)> = (0..21)
            .flat_map(|from| {
                (0..64)
                    .filter(move |to| from != *to && (from * to) % 4 == 1)
                    .map(move |to| (from, to))
            })
            .collect();
        let edges: Vec<Edge> = pairs.iter().take(300).map(|(from, to)| edge(*from, *to)).collect();
        let graph = Graph {
            label: "large@1.0.0".to_owned(),
            nodes: statuses
                .iter()
                .map(|status| Node {
                    status,
                    role: Role::Other,
                })
                .collect(),
            edges: pairs
                .iter()
                .zip(&edges)
                .map(|(pair, edge)| Line {
                    from: pair.0,
                    to: pair.1,
                    edge,
                })
                .collect(),
        };
        assert!(graph.is_drawable());
        let drawing = svg(&graph);
        assert!(drawing.contains("status_63"));
        assert_eq!(drawing.matches("<path class=\"edge").count(), graph.edges.len());
    }
}

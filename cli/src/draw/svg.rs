//! A drawing that every browser shows.

use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::geometry::Point;
use layout::core::style::{LineStyleKind, StyleAttr};
use layout::std_shapes::shapes::{Arrow, Element, LineEndKind, ShapeKind};
use layout::topo::layout::VisualGraph;

use super::graph::{Graph, Line, Node, Role, is_conditional};

const FONT_SIZE: usize = 14;
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
    let mut writer = SVGWriter::new();
    // Untangling crossings takes longer than anybody waits once there are many.
    let disable_optimisation = graph.edges.len() > UNTANGLED_EDGES_MAX;
    let (debug, disable_layout) = (false, false);
    visual.do_it(debug, disable_optimisation, disable_layout, &mut writer);
    let drawing = writer.finalize();
    let legend = format!(
        "<!-- {}: thick border initial, grey terminal, green success, yellow present, dashed guarded or restricted -->\n",
        escaped(&graph.label).replace("--", "- -")
    );
    let drawing = drawing.replace("Times, serif", "sans-serif");
    drawing.replacen("<svg", &format!("{legend}<svg"), 1)
}

fn element(node: &Node<'_>) -> Element {
    let colour = match (node.role, node.status.success, node.status.terminal) {
        (Role::Present, ..) => 0xff_e9_a8_ff,
        (Role::Other, true, _) => 0xd9_f2_d9_ff,
        (Role::Other, false, true) => 0xee_ee_ee_ff,
        (Role::Other, false, false) => 0xff_ff_ff_ff,
    };
    let border = if node.status.initial { 3 } else { 1 };
    let look = StyleAttr::new(Color::fast("black"), border, Some(Color::new(colour)), 8, FONT_SIZE);
    let name = &node.status.name;
    let characters = u32::try_from(name.chars().count()).unwrap_or(u32::MAX);
    let size = Point::new(f64::from(characters) * CHARACTER_WIDTH + 24.0, NODE_HEIGHT);
    let class = match (node.status.initial, node.status.terminal, node.status.success) {
        (_, true, true) => "terminal success",
        (true, _, _) => "initial",
        (_, true, false) => "terminal",
        (false, false, _) => "status",
    };
    let properties = format!("class=\"{class}\"");
    Element::create_with_properties(
        ShapeKind::new_box(name),
        look,
        Orientation::TopToBottom,
        size,
        properties,
    )
}

fn arrow(line: &Line<'_>) -> Arrow {
    let look = StyleAttr::new(Color::fast("black"), 1, Some(Color::fast("white")), 0, FONT_SIZE - 3);
    let style = if is_conditional(line.edge) {
        LineStyleKind::Dashed
    } else {
        LineStyleKind::Normal
    };
    let class = match (line.edge.guarded, line.edge.actors.is_empty()) {
        (true, _) => "class=\"edge guarded\"",
        (false, false) => "class=\"edge restricted\"",
        (false, true) => "class=\"edge\"",
    };
    Arrow::with_properties(
        LineEndKind::None,
        LineEndKind::Arrow,
        style,
        &line.short_label(),
        &look,
        class,
        &None,
        &None,
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use runwarden_host::model::{Edge, Status};

    use super::*;

    #[test]
    fn the_largest_graph_that_is_drawn_is_drawn() {
        let status = |place: usize| Status {
            name: format!("status_{place}"),
            summary: String::new(),
            initial: place == 0,
            creation_code: None,
            terminal: place > 20,
            success: place == 21,
            announced: false,
            ext: Vec::new(),
        };
        let statuses: Vec<Status> = (0..64).map(status).collect();
        let edge = |from: usize, to: usize| Edge {
            from: format!("status_{from}"),
            to: format!("status_{to}"),
            actors: Vec::new(),
            required_patch: Vec::new(),
            required_guards: Vec::new(),
            guarded: (from + to).is_multiple_of(7),
            ext: Vec::new(),
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
        assert!(svg(&graph).contains("status_63"));
    }
}

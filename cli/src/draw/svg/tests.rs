use runwarden_host::model::{Edge, Status};

use super::*;
use crate::draw::graph::Line;

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

fn line(from: usize, to: usize, edge: Option<&Edge>) -> Line<'_> {
    Line {
        from,
        to,
        edge,
        carried: false,
        taken: Vec::new(),
    }
}

fn graph<'a>(statuses: &'a [Status], edges: Vec<Line<'a>>) -> Graph<'a> {
    let node = |status| Node {
        status,
        role: Role::Other,
        visits: Vec::new(),
    };
    Graph {
        label: "drawn@1.0.0".to_owned(),
        kind: "drawn",
        nodes: statuses.iter().map(node).collect(),
        edges,
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
    let mut back = edge("going", "waiting");
    back.guarded = true;
    let there = edge("waiting", "going");
    let drawing = svg(&graph(
        &statuses,
        vec![line(0, 1, Some(&there)), line(1, 0, Some(&back))],
    ));
    let heights = heights(&drawing);
    assert_eq!(heights.len(), 2);
    assert!(heights[0].0 < heights[0].1, "down: {heights:?}");
    assert!(heights[1].0 > heights[1].1, "up: {heights:?}");
}

#[test]
fn edges_that_ask_nothing_are_one_line_with_the_way_back_unless_one_was_taken() {
    let statuses = [status("waiting"), status("going")];
    let (there, back) = (edge("waiting", "going"), edge("going", "waiting"));
    let lines = || vec![line(0, 1, Some(&there)), line(1, 0, Some(&back))];
    let drawing = svg(&graph(&statuses, lines()));
    assert_eq!(drawing.matches("<path").count(), 1, "{drawing}");
    assert!(drawing.contains("both ways"), "{drawing}");
    let mut taken = lines();
    taken[1].taken = vec![3];
    let drawing = svg(&graph(&statuses, taken));
    assert_eq!(drawing.matches("<path").count(), 2, "{drawing}");
    assert!(drawing.contains("class=\"edge taken\""), "{drawing}");
}

#[test]
fn an_end_that_every_live_status_leads_to_is_reached_from_one_box() {
    let mut statuses = vec![status("a"), status("b"), status("c"), status("cancelled")];
    statuses[3].terminal = true;
    let all: Vec<Edge> = ["a", "b", "c"].map(|from| edge(from, "cancelled")).into();
    let lines = || {
        (0..)
            .zip(&all)
            .map(|(from, edge)| line(from, 3, Some(edge)))
            .collect::<Vec<_>>()
    };
    let drawing = svg(&graph(&statuses, lines()));
    assert_eq!(
        (drawing.matches("<path").count(), drawing.contains(ANY)),
        (1, true),
        "{drawing}"
    );
    let drawing = svg(&graph(&statuses, lines()[..2].to_vec()));
    assert_eq!(
        (drawing.matches("<path").count(), drawing.contains(ANY)),
        (2, false),
        "{drawing}"
    );
    let mut taken = lines();
    taken[0].taken = vec![2];
    let drawing = svg(&graph(&statuses, taken));
    assert_eq!(
        drawing.matches("<path").count(),
        2,
        "what was taken is a line of its own: {drawing}"
    );
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
    let lines = pairs
        .iter()
        .zip(&edges)
        .map(|(pair, edge)| line(pair.0, pair.1, Some(edge)));
    let graph = graph(&statuses, lines.collect());
    assert!(graph.is_drawable());
    let drawing = svg(&graph);
    assert!(drawing.contains("status_63"));
    assert_eq!(drawing.matches("<path class=\"edge").count(), strokes(&graph).len());
}

//! policy show --ref: the way that an entity took, laid over every drawing of its policy.

use serde_json::json;

use crate::harness::Home;

/// A play that went on, back, on again, ended, and was called back by override.
fn called_back(home: &Home) {
    home.done(&["create", "play", "--id", "p-1"]);
    let ready = ["--reason", "play.pending.ready"];
    for status in ["running", "prepared", "running", "running"] {
        home.done(&[&["transition", "p-1", status], &ready[..]].concat());
    }
    home.done(&["transition", "p-1", "merged", "--reason", "play.merged.ok"]);
    let overriding = ["--override", "--override-actor", "ada", "--justification", "too early"];
    home.done(&[&["transition", "p-1", "running"], &ready[..], &overriding[..]].concat());
}

#[test]
fn the_way_of_an_entity_is_told_with_reasons_loops_and_jumps() {
    let home = Home::new();
    called_back(&home);
    let shown = home.done(&["policy", "show", "--ref", "p-1"]);
    let way = "path: pending → running → prepared → running → merged → running\n";
    assert!(shown.contains(way), "{shown}");
    let line = |number: &str| {
        shown
            .lines()
            .find(|line| line.trim_start().starts_with(number))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(line("1 pending").contains("play.pending.created"), "{shown}");
    assert!(line("4 running").ends_with("written again once"), "{shown}");
    assert!(line("6 running").ends_with("by operator:ada, override"), "{shown}");
    let path = &home.json(&["policy", "show", "--ref", "p-1"])["path"];
    let by: Vec<&str> = path
        .as_array()
        .expect("steps")
        .iter()
        .filter_map(|step| step["by"].as_str())
        .collect();
    assert_eq!(by, ["created", "edge", "edge", "edge", "edge", "override"]);
    assert_eq!(
        (&path[3]["again"], &path[4]["code"]),
        (&json!(1), &json!("play.merged.ok"))
    );
    assert_eq!(home.json(&["policy", "show", "play"])["path"], json!(null));
}

#[test]
fn the_way_of_an_entity_is_drawn_thick_numbered_and_with_its_jumps() {
    let home = Home::new();
    called_back(&home);
    let drawn = |form: &str| home.done(&["policy", "show", "--ref", "p-1", "--as", form]);
    let svg = drawn("svg");
    assert_eq!(svg.matches("<path class=\"edge taken\"").count(), 4, "{svg}");
    assert_eq!(svg.matches("<path class=\"edge jump taken\"").count(), 1, "{svg}");
    for words in [
        ">2, 4, 6 now<",
        ">6, override<",
        "rect class=\"status visited present\"",
        "where it is now",
        "no edge: a jump",
    ] {
        assert!(svg.contains(words), "{words}: {svg}");
    }
    let dot = drawn("dot");
    for words in [
        "[label=\"running\\n2, 4, 6\", fillcolor",
        "[label=\"step 5\", penwidth=3]",
        "[label=\"step 6, override\"",
    ] {
        assert!(dot.contains(words), "{words}: {dot}");
    }
    let mermaid = drawn("mermaid");
    for words in [
        "state \"running (2, 4, 6)\" as s2",
        "s2 --> s6 : step 5",
        "s6 --> s2 : step 6, override",
        "class s2 present",
    ] {
        assert!(mermaid.contains(words), "{words}: {mermaid}");
    }
}

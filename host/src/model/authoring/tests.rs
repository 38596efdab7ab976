//! Tables of what ships give what ships. Every mistake that can be made has its words in the tests of the whole program.

use super::{Problem, author};
use crate::model::Descriptor;

/// A small table that is sound.
const POST: &str = r#"
kind = "post"
version = "1.0.0"
summary = "A post."

[[status]]
name = "draft"
summary = "Being written."
initial = "post.draft.created"

[[status]]
name = "published"
summary = "Read by everybody."
success = true

[[edge]]
from = "draft"
to = "published"
actors = ["agent", "operator"]
requires = "reviewer"
guards = ["words"]

[fields]
words = "integer"
reviewer = { kind = "text", summary = "Who read it." }

[codes]
post.draft.created = "Was begun."
"post.published.ok" = "Was read, and found good."
"#;

fn read(text: &str) -> Descriptor {
    let authored = author(text).unwrap_or_else(|problems| panic!("{}", lines(&problems)));
    assert_eq!(authored.warnings, []);
    authored.descriptor
}

fn lines(problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        let Problem {
            line, column, message, ..
        } = problem;
        format!("{line}:{column}: {message}")
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The sound table with one text in place of another, and all that is told of it.
#[track_caller]
fn check(from: &str, to: &str, told: &[&str]) {
    assert!(POST.contains(from), "{from}");
    let problems = author(&POST.replacen(from, to, 1)).expect_err("it is wrong");
    assert_eq!(lines(&problems), told.join("\n"));
}

#[test]
fn a_table_of_what_ships_is_what_ships() {
    let tables = [
        (
            include_str!("tests/run.toml"),
            include_str!("../../../../policies/lifecycle/run/descriptor.json"),
        ),
        (
            include_str!("tests/schedule_run.toml"),
            include_str!("../../../../policies/lifecycle/schedule-run-v2/descriptor.json"),
        ),
    ];
    for (table, ships) in tables {
        let ships: Descriptor = serde_json::from_str(ships).expect("it ships");
        same_lines(&read(table), &ships);
    }
}

/// Compares line by line, so that a failure shows the one that differs.
#[track_caller]
fn same_lines(found: &Descriptor, expected: &Descriptor) {
    let [found_lines, expected_lines] = [found, expected].map(|descriptor| format!("{descriptor:#?}"));
    for (found, expected) in found_lines.lines().zip(expected_lines.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found, expected);
}

#[test]
fn a_small_table_has_what_it_says_and_no_more() {
    let post = read(POST);
    assert_eq!((post.name.as_str(), post.fields.len()), ("post", 2));
    assert_eq!(post.fields[0].name, "words", "in the order of the text");
    assert_eq!(post.reason_codes[0].code, "post.draft.created");
    assert!(post.statuses[1].terminal, "a success is an end");
    let edge = &post.edges[0];
    assert_eq!(edge.actors, ["agent", "operator"]);
    assert_eq!(
        (&edge.required_patch[..], &edge.required_guards[..]),
        (&["reviewer".to_owned()][..], &["words".to_owned()][..])
    );
}

#[test]
fn a_place_is_a_line_and_a_character_of_it() {
    check(
        "\"draft\"\nsummary = \"Being written.\"",
        "\"draft\"\nsummary = \"é\", x = 1",
        &["8:14: unexpected key or value, expected newline, `#`"],
    );
    check(
        "summary = \"Who read it.\"",
        "summary = \"é\", x = 1",
        &["25:44: `x` is no key of the field `reviewer`"],
    );
}

#[test]
fn what_is_told_of_a_text_is_told_at_once_and_in_its_order() {
    let wrong = "from = \"drfat\"\nto = \"publshed\"";
    check(
        "from = \"draft\"\nto = \"published\"",
        wrong,
        &[
            "17:8: status `drfat` is not declared: did you mean `draft`?",
            "18:6: status `publshed` is not declared: did you mean `published`?",
        ],
    );
}

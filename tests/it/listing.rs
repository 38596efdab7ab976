//! ls and history of all.

use serde_json::Value;

use crate::harness::Home;

fn ids(listing: &Value) -> Vec<&str> {
    listing
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(|entity| entity["id"].as_str())
        .collect()
}

fn filled() -> Home {
    let home = Home::new();
    home.done(&["create", "play", "--id", "play-one", "--tag", "team=core"]);
    home.done(&[
        "create",
        "session",
        "--id",
        "sess-one",
        "--parent",
        "play-one",
        "--tag",
        "team=core",
        "--tag",
        "n=1",
    ]);
    home.done(&["create", "session", "--id", "sess-two"]);
    home.done(&["transition", "sess-two", "failed", "--reason", "run.failed.exception"]);
    home
}

#[test]
fn an_empty_store_and_a_missing_one_say_how_to_start() {
    let home = Home::new();
    let missing = home.done(&["ls"]);
    assert!(missing.contains("runwarden run"), "{missing}");
    assert!(!home.home().exists(), "asking makes no store");
    assert_eq!(home.json(&["ls", "--live"]), Value::Array(Vec::new()));
    home.done(&["policy", "ls"]);
    assert_eq!(home.done(&["ls"]), missing);
}

#[test]
fn what_is_listed_is_chosen_by_what_it_is() {
    let home = filled();
    let cases: [(&[&str], &[&str]); 12] = [
        (&[], &["sess-two", "sess-one", "play-one"]),
        (&["sessions"], &["sess-two", "sess-one"]),
        (&["--live"], &["sess-one", "play-one"]),
        (&["--ended"], &["sess-two"]),
        (&["--failed"], &["sess-two"]),
        (
            &["--status", "pending", "--status", "failed"],
            &["sess-two", "play-one"],
        ),
        (&["--tag", "team=core"], &["sess-one", "play-one"]),
        (&["--tag", "team=core", "--tag", "n=1"], &["sess-one"]),
        (&["--limit", "1"], &["sess-two"]),
        (&["--since", "1h"], &["sess-two", "sess-one", "play-one"]),
        (&["--since", "2999-01-01"], &[]),
        (&["play-one"], &["play-one"]),
    ];
    for (words, expected) in cases {
        let listing = home.json(&[&["ls"], words].concat());
        assert_eq!(ids(&listing), expected, "{words:?}");
    }
    home.run(&["ls", "nonsense"]).exits(2).hints("the kinds are dispatch");
    home.run(&["ls", "play", "session"]).exits(64);
    home.run(&["ls", "--live", "--ended"]).exits(64);
}

#[test]
fn a_narrow_page_loses_columns_and_a_wide_one_has_them_all() {
    let home = filled();
    let page = |columns: &str| home.run_with(&["ls"], &[("COLUMNS", columns)]).exits(0).out;
    let (narrow, wide) = (page("40"), page("120"));
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    assert!(
        narrow.contains("session/sess-one") && narrow.contains("running"),
        "{narrow}"
    );
    assert!(wide.contains("CAUSE") && wide.contains("TOOK"), "{wide}");
    let history = home.run_with(&["history"], &[("COLUMNS", "40")]).exits(0).out;
    assert!(history.lines().all(|line| line.chars().count() <= 40), "{history}");
    assert!(history.contains("run.started.ok by operator:"), "{history}");
    let policies = home.run_with(&["policy", "ls"], &[("COLUMNS", "60")]).exits(0).out;
    assert!(policies.lines().all(|line| line.chars().count() <= 60), "{policies}");
}

#[test]
fn words_are_broken_at_the_end_of_a_narrow_page_and_what_is_copied_is_not() {
    let home = Home::new();
    home.detach(
        "r",
        &["--", "sh", "-c", "exit 3 # and a command that is longer than a line"],
    );
    home.over("r");
    let page = |question: &[&str]| home.run_with(question, &[("COLUMNS", "40")]).exits(0).out;
    for question in [
        &["show", "r"][..],
        &["show", "r", "--command"],
        &["history", "r"],
        &["policy", "show", "run"],
        &["-h"],
    ] {
        let said = page(question);
        let too_long = said.lines().filter(|line| line.chars().count() > 40);
        // A path, a digest and the name of an interface are one word, and stay one beside their name.
        let has_a_break = |line: &&str| {
            line.rsplit_once(' ')
                .is_some_and(|(before, _)| before.trim_end().len() > 15)
        };
        assert_eq!(too_long.into_iter().find(has_a_break), None, "{said}");
    }
    assert!(page(&["show", "r"]).contains("run.failed.exit_nonzero"));
}

#[test]
fn a_tree_shows_what_is_below_what() {
    let home = filled();
    let tree = home.done(&["ls", "--tree"]);
    let first: Vec<&str> = tree
        .lines()
        .map(|line| line.split("  ").next().unwrap_or_default())
        .collect();
    assert_eq!(
        first,
        ["REFERENCE", "session/sess-two", "play/play-one", "└─ session/sess-one"]
    );
}

#[test]
fn history_of_all_is_oldest_first() {
    let home = filled();
    let history = home.json(&["history"]);
    let statuses: Vec<&str> = history
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(|r| r["status"].as_str())
        .collect();
    assert_eq!(statuses, ["pending", "running", "running", "failed"]);
    assert!(history[0]["previous_status"].is_null());
    assert_eq!(
        home.json(&["history", "--since", "2999-01-01"]),
        Value::Array(Vec::new())
    );
    home.run(&["history", "nope"]).exits(2);
}

//! What of a run is running, as `show` and `ls` tell it.

use serde_json::{Value, json};

use crate::harness::Home;

/// A run whose worker has a child and, started through two forks and in a session of its own, a server.
fn started(home: &Home, id: &str) -> Vec<String> {
    let script = "told=$1; setsid sh -c 'sleep 601 & echo $! > \"$1.server\"' x $told & wait; \
                  sleep 602 & child=$!; echo $$ $child $(cat $told.server) > $told; wait";
    let told = home.path(id);
    let told = told.to_str().expect("a path in UTF-8");
    home.detach(id, &["--", "sh", "-c", script, "sh", told]);
    home.told(id).split_whitespace().map(str::to_owned).collect()
}

fn numbers(processes: &Value) -> Vec<String> {
    let processes = processes.as_array().expect("a list");
    processes.iter().map(|one| one["pid"].to_string()).collect()
}

#[test]
fn every_process_of_a_run_is_listed_whoever_its_parent_is() {
    let home = Home::new();
    let mut expected = started(&home, "one");
    expected.sort();
    let shown = home.json(&["show", "one"]);
    let mut found = numbers(&shown["processes"]);
    found.sort();
    assert_eq!(found, expected);
    let commands: Vec<&Value> = shown["processes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["command"])
        .collect();
    assert!(commands.contains(&&json!(["sleep", "601"])), "{commands:?}");
    let listed = home.json(&["ls", "--processes"]);
    assert_eq!(listed[0]["processes"].as_array().map(Vec::len), Some(3));
    assert_eq!(home.json(&["ls"])[0]["processes"], Value::Null, "only on request");

    home.done(&["kill", "one", "--grace", "100ms"]);
    assert_eq!(home.json(&["show", "one"])["processes"], json!([]));
}

#[test]
fn a_tree_hangs_processes_below_their_run_and_children_below_their_parents() {
    let home = Home::new();
    home.done(&["create", "play", "--id", "all"]);
    let told = home.path("leaf");
    let script = format!("sleep 601 & echo $! > {}; wait", told.display());
    home.detach("leaf", &["--parent", "all", "--", "sh", "-c", &script]);
    let child = home.told("leaf");
    let tree = home
        .run_with(&["ls", "--tree", "--processes"], &[("COLUMNS", "100")])
        .exits(0)
        .out;
    let shown: Vec<&str> = tree.lines().skip(1).collect();
    assert!(shown[0].starts_with("play/all"), "{tree}");
    assert!(shown[1].starts_with("└─ run/leaf"), "{tree}");
    assert!(shown[2].starts_with("   └─ ") && shown[2].contains("sh -c"), "{tree}");
    assert!(shown[3].starts_with(&format!("      └─ {}", child.trim())), "{tree}");
    assert!(shown[3].contains("sleep 601"), "{tree}");
    let narrow = home
        .run_with(&["ls", "--tree", "--processes"], &[("COLUMNS", "40")])
        .exits(0)
        .out;
    assert!(narrow.contains("sleep 601"), "{narrow}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    let one = home.run_with(&["show", "leaf"], &[("COLUMNS", "100")]).exits(0).out;
    assert!(one.contains(&format!("└─ {} sleep 601", child.trim())), "{one}");
    home.done(&["kill", "leaf", "--grace", "100ms"]);
}

#[test]
fn a_stopped_process_is_told_as_stopped() {
    let home = Home::new();
    let told = home.path("one");
    let script = format!("sleep 601 & kill -STOP $!; echo $! > {}; wait", told.display());
    home.detach("one", &["--", "sh", "-c", &script]);
    let child = home.told("one");
    let stopped = |one: &Value| one["pid"].as_i64() == child.trim().parse().ok() && one["state"] == "T";
    crate::harness::until("the child is stopped", || {
        let shown = home.json(&["show", "one"]);
        shown["processes"].as_array().is_some_and(|all| all.iter().any(stopped))
    });
    let text = home.done(&["show", "one"]);
    assert!(text.contains(" (stopped)"), "{text}");
    home.done(&["kill", "one", "--grace", "100ms"]);
}

#[test]
fn a_run_inside_a_run_is_named_and_what_is_below_it_is_its_own() {
    let home = Home::new();
    let (outer, inner) = (home.path("outer"), home.path("inner"));
    let script = format!(
        "{} run --detach --id inner -- sh -c 'echo $$ > {}; exec sleep 601'; echo $$ > {}; exec sleep 602",
        crate::harness::PROGRAM,
        inner.display(),
        outer.display(),
    );
    home.detach("outer", &["--", "sh", "-c", &script]);
    let pids = (home.told("outer"), home.told("inner"));
    let shown = home.json(&["show", "outer"]);
    let shim = home.json(&["show", "inner"])["runtime"]["shim_pid"].to_string();
    let mut found = numbers(&shown["processes"]);
    found.sort();
    let mut expected = vec![pids.0.trim().to_owned(), shim];
    expected.sort();
    assert_eq!(found, expected, "{shown}");
    let runs = shown["processes"].as_array().expect("a list").iter();
    assert_eq!(runs.filter(|one| one["run"] == "run/inner").count(), 1);
    let text = home.done(&["show", "outer"]);
    assert!(text.contains("run/inner a run of its own: not reached"), "{text}");
    assert_eq!(numbers(&home.json(&["show", "inner"])["processes"]), [pids.1.trim()]);
    home.done(&["kill", "outer", "inner", "--grace", "100ms"]);
}

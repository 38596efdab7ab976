//! kill: who is reached below whom, what is chosen, what is planned, and what is told and recorded.

use serde_json::{Value, json};

use crate::harness::{Answer, Home, lives};

/// Starts a run below a parent and waits for its pid.
fn below(home: &Home, id: &str, parents: &[&str]) -> String {
    let parents: Vec<&str> = parents.iter().flat_map(|parent| ["--parent", *parent]).collect();
    let text = format!("echo $$ > {}; exec sleep 600", home.path(id).display());
    home.detach(
        id,
        &[
            parents.as_slice(),
            &["--contain", "subreaper", "--kind", "session", "--", "sh", "-c", &text],
        ]
        .concat(),
    );
    home.told(id)
}

fn created(home: &Home, kind: &str, id: &str, parents: &[&str]) {
    let parents = parents.iter().flat_map(|parent| ["--parent", *parent]);
    let arguments: Vec<&str> = ["create", kind, "--id", id].into_iter().chain(parents).collect();
    home.done(&arguments);
}

fn targets(answer: &Answer) -> Vec<Value> {
    let document = answer.document();
    document["targets"].as_array().expect("targets").clone()
}

fn status(home: &Home, reference: &str) -> String {
    home.json(&["show", reference])["status"]
        .as_str()
        .expect("a status")
        .to_owned()
}

/// The envelopes stored for an entity, oldest first.
fn events(home: &Home, id: &str) -> Vec<Value> {
    let database = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    let query = "SELECT t.envelope FROM transitions t JOIN entity_ids i ON i.entity = t.entity \
                 WHERE i.id = ?1 AND t.envelope IS NOT NULL ORDER BY t.version";
    let mut statement = database.prepare(query).expect("a query");
    let rows = statement.query_map([id], |row| row.get::<_, String>(0)).expect("rows");
    rows.map(|row| serde_json::from_str(&row.expect("a row")).expect("an envelope"))
        .collect()
}

#[test]
fn a_play_kill_stops_every_run_below_it_children_before_parents() {
    let home = Home::new();
    created(&home, "play", "opening", &[]);
    let pids = [below(&home, "a", &["opening"]), below(&home, "b", &["opening", "a"])];
    let answer = home.run(&["kill", "opening", "--json"]).exits(0);
    assert!(pids.iter().all(|pid| !lives(pid)), "{pids:?}");
    let told = &targets(&answer)[0];
    assert_eq!(
        (&told["outcome"], &told["signal"], &told["status"]),
        (&json!("killed"), &json!("no_process"), &json!("blocked")),
        "{told}"
    );
    let mut named: Vec<&str> = told["children"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|c| c["ref"].as_str())
        .collect();
    named.sort_unstable();
    assert_eq!(named, ["session/a", "session/b"], "{told}");
    let ended = |id: &str| {
        home.json(&["history", id])[1]["at"]
            .as_str()
            .expect("a time")
            .to_owned()
    };
    assert!(
        ended("b") <= ended("a") && ended("a") <= ended("opening"),
        "children come first"
    );
}

#[test]
fn a_play_with_no_run_below_is_ended_and_the_kill_says_that_nothing_was_stopped() {
    let home = Home::new();
    created(&home, "play", "alone", &[]);
    let answer = home.run(&["kill", "alone", "--json"]).exits(1);
    let told = &targets(&answer)[0];
    assert_eq!(
        (&told["status"], &told["stopped"]),
        (&json!("blocked"), &json!(false)),
        "{told}"
    );
    let message = told["message"].as_str().expect("a message");
    assert!(
        message.contains("no process was stopped") && message.contains("runwarden ls --live"),
        "{message}"
    );
    assert_eq!(status(&home, "alone"), "blocked");
}

#[test]
fn a_play_whose_runs_have_all_ended_is_ended_normally() {
    let home = Home::new();
    created(&home, "play", "late", &[]);
    home.done(&["run", "--parent", "late", "--", "true"]);
    let answer = home.run(&["kill", "late", "--json"]).exits(0);
    let told = &targets(&answer)[0];
    assert_eq!(
        (&told["signal"], &told["status"]),
        (&json!("no_process"), &json!("blocked")),
        "{told}"
    );
    assert_eq!(told["children"][0]["outcome"], "unchanged", "{told}");
}

#[test]
fn a_session_takes_its_children_along_only_when_asked_and_its_parent_never() {
    let home = Home::new();
    created(&home, "show", "season", &[]);
    created(&home, "invocation", "call", &["season"]);
    let (outer, inner) = (below(&home, "outer", &["call"]), below(&home, "inner", &["outer"]));
    home.done(&["kill", "call"]);
    assert!(lives(&outer) && lives(&inner));
    home.done(&["kill", "outer", "--recursive"]);
    assert!(!lives(&outer) && !lives(&inner));
    let statuses = ["season", "call", "outer", "inner"].map(|id| status(&home, id));
    assert_eq!(statuses, ["active", "cancelled", "cancelled", "cancelled"]);
}

#[test]
fn a_recursive_kill_of_what_has_ended_stops_what_it_left_running_below() {
    let home = Home::new();
    created(&home, "session", "over", &[]);
    let pid = below(&home, "left", &["over"]);
    home.done(&["transition", "over", "completed", "--reason", "run.completed.ok"]);
    home.done(&["kill", "over"]);
    assert!(lives(&pid));
    let answer = home.run(&["kill", "over", "-r", "--json"]).exits(0);
    assert!(!lives(&pid));
    let told = &targets(&answer)[0];
    assert_eq!(
        (&told["outcome"], &told["status"]),
        (&json!("unchanged"), &json!("completed")),
        "{told}"
    );
    assert_eq!(told["children"][0]["outcome"], "killed", "{told}");
}

#[test]
fn a_kill_stops_every_set_of_an_entity_and_not_the_newest_alone() {
    let home = Home::new();
    let pids = ["one", "two"].map(|id| below(&home, id, &[]));
    let store = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    let moved = "UPDATE runtimes SET owner = (SELECT entity FROM entity_ids WHERE id = 'one')";
    store.execute(moved, []).expect("rows of ours");
    let answer = home.run(&["kill", "one", "--json"]).exits(0);
    assert!(pids.iter().all(|pid| !lives(pid)), "{}", answer.out);
    let told = &targets(&answer)[0];
    assert_eq!(
        (&told["outcome"], &told["status"], &told["stopped"]),
        (&json!("killed"), &json!("cancelled"), &json!(true)),
        "{told}"
    );
    let rows = home.json(&["runtime", "ls", "one"]);
    let states = rows.as_array().into_iter().flatten().map(|row| &row["state"]);
    assert_eq!(states.collect::<Vec<_>>(), ["stopped", "stopped"]);
    assert_eq!(events(&home, "one").len(), 1, "one end");
    home.done(&["kill", "two"]);
}

/// Gives the sets of all runs to one of them, the oldest first.
fn hand_over(home: &Home, to: &str) {
    let store = rusqlite::Connection::open(home.home().join("state.db")).expect("the store");
    let moved = "UPDATE runtimes SET owner = (SELECT entity FROM entity_ids WHERE id = ?1)";
    store.execute(moved, [to]).expect("rows of ours");
}

#[test]
fn a_dry_run_names_every_set_that_the_act_reaches() {
    let home = Home::new();
    let pids = ["one", "two"].map(|id| below(&home, id, &[]));
    hand_over(&home, "one");
    let plan = home.json(&["kill", "one", "--dry-run"]);
    let reached: Vec<(String, &Value)> = plan["plan"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|step| (step["processes"][0]["pid"].to_string(), &step["runtime"]))
        .collect();
    let [one, two] = pids.clone();
    assert_eq!(reached, [(two, &json!(2)), (one, &json!(1))], "{plan}");
    home.done(&["kill", "one"]);
    assert!(pids.iter().all(|pid| !lives(pid)), "{pids:?}");
    home.done(&["kill", "two"]);
}

#[test]
fn a_set_that_is_refused_keeps_no_other_of_the_entity_from_being_stopped() {
    let home = Home::new();
    let pid = below(&home, "one", &[]);
    home.done(&["create", "session", "--id", "two"]);
    let register = [
        "runtime", "register", "two", "--kind", "ssh", "--host", "box", "--handle", "12",
    ];
    home.done(&register);
    hand_over(&home, "one");
    home.run(&["kill", "one", "--dry-run"]).exits(1);
    let answer = home.run(&["kill", "one", "--json"]).exits(1);
    assert!(!lives(&pid), "{}", answer.out);
    let told = &targets(&answer)[0];
    assert_eq!(
        (&told["outcome"], &told["signal"], &told["stopped"], &told["status"]),
        (
            &json!("incomplete"),
            &json!("sigterm"),
            &json!(false),
            &json!("running")
        ),
        "{told}"
    );
    let message = told["message"].as_str().expect("a message");
    assert!(message.contains("runtime 2: it runs elsewhere as 12"), "{message}");
    // Once nobody is in doubt about the other, the end is what the first was seen to end by.
    home.done(&["runtime", "release", "2"]);
    assert_eq!(status(&home, "one"), "cancelled");
    home.done(&["kill", "two"]);
}

#[test]
fn a_kill_makes_exactly_one_event_with_its_own_status_and_code() {
    let home = Home::new();
    created(&home, "play", "p", &[]);
    created(&home, "invocation", "i", &[]);
    below(&home, "s", &["p"]);
    home.done(&["kill", "p", "i"]);
    home.over("s");
    home.done(&["kill", "p", "i", "s"]);
    for (id, expected) in [("p", "blocked"), ("i", "cancelled"), ("s", "cancelled")] {
        let told = events(&home, id);
        assert_eq!(told.len(), 1, "{id}: {told:?}");
        assert_eq!(
            (&told[0]["terminal_status"], &told[0]["reason"]["code"]),
            (&json!(expected), &json!("run.cancelled.manual_kill"))
        );
    }
}

#[test]
fn evidence_says_what_was_observed_and_why_it_was_asked_for() {
    let home = Home::new();
    let pid = below(&home, "one", &[]);
    home.done(&["kill", "one", "--note", "wrong branch"]);
    let shown = home.json(&["show", "one"]);
    let evidence = &shown["reason"]["evidence"][0];
    assert_eq!(
        (&evidence["signal"], &evidence["proof"], &evidence["note"]),
        (&json!("sigterm"), &json!("subreaper_echild"), &json!("wrong branch")),
        "{evidence}"
    );
    assert_eq!(
        (
            evidence["pid"].to_string(),
            &evidence["survivors"],
            evidence["killed_at"].is_string()
        ),
        (pid, &json!([]), true),
        "{evidence}"
    );
    assert!(evidence["identity_level"].is_string(), "{evidence}");
    created(&home, "session", "bare", &[]);
    home.done(&["kill", "bare", "--note", "never began"]);
    let shown = home.json(&["show", "bare"]);
    let evidence = &shown["reason"]["evidence"][0];
    assert_eq!(
        (&evidence["signal"], &evidence["note"]),
        (&json!("no_process"), &json!("never began"))
    );
}

#[test]
fn a_dry_run_shows_the_order_of_the_act_and_changes_nothing() {
    let home = Home::new();
    created(&home, "play", "opening", &[]);
    let pid = below(&home, "one", &["opening"]);
    let before = home.json(&["history", "opening"]);
    let plan = home.json(&["kill", "opening", "--dry-run"]);
    assert_eq!(
        (&plan["dry_run"], &plan["complete"]),
        (&json!(true), &json!(true)),
        "{plan}"
    );
    let steps: Vec<(&str, &str, &str)> = plan["plan"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|step| Some((step["ref"].as_str()?, step["step"].as_str()?, step["goes_to"].as_str()?)))
        .collect();
    assert_eq!(
        steps,
        [("session/one", "stop", "cancelled"), ("play/opening", "end", "blocked")]
    );
    assert_eq!(plan["plan"][0]["processes"][0]["pid"].to_string(), pid, "{plan}");
    assert!(lives(&pid));
    assert_eq!(home.json(&["history", "opening"]), before);
    home.done(&["kill", "opening"]);
    home.run(&["kill", "opening", "--dry-run"]).exits(0);
}

#[test]
fn selectors_choose_what_can_be_killed_and_no_target_is_a_usage_error() {
    let home = Home::new();
    home.run(&["kill"]).exits(64).hints("runwarden kill @");
    for (id, tag) in [("one", "batch=7"), ("two", "batch=7"), ("three", "batch=8")] {
        home.detach(id, &["--tag", tag, "--name", "nightly", "--", "sleep", "600"]);
    }
    home.done(&["create", "team", "--id", "crew", "--tag", "batch=7"]);
    let answer = home.run(&["kill", "--tag", "batch=7", "--json"]).exits(0);
    let mut named: Vec<String> = targets(&answer).iter().map(|told| told["ref"].to_string()).collect();
    named.sort_unstable();
    assert_eq!(named, [r#""run/one""#, r#""run/two""#]);
    assert_eq!(
        (status(&home, "crew"), status(&home, "three")),
        ("active".to_owned(), "running".to_owned())
    );
    home.run(&["kill", "--tag", "batch=9"]).exits(2);
    home.done(&["kill", "--name", "nightly"]);
    assert_eq!(status(&home, "three"), "cancelled");
}

#[test]
fn all_is_everything_killable_and_every_set_that_lingers() {
    let home = Home::new();
    created(&home, "session", "bare", &[]);
    created(&home, "team", "crew", &[]);
    let text = format!("setsid sleep 600 & echo $! > {}; exit 0", home.path("left").display());
    home.detach("left", &["--", "sh", "-c", &text]);
    let pid = home.told("left");
    crate::harness::until("its end is recorded", || {
        home.json(&["show", "left"])["terminal"] == true
    });
    assert!(home.done(&["ls"]).contains("completed, lingering"));
    home.done(&["kill", "--all"]);
    assert!(!lives(&pid));
    assert_eq!(
        [status(&home, "bare"), status(&home, "crew"), status(&home, "left")],
        ["cancelled", "active", "completed"]
    );
    assert_eq!(home.done(&["kill", "--all"]), "Nothing to kill.");
}

#[test]
fn what_no_kill_means_anything_for_is_refused() {
    let home = Home::new();
    created(&home, "team", "crew", &[]);
    let answer = home.run(&["kill", "crew", "--json"]).exits(1);
    assert_eq!(targets(&answer)[0]["outcome"], "refused");
    assert_eq!(status(&home, "crew"), "active");
}

#[test]
fn a_report_fits_a_narrow_page() {
    let home = Home::new();
    created(&home, "play", "opening", &[]);
    created(&home, "play", "alone", &[]);
    below(&home, "one", &["opening"]);
    for arguments in [["kill", "opening", "--dry-run"], ["kill", "opening", "alone"]] {
        let answer = home.run_with(&arguments, &[("COLUMNS", "40")]);
        let widest = answer.out.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|columns| columns <= 40), "{}", answer.out);
    }
}

#[test]
fn a_short_prefix_of_two_kills_neither() {
    let home = Home::new();
    for id in ["abcd1", "abcd2"] {
        created(&home, "session", id, &[]);
    }
    let answer = home.run(&["kill", "abcd"]).exits(2);
    assert!(
        answer.err.contains("session/abcd1") && answer.err.contains("session/abcd2"),
        "{}",
        answer.err
    );
    home.run(&["kill", "%"]).exits(2);
    home.run(&["kill", "____"]).exits(2);
    assert_eq!([status(&home, "abcd1"), status(&home, "abcd2")], ["running", "running"]);
}

#[test]
fn a_run_started_below_while_its_play_is_killed_is_killed_too() {
    let home = Home::new();
    created(&home, "play", "p", &[]);
    let deaf = format!(
        "trap '' TERM; echo $$ > {}; while :; do read x < /dev/zero; done",
        home.path("deaf").display()
    );
    home.detach("deaf", &["--parent", "p", "--", "sh", "-c", &deaf]);
    home.told("deaf");
    // Long enough for another run to be started meanwhile on a busy machine.
    let killer = home.start(&["kill", "p", "--grace", "6s", "--json"]);
    crate::harness::until("the first is asked to stop", || {
        home.json(&["show", "deaf"])["runtime"]["state"] == "stopping"
    });
    let late = below(&home, "late", &["p"]);
    let answer = crate::harness::answered(killer, "kill p".to_owned()).exits(0);
    assert!(!lives(&late), "{}", answer.out);
    assert_eq!(
        [status(&home, "deaf"), status(&home, "late"), status(&home, "p")],
        ["cancelled", "cancelled", "blocked"]
    );
    home.run(&["run", "-d", "--parent", "p", "--", "sleep", "600"]).exits(5);
}

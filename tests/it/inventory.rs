//! runtime: what runs elsewhere is known of, and never judged from here.

use serde_json::{Value, json};

use crate::harness::Home;

/// A session with something that runs on another machine; the runtime's number.
fn registered(home: &Home) -> String {
    home.done(&["create", "session", "--id", "far"]);
    let words = [
        "runtime", "register", "far", "--kind", "ssh", "--host", "build7", "--handle", "4711",
    ];
    home.done(&[&words[..], &["--resume-token", "hush-hush"]].concat())
}

fn audit(home: &Home) -> Vec<Value> {
    let all = home.json(&["history", "--admin"]);
    let rows = all.as_array().expect("a list").iter();
    rows.filter(|event| event["target"] == "session/far").cloned().collect()
}

#[test]
fn what_is_registered_is_shown_wherever_runs_are_and_its_token_nowhere() {
    let home = Home::new();
    let id = registered(&home);
    let listed = home.json(&["runtime", "ls"]);
    let expected = json!({
        "ref": "session/far", "state": "running", "kind": "ssh", "host": "build7", "handle": "4711",
        "pid": null, "resume_token": true, "id": id.parse::<i64>().expect("a number"),
    });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&listed[0][name], value, "{name}: {listed:#}");
    }
    assert_eq!(home.json(&["runtime", "ls", "far"]), listed);
    let shown = home.json(&["show", "far"]);
    assert_eq!(shown["runtime"]["handle"], "4711");
    assert_eq!(shown["processes"], Value::Null, "nobody can see them");
    for words in [
        &["show", "far"][..],
        &["ls"],
        &["runtime", "ls"],
        &["why", "far"],
        &["history", "--admin"],
        &["doctor"],
    ] {
        let text = home.done(words);
        let json = home.run(&[words, &["--json"]].concat()).exits(0).out;
        assert!(!text.contains("hush") && !json.contains("hush"), "{words:?}");
    }
    for words in [&["show", "far"][..], &["ls"], &["runtime", "ls"]] {
        assert!(home.done(words).contains("ssh on build7 as 4711"), "{words:?}");
    }
}

#[test]
fn a_kill_refuses_what_runs_elsewhere_and_a_release_is_an_audited_word() {
    let home = Home::new();
    let id = registered(&home);
    let killed = home.run(&["kill", "far", "--json"]).exits(1).document();
    assert_eq!(killed["targets"][0]["signal"], "remote", "{killed}");
    assert_eq!(home.json(&["show", "far"])["status"], "running");
    let over = home.json(&["runtime", "release", &id]);
    assert_eq!(
        (&over["outcome"], &over["state"]),
        (&json!("released"), &json!("stopped"))
    );
    assert_eq!(over["resume_token"], true, "it is kept");
    assert_eq!(home.json(&["runtime", "release", &id])["outcome"], "unchanged");
    let events = audit(&home);
    let actions: Vec<&Value> = events.iter().map(|event| &event["action"]).collect();
    assert_eq!(actions, ["runtime_registered", "runtime_released"]);
    assert_eq!(events[1]["actor"], "operator:ada");
    assert_eq!(events[1]["details"]["handle"], "4711");
    assert_eq!(home.json(&["runtime", "ls"]), json!([]));
    assert_eq!(home.json(&["runtime", "ls", "far"])[0]["state"], "stopped");
    home.done(&["kill", "far"]);
    assert_eq!(home.json(&["show", "far"])["status"], "cancelled");
}

#[test]
fn an_entity_has_one_runtime_at_a_time_and_none_after_its_end() {
    let home = Home::new();
    let id = registered(&home);
    let again = [
        "runtime", "register", "far", "--kind", "other", "--host", "h", "--handle", "x",
    ];
    home.run(&again).exits(4).hints("runwarden runtime ls session/far");
    home.done(&["runtime", "release", &id]);
    assert_ne!(home.done(&again), id);
    home.detach("local", &["--", "sleep", "600"]);
    let mut local = again;
    local[2] = "local";
    home.run(&local).exits(4).hints("runwarden runtime ls run/local");
    home.done(&["kill", "local"]);
    home.run(&local).exits(4).hints("runwarden why run/local");
}

#[test]
fn a_runtime_of_this_machine_is_not_released_by_a_word() {
    let home = Home::new();
    home.detach("one", &["--", "sleep", "600"]);
    let id = home.json(&["runtime", "ls", "one"])[0]["id"].to_string();
    let answer = home
        .run(&["runtime", "release", &id])
        .exits(1)
        .hints("runwarden why run/one");
    assert!(answer.err.contains("its processes are alive"), "{}", answer.err);
    assert_eq!(home.json(&["show", "one"])["runtime"]["state"], "running");
    home.done(&["kill", "one"]);
    assert_eq!(home.json(&["runtime", "release", &id])["outcome"], "unchanged");
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let home = Home::new();
    home.run(&["runtime", "ls", "far"]).exits(2);
    assert_eq!(
        home.json(&["runtime", "ls"]),
        json!([]),
        "no store is no fault, and none is made"
    );
    assert!(!home.home().exists());
    registered(&home);
    home.run(&["runtime", "release", "999"])
        .exits(2)
        .hints("runwarden runtime ls");
    home.run(&["runtime", "release", "far"]).exits(64);
    home.run(&[
        "runtime", "register", "far", "--kind", "local", "--host", "h", "--handle", "x",
    ])
    .exits(64);
    home.run(&[
        "runtime", "register", "far", "--kind", "ssh", "--host", "", "--handle", "x",
    ])
    .exits(64);
    home.run(&[
        "runtime", "register", "no-one", "--kind", "ssh", "--host", "h", "--handle", "x",
    ])
    .exits(2);
    home.run(&["runtime"]).exits(64).hints("runwarden runtime --help");
}

//! create, transition, report, show and history.

use serde_json::{Value, json};

use crate::harness::Home;

const DONE: [&str; 3] = ["completed", "--reason", "run.completed.ok"];

#[test]
fn create_prints_the_reference_alone() {
    let home = Home::new();
    let reference = home.done(&["create", "session"]);
    let id = reference.strip_prefix("session/").expect("kind and id");
    assert!(id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{id}");
    let entity = home.json(&["create", "play", "--id", "p-1", "--tag", "a=b", "--parent", &reference]);
    assert_eq!(
        (&entity["ref"], &entity["status"], &entity["version"]),
        (&json!("play/p-1"), &json!("pending"), &json!(1))
    );
    assert_eq!(
        (&entity["tags"], &entity["parents"]),
        (&json!({"a": "b"}), &json!([reference]))
    );
    assert_eq!(entity["reason"]["code"], "play.pending.created");
    assert_eq!(home.json(&["show", &reference])["children"], json!(["play/p-1"]));
}

#[test]
fn the_document_of_an_entity_has_every_member() {
    let home = Home::new();
    let reference = home.done(&["create", "session", "--field", "num_turns=3"]);
    let entity = home.json(&["show", &reference]);
    let names: Vec<&str> = entity
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    insta::assert_snapshot!(names.join(" "));
    assert_eq!(entity["fields"], json!({"num_turns": 3}));
    for moment in ["created_at", "updated_at"] {
        assert!(entity[moment].as_str().is_some_and(|at| at.ends_with('Z')), "{entity}");
    }
    assert_eq!(
        home.history_of(&reference)[0]["actor"],
        json!({"kind": "operator", "id": "ada"})
    );
}

#[test]
fn plural_kinds_are_understood_wherever_a_kind_is_typed() {
    let home = Home::new();
    let reference = home.done(&["create", "sessions", "--id", "s-1"]);
    assert_eq!(reference, "session/s-1");
    assert_eq!(home.json(&["show", "sessions/s-1"])["id"], "s-1");
    assert_eq!(home.json(&["ls", "sessions"])[0]["id"], "s-1");
    assert_eq!(home.json(&["policy", "matrix", "dispatches"])["kind"], "dispatch");
    assert_eq!(home.json(&["policy", "show", "schedule_runs@1"])["version"], "1.0.0");
}

#[test]
fn a_creation_that_is_wrong_makes_nothing() {
    let home = Home::new();
    home.done(&["create", "session", "--id", "taken"]);
    home.run(&["create", "play", "--id", "taken"])
        .exits(4)
        .hints("runwarden show taken");
    home.run(&["create", "nokind"]).exits(2).hints("the kinds are dispatch");
    home.run(&["create", "session", "--status", "nonsense"]).exits(64);
    home.run(&["create", "session", "--id", "-x"]).exits(64);
    home.run(&["create", "session", "--id", "a/b"]).exits(64);
    home.run(&["create", "session", "--reason", "no.such.code"])
        .exits(64)
        .hints("runwarden policy show session");
    home.run(&["create", "session", "--field", "nosuch=1"]).exits(64);
    home.run(&["create", "session", "--parent", "session/none"]).exits(2);
    home.run(&["create", "session", "--policy", "session@9"]).exits(2);
    home.run(&["create", "session", "--actor", "robot:x"]).exits(64);
    assert_eq!(home.json(&["ls", "--all"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn a_creation_with_a_key_is_safe_to_repeat() {
    let home = Home::new();
    let first = home.done(&["create", "session", "--idempotency-key", "k"]);
    assert_eq!(home.done(&["create", "session", "--idempotency-key", "k"]), first);
    home.run(&["create", "play", "--idempotency-key", "k"]).exits(64);
}

#[test]
fn who_is_to_be_told_is_part_of_a_creation_with_a_key_and_what_the_settings_say_is_not() {
    let home = Home::new();
    let with = |options: &[&str]| {
        let creation = ["create", "session", "--idempotency-key", "k"];
        home.run(&[creation.as_slice(), options].concat())
    };
    let told = ["--notify", "[\"true\",\"{payload}\"]"];
    let first = with(&told).exits(0).out;
    let journal = home.path("journal");
    let journal = journal.to_str().expect("text");
    home.done(&["notify", "add", "journal", "--file", journal]);
    assert_eq!(with(&told).exits(0).out, first);
    let others: [&[&str]; 4] = [
        &[],
        &["--no-notify"],
        &["--notify", "journal"],
        &["--notify", "[\"false\",\"{payload}\"]"],
    ];
    for other in others {
        with(other).exits(64);
    }
}

#[test]
fn a_transition_ends_with_0_4_or_5_and_says_so_on_one_line() {
    let home = Home::new();
    let reference = home.done(&["create", "session", "--id", "s-1"]);
    let line = |words: &[&str], code: i32| -> String {
        let mut arguments = vec!["transition", reference.as_str()];
        arguments.extend(words);
        let answer = home.run(&arguments).exits(code);
        assert_eq!(answer.out.lines().count(), 1, "{}", answer.out);
        answer.out.trim_end().to_owned()
    };
    let dry = line(&[&DONE[..], &["--dry-run"]].concat(), 0);
    insta::assert_snapshot!(dry, @"session/s-1: running → completed would be version 2; nothing was changed");
    let conflict = line(&[&DONE[..], &["--expect", "failed"]].concat(), 4);
    insta::assert_snapshot!(conflict, @"session/s-1: conflict: expected status failed, found running; it is running at version 1");
    line(&[&DONE[..], &["--expect", "none"]].concat(), 4);
    line(&[&DONE[..], &["--expect-version", "9"]].concat(), 4);
    line(&[&DONE[..], &["--guard", "exit_code=1"]].concat(), 4);
    insta::assert_snapshot!(line(&DONE, 0), @"session/s-1: running → completed (version 2)");
    let rejected = line(&["running", "--reason", "run.started.ok"], 5);
    insta::assert_snapshot!(rejected, @"session/s-1: rejected: completed → running: completed is terminal: it stays (terminal)");
    line(&["running", "--reason", "run.started.ok", "--dry-run"], 5);
    assert_eq!(home.history_of(&reference).len(), 2);
}

#[test]
fn a_transition_that_is_wrong_is_64() {
    let home = Home::new();
    let reference = home.done(&["create", "session"]);
    for words in [
        &["completed"][..],
        &["nonsense", "--reason", "run.completed.ok"],
        &["completed", "--reason", "no.such.code"],
        &["completed", "--reason", "run.completed.ok", "--set", "nosuch=1"],
        &["completed", "--reason", "run.completed.ok", "--set", "exit_code=x"],
        &["completed", "--reason", "run.completed.ok", "--metadata", "[]"],
        &["completed", "--reason", "run.completed.ok", "--override"],
        &[
            "completed",
            "--reason",
            "run.completed.ok",
            "--override",
            "--override-actor",
            "",
            "--justification",
            "x",
        ],
        &["completed", "--reason", "run.completed.ok", "--justification", "x"],
    ] {
        home.run(&[&["transition", reference.as_str()][..], words].concat())
            .exits(64);
    }
    home.run(&[
        "transition",
        "session/none",
        "completed",
        "--reason",
        "run.completed.ok",
    ])
    .exits(2);
}

#[test]
fn a_key_replays_its_own_transition_and_no_other() {
    let home = Home::new();
    let reference = home.done(&["create", "session"]);
    let done = [
        "transition",
        &reference,
        "completed",
        "--reason",
        "run.completed.ok",
        "--idempotency-key",
        "k",
    ];
    let (first, again) = (home.json(&done), home.json(&done));
    assert_eq!(
        (&first["transition_id"], &first["replayed"]),
        (&again["transition_id"], &json!(false))
    );
    assert_eq!(again["replayed"], json!(true));
    home.run(&[
        "transition",
        &reference,
        "failed",
        "--reason",
        "run.failed.exception",
        "--idempotency-key",
        "k",
    ])
    .exits(64);
    assert_eq!(home.history_of(&reference).len(), 2);
}

#[test]
fn refusals_and_overrides_are_audited() {
    let home = Home::new();
    let reference = home.done(&["create", "session"]);
    home.json(&["transition", &reference, "completed", "--reason", "run.completed.ok"]);
    home.run(&["transition", &reference, "failed", "--reason", "run.failed.exception"])
        .exits(5);
    let audited = [
        "transition",
        &reference,
        "failed",
        "--reason",
        "run.failed.exception",
        "--override",
        "--override-actor",
        "ada",
        "--justification",
        "it lied",
    ];
    assert_eq!(home.json(&audited)["previous_status"], "completed");
    let events = home.json(&["history", &reference, "--admin"]);
    let actions: Vec<&str> = events
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(|e| e["action"].as_str())
        .collect();
    assert_eq!(actions, ["status_transition_rejected", "status_transition_override"]);
    assert!(
        home.done(&["history", "--admin"])
            .contains("status_transition_override")
    );
}

/// A late writer that says what it expects loses quietly; one that does not is refused, and that is audited.
#[test]
fn a_late_end_does_not_replace_the_first() {
    let home = Home::new();
    let reference = home.done(&["create", "session"]);
    home.done(&["transition", &reference, "failed", "--reason", "run.failed.exception"]);
    let late = ["transition", &reference, "completed", "--reason", "run.completed.ok"];
    home.run(&[&late[..], &["--expect", "running"]].concat()).exits(4);
    assert_eq!(home.json(&["history", &reference, "--admin"]), json!([]));
    home.run(&late).exits(5);
    assert_eq!(
        home.json(&["history", &reference, "--admin"]).as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(home.json(&["show", &reference])["status"], "failed");
}

/// What is to go on after it had ended is opened again by an audited word alone, and then has no end.
#[test]
fn an_end_is_taken_back_by_an_override_alone() {
    let home = Home::new();
    let reference = home.done(&["create", "session"]);
    let reason = ["--reason", "run.timed_out.deadline", "--set", "exit_code=1"];
    home.done(&[&["transition", &reference, "timed_out"], &reason[..]].concat());
    let again = ["transition", &reference, "running", "--reason", "run.started.ok"];
    home.run(&again).exits(5);
    let word = ["--override", "--override-actor", "ada", "--justification", "it goes on"];
    home.done(&[&again[..], &word].concat());
    let shown = home.json(&["show", &reference]);
    assert_eq!(
        (&shown["status"], &shown["terminal"], &shown["ended_at"]),
        (&json!("running"), &json!(false), &Value::Null),
        "{shown}"
    );
    let events = home.json(&["history", &reference, "--admin"]);
    let last = events.as_array().and_then(|events| events.last()).cloned();
    assert_eq!(last.expect("an audit row")["action"], "status_transition_override");
    home.done(&["transition", &reference, "completed", "--reason", "run.completed.ok"]);
}

#[test]
fn a_reference_is_an_id_a_prefix_or_a_kind_and_an_id() {
    let home = Home::new();
    for id in ["abcd-one", "abcd-two", "efgh-one"] {
        home.done(&["create", "session", "--id", id]);
    }
    assert_eq!(home.json(&["show", "efgh"])["id"], "efgh-one");
    assert_eq!(home.json(&["show", "session/efgh"])["id"], "efgh-one");
    home.run(&["show", "efg"]).exits(2).hints("runwarden ls");
    home.run(&["show", "play/efgh-one"]).exits(2);
    let ambiguous = home.run(&["show", "abcd"]).exits(2).hints("more of the id");
    assert!(
        ambiguous.err.contains("session/abcd-one") && ambiguous.err.contains("session/abcd-two"),
        "{}",
        ambiguous.err
    );
    let unknown = home.run(&["show", "nope"]).exits(2);
    assert!(unknown.err.contains("state.db"), "the store is named: {}", unknown.err);
}

#[test]
fn a_report_is_for_the_run_it_comes_from() {
    let home = Home::new();
    let reference = home.done(&["create", "session", "--id", "own"]);
    home.run(&["report"]).exits(2);
    let own = [("RUNWARDEN_ID", "own")];
    std::fs::write(home.path("proof"), "x").expect("a file");
    let words = [
        "report",
        "--progress",
        "3/10",
        "--message",
        "compiling",
        "--evidence",
        "proof",
        "--set",
        "num_turns=2",
    ];
    home.run_with(&words, &own).exits(0);
    home.run_with(&["report", "--evidence", "absent"], &own).exits(65);
    home.run_with(
        &[
            "report",
            "failed",
            "--reason",
            "run.failed.exception",
            "--message",
            "no network",
        ],
        &own,
    )
    .exits(0);
    let entity = home.json(&["show", &reference]);
    assert_eq!(
        (&entity["status"], &entity["fields"]["num_turns"]),
        (&json!("failed"), &json!(2))
    );
    let history = home.history_of(&reference);
    assert_eq!(history[1]["actor"], json!({"kind": "agent", "id": "own"}));
    assert_eq!(history[1]["metadata"]["progress"], json!({"done": 3, "total": 10}));
}

#[test]
fn show_tells_people_the_same() {
    let home = Home::new();
    home.done(&[
        "create",
        "play",
        "--id",
        "p-1",
        "--tag",
        "team=core",
        "--summary",
        "the big one",
    ]);
    let shown = home.done(&["show", "p-1"]);
    insta::with_settings!({filters => vec![
        (r"\d\d:\d\d:\d\d \(.*\)", "[moment]"), (r"for        .*", "for        [time]"), (r"\([0-9a-f]{12}\)", "([digest])"),
    ]}, { insta::assert_snapshot!(shown) });
    home.run(&["show", "p-1", "--command"])
        .exits(2)
        .hints("runwarden show play/p-1");
}

impl Home {
    fn history_of(&self, reference: &str) -> Vec<Value> {
        self.json(&["history", reference]).as_array().expect("an array").clone()
    }
}

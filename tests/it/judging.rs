//! What the functions of a policy say, end to end: guards with what is kept of their calls, verdicts, refused ends.

use runwarden_test_guests::{Mode, hostile};
use serde_json::{Value, json};

use crate::harness::{Home, PROGRAM, until};

/// A home in which the guest governs gadgets.
fn governed_by(mode: Mode) -> Home {
    let home = Home::new();
    let file = home.path("gadget.wasm");
    std::fs::write(&file, hostile(mode)).expect("a file");
    home.done(&["policy", "install", &file.to_string_lossy(), "--activate"]);
    home
}

fn history(home: &Home, id: &str) -> Vec<Value> {
    home.json(&["history", id]).as_array().expect("an array").clone()
}

/// Audit rows of an entity.
fn refusals(home: &Home, reference: &str) -> Vec<Value> {
    let all = home.json(&["history", "--admin"]);
    let rows = all.as_array().expect("an array").iter();
    rows.filter(|event| event["target"] == reference).cloned().collect()
}

const HOLD: [&str; 7] = [
    "transition",
    "g",
    "held",
    "--reason",
    "gadget.held.asked",
    "--set",
    "note=\"warm\"",
];

#[test]
fn the_call_of_a_guard_that_admitted_is_kept_with_the_history() {
    let home = governed_by(Mode::Honest);
    let made = home.json(&["create", "gadget", "--id", "g"]);
    home.done(&HOLD);
    home.done(&["transition", "g", "working", "--reason", "gadget.working.resumed"]);
    let rows = history(&home, "g");
    let kept: Vec<bool> = rows.iter().map(|row| row.get("guarded").is_some()).collect();
    assert_eq!(kept, [false, true, false], "where a guard was asked");
    let call = &rows[1]["guarded"];
    assert_eq!(call["component"], made["policy"]["digest"]);
    assert_eq!(call["decision"], json!({"admitted": true}));
    let request = &call["request"];
    assert_eq!(
        (&request["target"], &request["patch"], &request["overridden"]),
        (&json!("held"), &json!({"note": "warm"}), &json!(false))
    );
    assert_eq!(request["parameters"], json!({"patience": 3}));
    let entity = &request["entity"];
    assert_eq!(
        (&entity["ref"], &entity["status"], &entity["version"]),
        (&json!("gadget/g"), &json!("working"), &json!(1))
    );
    assert_eq!(
        call["request_bytes"],
        request.to_string().len(),
        "canonical: read and written again it is the same"
    );
    assert!(home.json(&["show", "g"]).get("guarded").is_none());
    assert!(!home.done(&["history", "g"]).contains("admitted"));
}

#[test]
fn the_call_of_a_guard_that_refused_is_kept_with_the_refusal() {
    for (mode, code) in [(Mode::GuardRefuses, "too_early"), (Mode::GuardPanics, "policy_fault")] {
        let home = governed_by(mode);
        home.done(&["create", "gadget", "--id", "g"]);
        home.run(&HOLD).exits(5);
        let [refused] = &refusals(&home, "gadget/g")[..] else {
            panic!("{mode:?}: one refusal, one row")
        };
        let call = &refused["details"]["guarded"];
        assert_eq!(
            (&call["decision"]["admitted"], &call["decision"]["code"]),
            (&json!(false), &json!(code)),
            "{mode:?}: {refused}"
        );
        assert_eq!(call["request"]["target"], "held");
        assert!(!home.done(&["history", "--admin"]).contains("request_digest"));
    }
}

#[test]
fn a_rehearsal_keeps_nothing_and_an_edge_without_a_guard_has_no_call() {
    let home = governed_by(Mode::GuardRefuses);
    home.done(&["create", "gadget", "--id", "g"]);
    home.run(&[&HOLD[..], &["--dry-run"]].concat()).exits(5);
    assert_eq!(refusals(&home, "gadget/g"), [Value::Null; 0]);
    home.run(&["transition", "g", "working", "--reason", "gadget.nowhere"])
        .exits(64);
    assert_eq!(refusals(&home, "gadget/g"), [Value::Null; 0]);
}

fn run(home: &Home, script: &str, exits: i32) -> Value {
    home.run(&["run", "--kind", "gadget", "--id", "g", "--", "sh", "-c", script])
        .exits(exits);
    home.json(&["show", "g"])
}

#[test]
fn a_verdict_against_exit_code_0_is_an_end_without_success() {
    let home = governed_by(Mode::VerdictSpoils);
    let answer = home
        .run(&["run", "--kind", "gadget", "--id", "g", "--", "true"])
        .exits(1);
    assert!(answer.err.contains("gadget.spoiled.bad"), "{}", answer.err);
    let shown = home.json(&["show", "g"]);
    assert_eq!(
        (&shown["status"], &shown["success"]),
        (&json!("spoiled"), &json!(false))
    );
    assert_eq!(shown["reason"]["code"], "gadget.spoiled.bad");
    assert_eq!(shown["reason"]["summary"], "it hums out of tune");
    assert_eq!(
        (&shown["fields"]["note"], &shown["fields"]["exit_code"]),
        (&json!("out of tune"), &json!(0))
    );
    let rows = history(&home, "g");
    let last = rows.last().expect("an end");
    assert_eq!(
        (&last["status"], &last["reason"]["summary"]),
        (&json!("spoiled"), &json!("it hums out of tune"))
    );
}

#[test]
fn a_verdict_in_favour_of_another_exit_code_is_a_success_with_the_programs_code() {
    let home = governed_by(Mode::VerdictDiffers);
    let shown = run(&home, "exit 7", 7);
    assert_eq!((&shown["status"], &shown["success"]), (&json!("done"), &json!(true)));
    assert_eq!(shown["reason"]["summary"], "saved by its notes");
    assert_eq!(
        (&shown["fields"]["note"], &shown["fields"]["exit_code"]),
        (&json!("was warm"), &json!(7))
    );
}

#[test]
fn a_verdict_that_fails_is_the_rules_policy_fault_with_the_true_exit_code() {
    for mode in [Mode::VerdictPanics, Mode::VerdictLoops, Mode::VerdictUndeclaredEdge] {
        let home = governed_by(mode);
        let shown = run(&home, "exit 7", 7);
        assert_eq!(shown["reason"]["code"], "gadget.spoiled.policy_fault", "{mode:?}");
        assert_eq!(shown["fields"]["exit_code"], 7, "{mode:?}");
        let summary = shown["reason"]["summary"].as_str().expect("a summary");
        assert!(summary.contains("execution.verdict"), "{mode:?}: {summary}");
    }
}

#[test]
fn an_end_that_the_policy_refuses_is_told_once_and_everything_goes_on() {
    let home = governed_by(Mode::Honest);
    let script = format!("{PROGRAM} report shelved --reason gadget.shelved.put");
    home.run(&[
        "run", "--detach", "--kind", "gadget", "--id", "g", "--", "sh", "-c", &script,
    ])
    .exits(0);
    until("the process is known to have ended", || {
        home.json(&["show", "g"])["runtime"]["state"] == "stopped"
    });
    for _ in 0..3 {
        let shown = home.json(&["show", "g"]);
        assert_eq!(
            (&shown["status"], &shown["terminal"]),
            (&json!("shelved"), &json!(false))
        );
        home.done(&["ls"]);
        home.run(&["wait", "g", "--timeout", "0"]).exits(3);
    }
    home.run(&["wait", "g", "--until", "shelved"]).exits(0);
    let refused = refusals(&home, "gadget/g");
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["details"]["attempted_status"], "spoiled");
    home.done(&["transition", "g", "scrapped", "--reason", "gadget.scrapped.operator"]);
    home.run(&["wait", "g"]).exits(1);
}

#[test]
fn a_foreground_run_whose_end_is_refused_ends_with_its_program() {
    let home = governed_by(Mode::Honest);
    let shown = run(
        &home,
        &format!("{PROGRAM} report shelved --reason gadget.shelved.put; exit 7"),
        7,
    );
    assert_eq!(
        (&shown["status"], &shown["runtime"]["state"]),
        (&json!("shelved"), &json!("stopped"))
    );
    assert_eq!(refusals(&home, "gadget/g").len(), 1);
}

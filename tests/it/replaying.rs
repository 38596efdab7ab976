//! `policy replay`: recorded history judged again by a policy that was never installed, or is not in force.

use runwarden_host::model::Descriptor;
use runwarden_host::policy::table;
use runwarden_test_guests::{Mode, hostile};
use serde_json::{Value, json};

use crate::harness::{Answer, Home, PROGRAM};

/// A file with the guest in a mode.
fn guest(home: &Home, mode: Mode) -> String {
    let file = home.path(&format!("{mode:?}.wasm"));
    std::fs::write(&file, hostile(mode)).expect("a file");
    file.to_string_lossy().into_owned()
}

/// A home in which the guest governs gadgets.
fn governed_by(mode: Mode) -> Home {
    let home = Home::new();
    let file = guest(&home, mode);
    home.done(&["policy", "install", &file, "--activate"]);
    home
}

/// A file with the table of a policy that ships, changed.
fn changed(home: &Home, kind: &str, change: impl FnOnce(&mut Descriptor)) -> String {
    let ships = runwarden_bundled::POLICIES.iter().find(|policy| policy.kind == kind);
    let text = ships.expect("it ships").descriptor;
    let mut descriptor: Descriptor = serde_json::from_str(text).expect("a descriptor");
    change(&mut descriptor);
    let file = home.path("changed.wasm");
    std::fs::write(&file, table::component(&descriptor)).expect("a file");
    file.to_string_lossy().into_owned()
}

fn replay(home: &Home, candidate: &str) -> Answer {
    home.run(&["policy", "replay", candidate, "--json"])
}

/// The differences: from, to, what the candidate says, how often, and where.
fn groups(report: &Value) -> Vec<(Value, Value, Value, Value, Value)> {
    let groups = report["groups"].as_array().expect("an array").iter();
    groups
        .map(|group| {
            let said = &group["candidate"];
            let word = if said["outcome"] == "applied" {
                &said["status"]
            } else {
                &said["code"]
            };
            (
                group["from"].clone(),
                group["to"].clone(),
                word.clone(),
                group["count"].clone(),
                group["examples"].clone(),
            )
        })
        .collect()
}

fn hold(home: &Home, id: &str, exits: i32) {
    home.run(&[
        "transition",
        id,
        "held",
        "--reason",
        "gadget.held.asked",
        "--set",
        "note=\"warm\"",
    ])
    .exits(exits);
}

#[test]
fn a_policy_judged_by_itself_says_what_it_said() {
    for mode in [Mode::GuardPanics, Mode::VerdictDiffers] {
        let home = governed_by(mode);
        home.done(&["create", "gadget", "--id", "g"]);
        let refuses = mode == Mode::GuardPanics;
        hold(&home, "g", if refuses { 5 } else { 0 });
        home.run(&["transition", "g", "done", "--reason", "gadget.done.ok"])
            .exits(if refuses { 0 } else { 5 });
        home.run(&["run", "--kind", "gadget", "--id", "r", "--", "sh", "-c", "exit 7"])
            .exits(7);
        let report = replay(&home, &guest(&home, mode)).exits(0).document();
        assert_eq!(
            (&report["judged"], &report["same"], &report["not_judged"]),
            (&json!(5), &json!(5), &json!([])),
            "{mode:?}: {report}"
        );
        assert_eq!(
            replay(&home, "gadget").exits(0).document()["same"],
            5,
            "{mode:?}: installed"
        );
    }
}

#[test]
fn a_stricter_guard_is_told_to_refuse_exactly_what_it_would_have_refused() {
    let home = governed_by(Mode::Honest);
    for number in 0..4 {
        let id = format!("g{number}");
        home.done(&["create", "gadget", "--id", &id]);
        hold(&home, &id, 0);
        home.done(&["transition", &id, "working", "--reason", "gadget.working.resumed"]);
    }
    let answer = replay(&home, &guest(&home, Mode::GuardRefuses)).exits(1);
    let report = answer.document();
    assert_eq!(
        groups(&report),
        [(
            json!("working"),
            json!("held"),
            json!("too_early"),
            json!(4),
            json!(["gadget/g3", "gadget/g2", "gadget/g1"])
        )]
    );
    assert_eq!((&report["judged"], &report["same"]), (&json!(12), &json!(8)));
    assert_eq!(report["judged_in_part"], 4, "what resumed them set is not known");
    assert_eq!(replay(&home, &guest(&home, Mode::GuardRefuses)).out, answer.out);
    let limited = home.run(&[
        "policy",
        "replay",
        &guest(&home, Mode::GuardRefuses),
        "--limit",
        "3",
        "--json",
    ]);
    assert_eq!(limited.exits(1).document()["judged"], 3);
    let told = home
        .run(&["policy", "replay", &guest(&home, Mode::GuardRefuses)])
        .exits(1);
    assert!(told.out.contains("refused: too_early"), "{}", told.out);
    let installed = home.json(&["policy", "ls"]);
    let installed = installed.as_array().expect("an array").iter();
    let gadgets = installed.filter(|policy| policy["kind"] == "gadget").count();
    assert_eq!(gadgets, 1, "a candidate is not installed");
}

#[test]
fn what_a_milder_guard_would_have_admitted_is_told_from_the_audit_rows() {
    let home = governed_by(Mode::GuardRefuses);
    home.done(&["create", "gadget", "--id", "g"]);
    hold(&home, "g", 5);
    let report = replay(&home, &guest(&home, Mode::Honest)).exits(1).document();
    let group = &report["groups"][0];
    assert_eq!(
        (&group["recorded"], &group["candidate"]),
        (
            &json!({"outcome": "rejected", "code": "too_early"}),
            &json!({"outcome": "applied", "status": "held", "code": "gadget.held.asked"})
        )
    );
}

#[test]
fn a_guard_that_fails_is_a_fault_and_no_refusal() {
    let home = governed_by(Mode::GuardRefuses);
    home.done(&["create", "gadget", "--id", "g"]);
    hold(&home, "g", 5);
    let report = replay(&home, &guest(&home, Mode::GuardLoops)).exits(1).document();
    assert_eq!(report["groups"][0]["candidate"]["outcome"], "fault", "{report}");
}

#[test]
fn a_verdict_is_asked_again_what_it_was_asked() {
    let home = governed_by(Mode::Honest);
    home.run(&["run", "--kind", "gadget", "--id", "bad", "--", "sh", "-c", "exit 7"])
        .exits(7);
    home.run(&["run", "--kind", "gadget", "--id", "good", "--", "true"])
        .exits(0);
    home.done(&["rm", "good"]);
    let kept = &home.json(&["history", "bad"])[1]["end"];
    assert_eq!(kept["ending"], json!({"how": "natural", "exit_code": 7}));
    assert_eq!(
        (&kept["request"]["exit_code"], &kept["decision"]["status"]),
        (&json!(7), &json!("spoiled"))
    );
    let report = replay(&home, &guest(&home, Mode::VerdictDiffers)).exits(1).document();
    let said = |to: &str, code: &str| (json!("working"), json!(to), json!(code));
    let told: Vec<_> = groups(&report)
        .into_iter()
        .map(|(from, to, word, ..)| (from, to, word))
        .collect();
    assert_eq!(
        told,
        [said("done", "done"), said("spoiled", "done")],
        "codes differ, too"
    );
    let report = replay(&home, &guest(&home, Mode::VerdictSpoils)).exits(1).document();
    assert_eq!(
        groups(&report),
        [(
            json!("working"),
            json!("done"),
            json!("spoiled"),
            json!(1),
            json!(["gadget/good"])
        )],
        "a removed run is judged by its history"
    );
}

#[test]
fn ends_that_a_table_judged_are_judged_by_another_table() {
    let home = Home::new();
    home.run(&["run", "--id", "three", "--", "sh", "-c", "exit 3"]).exits(3);
    home.run(&["run", "--id", "none", "--", "true"]).exits(0);
    home.run(&["run", "--id", "absent", "--", "/nonexistent/program"])
        .exits(127);
    let same = changed(&home, "run", |descriptor| "9.0.0".clone_into(&mut descriptor.version));
    assert_eq!(replay(&home, &same).exits(0).document()["same"], 6);
    let milder = changed(&home, "run", |descriptor| {
        let good = descriptor
            .verdicts
            .iter()
            .find(|row| row.outcome.status == "completed")
            .cloned();
        let mut good = good.expect("some end is a success");
        good.exit_codes = Some((3, 3));
        good.evidence = None;
        descriptor.verdicts.insert(0, good);
    });
    let report = replay(&home, &milder).exits(1).document();
    let told = groups(&report);
    assert_eq!(told.len(), 1, "{report}");
    assert_eq!(
        (&told[0].1, &told[0].2, &told[0].4),
        (&json!("failed"), &json!("completed"), &json!(["run/three"]))
    );
}

#[test]
fn what_the_history_does_not_tell_is_counted_and_not_made_up() {
    let home = governed_by(Mode::Honest);
    home.done(&["create", "gadget", "--id", "g"]);
    let huge = format!("note={}", json!("x".repeat(70_000)));
    home.run(&[
        "transition",
        "g",
        "held",
        "--reason",
        "gadget.held.asked",
        "--set",
        &huge,
    ])
    .exits(0);
    let report = replay(&home, &guest(&home, Mode::GuardRefuses)).exits(0).document();
    let unknown = &report["not_judged"][0];
    assert_eq!(
        (&unknown["count"], &unknown["examples"]),
        (&json!(1), &json!(["gadget/g"]))
    );
    assert!(
        unknown["why"].as_str().expect("words").contains("too large"),
        "{unknown}"
    );

    home.done(&["create", "play", "--id", "p"]);
    let first = home.json(&["show", "p"])["status"]
        .as_str()
        .expect("a status")
        .to_owned();
    let table = home.json(&["policy", "show", "play"]);
    let edges = table["descriptor"]["edges"].as_array().expect("edges").clone();
    let edge = edges
        .iter()
        .find(|edge| edge["from"] == first.as_str() && edge["actors"] == json!([]));
    let to = edge.expect("a way on")["to"].as_str().expect("a status").to_owned();
    let codes = table["descriptor"]["reason_codes"].as_array().expect("codes").clone();
    let code = codes[0]["code"].as_str().expect("a code").to_owned();
    home.done(&["transition", "p", &to, "--reason", &code]);
    let demanding = changed(&home, "play", |descriptor| {
        let field = descriptor.fields[0].name.clone();
        for edge in &mut descriptor.edges {
            if edge.from == first && edge.to == to {
                edge.required_patch = vec![field.clone()];
            }
        }
    });
    let answer = replay(&home, &demanding);
    let report = answer.document();
    assert!(
        report["not_judged"][0]["why"]
            .as_str()
            .expect("words")
            .contains("was not recorded"),
        "{report}"
    );
}

#[test]
fn an_override_is_an_override_again_and_a_lost_status_is_told() {
    let home = governed_by(Mode::Honest);
    home.done(&["create", "gadget", "--id", "g"]);
    home.done(&["transition", "g", "done", "--reason", "gadget.done.ok"]);
    home.done(&[
        "transition",
        "g",
        "working",
        "--reason",
        "gadget.working.resumed",
        "--override",
        "--override-actor",
        "ada",
        "--justification",
        "it was not done",
    ]);
    assert_eq!(replay(&home, "gadget").exits(0).document()["same"], 3);
    let play = replay(&home, "play").exits(0).document();
    assert_eq!((&play["kind"], &play["judged"]), (&json!("play"), &json!(0)));
    let answer = home
        .run(&["policy", "replay", "play", "--kind", "gadget", "--json"])
        .exits(1);
    let words: Vec<Value> = groups(&answer.document()).into_iter().map(|group| group.2).collect();
    assert!(
        words.iter().all(|word| *word == "status" || *word == "reason"),
        "{words:?}"
    );
}

#[test]
fn a_report_is_asked_of_policies_alone() {
    let home = Home::new();
    home.done(&["create", "play", "--id", "p"]);
    home.run(&["policy", "replay", "webhook"])
        .exits(64)
        .hints("notify test");
    home.run(&["policy", "replay", PROGRAM]).exits(65);
    home.run(&["policy", "replay", "nothing@1"]).exits(2);
}

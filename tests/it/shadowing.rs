//! A policy that judges beside the one that decides: what it says is kept, and nothing it does changes anything.

use runwarden_host::policy::sha256_hex;
use runwarden_test_guests::{Mode, hostile};
use serde_json::{Value, json};

use crate::harness::{Answer, Home};

/// A home in which one guest governs gadgets and another one judges them.
fn judged_by(active: Mode, shadow: Mode) -> Home {
    let home = Home::new();
    for (mode, more) in [(active, &["--activate"][..]), (shadow, &[])] {
        let file = home.path("gadget.wasm");
        std::fs::write(&file, hostile(mode)).expect("a file");
        home.done(&[&["policy", "install", &file.to_string_lossy()], more].concat());
    }
    let digest = digest(shadow);
    home.done(&[
        "policy",
        "activate",
        &digest,
        "--shadow",
        "--reason",
        "what would it refuse?",
    ]);
    home
}

fn digest(mode: Mode) -> String {
    sha256_hex(&hostile(mode))
}

fn hold(home: &Home) -> Answer {
    home.run(&["transition", "g", "held", "--reason", "gadget.held.asked"])
}

fn differences(home: &Home) -> Vec<Value> {
    let all = home.json(&["history", "--admin"]);
    let rows = all.as_array().expect("an array").iter();
    rows.filter(|event| event["action"] == "shadow_difference")
        .cloned()
        .collect()
}

fn counts(home: &Home) -> Value {
    home.json(&["policy", "shadow", "gadget"])["counts"].clone()
}

#[test]
fn what_a_shadow_would_refuse_is_applied_and_told() {
    let home = judged_by(Mode::Honest, Mode::GuardRefuses);
    home.done(&["create", "gadget", "--id", "g"]);
    hold(&home).exits(0);
    home.done(&["transition", "g", "working", "--reason", "gadget.working.resumed"]);
    assert_eq!(home.json(&["show", "g"])["status"], "working");
    let [difference] = &differences(&home)[..] else {
        panic!("one difference")
    };
    let details = &difference["details"];
    assert_eq!(
        (&difference["target"], &details["shadow"], &details["message"]),
        (
            &json!("gadget/g"),
            &json!(digest(Mode::GuardRefuses)),
            &json!("the gadget is still warm")
        )
    );
    assert_eq!(
        (&details["recorded"]["outcome"], &details["candidate"]),
        (&json!("applied"), &json!({"outcome": "rejected", "code": "too_early"}))
    );
    let report = home.json(&["policy", "shadow", "gadget"]);
    assert_eq!(report["counts"], json!({"same": 1, "different": 1, "not_judged": 0}));
    assert_eq!(
        (&report["groups"][0]["count"], &report["groups"][0]["examples"]),
        (&json!(1), &json!(["gadget/g"]))
    );
    assert_eq!(
        (&report["reason"], &report["candidate"]["name"]),
        (&json!("what would it refuse?"), &json!("gadget"))
    );
    assert!(home.done(&["policy", "shadow"]).contains("refused: too_early"));
}

#[test]
fn what_is_refused_is_judged_with_its_audit_row() {
    let home = judged_by(Mode::GuardRefuses, Mode::Honest);
    home.done(&["create", "gadget", "--id", "g"]);
    hold(&home).exits(5);
    home.run(&[
        "transition",
        "g",
        "done",
        "--reason",
        "gadget.held.asked",
        "--expect",
        "held",
    ])
    .exits(4);
    home.run(&["transition", "g", "working", "--reason", "gadget.working.resumed"])
        .exits(0);
    assert_eq!(
        counts(&home),
        json!({"same": 1, "different": 1, "not_judged": 0}),
        "a conflict is not judged"
    );
    assert_eq!(differences(&home)[0]["details"]["candidate"]["status"], "held");
}

#[test]
fn a_shadow_that_traps_or_never_ends_changes_nothing() {
    for mode in [Mode::GuardPanics, Mode::GuardLoops] {
        let home = judged_by(Mode::Honest, mode);
        home.done(&["create", "gadget", "--id", "g"]);
        let told = hold(&home).exits(0);
        assert_eq!(told.err, "", "{mode:?}");
        let shown = home.json(&["show", "g"]);
        assert_eq!(
            (&shown["status"], &shown["version"]),
            (&json!("held"), &json!(2)),
            "{mode:?}"
        );
        assert_eq!(
            differences(&home)[0]["details"]["candidate"]["outcome"],
            "fault",
            "{mode:?}"
        );
    }
    for mode in [Mode::VerdictLoops, Mode::VerdictUndeclaredEdge] {
        let home = judged_by(Mode::Honest, mode);
        home.run(&["run", "--kind", "gadget", "--id", "r", "--", "sh", "-c", "exit 7"])
            .exits(7);
        let shown = home.json(&["show", "r"]);
        assert_eq!(
            (&shown["status"], &shown["reason"]["code"], &shown["fields"]["note"]),
            (&json!("spoiled"), &json!("gadget.spoiled.bad"), &Value::Null),
            "{mode:?}"
        );
        assert_eq!(
            counts(&home),
            json!({"same": 0, "different": 1, "not_judged": 0}),
            "{mode:?}"
        );
    }
}

#[test]
fn a_shadow_whose_code_is_gone_is_not_waited_for() {
    let home = judged_by(Mode::Honest, Mode::GuardRefuses);
    home.done(&["create", "gadget", "--id", "g"]);
    std::fs::remove_dir_all(home.home().join("cache/policies")).expect("a cache");
    hold(&home).exits(0);
    assert_eq!(
        home.json(&["policy", "shadow", "gadget"])["counts"]["not_judged"],
        1,
        "and it is compiled now"
    );
    home.done(&["transition", "g", "working", "--reason", "gadget.working.resumed"]);
    hold(&home).exits(0);
    assert_eq!(counts(&home), json!({"same": 1, "different": 1, "not_judged": 1}));
}

#[test]
fn a_shadow_is_marked_kept_and_ended() {
    let home = judged_by(Mode::Honest, Mode::GuardRefuses);
    let shadow = digest(Mode::GuardRefuses);
    let listed = home.json(&["policy", "ls"]);
    let mut marked = listed
        .as_array()
        .expect("an array")
        .iter()
        .filter(|policy| policy["shadow"] == true);
    assert_eq!(marked.next().expect("one is marked")["digest"], shadow.as_str());
    assert!(home.done(&["policy", "ls"]).contains("shadow"));
    home.run(&["policy", "rm", &shadow]).exits(4).hints("--stop");
    home.run(&["policy", "shadow", "gadget", "--stop"]).exits(64);
    home.run(&["policy", "shadow", "--stop", "--reason", "x"]).exits(64);
    home.done(&["policy", "shadow", "gadget", "--stop", "--reason", "seen enough"]);
    home.run(&["policy", "shadow", "gadget"]).exits(2).hints("--shadow");
    home.run(&["policy", "shadow", "gadget", "--stop", "--reason", "again"])
        .exits(64);
    home.done(&["create", "gadget", "--id", "g"]);
    hold(&home).exits(0);
    assert_eq!(differences(&home), [Value::Null; 0]);
    let all = home.json(&["history", "--admin"]);
    let told = all
        .as_array()
        .expect("an array")
        .iter()
        .filter(|event| event["target"] == shadow.as_str());
    let told: Vec<&Value> = told.map(|event| &event["action"]).collect();
    assert_eq!(told, ["policy_installed", "shadow_started", "shadow_stopped"]);
    home.done(&["policy", "rm", &shadow]);
}

#[test]
fn putting_a_shadow_in_force_ends_it() {
    let home = judged_by(Mode::Honest, Mode::GuardRefuses);
    let (active, shadow) = (digest(Mode::Honest), digest(Mode::GuardRefuses));
    home.run(&["policy", "activate", &active, "--shadow", "--reason", "x"])
        .exits(64);
    home.done(&[
        "policy",
        "activate",
        &shadow,
        "--reason",
        "two weeks without a difference",
    ]);
    assert_eq!(home.json(&["policy", "shadow"]), json!([]));
    home.run(&[
        "policy",
        "activate",
        &active,
        "--shadow",
        "--set",
        "patience=\"long\"",
        "--reason",
        "x",
    ])
    .exits(64);
    home.done(&[
        "policy",
        "activate",
        &active,
        "--shadow",
        "--set",
        "patience=5",
        "--reason",
        "was it milder?",
    ]);
    home.done(&["create", "gadget", "--id", "g"]);
    hold(&home).exits(5);
    let report = home.json(&["policy", "shadow", "gadget"]);
    assert_eq!(
        (&report["parameters"], &report["counts"]["different"]),
        (&json!({"patience": 5}), &json!(1))
    );
}

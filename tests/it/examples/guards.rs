//! strict-play, two-person-approval, cost-budget: what their guards refuse, in the words of each.

use runwarden_test_guests::{COST_BUDGET, STRICT_PLAY, TWO_PERSON_APPROVAL};
use serde_json::{Value, json};

use super::{activate, audited, install, live_by, moved, refused};
use crate::harness::{Answer, Home, PROGRAM};

fn spends(home: &Home, id: &str, cents: i64) -> Answer {
    let set = format!("--reason experiment.spent.reported --set cost_cents={cents}");
    moved(home, id, "running", &set)
}

#[test]
fn an_experiment_keeps_the_budget_that_it_began_under() {
    let home = Home::new();
    live_by(&home, COST_BUDGET, "cost_budget@1", &["limit_cents=500"]);
    home.done(&["create", "experiment", "--id", "before"]);
    activate(&home, "cost_budget@1", &["limit_cents=900"]);
    let after = home.json(&["create", "experiment", "--id", "after"]);
    assert_eq!(after["policy"]["parameters"], json!({"limit_cents": 900}));
    spends(&home, "before", 500).exits(0);
    refused(spends(&home, "before", 501), "1 over the budget of 500");
    spends(&home, "after", 900).exits(0);
    refused(spends(&home, "after", 901), "1 over the budget of 900");
    let shown = home.json(&["show", "before"]);
    assert_eq!(shown["policy"]["parameters"], json!({"limit_cents": 500}));
    assert_eq!(shown["fields"]["cost_cents"], 500, "what was refused was not spent");
    assert!(home.done(&["show", "before"]).contains("limit_cents=500"));
    home.done(&["policy", "rollback", "experiment", "--reason", "too generous"]);
    let back = home.json(&["create", "experiment", "--id", "back"]);
    assert_eq!(
        back["policy"]["parameters"],
        json!({"limit_cents": 500}),
        "one step back"
    );
}

#[test]
fn a_budget_that_was_never_set_is_asked_for_and_one_that_is_no_number_is_refused() {
    let home = Home::new();
    install(&home, COST_BUDGET);
    let unset = home
        .run(&["create", "experiment", "--policy", "cost_budget@1"])
        .exits(64);
    assert!(unset.err.contains("limit_cents"), "{}", unset.err);
    unset.hints("policy activate cost_budget@1.0.0 --set limit_cents=VALUE");
    home.run(&["policy", "activate", "cost_budget@1", "--reason", "none is set"])
        .exits(64);
    home.run(&[
        "policy",
        "activate",
        "cost_budget@1",
        "--set",
        "limit_cents=much",
        "--reason",
        "a word",
    ])
    .exits(64);
}

#[test]
fn a_program_learns_that_its_budget_is_used_up_and_what_it_spent_is_kept() {
    let home = Home::new();
    live_by(&home, COST_BUDGET, "cost_budget@1", &["limit_cents=500"]);
    // It asks before it spends, in steps of 200.
    let script = format!(
        "for sum in 200 400 600 800; do {PROGRAM} report --set cost_cents=$sum || exit 3; echo spent $sum; done"
    );
    let answer = home.run(&["run", "--kind", "experiment", "--id", "e", "--", "sh", "-c", &script]);
    let answer = answer.exits(3);
    assert!(
        answer.out.contains("spent 400") && !answer.out.contains("spent 600"),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("100 over the budget of 500"), "{}", answer.out);
    let ended = home.over("e");
    assert_eq!(
        (&ended["status"], &ended["fields"]["cost_cents"]),
        (&json!("failed"), &json!(400))
    );
    assert_eq!(audited(&home, "status_transition_rejected", "experiment/e").len(), 1);
}

#[test]
fn only_an_operator_raises_a_budget_and_no_override_gets_around_it() {
    let home = Home::new();
    live_by(&home, COST_BUDGET, "cost_budget@1", &["limit_cents=500"]);
    home.done(&["create", "experiment", "--id", "e"]);
    let raise = "--reason experiment.budget.raised --set extra_cents=100 --actor";
    refused(
        moved(&home, "e", "running", &format!("{raise} agent:e")),
        "raised by an operator",
    );
    let force =
        "--reason experiment.spent.reported --set cost_cents=501 --override --override-actor ann --justification now";
    refused(moved(&home, "e", "running", force), "over the budget");
    moved(&home, "e", "running", &format!("{raise} operator:ann")).exits(0);
    spends(&home, "e", 600).exits(0);
}

#[test]
fn what_nobody_else_agreed_to_is_not_approved_whatever_is_tried() {
    let home = Home::new();
    live_by(&home, TWO_PERSON_APPROVAL, "change@1", &[]);
    home.done(&[
        "create",
        "change",
        "--id",
        "c",
        "--field",
        "revision=\"abc\"",
        "--actor",
        "operator:bob",
    ]);
    let approve = "--reason change.approved.ok --actor operator:";
    refused(
        moved(&home, "c", "approved", &format!("{approve}bob")),
        "somebody else has to agree",
    );
    let over = "--override --override-actor bob --justification urgent";
    refused(
        moved(&home, "c", "approved", &format!("{approve}bob {over}")),
        "somebody else has to agree",
    );
    let past = format!("--reason change.applied.ok --actor operator:bob {over}");
    refused(moved(&home, "c", "applied", &past), "nobody has approved this");
    let refusals = audited(&home, "status_transition_rejected", "change/c");
    let asked = |row: &Value| row["details"]["guarded"]["request"]["overridden"].clone();
    assert_eq!(
        refusals.iter().map(asked).collect::<Vec<_>>(),
        [json!(false), json!(true), json!(true)]
    );
    moved(&home, "c", "approved", "--reason change.approved.ok --actor agent:ann").exits(5);
    moved(&home, "c", "approved", &format!("{approve}ann")).exits(0);
    moved(
        &home,
        "c",
        "applied",
        "--reason change.applied.ok --guard revision=\"abd\"",
    )
    .exits(4);
    moved(
        &home,
        "c",
        "applied",
        "--reason change.applied.ok --guard revision=\"abc\"",
    )
    .exits(0);
}

#[test]
fn a_change_waits_for_as_many_as_were_asked_for_when_it_was_proposed() {
    let home = Home::new();
    live_by(&home, TWO_PERSON_APPROVAL, "change@1", &["quorum=2"]);
    home.done(&["create", "change", "--id", "c", "--actor", "agent:bob"]);
    activate(&home, "change@1", &["quorum=1"]);
    let sign = "--reason change.signed.ok --actor operator:ann";
    let approve = "--reason change.approved.ok --actor operator:";
    refused(
        moved(&home, "c", "approved", &format!("{approve}ann")),
        "1 of 2 who have to agree",
    );
    moved(&home, "c", "signed", sign).exits(0);
    refused(moved(&home, "c", "signed", sign), "each person counts once");
    let revise = "--reason change.proposed.revised --set revision=\"def\" --actor agent:bob";
    moved(&home, "c", "proposed", revise).exits(0);
    refused(
        moved(&home, "c", "approved", &format!("{approve}cem")),
        "1 of 2 who have to agree",
    );
    moved(&home, "c", "signed", sign).exits(0);
    moved(&home, "c", "approved", &format!("{approve}cem")).exits(0);
}

#[test]
fn a_way_that_no_edge_declares_is_an_operators_word_and_audited() {
    let home = Home::new();
    live_by(&home, TWO_PERSON_APPROVAL, "change@1", &[]);
    home.done(&["create", "change", "--id", "c", "--actor", "operator:bob"]);
    moved(&home, "c", "withdrawn", "--reason change.withdrawn.ok").exits(0);
    moved(&home, "c", "proposed", "--reason change.proposed.revised").exits(5);
    let over = "--reason change.proposed.revised --override --override-actor ann --justification mistake";
    moved(&home, "c", "proposed", over).exits(0);
    let [row] = &audited(&home, "status_transition_override", "change/c")[..] else {
        panic!("one override, one row")
    };
    assert_eq!(
        (&row["actor"], &row["details"]["justification"]),
        (&json!("ann"), &json!("mistake"))
    );
}

#[test]
fn a_strict_play_goes_one_way_and_is_complete_when_nothing_works_on_it() {
    let home = Home::new();
    live_by(&home, STRICT_PLAY, "strict_play@1", &[]);
    home.done(&["create", "play", "--id", "p"]);
    moved(&home, "p", "merged", "--reason play.merged.ok").exits(5);
    moved(&home, "p", "prepared", "--reason play.prepared.ok").exits(0);
    moved(&home, "p", "running", "--reason play.running.started").exits(0);
    let gate = home.gate("gate");
    home.detach("s", &["--parent", "play/p", "--", "cat", &gate.to_string_lossy()]);
    let complete = "--reason play.running_complete.ok --set exit_code=0 --actor agent:s";
    moved(&home, "p", "running_complete", "--reason play.running_complete.ok").exits(64);
    refused(
        moved(&home, "p", "running_complete", complete),
        "run/s still works on it",
    );
    std::fs::write(&gate, "done\n").expect("it is being read");
    home.over("s");
    moved(&home, "p", "running_complete", complete).exits(0);
    moved(&home, "p", "gated", "--reason play.gated.asked").exits(0);
    judge(&home);
}

/// Sent back once, then merged by somebody who saw how it ended.
fn judge(home: &Home) {
    let back = "--reason play.redoing.feedback --set gate_passed=false --set gate_feedback=\"more\"";
    moved(home, "p", "redoing", &format!("{back} --actor agent:s")).exits(5);
    moved(home, "p", "redoing", back).exits(0);
    moved(home, "p", "running", "--reason play.running.started").exits(0);
    moved(
        home,
        "p",
        "running_complete",
        "--reason play.running_complete.ok --set exit_code=0",
    )
    .exits(0);
    moved(home, "p", "gated", "--reason play.gated.asked").exits(0);
    refused(moved(home, "p", "redoing", back), "sent back before");
    let merge = "--reason play.merged.ok --set gate_passed=true --set merge_sha=\"abc\" --set merged_at=1767225600000";
    moved(home, "p", "merged", merge).exits(64);
    moved(home, "p", "merged", &format!("{merge} --guard exit_code=1")).exits(4);
    moved(home, "p", "merged", &format!("{merge} --guard exit_code=0")).exits(0);
    assert_eq!(home.json(&["show", "p"])["success"], true);
    let refusals = audited(home, "status_transition_rejected", "play/p");
    let saw = |row: &Value| row["details"]["guarded"]["request"]["children"][0]["status"].clone();
    assert!(refusals.iter().any(|row| saw(row) == "running"), "{refusals:?}");
}

#[test]
fn plays_of_both_policies_live_side_by_side_and_rollback_is_one_step() {
    let home = Home::new();
    home.done(&["create", "play", "--id", "loose"]);
    live_by(&home, STRICT_PLAY, "strict_play@1", &[]);
    home.done(&["create", "play", "--id", "strict"]);
    moved(&home, "strict", "merged", "--reason play.merged.ok").exits(5);
    moved(&home, "loose", "merged", "--reason play.merged.ok").exits(0);
    home.done(&["policy", "rollback", "play", "--reason", "too strict"]);
    home.done(&["create", "play", "--id", "loose-again"]);
    moved(&home, "loose-again", "merged", "--reason play.merged.ok").exits(0);
    moved(&home, "strict", "merged", "--reason play.merged.ok").exits(5);
    // A kill asks nobody, and says that there was nothing to stop.
    home.run(&["kill", "strict"]).exits(1);
    assert_eq!(home.json(&["show", "strict"])["status"], "blocked");
}

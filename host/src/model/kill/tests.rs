//! The plan, as tables: what is found, and what is done in which order.

use std::fmt::Write as _;

use super::*;
use crate::model::samples;

fn entity(kind: &str, status: &str) -> Entity {
    Entity {
        terminal: status == "over",
        ..samples::entity(kind, status)
    }
}

fn row(cascade: Cascade) -> KillRow {
    KillRow {
        killable: vec!["alive".to_owned()],
        goes_to: "over".to_owned(),
        cascade,
        term_code: "a.b.term".to_owned(),
        force_code: "a.b.force".to_owned(),
        stale_code: "a.b.stale".to_owned(),
        ext: Vec::new(),
    }
}

/// A run that is killed with `--recursive` below, in that status.
fn run(status: &str, standing: Standing, below: &[usize]) -> KillNode {
    KillNode {
        row: (status == "alive").then(|| row(Cascade::Recursive)),
        entity: entity("run", status),
        is_run: true,
        asked: Asked::Directly,
        set: KillSet::Newest,
        standing,
        below: below.to_vec(),
    }
}

/// A thing without processes of its own, killed with all that is below it.
fn whole(status: &str, below: &[usize]) -> KillNode {
    KillNode {
        row: (status == "alive").then(|| row(Cascade::Always)),
        entity: entity("whole", status),
        is_run: false,
        ..run(status, Standing::Nothing, below)
    }
}

fn unjudged(word: KillRefusal) -> Standing {
    Standing::Unjudged(Unjudged {
        word,
        message: "because".to_owned(),
    })
}

/// Checks the plan: `round node step` for each, in order.
#[track_caller]
fn check(nodes: &[KillNode], expected: &str) {
    let mut told = String::new();
    for planned in plan_kill(nodes) {
        let _ = write!(told, "{} {} {}; ", planned.round, planned.node, planned.step.word());
    }
    assert_eq!(told.trim_end(), expected);
}

#[test]
fn what_is_done_follows_from_status_and_processes() {
    let table = [
        ("alive", Standing::Held, "stop"),
        ("alive", Standing::Starting, "stop"),
        ("alive", Standing::Unheld, "stop"),
        ("alive", Standing::Nothing, "end"),
        ("alive", Standing::Gone(SeenGone::Recycled), "end_gone"),
        ("over", Standing::Held, "stop_lingering"),
        ("over", Standing::Unheld, "stop_lingering"),
        ("over", Standing::Nothing, "unchanged"),
        ("over", Standing::Gone(SeenGone::Recycled), "unchanged"),
        // A status that the policy has no kill from: what runs is stopped, what does not run is refused.
        ("odd", Standing::Held, "stop"),
        ("odd", Standing::Nothing, "refused"),
    ];
    for (status, standing, step) in table {
        check(&[run(status, standing.clone(), &[])], &format!("0 0 {step};"));
    }
}

#[test]
fn whatever_cannot_be_judged_is_refused_whatever_its_status() {
    let words = [
        KillRefusal::IdentityMismatch,
        KillRefusal::HostMismatch,
        KillRefusal::NamespaceMismatch,
        KillRefusal::Unverifiable,
        KillRefusal::Remote,
        KillRefusal::PermissionDenied,
    ];
    for word in words {
        for status in ["alive", "over", "odd"] {
            check(&[run(status, unjudged(word), &[])], "0 0 refused;");
        }
    }
}

#[test]
fn children_come_before_their_parents_each_once_and_the_deepest_first() {
    let held = |below: &[usize]| run("alive", Standing::Held, below);
    check(&[held(&[1]), held(&[2]), held(&[])], "0 2 stop; 1 1 stop; 2 0 stop;");
    // One that two are linked above, and one that is linked below at two depths.
    check(
        &[held(&[1, 2]), held(&[3]), held(&[3]), held(&[])],
        "0 3 stop; 1 1 stop; 1 2 stop; 2 0 stop;",
    );
    check(&[held(&[1, 2]), held(&[2]), held(&[])], "0 2 stop; 1 1 stop; 2 0 stop;");
    check(&[held(&[]), held(&[])], "0 0 stop; 0 1 stop;");
}

#[test]
fn a_circle_of_links_is_killed_once_and_ends() {
    let held = |below: &[usize]| run("alive", Standing::Held, below);
    check(&[held(&[1]), held(&[0])], "0 0 stop; 0 1 stop;");
    check(&[held(&[1]), held(&[2]), held(&[1])], "0 0 stop; 0 1 stop; 0 2 stop;");
}

#[test]
fn a_child_that_is_refused_does_not_keep_its_parent_from_being_written() {
    let mut child = run("alive", unjudged(KillRefusal::HostMismatch), &[]);
    child.asked = Asked::Below;
    check(&[whole("alive", &[1]), child], "0 1 refused; 1 0 end;");
}

#[test]
fn an_older_set_is_stopped_after_the_newest_whatever_becomes_of_that_one_and_writes_no_end() {
    let older = |standing: Standing| KillNode {
        set: KillSet::Older,
        row: None,
        ..run("alive", standing, &[0])
    };
    let newest = |standing: Standing| run("alive", standing, &[]);
    check(
        &[newest(Standing::Held), older(Standing::Unheld), older(Standing::Held)],
        "0 0 stop; 1 1 stop_lingering; 1 2 stop_lingering;",
    );
    check(
        &[newest(unjudged(KillRefusal::Remote)), older(Standing::Held)],
        "0 0 refused; 1 1 stop_lingering;",
    );
    check(
        &[newest(Standing::Held), older(unjudged(KillRefusal::Remote))],
        "0 0 stop; 1 1 refused;",
    );
    check(
        &[newest(Standing::Held), older(Standing::Gone(SeenGone::Recycled))],
        "0 0 stop; 1 1 unchanged;",
    );
}

#[test]
fn a_whole_with_no_run_below_is_ended_and_nothing_is_claimed() {
    check(&[whole("alive", &[])], "0 0 end_unreached;");
    check(
        &[whole("alive", &[1]), whole("alive", &[])],
        "0 1 end_unreached; 1 0 end_unreached;",
    );
    let over = run("over", Standing::Nothing, &[]);
    check(&[whole("alive", &[1]), over.clone()], "0 1 unchanged; 1 0 end;");
    check(
        &[whole("alive", &[1]), whole("over", &[2]), over],
        "0 2 unchanged; 1 1 unchanged; 2 0 end;",
    );
}

#[test]
fn one_below_that_no_kill_means_anything_for_is_left() {
    let mut below = run("odd", Standing::Nothing, &[]);
    below.asked = Asked::Below;
    check(&[run("alive", Standing::Held, &[1]), below], "0 1 unchanged; 1 0 stop;");
}

#[test]
fn a_plan_is_complete_when_nothing_is_refused_or_unreached() {
    let refusal = Unjudged {
        word: KillRefusal::Remote,
        message: String::new(),
    };
    for (step, complete) in [
        (KillStep::Stop, true),
        (KillStep::StopLingering, true),
        (KillStep::End, true),
        (KillStep::EndGone, true),
        (KillStep::Unchanged, true),
        (KillStep::EndUnreached, false),
        (KillStep::Refused(refusal), false),
    ] {
        assert_eq!(step.is_complete(), complete, "{step:?}");
    }
}

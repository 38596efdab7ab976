//! The examples are policies as an author would write and test them.

#[path = "../examples/mail.rs"]
mod mail;
#[path = "../examples/review.rs"]
mod review;

use mail::Mail;
use review::Review;
use runwarden_kit::{
    Actor, Binding, Child, Decision, Entity, Envelope, Guard, Migrate, NamedJson, Notifier, Policy, Reason, Request,
    Surroundings, check,
};

#[test]
fn the_table_of_a_review_is_sound() {
    assert_eq!(check::problems(&Review::describe()), [""; 0]);
}

#[test]
fn a_review_is_waived_when_enough_others_approve() {
    let judge = |approvals, quorum| Review::evaluate(request(approvals, quorum));
    assert_eq!(judge(2, "2"), Ok(Decision::admit()));
    let refused = judge(1, "2").expect("the guard answers");
    assert_eq!((refused.admitted, &*refused.code), (false, "quorum_missing"));
    let fault = judge(2, "null").expect_err("no number");
    assert_eq!(fault.code, "bad_parameter");
}

#[test]
fn a_review_of_the_first_version_goes_on_as_open() {
    let carried = |status: &str| {
        let mapping = Review::map(entity(status), "review".into(), "1.0.0".into(), seen(0, "2"));
        mapping.expect("the mapping is total").status
    };
    assert_eq!(carried("reading"), "open");
    assert_eq!(carried("open"), "open");
}

#[test]
fn mail_tells_every_destination_of_a_failure_and_nobody_of_a_success() {
    let planned = |success, successes| {
        let planned = Mail::plan(envelope(success), binding(successes)).expect("the plan succeeds");
        let told = planned.iter().map(|dispatch| {
            let body = String::from_utf8_lossy(&dispatch.body);
            format!("{}: {body}", dispatch.destination)
        });
        told.collect::<Vec<_>>()
    };
    let line = "run/r is failed (run.failed.nonzero_exit)";
    assert_eq!(planned(false, "false"), [format!("a: {line}"), format!("b: {line}")]);
    assert_eq!(planned(true, "false"), [""; 0]);
    assert_eq!(planned(true, "true").len(), 2);
    assert_eq!(Mail::describe().transports, ["exec"]);
}

fn request(approvals: usize, quorum: &str) -> Request {
    Request {
        entity: entity("open"),
        target: "waived".into(),
        reason: reason(),
        actor: Actor {
            kind: "operator".into(),
            id: "o".into(),
        },
        patch: Vec::new(),
        guards: Vec::new(),
        overridden: false,
        surroundings: seen(approvals, quorum),
        ext: Vec::new(),
    }
}

fn seen(approvals: usize, quorum: &str) -> Surroundings {
    let approval = Child {
        kind: "review".into(),
        id: "r".into(),
        status: "approved".into(),
        terminal: true,
        success: true,
        ext: Vec::new(),
    };
    Surroundings {
        now: 0,
        parameters: vec![NamedJson::new("quorum", quorum)],
        children: vec![approval; approvals],
        history: Vec::new(),
        ext: Vec::new(),
    }
}

fn entity(status: &str) -> Entity {
    Entity {
        kind: "review".into(),
        id: "r".into(),
        status: status.into(),
        version: 1,
        reason: reason(),
        fields: Vec::new(),
        tags: Vec::new(),
        created_at: 0,
        updated_at: 0,
        root: "r".into(),
        generation: 0,
        chain_parent: None,
        ext: Vec::new(),
    }
}

fn reason() -> Reason {
    Reason {
        code: "review.open.created".into(),
        summary: None,
        evidence: Vec::new(),
    }
}

fn binding(successes: &str) -> Binding {
    Binding {
        name: "mail".into(),
        config: vec![NamedJson::new("successes", successes)],
        destinations: vec!["a".into(), "b".into()],
        ext: Vec::new(),
    }
}

fn envelope(success: bool) -> Envelope {
    let (status, code) = if success {
        ("completed", "run.completed.ok")
    } else {
        ("failed", "run.failed.nonzero_exit")
    };
    Envelope {
        event_id: "e".into(),
        schema: "runwarden.run-terminal".into(),
        kind: "run".into(),
        id: "r".into(),
        status: status.into(),
        success,
        reason_code: code.into(),
        occurred_at: 0,
        json: "{}".into(),
        ext: Vec::new(),
    }
}

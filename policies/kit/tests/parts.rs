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
fn mail_plans_one_dispatch_for_each_destination() {
    let binding = Binding {
        name: "mail".into(),
        config: "{}".into(),
        destinations: vec!["a".into(), "b".into()],
        ext: Vec::new(),
    };
    let planned = Mail::plan(envelope(), binding).expect("the plan succeeds");
    let reached: Vec<&str> = planned.iter().map(|dispatch| &*dispatch.destination).collect();
    assert_eq!(reached, ["a", "b"]);
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

fn envelope() -> Envelope {
    Envelope {
        event_id: "e".into(),
        schema: "runwarden.run-terminal".into(),
        kind: "run".into(),
        id: "r".into(),
        status: "completed".into(),
        success: true,
        reason_code: "run.completed.ok".into(),
        occurred_at: 0,
        json: "{}".into(),
        ext: Vec::new(),
    }
}

//! Receivers that hang, fail, ask for time or are gone: each costs its own notices alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use runwarden_host::model::{Actor, Timestamp};
use runwarden_host::store::OpenMode;
use runwarden_host::verbs::outbox::{Bounds, Delivered, Extent, Sending, deliver, deliver_own, send};
use runwarden_host::{Clock, Config, Host};
use serde_json::{Value, json};

use crate::harness::{Home, config, until};
use crate::outbox::{bound, dispatches, lines};
use crate::receiver::{Receiver, answer};

/// Binds a webhook on this machine.
fn webhook(home: &Home, name: &str, receiver: &Receiver, options: &[&str]) {
    let url = receiver.url("/hook");
    home.bind(name, &[&["--url", &url, "--allow-private"], options].concat());
}

/// A notice of one's own.
fn sending(to: &str) -> Sending {
    Sending {
        to: to.to_owned(),
        body: json!({"to": to}),
        dedup_key: None,
        deadline: None,
        wants_acknowledgement: false,
    }
}

/// Puts so many notices for a handler into the outbox.
fn enqueue(host: &Host, to: &str, times: usize) {
    let settings = bound(host);
    for _ in 0..times {
        send(host, &settings, &sending(to), &Actor::new("operator", "test")).expect("it is enqueued");
    }
    // Nobody tries them before they are delivered.
    host.take_enqueued();
}

/// How many dispatches of a handler have a status.
fn counted(host: &Host, handler: &str, status: &str) -> usize {
    let of = |dispatch: &runwarden_host::model::Dispatch| {
        let name = dispatch.handler.as_deref().unwrap_or_default();
        name.starts_with(handler)
    };
    let dispatches = dispatches(host);
    let mut found = dispatches
        .iter()
        .filter(|(_, dispatch)| of(dispatch))
        .collect::<Vec<_>>();
    found.retain(|(entity, _)| entity.status == status);
    found.len()
}

#[test]
fn two_hung_destinations_among_twenty_delay_no_healthy_one() {
    const EACH: usize = 6;
    let home = Home::new();
    let hung: Vec<Receiver> = (0..2).map(|_| Receiver::new(|_| None)).collect();
    for (number, receiver) in hung.iter().enumerate() {
        webhook(&home, &format!("hung-{number}"), receiver, &["--timeout", "5m"]);
    }
    for number in 0..18 {
        home.bind(&format!("well-{number}"), &["--file", &format!("file-{number}")]);
    }
    let host = crate::harness::host(&home.home());
    // The hung ones are the longest due.
    for number in 0..2 {
        enqueue(&host, &format!("hung-{number}"), EACH);
    }
    for number in 0..18 {
        enqueue(&host, &format!("well-{number}"), EACH);
    }
    let mut deliverer = home.start(&["outbox", "deliver", "--until-empty"]);
    until("every healthy destination has its notices", || {
        counted(&host, "well", "delivered") == 18 * EACH
    });
    // It is known by the order of things: those that hang go on hanging.
    assert!(counted(&host, "hung", "delivering") >= 2);
    assert_eq!(
        counted(&host, "hung", "pending") + counted(&host, "hung", "delivering"),
        2 * EACH
    );
    drop(hung);
    assert!(deliverer.wait().expect("our own child").code().is_some());
    assert_eq!(counted(&host, "hung", "pending"), 2 * EACH, "each is tried again");
}

/// A host with a clock of its own, over the store of a home.
fn at(home: &Home, clock: &Arc<AtomicI64>) -> Host {
    let config = Config {
        clock: Clock::Set(Arc::clone(clock)),
        variable: |name| std::env::var_os(name),
        ..config(&home.home())
    };
    Host::open(config, OpenMode::Create).expect("a store")
}

fn once(host: &Host) -> Delivered {
    deliver(host, Extent::Once, Bounds::STANDARD).expect("the store works")
}

#[test]
fn a_destination_that_fails_is_paused_after_five_failures_and_tried_one_at_a_time() {
    let home = Home::new();
    let is_well = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_well);
    let receiver = Receiver::new(move |_| {
        let status = if asked.load(Ordering::SeqCst) {
            "204 No Content"
        } else {
            "500 Oh"
        };
        Some(answer(status, ""))
    });
    webhook(&home, "ops", &receiver, &[]);
    let clock = Arc::new(AtomicI64::new(Clock::System.now().as_ms()));
    let host = at(&home, &clock);
    enqueue(&host, "ops", 12);
    let first = once(&host);
    let tried = receiver.seen().len();
    // Four may be on their way when the fifth failure is counted.
    assert!((5..=8).contains(&tried), "{tried} attempts, {first:?}");
    let listed = home.json(&["outbox", "ls"]);
    let waiting = &listed[0]["destination_paused"];
    assert!(
        waiting["until"].is_string() && waiting["last_error"] == "HTTP 500",
        "{waiting}"
    );
    assert_eq!(waiting["failures"], tried, "each failure is counted");
    let said = home.done(&["outbox", "ls"]);
    assert!(said.contains("ops/webhook (webhook) paused after"), "{said}");
    once(&host);
    assert_eq!(receiver.seen().len(), tried, "nothing is sent there while it is paused");
    enqueue_own(&host);
    assert_eq!(receiver.seen().len(), tried, "nor by whoever has a notice of his own");
    for probe in 1..3 {
        clock.fetch_add(600_000, Ordering::SeqCst);
        once(&host);
        assert_eq!(
            receiver.seen().len(),
            tried + probe,
            "one attempt tries whether it is back"
        );
    }
    is_well.store(true, Ordering::SeqCst);
    clock.fetch_add(3_600_000, Ordering::SeqCst);
    deliver(&host, Extent::UntilEmpty, Bounds::STANDARD).expect("the store works");
    assert_eq!(counted(&host, "ops", "delivered"), 13);
    assert_eq!(home.json(&["outbox", "ls"])[0]["destination_paused"], Value::Null);
}

/// What a command does with a notice that it made itself.
fn enqueue_own(host: &Host) {
    send(host, &bound(host), &sending("ops"), &Actor::new("operator", "test")).expect("it is enqueued");
    deliver_own(host);
}

#[test]
fn a_receiver_that_asks_for_time_gets_it_within_the_cap() {
    let home = Home::new();
    let busy = Receiver::answering("429 Too Many Requests", "retry-after: 600\r\n");
    let greedy = Receiver::answering("503 Service Unavailable", "retry-after: 999999999\r\n");
    let clock = Arc::new(AtomicI64::new(Clock::System.now().as_ms()));
    let host = at(&home, &clock);
    for (name, receiver, least_s, most_s) in [("busy", &busy, 600, 660), ("greedy", &greedy, 1_800, 1_980)] {
        webhook(&home, name, receiver, &[]);
        enqueue(&host, name, 1);
        once(&host);
        let dispatches = dispatches(&host);
        let found = dispatches
            .iter()
            .find(|(_, dispatch)| dispatch.handler.as_deref() == Some(name));
        let (entity, _) = found.expect("it was enqueued");
        let due = entity.due_at().expect("it is tried again");
        let wait_s = due.since(Timestamp::from_ms(clock.load(Ordering::SeqCst))).as_ms() / 1_000;
        assert!((least_s..=most_s).contains(&wait_s), "{name}: {wait_s}");
        assert_eq!(entity.status, "pending");
    }
}

#[test]
fn what_is_gone_or_not_to_be_reached_is_given_up_at_once() {
    let home = Home::new();
    let gone = Receiver::answering("410 Gone", "");
    webhook(&home, "gone", &gone, &[]);
    home.bind("inside", &["--url", "https://127.0.0.1:1/hook"]);
    home.bind("cloud", &["--url", "https://169.254.169.254/latest", "--allow-private"]);
    for name in ["gone", "inside", "cloud"] {
        home.done(&["outbox", "send", "--to", name, "{}"]);
    }
    home.run(&["outbox", "deliver", "--until-empty"]).exits(0);
    for notice in home.notices() {
        assert_eq!(
            (&notice["status"], &notice["attempt"], &notice["reason"]["code"]),
            (&json!("dead_letter"), &json!(1), &json!("dispatch.dead_letter.refused")),
            "{notice}"
        );
        assert_eq!(notice["destination_paused"], Value::Null);
    }
    assert_eq!(gone.seen().len(), 1);
}

#[test]
fn a_name_that_is_not_known_is_no_reason_to_give_up() {
    let home = Home::new();
    home.bind("ops", &["--url", "https://no-such-host.invalid/hook"]);
    home.done(&["outbox", "send", "--to", "ops", "{}"]);
    let notice = home.notice();
    assert_eq!(
        (&notice["status"], &notice["attempt"]),
        (&json!("pending"), &json!(1)),
        "{notice}"
    );
}

#[test]
fn the_bytes_are_the_same_at_every_attempt_and_only_time_and_signature_change() {
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let home = Home::new();
    let receiver = Receiver::answering("500 Oh", "");
    std::fs::write(home.path("secret"), SECRET).expect("a file of the test");
    webhook(&home, "ops", &receiver, &["--secret-file", "secret"]);
    home.ended_session("one", &[]);
    let id = home.notice()["id"].as_str().expect("an id").to_owned();
    for attempt in 2..=5 {
        home.overdue();
        home.run(&["outbox", "deliver", "--once"]).exits(1);
        assert_eq!(home.notice()["attempt"], attempt);
    }
    let seen = receiver.seen();
    assert_eq!(seen.len(), 5);
    let verifier = standardwebhooks::Webhook::new(SECRET).expect("a secret");
    for (number, request) in seen.iter().enumerate() {
        assert_eq!(request.body, seen[0].body);
        assert_eq!(request.path, "/hook");
        assert_eq!(request.headers["webhook-id"], id);
        assert_eq!(request.headers["runwarden-attempt"], (number + 1).to_string());
        let signed = verifier.sign(&id, seconds(request), &request.body);
        assert_eq!(signed.expect("it can be signed"), request.headers["webhook-signature"]);
        let mut constant = request.headers.clone();
        let mut first = seen[0].headers.clone();
        for name in ["webhook-timestamp", "webhook-signature", "runwarden-attempt"] {
            constant.remove(name);
            first.remove(name);
        }
        assert_eq!(constant, first);
    }
}

fn seconds(request: &crate::receiver::Request) -> i64 {
    request.headers["webhook-timestamp"].parse().expect("seconds")
}

/// Retry state is in the store: an outage of everything loses nothing.
#[test]
fn notices_survive_an_outage_of_their_receiver_and_of_every_process() {
    let home = Home::new();
    let file = home.path("dir/ends");
    home.bind("journal", &["--file", "dir/ends"]);
    for id in ["one", "two"] {
        home.ended_session(id, &[]);
    }
    assert!(home.notices().iter().all(|notice| notice["status"] == "pending"));
    std::fs::create_dir(home.path("dir")).expect("a directory of the test");
    home.overdue();
    home.done(&["outbox", "deliver", "--until-empty"]);
    assert_eq!(lines(&file).len(), 2);
    assert!(home.notices().iter().all(|notice| notice["status"] == "delivered"));
}

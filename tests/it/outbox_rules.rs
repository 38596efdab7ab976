//! Rules of outboxes that others learned the hard way, each by the name of what must not happen.

use runwarden_host::model::Actor;
use runwarden_host::verbs::outbox::{Sending, send};
use serde_json::{Value, json};

use crate::crashes::dies_at;
use crate::harness::{Home, host, lives, until};
use crate::notices::{sink, told};
use crate::outbox::{bound, dispatches, lines};
use crate::receiver::{Receiver, answer};

/// A home whose handler `ops` appends what it is told to a file.
fn journal() -> Home {
    let home = Home::new();
    home.bind("ops", &["--exec", &sink(&home.path("heard"))]);
    home
}

/// A home whose handler `ops` always fails.
fn failing() -> Home {
    let home = Home::new();
    let count = json!([
        "sh",
        "-c",
        format!("echo x >> {}; exit 1", home.path("tries").display())
    ])
    .to_string();
    home.bind("ops", &["--exec", &count]);
    home
}

fn sent(home: &Home, options: &[&str]) -> String {
    let answer = home.json(&[&["outbox", "send", "--to", "ops", "{}"], options].concat());
    answer["id"].as_str().expect("an id").to_owned()
}

fn status(home: &Home, id: &str) -> String {
    let shown = home.json(&["outbox", "show", id]);
    shown["status"].as_str().expect("a status").to_owned()
}

/// A list of what is due is a hint: only the one whose claim is written sends.
#[test]
fn deliverers_at_the_same_time_send_each_notice_once() {
    const NOTICES: usize = 60;
    let home = journal();
    let store = host(&home.home());
    let settings = bound(&store);
    for number in 0..NOTICES {
        let sending = Sending {
            to: "ops".to_owned(),
            body: json!(number),
            dedup_key: None,
            deadline: None,
            wants_acknowledgement: false,
        };
        send(&store, &settings, &sending, &Actor::new("operator", "test")).expect("it is enqueued");
    }
    let deliverers: Vec<_> = (0..3)
        .map(|_| home.start(&["outbox", "deliver", "--until-empty"]))
        .collect();
    for mut deliverer in deliverers {
        assert!(deliverer.wait().expect("our own child").success());
    }
    // Whoever found a notice taken leaves it to the other, who has ended as well.
    assert!(
        dispatches(&store)
            .iter()
            .all(|(entity, _)| entity.status == "delivered")
    );
    let mut ids: Vec<String> = told(&home.path("heard")).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), NOTICES);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), NOTICES, "a notice was sent twice although nobody died");
}

/// A claim is longer than its transport may take, and a slow receiver is nobody to ask twice meanwhile.
#[test]
fn a_notice_that_is_on_its_way_is_not_sent_by_another() {
    let home = Home::new();
    let gate = home.gate("gate");
    let tries = home.path("tries");
    let script = format!("echo x >> {}; read x < {}", tries.display(), gate.display());
    home.bind("ops", &["--exec", &json!(["sh", "-c", script]).to_string()]);
    let mut first = home.start(&["outbox", "send", "--to", "ops", "{}"]);
    until("it is on its way", || lines(&tries).len() == 1);
    let second = home.json(&["outbox", "deliver", "--until-empty"]);
    assert_eq!(second["looked_at"], 0, "{second}");
    let opened = crate::harness::opened(&gate);
    assert!(first.wait().expect("our own child").success());
    drop(opened);
    assert_eq!(
        (lines(&tries).len(), &home.notice()["status"]),
        (1, &json!("delivered"))
    );
}

/// What a holder writes who was taken over meanwhile is lost, and said to be; the row is its successor's.
#[test]
fn a_holder_that_was_taken_over_overwrites_nothing() {
    let home = Home::new();
    let gate = home.gate("gate");
    let tries = home.path("tries");
    // The first hangs and would fail; later ones succeed at once.
    let script = format!(
        "echo x >> {0}; test $(wc -l < {0}) = 1 || exit 0; read x < {1}; exit 1",
        tries.display(),
        gate.display()
    );
    home.bind("ops", &["--exec", &json!(["sh", "-c", script]).to_string()]);
    home.ended_session("one", &["--no-notify"]);
    let id = sent_without_trying(&home);
    let first = home.start(&["outbox", "deliver", "--once", "--json"]);
    until("it is on its way", || lines(&tries).len() == 1);
    home.overdue();
    home.done(&["outbox", "deliver", "--once"]);
    assert_eq!(status(&home, &id), "delivered");
    let opened = crate::harness::opened(&gate);
    let output = first.wait_with_output().expect("our own child");
    drop(opened);
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["lost"], 1, "{report}");
    let shown = home.json(&["outbox", "show", &id]);
    assert_eq!((&shown["status"], &shown["attempt"]), (&json!("delivered"), &json!(2)));
}

/// Puts a notice into the outbox and does not try it.
fn sent_without_trying(home: &Home) -> String {
    dies_at(home, "send.committed", &["outbox", "send", "--to", "ops", "{}"]);
    home.notice()["id"].as_str().expect("an id").to_owned()
}

/// Who delivers needs no settings: what is enqueued has its destination with it.
#[test]
fn a_notice_is_delivered_although_its_handler_is_not_bound_any_more() {
    let home = journal();
    let id = sent_without_trying(&home);
    home.done(&["notify", "rm", "ops"]);
    home.done(&["outbox", "deliver", "--once"]);
    assert_eq!(status(&home, &id), "delivered");
}

/// A crash counts as an attempt at its claim: what kills whoever sends it is given up, and the next notice goes out.
#[test]
fn a_notice_that_kills_whoever_sends_it_is_given_up_after_its_attempts() {
    let home = journal();
    let poison = sent_without_trying(&home);
    for _ in 0..8 {
        dies_at(&home, "deliver.claimed", &["outbox", "deliver", "--once"]);
        home.overdue();
    }
    home.run(&["outbox", "deliver", "--once"]).exits(1);
    let shown = home.json(&["outbox", "show", &poison]);
    assert_eq!(
        (&shown["status"], &shown["attempt"], &shown["last_error"]),
        (
            &json!("dead_letter"),
            &json!(8),
            &json!("outcome of the last attempt unknown")
        ),
        "{shown}"
    );
    let next = sent(&home, &[]);
    assert_eq!(status(&home, &next), "delivered");
}

/// A key is of live notices: what is dead does not swallow a new one.
#[test]
fn a_key_of_a_dead_notice_is_free_for_a_new_one() {
    let home = Home::new();
    let gone = home.path("gone");
    std::fs::create_dir(&gone).expect("a directory of the test");
    home.bind("ops", &["--file", "gone"]);
    let first = sent(&home, &["--dedup-key", "k"]);
    assert_eq!(status(&home, &first), "dead_letter", "a directory is no file");
    std::fs::remove_dir(&gone).expect("it is empty");
    let second = sent(&home, &["--dedup-key", "k"]);
    assert_ne!(first, second);
    assert_eq!(status(&home, &second), "delivered");
    assert_eq!(sent(&home, &["--dedup-key", "k"]), second, "what is delivered keeps it");
    home.run(&["outbox", "send", "--to", "ops", "[1]", "--dedup-key", "k"])
        .exits(64);
    // The dead one can come back only when the key is free: that has an outcome, and changes nothing.
    home.run(&["outbox", "retry", &first]).exits(4);
    assert_eq!(status(&home, &first), "dead_letter");
}

/// One that cannot be revived keeps none of the others from it.
#[test]
fn all_that_is_dead_is_revived_but_for_those_whose_key_another_holds() {
    let home = Home::new();
    let gone = home.path("gone");
    std::fs::create_dir(&gone).expect("a directory of the test");
    home.bind("ops", &["--file", "gone"]);
    let options: [&[&str]; 4] = [&["--dedup-key", "k"], &["--dedup-key", "k"], &[], &["--dedup-key", "l"]];
    let ids = options.map(|options| sent(&home, options));
    home.run(&["outbox", "retry", "--all-dead"]).exits(4);
    let statuses = ids.map(|id| status(&home, &id));
    let pending = statuses.iter().filter(|status| *status == "pending").count();
    assert_eq!(pending, 3, "{statuses:?}");
}

/// Uniqueness is the store's: those who enqueue at once are given one notice.
#[test]
fn a_key_that_many_use_at_once_makes_one_notice() {
    let home = journal();
    let send = ["outbox", "send", "--to", "ops", "{}", "--dedup-key", "k", "--json"];
    let senders: Vec<_> = (0..6).map(|_| home.start(&send)).collect();
    let mut ids: Vec<String> = Vec::new();
    for sender in senders {
        let output = sender.wait_with_output().expect("our own child");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
        ids.push(answer["id"].as_str().expect("an id").to_owned());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    home.done(&["outbox", "deliver", "--until-empty"]);
    assert_eq!(told(&home.path("heard")).len(), 1);
}

/// Each retry by hand is an attempt, under the same id, and says what it did.
#[test]
fn a_retry_by_hand_is_an_attempt_each_time() {
    let home = Home::new();
    let receiver = Receiver::new(|_| Some(answer("500 Oh", "")));
    home.bind("ops", &["--url", &receiver.url("/hook"), "--allow-private"]);
    let id = sent(&home, &[]);
    for attempt in 2..=3 {
        let said = home.done(&["outbox", "retry", &id]);
        assert!(said.contains("is tried next, now"), "{said}");
        home.run(&["outbox", "deliver", "--once"]).exits(1);
        assert_eq!(home.notice()["attempt"], attempt);
    }
    let seen = receiver.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|request| request.headers["webhook-id"] == id));
}

/// What is sent and never acknowledged is bounded like everything else.
#[test]
fn a_notice_that_is_never_acknowledged_is_given_up_after_its_attempts() {
    let home = Home::new();
    let tries = home.path("tries");
    let script = format!("echo x >> {}", tries.display());
    home.bind("ops", &["--exec", &json!(["sh", "-c", script]).to_string()]);
    let id = sent(&home, &["--ack"]);
    for _ in 0..10 {
        home.overdue();
        home.run(&["outbox", "deliver", "--once"]);
    }
    let shown = home.json(&["outbox", "show", &id]);
    assert_eq!(
        (&shown["status"], &shown["reason"]["code"]),
        (&json!("dead_letter"), &json!("dispatch.dead_letter.ack_timeout")),
        "{shown}"
    );
    assert_eq!(lines(&tries).len(), 8);
}

/// What always fails is given up after its attempts, and waits for nobody's disk or patience.
#[test]
fn a_notice_that_always_fails_is_given_up_after_its_attempts() {
    let home = failing();
    let id = sent(&home, &[]);
    for _ in 0..10 {
        home.overdue();
        home.run(&["outbox", "deliver", "--once"]);
    }
    let shown = home.json(&["outbox", "show", &id]);
    assert_eq!(
        (&shown["status"], &shown["attempt"], &shown["reason"]["code"]),
        (
            &json!("dead_letter"),
            &json!(8),
            &json!("dispatch.dead_letter.max_attempts")
        ),
        "{shown}"
    );
    assert_eq!(lines(&home.path("tries")).len(), 8);
    home.done(&["outbox", "retry", &id]);
    home.run(&["outbox", "deliver", "--once"]).exits(1);
    assert_eq!(home.notice()["attempt"], 1, "another round counts from zero");
}

/// A work that goes on after its end and ends again has ended twice.
#[test]
fn an_entity_that_is_opened_again_and_ends_again_is_told_twice() {
    let home = journal();
    home.ended_session("one", &[]);
    let reopen = [
        "transition",
        "one",
        "running",
        "--reason",
        "run.started.ok",
        "--override",
    ];
    let why = ["--override-actor", "ada", "--justification", "it goes on"];
    home.done(&[&reopen[..], &why].concat());
    home.done(&["transition", "one", "completed", "--reason", "run.completed.ok"]);
    let told = told(&home.path("heard"));
    let events: Vec<&Value> = told.iter().map(|(_, envelope)| &envelope["event_id"]).collect();
    assert_eq!(events.len(), 2, "{events:?}");
    assert_ne!(events[0], events[1]);
}

/// A receiver that took it and then hangs is tried again, and nothing of it lives on.
#[test]
fn a_program_that_took_its_notice_and_hangs_is_killed_with_all_it_started() {
    let home = Home::new();
    let pids = home.path("pids");
    let script = format!("sleep 600 & echo $$ >> {0}; echo $! >> {0}; wait", pids.display());
    let program = json!(["sh", "-c", script]).to_string();
    home.bind("ops", &["--exec", &program, "--timeout", "500ms"]);
    let id = sent(&home, &[]);
    let shown = home.json(&["outbox", "show", &id]);
    assert_eq!(
        (&shown["status"], &shown["attempt"]),
        (&json!("pending"), &json!(1)),
        "{shown}"
    );
    let error = shown["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("had not ended after"), "{error}");
    let pids = lines(&pids);
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| !lives(pid)), "{pids:?}");
}

/// Whoever finds an end that nobody saw, and however many do: it ends once and is told once.
#[test]
fn sweeps_at_the_same_time_find_one_end_and_tell_it_once() {
    let home = Home::new();
    let file = home.path("heard");
    home.detach("one", &["--notify", &sink(&file), "--", "sleep", "600"]);
    let shown = home.json(&["show", "one"]);
    for who in ["shim_pid", "pid"] {
        let pid = shown["runtime"][who].as_i64().expect("a pid");
        let number = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
        let _ = rustix::process::kill_process(number, rustix::process::Signal::KILL);
        until("it is gone", || !lives(&pid.to_string()));
    }
    let sweeps: Vec<_> = (0..3).map(|_| home.start(&["doctor", "--fix"])).collect();
    for mut sweep in sweeps {
        sweep.wait().expect("our own child");
    }
    home.over("one");
    until("it is told", || {
        home.run(&["outbox", "deliver", "--until-empty"]);
        !told(&file).is_empty()
    });
    let history = home.json(&["history", "one"]);
    assert_eq!(history.as_array().map(Vec::len), Some(2), "{history}");
    assert_eq!((home.notices().len(), told(&file).len()), (1, 1));
}

/// No length of a body is a reason that a wake or a commit fails.
#[test]
fn a_large_notice_is_enqueued_and_delivered_whole() {
    let home = Home::new();
    home.bind("ops", &["--file", "ends"]);
    let body = json!({"text": "x".repeat(1 << 20)}).to_string();
    std::fs::write(home.path("body"), &body).expect("a file of the test");
    home.done(&["outbox", "send", "--to", "ops", "--file", "body"]);
    assert_eq!(home.notice()["status"], "delivered");
    assert_eq!(lines(&home.path("ends")), [body]);
}

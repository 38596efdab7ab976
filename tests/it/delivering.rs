//! At least once: whoever delivers is killed at random moments, and what the receivers have is held against the store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use runwarden_host::Host;
use runwarden_host::model::{Actor, Create, NotifySettings, Reason};
use runwarden_host::verbs::outbox::{Sending, send};
use runwarden_host::verbs::{IdChoice, create};
use serde_json::json;

use crate::crashes::{Random, strike};
use crate::harness::{Home, host};
use crate::outbox::{bound, dispatches, lines};

/// Destinations: as many programs, and as many files.
const PAIRS: usize = 2;

/// What the receivers were given.
#[derive(Default)]
struct Journal {
    /// Bodies that programs had, by the id that came with each.
    told: BTreeMap<String, Vec<String>>,
    /// How often a handler's file has a line.
    written: BTreeMap<(String, String), usize>,
}

impl Journal {
    fn read(home: &Home) -> Self {
        let mut journal = Self::default();
        for number in 0..PAIRS {
            for line in lines(&program_file(home, number)) {
                let (id, body) = line.split_once(' ').expect("an id and a body");
                journal.told.entry(id.to_owned()).or_default().push(body.to_owned());
            }
            let name = format!("file-{number}");
            for line in lines(&home.path(&name)) {
                *journal.written.entry((name.clone(), line)).or_default() += 1;
            }
        }
        journal
    }
}

fn program_file(home: &Home, number: usize) -> PathBuf {
    home.path(&format!("program-{number}"))
}

/// Binds the receivers.
fn receivers(home: &Home) {
    for number in 0..PAIRS {
        let script = format!(
            r#"read -r body; printf '%s %s\n' "$RUNWARDEN_DISPATCH_ID" "$body" >> {}"#,
            program_file(home, number).display()
        );
        let program = json!(["sh", "-c", script]).to_string();
        home.bind(&format!("program-{number}"), &["--exec", &program]);
        let name = format!("file-{number}");
        home.bind(&name, &["--file", &name]);
    }
}

/// Puts so many notices into the outbox, delivering none: those of one end, and those that somebody sends.
fn enqueued(host: &Host, settings: &NotifySettings, most: usize) {
    let actor = Actor::new("operator", "test");
    let mut made = 0;
    while made < most {
        let id = host.draw_id().expect("entropy");
        let mut ended = Create::new("schedule_run", &id, actor.clone());
        ended.status = Some("failed".to_owned());
        ended.reason = Reason::code("run.failed.spawn_error");
        ended.notify = serde_json::to_value(settings).expect("settings are JSON");
        create(host, &ended, IdChoice::Drawn, None).expect("it is created");
        made += settings.handlers.len();
        for handler in &settings.handlers {
            let sending = Sending {
                to: handler.name.clone(),
                body: json!({"number": made}),
                dedup_key: None,
                deadline: None,
                wants_acknowledgement: false,
            };
            send(host, settings, &sending, &actor).expect("it is sent");
            made += 1;
        }
    }
}

/// What was delivered is with its receiver, under one id with the bytes that are kept, no more often than it was tried.
#[track_caller]
fn check(home: &Home, host: &Host, seed: u64) -> usize {
    // The store first: what it says by now, the receiver had before.
    let kept = dispatches(host);
    let journal = Journal::read(home);
    let mut open = 0;
    let known: BTreeSet<&str> = kept.iter().map(|(entity, _)| entity.reference.id.as_str()).collect();
    assert!(
        journal.told.keys().all(|id| known.contains(id.as_str())),
        "a receiver has what was never enqueued (seed {seed})"
    );
    for (entity, dispatch) in &kept {
        let id = &entity.reference.id;
        let body = String::from_utf8(dispatch.body.clone()).expect("bodies are text");
        let is_file = dispatch.destination == "file";
        let times = if is_file {
            let handler = dispatch.handler.clone().unwrap_or_default();
            journal.written.get(&(handler, body)).copied().unwrap_or(0)
        } else {
            let told = journal.told.get(id).map(Vec::as_slice).unwrap_or_default();
            assert!(told.iter().all(|told| *told == body), "{id} changed (seed {seed})");
            told.len()
        };
        match entity.status.as_str() {
            "delivered" => assert!(times > 0, "{id} is said to be delivered (seed {seed})"),
            "pending" | "delivering" => open += 1,
            other => panic!("{id} is {other} (seed {seed})"),
        }
        if !is_file {
            let attempts = entity.structural.attempt.unwrap_or(0);
            assert!(
                i64::try_from(times).is_ok_and(|times| times <= attempts),
                "{id} was told {times} times in {attempts} attempts (seed {seed})"
            );
        }
    }
    open
}

/// Delivers so many notices through so many deaths, and then what is left.
fn survives(notices: usize, deaths: usize) {
    let home = Home::new();
    receivers(&home);
    let host = host(&home.home());
    enqueued(&host, &bound(&host), notices);
    let seed = u64::from(std::process::id());
    let mut random = Random(seed);
    let mut most_ms = 100;
    let mut left = notices;
    for _ in 0..deaths {
        let mut deliverer = home.start(&["outbox", "deliver", "--until-empty"]);
        strike(&mut deliverer, random.below(most_ms));
        let killed = deliverer.wait().expect("our own child").code().is_none();
        let open = check(&home, &host, seed);
        home.overdue();
        // Short enough to die at work, long enough to come to it.
        most_ms = match (killed, open < left) {
            (true, false) => (most_ms * 2).min(10_000),
            _ => most_ms.max(50),
        };
        left = open;
        if left == 0 {
            break;
        }
    }
    home.done(&["outbox", "deliver", "--until-empty"]);
    assert_eq!(
        check(&home, &host, seed),
        0,
        "nothing is left to be delivered (seed {seed})"
    );
    assert!(dispatches(&host).len() >= notices);
}

#[test]
fn deliveries_that_are_killed_at_random_moments_lose_nothing_and_repeat_the_same() {
    survives(300, 8);
}

#[test]
#[ignore = "takes minutes"]
fn thousands_of_notices_survive_many_deaths_of_those_who_deliver_them() {
    survives(4_000, 120);
}

//! Every call a verb makes of its store fails once, before and after its work: nothing is left half-written, and the
//! verb said again comes to the same end.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;

use crate::clock::Clock;
use crate::error::Error;
use crate::host::{Config, Host};
use crate::model::{
    Actor, Create, DISPATCH_KIND, DurationMs, Entity, NotifySettings, Reach, Reason, Reference, Retention, Transition,
};
use crate::policy::Limits;
use crate::provenance::Trust;
use crate::store::samples::new_run;
use crate::store::{
    EntityQuery, FaultyStore, HistoryQuery, MemoryStore, NewRun, PlannedFault, Store, StoreError, When,
};
use crate::verbs::create::{make, policy_for};
use crate::verbs::outbox::{Bounds, Extent, Sending, deliver, send};
use crate::verbs::{
    Activating, Clearing, IdChoice, Keep, Kill, Pruning, Standing, activate, clear, create, kill, prune, report,
    settle, standings, transition,
};

/// A verb as a test calls it.
type Verb = fn(&Host) -> Result<(), Error>;

fn error() -> StoreError {
    StoreError::Busy { waited_ms: 0 }
}

struct Bench {
    host: Host,
    store: Arc<FaultyStore<MemoryStore>>,
    _home: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let config = Config {
            home: home.path().to_owned(),
            database: None,
            limits: Limits::DEFAULT,
            clock: Clock::Set(Arc::new(AtomicI64::new(Clock::System.now().as_ms()))),
            compiler: None,
            program: Path::new("/nonexistent").to_owned(),
            shim: &[],
            variable: |_| None,
        };
        let store = Arc::new(FaultyStore::new(MemoryStore::named("faulty01")));
        let inner: Arc<dyn Store> = Arc::<FaultyStore<MemoryStore>>::clone(&store);
        let host = Host::with_store(config, inner);
        host.ensure_bundled().unwrap();
        for id in ["s", "parent"] {
            create(&host, &Create::new("session", id, tester()), IdChoice::Given, None).unwrap();
        }
        ended_run(&host);
        Self {
            host,
            store,
            _home: home,
        }
    }
}

fn tester() -> Actor {
    Actor::new("operator", "tests")
}

/// A run whose exit record waits to be recorded.
fn ended_run(host: &Host) {
    let selected = policy_for(host, "run", None).unwrap();
    let directory = host.run_dir("r");
    let made = make(
        host,
        &Create::new("run", "r", tester()),
        IdChoice::Given,
        &selected,
        |new| {
            let mut run: NewRun = new_run(&new.entity.reference);
            let runtime = run.runtime.as_mut().expect("a run has a runtime");
            runtime.attempt_token = "t".to_owned();
            runtime.run_dir = Some(directory.clone().into_os_string().into_encoded_bytes());
            runtime.stop_intent = None;
            Some(run)
        },
    );
    made.unwrap();
    std::fs::create_dir_all(&directory).unwrap();
    let record = json!({
        "v": 1, "token": "t", "worker_pid": 7, "raw_status": 768, "exit_code": 3, "term_signal": null,
        "core_dumped": false, "cause": "exit", "stop": null, "started_at_ms": 1, "ended_at_ms": 2, "duration_ms": 1,
        "user_ms": 0, "system_ms": 0, "max_rss_bytes": 0, "boot_id": "b", "lost_output_bytes": 0, "spawn_error": null,
        "set": {"empty": true, "proof": "subreaper_echild", "survivors": [], "survivors_total": 0},
    });
    std::fs::write(directory.join("exit.json"), record.to_string()).unwrap();
}

/// Every entity's row agrees with its history, and every end has its one event.
fn assert_whole(store: &dyn Store, context: &str) {
    for id in ["s", "parent", "r", "new"] {
        let Some(entity) = store.load(id).unwrap() else {
            continue;
        };
        let query = HistoryQuery {
            id: Some(id.to_owned()),
            ..HistoryQuery::default()
        };
        let rows = store.history(&query).unwrap();
        let versions: Vec<i64> = rows.iter().map(|row| row.version).collect();
        let expected: Vec<i64> = (1..=entity.version).collect();
        assert_eq!(versions, expected, "{context}: {id}");
        assert_eq!(rows.last().unwrap().status, entity.status, "{context}: {id}");
        let ends = rows
            .iter()
            .filter(|row| row.previous_status.as_deref() != Some(&row.status) && row.status != "running");
        for row in ends {
            assert!(
                store.envelope(row.id.as_str()).unwrap().is_some(),
                "{context}: {id} ended unheard"
            );
        }
    }
}

/// Fails each call in turn, then says the verb again.
fn check(verb: Verb, done: fn(&dyn Store) -> bool) {
    for when in [When::Before, When::After] {
        for nth in 1.. {
            let bench = Bench::new();
            let before = bench.store.calls();
            bench.store.plan(PlannedFault {
                call: before + nth,
                when,
                error,
            });
            let outcome = verb(&bench.host);
            let made = bench.store.calls() - before;
            let context = format!("call {nth} of {made}, {when:?}");
            assert_whole(bench.store.inner(), &context);
            if made < nth {
                assert!(
                    outcome.is_ok() && done(bench.store.inner()),
                    "{context}: it fails by itself"
                );
                break;
            }
            let again = verb(&bench.host);
            assert!(
                done(bench.store.inner()),
                "{context}: said again it is not done: {outcome:?}, then {again:?}"
            );
            assert_whole(bench.store.inner(), &context);
        }
    }
}

fn status(store: &dyn Store, id: &str) -> Option<String> {
    store.load(id).unwrap().map(|entity| entity.status)
}

#[test]
fn a_creation_survives_every_failing_call() {
    check(
        |host| {
            let mut command = Create::new("session", "new", tester());
            command.idempotency_key = Some("k".to_owned());
            command.parents = vec![Reference::new("session", "parent")];
            create(host, &command, IdChoice::Given, None).map(|_| ())
        },
        |store| status(store, "new").as_deref() == Some("running"),
    );
}

#[test]
fn a_transition_survives_every_failing_call() {
    check(
        |host| {
            let entity = host.store().load("s")?.expect("it was created");
            let mut command = Transition::new("completed", Reason::code("run.completed.ok"), tester());
            command.idempotency_key = Some("k".to_owned());
            transition(host, &entity, &command).map(|_| ())
        },
        |store| status(store, "s").as_deref() == Some("completed"),
    );
}

#[test]
fn a_recorded_end_survives_every_failing_call() {
    check(
        |host| {
            let entity = host.store().load("r")?.expect("it was created");
            settle(host, entity).map(|_| ())
        },
        |store| {
            let entity = store.load("r").unwrap().unwrap();
            entity.status == "failed" && entity.structural.exit_code == Some(3) && entity.version == 2
        },
    );
}

#[test]
fn an_activation_survives_every_failing_call() {
    check(
        |host| {
            let activating = Activating {
                reason: "to see".to_owned(),
                ..Activating::default()
            };
            activate(host, "schedule_run@1", &activating, &Trust::default(), &tester()).map(|_| ())
        },
        |store| {
            let components = store.components().unwrap();
            components
                .iter()
                .any(|c| c.kind == "schedule_run" && c.version == "1.0.0" && c.active)
        },
    );
}

#[test]
fn a_report_survives_every_failing_call() {
    check(
        |host| {
            let entity = host.store().load("s")?.expect("it was created");
            let said = crate::verbs::Report {
                status: Some("completed".to_owned()),
                code: Some("run.completed.ok".to_owned()),
                ..Default::default()
            };
            report(host, &entity, &said, &tester()).map(|_| ())
        },
        |store| status(store, "s").as_deref() == Some("completed"),
    );
}

#[test]
fn a_kill_survives_every_failing_call() {
    check(
        |host| {
            let entity = host.store().load("s")?.expect("it was created");
            let asked = Kill {
                grace: DurationMs::from_ms(0),
                actor: tester(),
                note: None,
                reach: Reach::Policy,
            };
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let killing = runtime.block_on(kill(host, &[entity], &asked))?;
            match killing.failures.into_iter().next() {
                Some((_, error)) => Err(error),
                None => Ok(()),
            }
        },
        |store| status(store, "s").as_deref() == Some("cancelled"),
    );
}

/// Whoever reads a run while another records its end holds an entity that is no longer so.
#[test]
fn an_end_that_another_recorded_since_comes_back_with_the_entity() {
    let bench = Bench::new();
    let read_before = bench.store.load("r").unwrap().unwrap();
    let recorded = settle(&bench.host, read_before.clone()).unwrap();
    assert!(recorded.terminal && !read_before.terminal);
    assert_eq!(settle(&bench.host, read_before.clone()).unwrap(), recorded);
    assert_eq!(
        standings(&bench.host, vec![read_before]).unwrap(),
        [Standing::Settled(recorded)]
    );
}

/// What a directory belongs to has a row as long as it is there: whatever failed, it can be tried again.
fn assert_reachable(host: &Host) {
    let is_there = host.run_dir("r").exists();
    let entity = host.store().load("r");
    assert!(
        !is_there || entity.unwrap().is_some(),
        "the directory is there, and no row names it"
    );
}

fn removed(host: &Host, target: Option<Entity>) -> Result<(), Error> {
    let asked = Clearing {
        keep: Keep::Nothing,
        grace: DurationMs::from_ms(0),
        actor: tester(),
        protected: Vec::new(),
    };
    let targets: Vec<Entity> = target.into_iter().collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let clearance = runtime.block_on(clear(host, &targets, &asked))?;
    match clearance.failures.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

#[test]
fn a_removal_survives_every_failing_call_and_removes_nothing_that_no_row_would_find_again() {
    check(
        |host| {
            let target = host.store().load("r")?;
            let outcome = removed(host, target);
            // Not through the store that fails: the last call may have been the one.
            if outcome.is_err() {
                host.store().load("r").map(|_| assert_reachable(host))?;
            }
            outcome
        },
        |store| {
            let owner = [Reference::new("run", "r")];
            store.load("r").unwrap().is_none()
                && store.runtimes(Some(&owner)).unwrap().is_empty()
                && store.resources(&owner).unwrap().is_empty()
        },
    );
}

#[test]
fn a_retention_survives_every_failing_call() {
    check(
        |host| {
            let asked = Pruning {
                retention: Retention::STANDARD.directories_after(DurationMs::from_ms(0)),
                actor: tester(),
                protected: Vec::new(),
            };
            let outcome = prune(host, &asked).map(|_| ());
            if outcome.is_err() {
                host.store().load("r").map(|_| assert_reachable(host))?;
            }
            outcome
        },
        |store| store.runtimes(Some(&[Reference::new("run", "r")])).unwrap().is_empty(),
    );
}

#[test]
fn an_inventory_that_cannot_be_read_ends_a_removal_before_anything_is_done() {
    let bench = Bench::new();
    let entity = bench.host.store().load("r").unwrap();
    let first = bench.store.calls() + 1;
    // Links, the entity, its runtime rows, its resources: the whole reading.
    for call in first..first + 4 {
        let bench = Bench::new();
        bench.store.plan(PlannedFault {
            call,
            when: When::Before,
            error,
        });
        assert!(removed(&bench.host, entity.clone()).is_err());
        assert!(bench.host.run_dir("r").join("exit.json").exists());
        assert_eq!(bench.store.inner().runtimes(None).unwrap().len(), 1);
        assert_eq!(status(bench.store.inner(), "r").as_deref(), Some("running"));
    }
}

/// Where a notice of the test goes.
fn journal(host: &Host) -> NotifySettings {
    let transport = json!({"transport": "file", "path": host.config().home().join("ends"), "timeout_ms": 10_000});
    let handler = json!({
        "name": "ops", "layer": "store", "component": "file@0.1.0", "digest": "d", "destinations": {"file": transport},
    });
    serde_json::from_value(json!({"handlers": [handler]})).unwrap()
}

/// Said again it is sent again, when only the receiver knows that it had it: at least once, under one id.
#[test]
fn a_notice_survives_every_failing_call() {
    check(
        |host| {
            // Whatever somebody claimed before has lapsed.
            if let Clock::Set(clock) = &host.config().clock {
                clock.fetch_add(3_600_000, Ordering::Relaxed);
            }
            let sending = Sending {
                to: "ops".to_owned(),
                body: json!({}),
                dedup_key: Some("k".to_owned()),
                deadline: None,
                wants_acknowledgement: false,
            };
            send(host, &journal(host), &sending, &tester())?;
            deliver(host, Extent::UntilEmpty, Bounds::STANDARD).map(|_| ())
        },
        |store| {
            let query = EntityQuery {
                kind: Some(DISPATCH_KIND.to_owned()),
                ..EntityQuery::default()
            };
            let dispatches = store.list(&query).unwrap();
            dispatches.len() == 1 && dispatches[0].status == "delivered"
        },
    );
}

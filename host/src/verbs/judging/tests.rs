#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use std::sync::Arc;

use serde_json::json;

use super::start_shadow;
use crate::clock::Clock;
use crate::host::{Config, Host};
use crate::model::{Actor, Create, Descriptor, Entity, Lifecycle, Reason, Timestamp, Transition, create};
use crate::policy::Limits;
use crate::store::samples::component;
use crate::store::{
    AdminQuery, Component, Created, FaultyStore, JudgedCounts, Judging as _, MemoryStore, OpenMode, PlannedFault,
    SqliteStore, Store, StoreError, When,
};
use crate::verbs::{Activating, TransitionOutcome, transition};

fn host(home: &tempfile::TempDir, store: Arc<dyn Store>) -> Host {
    let config = Config {
        home: home.path().to_owned(),
        database: None,
        limits: Limits::DEFAULT,
        clock: Clock::System,
        compiler: None,
        program: "/nonexistent".into(),
        shim: &[],
        variable: |_| None,
    };
    let host = Host::with_store(config, store);
    host.ensure_bundled().unwrap();
    host
}

/// The table of the kind `play` as it ships.
fn play(host: &Host) -> Descriptor {
    host.active_policy("play").unwrap().lifecycle.descriptor().clone()
}

/// Lets a table judge plays. It has no bytes: nothing of it is ever run.
fn let_judge(host: &Host, descriptor: &Descriptor) {
    let lifecycle = Lifecycle::new(descriptor.clone());
    let digest = "5".repeat(64);
    let candidate = Component {
        descriptor: descriptor.canonical(),
        ..component(lifecycle.kind(), &digest)
    };
    host.store().install(&[candidate], &[], &[]).unwrap();
    let activating = Activating::default();
    start_shadow(host, &digest, &activating, &Actor::new("operator", "tests")).unwrap();
}

fn made(host: &Host, id: &str) -> Entity {
    let selected = host.active_policy("play").unwrap();
    let command = Create::new("play", id, Actor::new("operator", "tests"));
    let now = Timestamp::from_ms(1);
    let new = create(&selected.lifecycle, &selected.pin, &command, host.store().name(), now).unwrap();
    match host.store().create(&new, None).unwrap() {
        Created::New { entity, .. } => *entity,
        other => panic!("{other:?}"),
    }
}

/// A move that the table admits for everybody, and its code.
fn step(host: &Host, entity: &Entity) -> Transition {
    let play = play(host);
    let edge = play
        .edges
        .iter()
        .find(|edge| edge.from == entity.status && edge.actors.is_empty() && edge.required_patch.is_empty());
    let code = &play.reason_codes[0].code;
    Transition::new(&edge.unwrap().to, Reason::code(code), Actor::new("operator", "tests"))
}

/// An end that everybody may write.
fn an_end(host: &Host, entity: &Entity) -> String {
    let play = play(host);
    let is_end = |name: &str| {
        play.statuses
            .iter()
            .any(|status| status.name == name && status.terminal)
    };
    let mut ways = play
        .edges
        .iter()
        .filter(|edge| edge.from == entity.status && edge.actors.is_empty());
    ways.find(|edge| is_end(&edge.to)).unwrap().to.clone()
}

/// The table without the edges out of its first status.
fn stricter(mut play: Descriptor) -> Descriptor {
    let first = play.statuses.iter().find(|status| status.initial).unwrap().name.clone();
    play.edges.retain(|edge| edge.from != first);
    play
}

#[test]
fn a_shadow_costs_no_commit_of_its_own_whatever_it_says() {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&home.path().join("state.db"), OpenMode::Create).unwrap());
    let host = host(&home, Arc::clone(&store) as Arc<dyn Store>);
    let commits_of = |id: &str, applies: bool| {
        let mut entity = made(&host, id);
        let mut command = step(&host, &entity);
        if !applies {
            // Out of an end no way leads.
            let first = std::mem::replace(&mut command.target, an_end(&host, &entity));
            transition(&host, &entity, &command).unwrap();
            entity = store.load(id).unwrap().unwrap();
            command.target = first;
        }
        let before = store.counts().commits;
        let outcome = transition(&host, &entity, &command).unwrap();
        assert_eq!(
            matches!(outcome, TransitionOutcome::Applied { .. }),
            applies,
            "{outcome:?}"
        );
        store.counts().commits - before
    };
    assert_eq!((commits_of("a", true), commits_of("b", false)), (1, 1));
    let counts = || {
        let JudgedCounts { same, different, .. } = store.shadows().unwrap()[0].counts;
        (same, different)
    };
    let mut other = play(&host);
    "9.9.9".clone_into(&mut other.version);
    let_judge(&host, &other);
    assert_eq!((commits_of("c", true), commits_of("d", false)), (1, 1));
    assert_eq!(counts(), (3, 0));
}

#[test]
fn a_stricter_shadow_is_told_in_the_commit_of_the_write() {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&home.path().join("state.db"), OpenMode::Create).unwrap());
    let host = host(&home, Arc::clone(&store) as Arc<dyn Store>);
    let_judge(&host, &stricter(play(&host)));
    let entity = made(&host, "p");
    let before = store.counts().commits;
    transition(&host, &entity, &step(&host, &entity)).unwrap();
    assert_eq!(store.counts().commits - before, 1);
    let told = store.admin_events(&AdminQuery {
        target: Some("play/p".to_owned()),
        ..AdminQuery::default()
    });
    let told = told.unwrap();
    assert_eq!((told.len(), told[0].action.as_str()), (1, "shadow_difference"));
    assert_eq!(
        told[0].details["candidate"],
        json!({"outcome": "rejected", "code": "no_edge"})
    );
}

#[test]
fn a_shadow_that_cannot_be_looked_up_changes_nothing() {
    let mut unasked = 0;
    for call in 1..=8 {
        let home = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultyStore::new(MemoryStore::named("judging1")));
        let one = host(&home, Arc::clone(&store) as Arc<dyn Store>);
        let_judge(&one, &stricter(play(&one)));
        let entity = made(&one, "p");
        let command = step(&one, &entity);
        // Another process, which knows of no shadow yet.
        let other = host(&home, Arc::clone(&store) as Arc<dyn Store>);
        store.plan(PlannedFault {
            call: store.calls() + call,
            when: When::Before,
            error: || StoreError::Failed {
                doing: "doing anything",
                source: "tests".into(),
            },
        });
        let outcome = transition(&other, &entity, &command);
        let differences = store.admin_events(&AdminQuery {
            target: Some("play/p".to_owned()),
            ..AdminQuery::default()
        });
        // Either the write failed for what it needs, or it was made: with what the shadow says, or without.
        match outcome {
            Ok(TransitionOutcome::Applied { .. }) => {
                unasked += usize::from(differences.is_ok_and(|rows| rows.is_empty()))
            }
            Ok(other) => panic!("call {call}: {other:?}"),
            Err(_) => {}
        }
    }
    assert!(unasked > 0, "a look-up of the shadow is among the calls");
}

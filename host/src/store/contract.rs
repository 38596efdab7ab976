//! The promises of [`Store`], as checks that every implementation passes.
#![expect(clippy::unwrap_used, reason = "checks panic when a promise is broken")]

mod judging;
mod outbox;
mod queue;
mod schedules;
mod waiting;

use std::any::Any;
use std::sync::{Arc, Barrier};
use std::thread;

use serde_json::json;

use super::samples::{
    self, DIGEST, Success, activation, admin_event, change, component, ending, moment, new_entity, new_run,
    new_runtime, stop_intent,
};
use super::{
    AdminQuery, Applied, Created, EntityQuery, HistoryQuery, Journal, JournalPage, Lookup, Removed, Rows, RuntimeAdded,
    RuntimeUpdate, Scope, Signed, Store, StoreError, Work,
};
use crate::model::{
    AdminEvent, Entity, Event, EventId, Fields, KeyUse, Limit, NewEntity, Place, ProcessIdentity, RaisedLimits,
    Reference, Runtime, RuntimeKind, RuntimeState,
};

/// A store to be checked, empty but for the component of [`samples::install`].
pub struct Subject {
    /// The store.
    pub store: Arc<dyn Store>,
    /// What must live as long as the store: a directory, say.
    pub kept: Box<dyn Any>,
}

/// Checks every promise, each on a fresh store.
///
/// # Panics
/// When one is broken; the place names it.
pub fn suite(make: &dyn Fn() -> Subject) {
    let promises: [fn(&Subject); 34] = [
        an_entity_is_stored_whole,
        an_id_is_used_once_even_after_a_removal,
        a_creation_key_stands_for_its_entity,
        nothing_is_created_below_what_is_missing_or_closed,
        a_failed_creation_leaves_nothing,
        a_change_is_stored_whole,
        a_change_of_another_version_is_lost,
        of_two_changes_of_one_version_one_is_written,
        of_two_creations_of_one_id_one_is_new,
        a_change_key_is_recorded_with_its_change_alone,
        words_find_their_entities,
        a_listing_is_newest_first_and_every_selector_narrows_it,
        links_are_followed_in_all_directions_each_entity_once,
        what_belongs_to_entities_comes_in_their_order,
        history_is_oldest_first_and_outlives_the_entity,
        events_are_kept_with_their_row,
        audit_rows_are_kept_in_order,
        a_fact_of_a_runtime_row_is_recorded_by_the_first,
        a_runtime_row_keeps_what_an_update_does_not_name,
        a_runtime_row_that_is_stopped_names_no_process_and_keeps_the_rest,
        the_inventory_tells_what_is_not_stopped,
        a_runtime_is_added_to_what_has_not_ended_and_runs_nowhere_else,
        components_are_counted_activated_and_kept_while_in_use,
        live_pins_are_counted_apart_and_signatures_go_with_their_component,
        what_was_set_for_a_policy_stays_with_the_entity_until_its_pin_moves,
        a_removed_component_can_come_back,
        the_data_version_changes_with_every_commit,
        many_callers_all_get_their_own_answer,
        a_failed_command_leaves_nothing_among_others_that_succeed,
        the_inventory_lets_go_only_of_what_is_stopped,
        an_entity_goes_when_its_inventory_is_empty_and_its_version_is_the_one_seen,
        a_removal_leaves_nothing_but_history,
        entities_are_walked_from_the_oldest,
        a_journal_gives_up_only_what_is_old_and_its_entity_gone,
    ];
    for promise in promises
        .into_iter()
        .chain(judging::PROMISES)
        .chain(outbox::PROMISES)
        .chain(queue::PROMISES)
        .chain(waiting::PROMISES)
        .chain(schedules::PROMISES)
    {
        let subject = make();
        promise(&subject);
    }
}

fn created(store: &dyn Store, new: &NewEntity) -> Entity {
    match store.create(new, None).unwrap() {
        Created::New { entity, .. } => *entity,
        other => panic!("{} was not created: {other:?}", new.entity.reference),
    }
}

fn make(store: &dyn Store, id: &str) -> Entity {
    created(store, &new_entity(store, "run", id))
}

fn make_below(store: &dyn Store, id: &str, parents: &[&Entity]) -> Entity {
    let mut new = new_entity(store, "run", id);
    new.parents = parents.iter().map(|parent| parent.reference.clone()).collect();
    created(store, &new)
}

fn run(store: &dyn Store, id: &str) -> (Entity, i64) {
    let new = new_entity(store, "run", id);
    match store.create(&new, Some(&new_run(&new.entity.reference))).unwrap() {
        Created::New { entity, runtime_id } => (*entity, runtime_id.unwrap()),
        other => panic!("{id} was not created: {other:?}"),
    }
}

fn end(store: &dyn Store, entity: &Entity, success: Success) {
    assert_eq!(store.apply(&ending(store, entity, success)).unwrap(), Applied::Written);
}

/// Removes an entity with whatever the inventory has of it, its resources untouched on disk.
pub(super) fn forget(store: &dyn Store, id: &str) {
    let entity = store.load(id).unwrap().unwrap();
    let owners = [entity.reference.clone()];
    let stop = |runtime: Runtime| RuntimeUpdate {
        id: runtime.id,
        state: Some(RuntimeState::Stopped),
        at: runtime.updated_at,
        ..RuntimeUpdate::default()
    };
    let stops: Vec<RuntimeUpdate> = store.runtimes(Some(&owners)).unwrap().into_iter().map(stop).collect();
    store.update_runtimes(&stops).unwrap();
    assert!(store.drop_runtimes(&entity, Rows::All, &[]).unwrap());
    for resource in store.resources(&owners).unwrap() {
        store.drop_resource(resource.id).unwrap();
    }
    let event = admin_event("forgotten", id);
    assert_eq!(store.remove(&entity, &event).unwrap(), Removed::Gone);
}

/// Audit rows but those of [`forget`].
fn audited(store: &dyn Store) -> Vec<AdminEvent> {
    let mut events = store.admin_events(&AdminQuery::default()).unwrap();
    events.retain(|event| event.action != "forgotten");
    events
}

fn ids(entities: &[Entity]) -> Vec<&str> {
    entities.iter().map(|entity| entity.reference.id.as_str()).collect()
}

fn key(name: &str, digest: &str) -> Option<KeyUse> {
    Some(KeyUse {
        key: name.to_owned(),
        command_digest: digest.to_owned(),
    })
}

/// An entity in which every column has something to lose.
fn rich(store: &dyn Store, id: &str) -> NewEntity {
    let mut new = new_entity(store, "run", id);
    let entity = &mut new.entity;
    entity.name = Some("näme \u{0} ' \" %".to_owned());
    entity
        .fields
        .insert("nested".to_owned(), json!({"a": [1, 2.5, null, "x"], "b": {"c": true}}));
    entity.tags.insert("team".to_owned(), "core".to_owned());
    entity.structural.ended_at = Some(moment(-5));
    entity.structural.exit_code = Some(-1);
    entity.structural.term_signal = Some(9);
    entity.structural.cause = Some("signal".to_owned());
    entity.structural.attempt = Some(3);
    entity.structural.next_attempt_at = Some(moment(99));
    entity.structural.leased_by = Some("worker-1".to_owned());
    entity.structural.lease_expires_at = Some(moment(100));
    entity.structural.lease_attempts = Some(2);
    entity.structural.unknown_since = Some(moment(101));
    entity.unique_key = Some("one-of-it".to_owned());
    entity.fence = i64::MAX;
    entity.root = Some("first".to_owned());
    entity.generation = 4;
    entity.chain_parent = Some("before".to_owned());
    entity.notify = json!({"handlers": ["ops"]});
    new
}

fn an_entity_is_stored_whole(subject: &Subject) {
    let store = &*subject.store;
    let new = rich(store, "whole");
    let entity = created(store, &new);
    assert!(entity.row > 0);
    assert_eq!(
        Entity {
            row: 0,
            ..entity.clone()
        },
        new.entity
    );
    assert_eq!(store.load("whole").unwrap(), Some(entity.clone()));
    assert_eq!(store.load("whol").unwrap(), None);
    assert_eq!(store.work(&entity).unwrap(), None);
    let (entity, runtime_id) = run(store, "work");
    let expected = new_run(&entity.reference);
    assert_eq!(
        store.work(&entity).unwrap(),
        Some(Work(json!({"argv": ["true", "work"]})))
    );
    let mut runtimes = store.runtimes(Some(&[entity.reference])).unwrap();
    assert_eq!(runtimes.len(), 1);
    assert_eq!(runtimes[0].id, runtime_id);
    runtimes[0].id = 0;
    assert_eq!(runtimes, Vec::from_iter(expected.runtime));
}

fn an_id_is_used_once_even_after_a_removal(subject: &Subject) {
    let store = &*subject.store;
    let first = make(store, "once");
    for kind in ["run", "play"] {
        assert_eq!(
            store.create(&new_entity(store, kind, "once"), None).unwrap(),
            Created::IdTaken
        );
    }
    forget(store, "once");
    assert_eq!(store.load("once").unwrap(), None);
    assert_eq!(
        store.create(&new_entity(store, "run", "once"), None).unwrap(),
        Created::IdTaken
    );
    let next = make(store, "Once");
    assert_ne!(next.row, first.row);
    assert_eq!(
        store.apply(&change(store, &first, "failed")).unwrap(),
        Applied::Lost(None)
    );
}

fn a_creation_key_stands_for_its_entity(subject: &Subject) {
    let store = &*subject.store;
    let mut new = new_entity(store, "run", "keyed");
    new.key = key("k", "digest-1");
    let entity = created(store, &new);
    let expected = Created::KeyUsed {
        entity: Box::new(entity.clone()),
        command_digest: "digest-1".to_owned(),
    };
    assert_eq!(store.create(&new, None).unwrap(), expected);
    new.entity.reference.id = "other".to_owned();
    new.key = key("k", "digest-2");
    assert_eq!(store.create(&new, None).unwrap(), expected);
    assert_eq!(store.load("other").unwrap(), None);
    // A key of a creation is no key of the entity's transitions.
    assert_eq!(store.key_use(&entity, "k").unwrap(), None);
    // A creation that writes nothing leaves its key free.
    let mut refused = new_entity(store, "run", "keyed");
    refused.key = key("free", "digest-3");
    assert_eq!(store.create(&refused, None).unwrap(), Created::IdTaken);
    refused.entity.reference.id = "third".to_owned();
    assert_eq!(created(store, &refused).reference.id, "third");
}

fn nothing_is_created_below_what_is_missing_or_closed(subject: &Subject) {
    let store = &*subject.store;
    let below = |parent: Reference| {
        let mut new = new_entity(store, "run", "below");
        new.parents = vec![parent];
        store.create(&new, Some(&new_run(&new.entity.reference))).unwrap()
    };
    let nobody = Reference::new("run", "nobody");
    assert_eq!(below(nobody.clone()), Created::ParentMissing(nobody));
    let ended = make(store, "ended");
    end(store, &ended, Success::Yes);
    assert_eq!(below(ended.reference.clone()), Created::ParentClosed(ended.reference));
    let other_kind = Reference::new("play", "ended");
    assert_eq!(below(other_kind.clone()), Created::ParentMissing(other_kind));
    let (stopping, id) = run(store, "stopping");
    let intent = RuntimeUpdate {
        id,
        stop_intent: Some(stop_intent("enough")),
        ..RuntimeUpdate::default()
    };
    store.update_runtimes(&[intent]).unwrap();
    assert_eq!(
        below(stopping.reference.clone()),
        Created::ParentClosed(stopping.reference)
    );
    let itself = Reference::new("run", "below");
    assert_eq!(below(itself.clone()), Created::ParentMissing(itself));
    assert_eq!(store.load("below").unwrap(), None);
    assert_eq!(
        store
            .history(&HistoryQuery {
                id: Some("below".to_owned()),
                ..HistoryQuery::default()
            })
            .unwrap(),
        []
    );
}

fn a_failed_creation_leaves_nothing(subject: &Subject) {
    let store = &*subject.store;
    let mut new = new_entity(store, "run", "unpinned");
    new.entity.policy.digest = "absent".to_owned();
    assert!(matches!(store.create(&new, None), Err(StoreError::Failed { .. })));
    assert_eq!(store.load("unpinned").unwrap(), None);
    assert_eq!(store.history(&HistoryQuery::default()).unwrap(), []);
    make(store, "unpinned");
    let mut holder = new_entity(store, "run", "holder");
    holder.entity.unique_key = Some("u".to_owned());
    let holder = created(store, &holder);
    let mut second = new_entity(store, "run", "second");
    second.entity.unique_key = Some("u".to_owned());
    let answer = store.create(&second, None).unwrap();
    assert_eq!(answer, Created::UniqueKeyHeld(Box::new(holder.clone())));
    assert_eq!(store.load("second").unwrap(), None);
    end(store, &holder, Success::Yes);
    assert_eq!(created(store, &second).unique_key.as_deref(), Some("u"));
}

fn a_change_is_stored_whole(subject: &Subject) {
    let store = &*subject.store;
    let (entity, runtime_id) = run(store, "changed");
    let mut effects = change(store, &entity, "retry_wait");
    let after = &mut effects.change.after;
    let new = rich(store, "unused");
    after.fields = new.entity.fields;
    after.structural = new.entity.structural;
    after.unique_key = new.entity.unique_key;
    after.fence = 7;
    effects.change.admin = vec![admin_event("one", "run/changed"), admin_event("two", "run/changed")];
    effects.runtimes = vec![RuntimeUpdate {
        id: runtime_id,
        state: Some(RuntimeState::Running),
        ..RuntimeUpdate::default()
    }];
    assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
    assert_eq!(store.load("changed").unwrap(), Some(effects.change.after.clone()));
    let history = HistoryQuery {
        id: Some("changed".to_owned()),
        newest: Some(1),
        ..HistoryQuery::default()
    };
    assert_eq!(store.history(&history).unwrap(), [effects.change.row]);
    let actions: Vec<String> = store
        .admin_events(&AdminQuery::default())
        .unwrap()
        .into_iter()
        .map(|event| event.action)
        .collect();
    assert_eq!(actions, ["one", "two"]);
    assert_eq!(store.runtimes(None).unwrap()[0].state, RuntimeState::Running);
    // What is fixed at creation is not written.
    let current = store.load("changed").unwrap().unwrap();
    let mut effects = change(store, &current, "running");
    effects.change.after.name = Some("renamed".to_owned());
    effects.change.after.tags.insert("new".to_owned(), "tag".to_owned());
    assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
    let found = store.load("changed").unwrap().unwrap();
    assert_eq!((found.name, found.tags, found.version), (current.name, current.tags, 3));
}

fn a_change_of_another_version_is_lost(subject: &Subject) {
    let store = &*subject.store;
    let (entity, runtime_id) = run(store, "raced");
    end(store, &entity, Success::No);
    let now = store.load("raced").unwrap().unwrap();
    let mut stale = ending(store, &entity, Success::Yes);
    stale.change.admin = vec![admin_event("never", "run/raced")];
    stale.change.key = key("never", "digest");
    stale.runtimes = vec![RuntimeUpdate {
        id: runtime_id,
        state: Some(RuntimeState::Stopped),
        ..RuntimeUpdate::default()
    }];
    assert_eq!(store.apply(&stale).unwrap(), Applied::Lost(Some(Box::new(now.clone()))));
    assert_eq!(store.load("raced").unwrap(), Some(now.clone()));
    assert_eq!(store.history(&HistoryQuery::default()).unwrap().len(), 2);
    assert_eq!(store.admin_events(&AdminQuery::default()).unwrap(), []);
    assert_eq!(store.key_use(&now, "never").unwrap(), None);
    assert_eq!(store.runtimes(None).unwrap()[0].state, RuntimeState::Starting);
}

fn of_two_changes_of_one_version_one_is_written(subject: &Subject) {
    let store = &*subject.store;
    for round in 0..10 {
        let entity = make(store, &format!("race-{round}"));
        let barrier = Barrier::new(2);
        let written = thread::scope(|scope| {
            let racers = [Success::Yes, Success::No].map(|success| {
                let (entity, barrier) = (&entity, &barrier);
                scope.spawn(move || {
                    let effects = ending(store, entity, success);
                    barrier.wait();
                    store.apply(&effects).unwrap() == Applied::Written
                })
            });
            racers.map(|racer| racer.join().unwrap())
        });
        assert_ne!(written[0], written[1]);
        assert_eq!(store.load(&entity.reference.id).unwrap().unwrap().success, written[0]);
    }
}

fn of_two_creations_of_one_id_one_is_new(subject: &Subject) {
    let store = &*subject.store;
    for round in 0..10 {
        let id = format!("twin-{round}");
        let barrier = Barrier::new(2);
        let outcomes = thread::scope(|scope| {
            let twins = [0, 1].map(|_| {
                let (id, barrier) = (&id, &barrier);
                scope.spawn(move || {
                    let new = new_entity(store, "run", id);
                    barrier.wait();
                    store.create(&new, None).unwrap()
                })
            });
            twins.map(|twin| twin.join().unwrap())
        });
        let new = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Created::New { .. }))
            .count();
        let taken = outcomes.iter().filter(|outcome| **outcome == Created::IdTaken).count();
        assert_eq!((new, taken), (1, 1));
    }
}

fn a_change_key_is_recorded_with_its_change_alone(subject: &Subject) {
    let store = &*subject.store;
    let entity = make(store, "keyed");
    let mut effects = change(store, &entity, "failed");
    effects.change.key = key("k", "digest-1");
    assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
    let now = store.load("keyed").unwrap().unwrap();
    let expected = Some(("digest-1".to_owned(), effects.change.row.clone()));
    assert_eq!(store.key_use(&entity, "k").unwrap(), expected);
    assert_eq!(store.key_use(&now, "K").unwrap(), None);
    assert_eq!(store.key_use(&make(store, "other"), "k").unwrap(), None);
    // Whoever did not look first loses, and nothing is written.
    let mut again = change(store, &now, "completed");
    again.change.key = key("k", "digest-2");
    assert_eq!(store.apply(&again).unwrap(), Applied::Lost(Some(Box::new(now.clone()))));
    assert_eq!(store.load("keyed").unwrap(), Some(now.clone()));
    assert_eq!(store.key_use(&now, "k").unwrap(), expected);
}

fn words_find_their_entities(subject: &Subject) {
    let store = &*subject.store;
    let find = |lookup: Lookup, limit| ids(&store.look_up(&lookup, limit).unwrap()).join(" ");
    let by_id = |prefix: &str| Lookup::IdPrefix {
        kind: None,
        prefix: prefix.to_owned(),
    };
    for id in ["abcd", "abcde", "abcdf", "ABCDE", "ab_d", "abXd", "abc.", "abc"] {
        make(store, id);
    }
    created(store, &new_entity(store, "play", "abcdg"));
    assert_eq!(find(by_id("abcd"), 9), "abcd");
    assert_eq!(find(by_id("abcde"), 9), "abcde");
    assert_eq!(find(by_id("ab_"), 9), "ab_d");
    assert_eq!(find(by_id("ab%"), 9), "");
    assert_eq!(find(by_id("A"), 9), "ABCDE");
    assert_eq!(find(by_id("abX"), 9), "abXd");
    assert_eq!(find(by_id("ab"), 3), "abXd ab_d abc");
    assert_eq!(find(by_id("abcdg"), 0), "");
    let play = |prefix: &str| Lookup::IdPrefix {
        kind: Some("play".to_owned()),
        prefix: prefix.to_owned(),
    };
    assert_eq!(find(play("abcd"), 9), "abcdg");
    assert_eq!(find(play("abcde"), 9), "");
    for id in ["n1", "n2"] {
        let mut new = new_entity(store, "run", id);
        new.entity.name = Some("nightly".to_owned());
        created(store, &new);
    }
    assert_eq!(find(Lookup::Name("nightly".to_owned()), 9), "n2");
    assert_eq!(find(Lookup::Name("night".to_owned()), 9), "");
    assert_eq!(find(Lookup::NewestRun, 9), "");
    assert_eq!(find(Lookup::NewestFailedRun, 9), "");
    let [first, second, _third] = ["r1", "r2", "r3"].map(|id| run(store, id).0);
    make(store, "no-run");
    assert_eq!(find(Lookup::NewestRun, 9), "r3");
    end(store, &first, Success::No);
    end(store, &second, Success::Yes);
    end(store, &store.load("no-run").unwrap().unwrap(), Success::No);
    assert_eq!(find(Lookup::NewestFailedRun, 9), "r1");
    forget(store, "r3");
    assert_eq!(find(Lookup::NewestRun, 9), "r2");
    forget(store, "abcd");
    assert_eq!(find(by_id("abcd"), 9), "abcde abcdf abcdg");
}

#[expect(clippy::too_many_lines, reason = "one listing after another, each its own promise")]
fn a_listing_is_newest_first_and_every_selector_narrows_it(subject: &Subject) {
    type Select = fn(&mut EntityQuery);
    let store = &*subject.store;
    for (index, (kind, id)) in [("run", "a"), ("run", "b"), ("play", "c"), ("run", "d"), ("play", "e")]
        .iter()
        .enumerate()
    {
        let mut new = new_entity(store, kind, id);
        new.entity.created_at = moment([0, 100, 200, 150, 300][index]);
        new.entity.name = (index % 2 == 0).then(|| "even".to_owned());
        new.entity
            .tags
            .insert("team".to_owned(), if index < 2 { "x" } else { "y" }.to_owned());
        if *id == "d" {
            new.entity.tags.insert("extra".to_owned(), "1".to_owned());
        }
        created(store, &new);
    }
    end(store, &store.load("a").unwrap().unwrap(), Success::Yes);
    end(store, &store.load("c").unwrap().unwrap(), Success::No);
    fn statuses(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }
    fn tag(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }
    fn some(word: &str) -> Option<String> {
        Some(word.to_owned())
    }
    let cases: [(Select, &str); 19] = [
        (|_| {}, "edcba"),
        (|q| q.limit = Some(2), "ed"),
        (|q| q.limit = Some(0), ""),
        (|q| q.kind = some("play"), "ec"),
        (|q| (q.kind, q.terminal) = (some("play"), Some(false)), "e"),
        (|q| q.statuses = statuses(&["running"]), "edb"),
        (
            |q| (q.statuses, q.limit) = (statuses(&["failed", "completed", "failed"]), Some(3)),
            "ca",
        ),
        (
            |q| (q.statuses, q.limit) = (statuses(&["failed", "running"]), Some(3)),
            "edc",
        ),
        (|q| q.terminal = Some(true), "ca"),
        (|q| (q.terminal, q.success) = (Some(true), Some(false)), "c"),
        (|q| q.success = Some(true), "a"),
        (|q| q.tags = vec![tag("team", "y")], "edc"),
        (|q| q.tags = vec![tag("team", "y"), tag("extra", "1")], "d"),
        (|q| q.tags = vec![tag("team", "")], ""),
        (|q| q.name = some("even"), "eca"),
        (|q| (q.name, q.statuses) = (some("even"), statuses(&["failed"])), "c"),
        (|q| q.since = Some(moment(150)), "edc"),
        (|q| (q.since, q.kind) = (Some(moment(151)), some("run")), ""),
        (|q| q.since = Some(moment(999)), ""),
    ];
    for (select, expected) in cases {
        let mut query = EntityQuery::default();
        select(&mut query);
        assert_eq!(ids(&store.list(&query).unwrap()).join(""), expected, "{query:?}");
    }
    let mut pages = String::new();
    let mut query = EntityQuery {
        limit: Some(2),
        ..EntityQuery::default()
    };
    loop {
        let page = store.list(&query).unwrap();
        let Some(last) = page.last() else { break };
        query.before_row = Some(last.row);
        pages.push_str(&ids(&page).join(""));
    }
    assert_eq!(pages, "edcba");
}

fn links_are_followed_in_all_directions_each_entity_once(subject: &Subject) {
    let store = &*subject.store;
    let top = make(store, "top");
    let left = make_below(store, "left", &[&top]);
    let right = make_below(store, "right", &[&top, &top]);
    let low = make_below(store, "low", &[&right, &left]);
    let deep = make_below(store, "deep", &[&low]);
    let near = make_below(store, "near", &[&top]);
    make(store, "stranger");
    let linked = |entity, scope| ids(&store.linked(entity, scope).unwrap()).join(" ");
    assert_eq!(linked(&low, Scope::Parents), "left right");
    assert_eq!(linked(&top, Scope::Parents), "");
    assert_eq!(linked(&top, Scope::Children), "left right near");
    assert_eq!(linked(&top, Scope::Descendants), "left right near low deep");
    assert_eq!(linked(&near, Scope::Descendants), "");
    forget(store, "low");
    assert_eq!(linked(&deep, Scope::Parents), "");
    assert_eq!(linked(&top, Scope::Descendants), "left right near");
}

fn what_belongs_to_entities_comes_in_their_order(subject: &Subject) {
    let store = &*subject.store;
    let top = make(store, "top");
    let mut new = new_entity(store, "run", "low");
    new.parents = vec![make_below(store, "middle", &[&top]).reference, top.reference.clone()];
    let run = new_run(&new.entity.reference);
    store.create(&new, Some(&run)).unwrap();
    let low = store.load("low").unwrap().unwrap();
    let (other, other_runtime) = self::run(store, "other");
    make_below(store, "last", &[&top, &other]);
    let asked = [low.clone(), top.clone(), other.clone(), low];
    let found = store.belongings(&asked).unwrap();
    let words = |references: &[Reference]| {
        references
            .iter()
            .map(Reference::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let links: Vec<(String, String)> = found
        .iter()
        .map(|found| (words(&found.parents), words(&found.children)))
        .collect();
    let expected = [
        ("run/top run/middle", ""),
        ("", "run/middle run/low run/last"),
        ("", "run/last"),
        ("run/top run/middle", ""),
    ];
    assert_eq!(
        links,
        expected.map(|(above, below)| (above.to_owned(), below.to_owned()))
    );
    assert_eq!(found[0], found[3]);
    assert_eq!(found[0].work.as_ref(), Some(&run.work));
    assert_eq!(found[2].runtime.as_ref().map(|runtime| runtime.id), Some(other_runtime));
    assert_eq!(
        found[2].runtime,
        store.runtimes(Some(&[other.reference])).unwrap().pop()
    );
    assert_eq!((&found[1].runtime, &found[1].work), (&None, &None));
    assert!(store.belongings(&[]).unwrap().is_empty());
}

fn history_is_oldest_first_and_outlives_the_entity(subject: &Subject) {
    let store = &*subject.store;
    let mut entity = make(store, "old");
    make(store, "between");
    for status in ["retry_wait", "queued", "running"] {
        let effects = change(store, &entity, status);
        assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
        entity = effects.change.after;
    }
    let of_old = HistoryQuery {
        id: Some("old".to_owned()),
        ..HistoryQuery::default()
    };
    let statuses = |query: &HistoryQuery| {
        let rows = store.history(query).unwrap();
        rows.into_iter()
            .map(|row| format!("{}{}", row.status, row.version))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(statuses(&of_old), "running1 retry_wait2 queued3 running4");
    assert_eq!(
        statuses(&HistoryQuery {
            newest: Some(2),
            ..of_old.clone()
        }),
        "queued3 running4"
    );
    assert_eq!(
        statuses(&HistoryQuery {
            since: Some(moment(23)),
            ..of_old.clone()
        }),
        "queued3 running4"
    );
    let newest_of_all = HistoryQuery {
        newest: Some(4),
        ..HistoryQuery::default()
    };
    assert_eq!(statuses(&newest_of_all), "running1 retry_wait2 queued3 running4");
    assert_eq!(store.history(&HistoryQuery::default()).unwrap().len(), 5);
    let first = &store.history(&of_old).unwrap()[0];
    assert_eq!(*first, new_entity(store, "run", "old").row);
    let before = store.history(&of_old).unwrap();
    forget(store, "old");
    assert_eq!(store.history(&of_old).unwrap(), before);
    assert_eq!(
        statuses(&HistoryQuery {
            id: Some("nobody".to_owned()),
            ..HistoryQuery::default()
        }),
        ""
    );
}

fn events_are_kept_with_their_row(subject: &Subject) {
    let store = &*subject.store;
    let mut new = new_entity(store, "run", "a.b-c");
    let id = EventId::new(store.name(), "a.b-c", 1);
    new.event = Some(Event {
        id: id.clone(),
        envelope: json!({"first": true}),
    });
    let entity = created(store, &new);
    assert_eq!(store.envelope(id.as_str()).unwrap(), Some(json!({"first": true})));
    let quiet = change(store, &entity, "queued");
    assert_eq!(store.apply(&quiet).unwrap(), Applied::Written);
    assert_eq!(store.envelope(quiet.change.row.id.as_str()).unwrap(), None);
    let told = ending(store, &quiet.change.after, Success::Yes);
    assert_eq!(store.apply(&told).unwrap(), Applied::Written);
    forget(store, "a.b-c");
    let expected = told.change.event.map(|event| event.envelope);
    assert_eq!(store.envelope(told.change.row.id.as_str()).unwrap(), expected);
    for strange in ["", "a.b-c:1", "zzzzzzzz:a.b-c:1", ":a.b-c:1", "a:b:c:d"] {
        assert_eq!(store.envelope(strange).unwrap(), None, "{strange}");
    }
    assert_eq!(
        store.envelope(EventId::new(store.name(), "a.b-c", 9).as_str()).unwrap(),
        None
    );
}

fn audit_rows_are_kept_in_order(subject: &Subject) {
    let store = &*subject.store;
    let mut late = admin_event("late", "run/b");
    late.at = moment(40);
    late.target = None;
    late.details = serde_json::Value::Null;
    store
        .record(&[admin_event("one", "run/a"), admin_event("two", "run/b")], &[])
        .unwrap();
    store.record(&[late.clone()], &[]).unwrap();
    let all = store.admin_events(&AdminQuery::default()).unwrap();
    assert_eq!(
        all.iter().map(|event| event.action.as_str()).collect::<Vec<_>>(),
        ["one", "two", "late"]
    );
    assert!(all.is_sorted_by(|one, two| one.id < two.id) && all[0].id > 0);
    late.id = all[2].id;
    assert_eq!(all[2], late);
    let of_b = AdminQuery {
        target: Some("run/b".to_owned()),
        since: None,
    };
    assert_eq!(store.admin_events(&of_b).unwrap(), all[1..2]);
    assert_eq!(
        store
            .admin_events(&AdminQuery {
                target: None,
                since: Some(moment(31))
            })
            .unwrap(),
        all[2..]
    );
}

fn a_fact_of_a_runtime_row_is_recorded_by_the_first(subject: &Subject) {
    let store = &*subject.store;
    let (_, id) = run(store, "refused");
    let update = RuntimeUpdate {
        id,
        only_from: vec![RuntimeState::Starting],
        state: Some(RuntimeState::Stopped),
        at: moment(50),
        ..RuntimeUpdate::default()
    };
    for _ in 0..2 {
        let event = admin_event("status_transition_rejected", "run/refused");
        store.record(&[event], std::slice::from_ref(&update)).unwrap();
    }
    let told = AdminQuery {
        target: Some("run/refused".to_owned()),
        since: None,
    };
    assert_eq!(store.admin_events(&told).unwrap().len(), 1);
}

#[expect(clippy::too_many_lines, reason = "every column of a wide row")]
fn a_runtime_row_keeps_what_an_update_does_not_name(subject: &Subject) {
    let store = &*subject.store;
    let (entity, id) = run(store, "updated");
    let owner = [entity.reference];
    let look = || store.runtimes(Some(&owner)).unwrap().remove(0);
    let before = look();
    let worker = ProcessIdentity {
        pid: 7,
        start_ticks: Some(8),
        pidfs_inode: Some(9),
        pidfs_handle: Some(vec![0, 255]),
    };
    let shim = ProcessIdentity {
        pid: 5,
        start_ticks: Some(6),
        pidfs_inode: None,
        pidfs_handle: None,
    };
    let place = Place {
        host: "h".to_owned(),
        boot_id: "b".to_owned(),
        pid_namespace: Some(1),
        time_namespace: Some(2),
    };
    let update = RuntimeUpdate {
        id,
        only_from: vec![RuntimeState::Starting],
        state: Some(RuntimeState::Running),
        place: Some(place.clone()),
        worker: Some(worker.clone()),
        shim: Some(shim.clone()),
        level: Some("pidfs".to_owned()),
        process_group: Some(7),
        resume_token: Some("again".to_owned()),
        at: moment(50),
        ..RuntimeUpdate::default()
    };
    store.update_runtimes(std::slice::from_ref(&update)).unwrap();
    let running = look();
    let mut expected = before;
    expected.state = RuntimeState::Running;
    expected.place = place;
    (expected.worker, expected.shim) = (Some(worker), Some(shim));
    (expected.level, expected.process_group) = (Some("pidfs".to_owned()), Some(7));
    (expected.resume_token, expected.updated_at) = (Some("again".to_owned()), moment(50));
    assert_eq!(running, expected);
    // It is not in that state any more, and there is no row of that number.
    let late = RuntimeUpdate {
        at: moment(60),
        ..update
    };
    store
        .update_runtimes(&[late.clone(), RuntimeUpdate { id: id + 1_000, ..late }])
        .unwrap();
    assert_eq!(look(), running);
    let mark = RuntimeUpdate {
        id,
        stop_unconfirmed: Some(true),
        at: moment(70),
        ..RuntimeUpdate::default()
    };
    let first = RuntimeUpdate {
        stop_intent: Some(stop_intent("first")),
        ..mark.clone()
    };
    let second = RuntimeUpdate {
        stop_intent: Some(stop_intent("second")),
        ..mark
    };
    store.update_runtimes(&[first, second]).unwrap();
    assert!(look().stop_unconfirmed);
    assert_eq!(look().stop_intent, Some(stop_intent("first")));
    assert_eq!(look().worker, expected.worker);
}

fn a_runtime_row_that_is_stopped_names_no_process_and_keeps_the_rest(subject: &Subject) {
    let store = &*subject.store;
    let (entity, id) = run(store, "handles");
    let owner = [entity.reference];
    let look = || store.runtimes(Some(&owner)).unwrap().remove(0);
    let process = ProcessIdentity {
        pid: 7,
        start_ticks: Some(8),
        pidfs_inode: Some(9),
        pidfs_handle: Some(vec![0, 255]),
    };
    let running = RuntimeUpdate {
        id,
        state: Some(RuntimeState::Running),
        worker: Some(process.clone()),
        shim: Some(process),
        level: Some("pidfs".to_owned()),
        cgroup: Some(b"/group".to_vec()),
        process_group: Some(7),
        resume_token: Some("again".to_owned()),
        ..RuntimeUpdate::default()
    };
    store.update_runtimes(std::slice::from_ref(&running)).unwrap();
    let mut expected = look();
    assert!(expected.worker.is_some() && expected.shim.is_some());
    let stopped = RuntimeUpdate {
        id,
        state: Some(RuntimeState::Stopped),
        at: moment(50),
        ..RuntimeUpdate::default()
    };
    store.update_runtimes(&[stopped]).unwrap();
    expected.state = RuntimeState::Stopped;
    (expected.worker, expected.shim, expected.process_group) = (None, None, None);
    expected.updated_at = moment(50);
    assert_eq!(look(), expected);
}

fn the_inventory_tells_what_is_not_stopped(subject: &Subject) {
    let store = &*subject.store;
    let [(one, first), (two, second), (three, _)] = ["i1", "i2", "i3"].map(|id| run(store, id));
    let lost = RuntimeUpdate {
        id: first,
        state: Some(RuntimeState::Lost),
        ..RuntimeUpdate::default()
    };
    let stopped = RuntimeUpdate {
        id: second,
        state: Some(RuntimeState::Stopped),
        ..RuntimeUpdate::default()
    };
    store.update_runtimes(&[lost, stopped]).unwrap();
    let owners = |filter: Option<&[Reference]>| {
        let rows = store.runtimes(filter).unwrap();
        rows.into_iter()
            .map(|runtime| runtime.owner.id)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(owners(None), "i1 i3");
    let twice = [
        three.reference.clone(),
        two.reference,
        three.reference,
        Reference::new("run", "nobody"),
    ];
    assert_eq!(owners(Some(&twice)), "i2 i3");
    assert_eq!(owners(Some(&[])), "");
    let wrong_kind = Reference::new("play", &one.reference.id);
    assert_eq!(owners(Some(&[wrong_kind])), "");
    // Numbers are not used twice, or a late update would meet another run.
    let (_, newest) = run(store, "i4");
    forget(store, "i4");
    assert!(run(store, "i5").1 > newest);
}

fn a_runtime_is_added_to_what_has_not_ended_and_runs_nowhere_else(subject: &Subject) {
    let store = &*subject.store;
    let bare = make(store, "bare");
    let far = |owner: &Reference| Runtime {
        kind: RuntimeKind::Ssh,
        state: RuntimeState::Running,
        remote_handle: Some("7@there".to_owned()),
        ..new_runtime(owner)
    };
    let event = admin_event("runtime_registered", "run/bare");
    let RuntimeAdded::New(id) = store.add_runtime(&far(&bare.reference), &event).unwrap() else {
        panic!("nothing runs for it")
    };
    let expected = Runtime {
        id,
        ..far(&bare.reference)
    };
    assert_eq!(store.runtime(id).unwrap(), Some(expected.clone()));
    assert_eq!(store.runtimes(None).unwrap(), [expected]);
    assert_eq!(store.runtime(id + 1).unwrap(), None);
    let again = store.add_runtime(&far(&bare.reference), &event).unwrap();
    assert_eq!(again, RuntimeAdded::InUse(id));
    let missing = store
        .add_runtime(&far(&Reference::new("run", "nobody")), &event)
        .unwrap();
    assert_eq!(missing, RuntimeAdded::OwnerMissing);
    let stopped = RuntimeUpdate {
        id,
        state: Some(RuntimeState::Stopped),
        ..RuntimeUpdate::default()
    };
    store.update_runtimes(&[stopped]).unwrap();
    let next = store.add_runtime(&far(&bare.reference), &event).unwrap();
    assert_eq!(next, RuntimeAdded::New(id + 1));
    let over = make(store, "over");
    end(store, &over, Success::Yes);
    let late = store.add_runtime(&far(&over.reference), &event).unwrap();
    assert_eq!(late, RuntimeAdded::OwnerEnded);
    assert_eq!(store.admin_events(&AdminQuery::default()).unwrap().len(), 2);
}

fn components_are_counted_activated_and_kept_while_in_use(subject: &Subject) {
    let store = &*subject.store;
    let event = admin_event("policy_removed", "x");
    let look = |digest: &str| {
        let all = store.components().unwrap();
        all.into_iter()
            .find(|record| record.digest == digest)
            .map(|record| (record.active, record.in_use))
    };
    assert_eq!(look(DIGEST), Some((true, 0)));
    assert!(!store.remove_component(DIGEST, &event).unwrap(), "it is active");
    store.install(&[component("run", "second")], &[], &[]).unwrap();
    assert_eq!(look("second"), Some((false, 0)));
    let entity = make(store, "pinned");
    make(store, "pinned-2");
    assert_eq!(look(DIGEST), Some((true, 2)));
    assert!(
        store
            .activate(&activation("run", "second"), &admin_event("policy_activated", "second"))
            .unwrap()
    );
    assert!(
        !store
            .activate(&activation("run", "absent"), &admin_event("policy_activated", "absent"))
            .unwrap()
    );
    assert_eq!((look(DIGEST), look("second")), (Some((false, 2)), Some((true, 0))));
    let digests: Vec<String> = store
        .activations("run")
        .unwrap()
        .into_iter()
        .map(|activation| activation.digest)
        .collect();
    assert_eq!(digests, ["second", DIGEST]);
    assert_eq!(store.activations("play").unwrap(), []);
    assert!(
        !store.remove_component(DIGEST, &event).unwrap(),
        "entities are pinned to it"
    );
    let mut moved = change(store, &entity, "running");
    moved.change.after.policy.digest = "second".to_owned();
    assert_eq!(store.apply(&moved).unwrap(), Applied::Written);
    assert_eq!((look(DIGEST), look("second")), (Some((false, 1)), Some((true, 1))));
    forget(store, "pinned-2");
    assert_eq!(look(DIGEST), Some((false, 0)));
    assert_eq!(
        store.descriptor(DIGEST).unwrap(),
        Some(component("run", DIGEST).descriptor)
    );
    assert_eq!(store.component_bytes("second").unwrap(), Some(b"\0asm".to_vec()));
    assert_eq!(store.component_bytes("absent").unwrap(), None);
}

fn live_pins_are_counted_apart_and_signatures_go_with_their_component(subject: &Subject) {
    let store = &*subject.store;
    assert_eq!(
        (store.live_pins().unwrap(), store.signatures().unwrap()),
        (vec![], vec![])
    );
    let entity = make(store, "one");
    make(store, "two");
    assert_eq!(store.live_pins().unwrap(), [(DIGEST.to_owned(), 2)]);
    end(store, &entity, Success::Yes);
    assert_eq!(store.live_pins().unwrap(), [(DIGEST.to_owned(), 1)]);
    let signed = |key: u8, at: i64| Signed {
        public_key: [key; 32],
        key_id: [key; 8],
        signature: [7; 64],
        at: moment(at),
    };
    let mut second = component("run", "second");
    second.signatures = vec![signed(1, 0)];
    store.install(&[second.clone()], &[], &[]).unwrap();
    // Installed again it gets the signature that it has not.
    second.signatures = vec![signed(1, 5), signed(2, 5)];
    store.install(&[second.clone()], &[], &[]).unwrap();
    let expected = [signed(1, 0), signed(2, 5)].map(|signed| ("second".to_owned(), signed));
    assert_eq!(store.signatures().unwrap(), expected);
    let event = admin_event("policy_removed", "second");
    assert!(store.remove_component("second", &event).unwrap());
    assert_eq!(store.signatures().unwrap(), []);
    second.signatures = Vec::new();
    store.install(&[second], &[], &[]).unwrap();
    assert_eq!(
        store.signatures().unwrap(),
        [],
        "what was said of it before went with it"
    );
}

fn what_was_set_for_a_policy_stays_with_the_entity_until_its_pin_moves(subject: &Subject) {
    let store = &*subject.store;
    let set = |limit: i64| Fields::from_iter([("limit".to_owned(), json!(limit))]);
    let mut new = new_entity(store, "run", "pinned");
    new.entity.policy.parameters = set(500);
    let made = created(store, &new);
    let kept = |entity: &Entity| store.load(&entity.reference.id).unwrap().unwrap().policy.parameters;
    assert_eq!((&made.policy.parameters, kept(&made)), (&set(500), set(500)));
    assert_eq!(kept(&make(store, "bare")), Fields::new());
    let mut again = activation("run", DIGEST);
    again.parameters = set(900);
    assert!(
        store
            .activate(&again, &admin_event("policy_activated", DIGEST))
            .unwrap()
    );
    assert_eq!(store.apply(&change(store, &made, "running")).unwrap(), Applied::Written);
    assert_eq!(kept(&made), set(500), "another activation reaches nobody who is there");
    let mut moved = change(store, &store.load("pinned").unwrap().unwrap(), "running");
    moved.change.after.policy.parameters = set(900);
    assert_eq!(store.apply(&moved).unwrap(), Applied::Written);
    assert_eq!(kept(&made), set(900));
}

fn a_removed_component_can_come_back(subject: &Subject) {
    let store = &*subject.store;
    let event = admin_event("policy_removed", "second");
    let mut second = component("run", "second");
    store.install(&[second.clone()], &[], &[]).unwrap();
    let mut new = new_entity(store, "run", "pinned");
    new.entity.policy.digest = "second".to_owned();
    new.row.policy_digest = "second".to_owned();
    created(store, &new);
    assert!(!store.remove_component("second", &event).unwrap());
    forget(store, "pinned");
    assert!(store.remove_component("second", &event).unwrap());
    assert!(!store.remove_component("second", &event).unwrap(), "it is not there");
    assert_eq!(audited(store).len(), 1);
    assert_eq!(store.components().unwrap().len(), 1);
    assert_eq!(
        (
            store.descriptor("second").unwrap(),
            store.component_bytes("second").unwrap()
        ),
        (None, None)
    );
    assert!(
        !store
            .activate(&activation("run", "second"), &admin_event("policy_activated", "second"))
            .unwrap()
    );
    assert_eq!(
        store.history(&HistoryQuery::default()).unwrap()[0].policy_digest,
        "second"
    );
    second.record.installed_at = moment(77);
    store
        .install(&[second.clone()], &[activation("run", "second")], &[])
        .unwrap();
    // Installing what is there changes nothing but the activation.
    let mut other = second.clone();
    other.record.name = "renamed".to_owned();
    store.install(&[other], &[], &[]).unwrap();
    let found = store
        .components()
        .unwrap()
        .into_iter()
        .find(|record| record.digest == "second")
        .unwrap();
    assert_eq!(
        (found.active, found.installed_at, found.name.as_str()),
        (true, moment(77), "run-policy")
    );
    // But for limits that are raised with it; where none is, they stay, and go with it.
    let raised = |fuel| [(Limit::Fuel, fuel)].into_iter().collect::<RaisedLimits>();
    for (given, kept) in [
        (raised(1), raised(1)),
        (RaisedLimits::default(), raised(1)),
        (raised(2), raised(2)),
    ] {
        second.record.raised = given;
        store.install(&[second.clone()], &[], &[]).unwrap();
        assert_eq!(store.raised_limits("second").unwrap(), kept);
        let listed = store
            .components()
            .unwrap()
            .into_iter()
            .find(|record| record.digest == "second");
        assert_eq!(listed.unwrap().raised, kept);
    }
    assert_eq!(store.raised_limits("absent").unwrap(), RaisedLimits::default());
    let absent = activation("run", "absent");
    assert!(store.install(&[component("run", "third")], &[absent], &[]).is_err());
    assert_eq!(store.components().unwrap().len(), 2);
}

fn the_data_version_changes_with_every_commit(subject: &Subject) {
    let store = &*subject.store;
    let before = store.data_version().unwrap();
    assert_eq!(store.data_version().unwrap(), before);
    let entity = make(store, "seen");
    let after_create = store.data_version().unwrap();
    assert_ne!(after_create, before);
    end(store, &entity, Success::Yes);
    let after_apply = store.data_version().unwrap();
    assert_ne!(after_apply, after_create);
    store.record(&[admin_event("one", "run/seen")], &[]).unwrap();
    assert_ne!(store.data_version().unwrap(), after_apply);
}

fn many_callers_all_get_their_own_answer(subject: &Subject) {
    const CALLERS: usize = 64;
    const ENTITIES: usize = 5;
    let store = &*subject.store;
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            scope.spawn(move || {
                for number in 0..ENTITIES {
                    let id = format!("c{caller}-{number}");
                    let entity = make(store, &id);
                    assert_eq!(entity.reference.id, id);
                    end(store, &entity, if number % 2 == 0 { Success::Yes } else { Success::No });
                    assert_eq!(store.load(&id).unwrap().unwrap().success, number % 2 == 0);
                    assert_eq!(
                        store.create(&new_entity(store, "run", &id), None).unwrap(),
                        Created::IdTaken
                    );
                }
            });
        }
    });
    let all = store.list(&EntityQuery::default()).unwrap();
    assert_eq!(all.len(), CALLERS * ENTITIES);
    assert!(all.is_sorted_by(|one, two| one.row > two.row));
    assert_eq!(
        store.history(&HistoryQuery::default()).unwrap().len(),
        CALLERS * ENTITIES * 2
    );
}

fn a_failed_command_leaves_nothing_among_others_that_succeed(subject: &Subject) {
    const CALLERS: usize = 64;
    let store = &*subject.store;
    let barrier = Barrier::new(CALLERS);
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let barrier = &barrier;
            scope.spawn(move || {
                let mut new = new_entity(store, "run", &format!("c{caller}"));
                let fails = caller % 2 == 0;
                if fails {
                    new.row.policy_digest = "absent".to_owned(); // found out when most of it is written
                }
                barrier.wait();
                assert_eq!(store.create(&new, None).is_err(), fails);
            });
        }
    });
    assert_eq!(store.list(&EntityQuery::default()).unwrap().len(), CALLERS / 2);
    assert_eq!(store.components().unwrap()[0].in_use, 32);
    for caller in (0..CALLERS).step_by(2) {
        make(store, &format!("c{caller}"));
    }
}

fn stop_runtime(store: &dyn Store, id: i64) {
    let stop = RuntimeUpdate {
        id,
        state: Some(RuntimeState::Stopped),
        ..RuntimeUpdate::default()
    };
    store.update_runtimes(&[stop]).unwrap();
}

fn the_inventory_lets_go_only_of_what_is_stopped(subject: &Subject) {
    let store = &*subject.store;
    let (entity, runtime) = run(store, "held");
    let owners = [entity.reference.clone()];
    let event = [admin_event("dropped", "run/held")];
    assert!(!store.drop_runtimes(&entity, Rows::All, &event).unwrap());
    assert_eq!(store.runtimes(Some(&owners)).unwrap().len(), 1);
    assert_eq!(audited(store), []);
    stop_runtime(store, runtime);
    let token = RuntimeUpdate {
        id: runtime,
        resume_token: Some("again".to_owned()),
        ..RuntimeUpdate::default()
    };
    store.update_runtimes(&[token]).unwrap();
    assert!(store.drop_runtimes(&entity, Rows::WithoutToken, &event).unwrap());
    assert_eq!(
        store.runtimes(Some(&owners)).unwrap()[0].resume_token.as_deref(),
        Some("again")
    );
    assert!(store.drop_runtimes(&entity, Rows::All, &event).unwrap());
    assert_eq!(store.runtimes(Some(&owners)).unwrap(), []);
    assert_eq!(audited(store).len(), 2);
    let (_, next) = run(store, "later");
    assert!(next > runtime, "the number of a removed row is not used again");
}

fn an_entity_goes_when_its_inventory_is_empty_and_its_version_is_the_one_seen(subject: &Subject) {
    let store = &*subject.store;
    let (entity, runtime) = run(store, "full");
    let owners = [entity.reference.clone()];
    let event = admin_event("entity_removed", "run/full");
    assert_eq!(store.remove(&entity, &event).unwrap(), Removed::Holding);
    stop_runtime(store, runtime);
    assert!(store.drop_runtimes(&entity, Rows::All, &[]).unwrap());
    assert_eq!(store.remove(&entity, &event).unwrap(), Removed::Holding);
    let resources = store.resources(&owners).unwrap();
    assert_eq!(resources[0].directory, b"/own/full");
    assert_eq!(store.resources(&[Reference::new("play", "full")]).unwrap(), []);
    store.drop_resource(resources[0].id).unwrap();
    store.drop_resource(resources[0].id).unwrap();
    end(store, &entity, Success::No);
    let now = store.load("full").unwrap().unwrap();
    assert_eq!(
        store.remove(&entity, &event).unwrap(),
        Removed::Changed(Some(Box::new(now.clone())))
    );
    assert_eq!(audited(store), []);
    assert_eq!(store.remove(&now, &event).unwrap(), Removed::Gone);
    assert_eq!(store.remove(&now, &event).unwrap(), Removed::Changed(None));
    assert_eq!(audited(store).len(), 1);
}

fn a_removal_leaves_nothing_but_history(subject: &Subject) {
    let store = &*subject.store;
    let parent = make(store, "parent");
    let mut new = rich(store, "gone");
    new.parents = vec![parent.reference.clone()];
    new.key = key("k", "digest");
    let entity = created(store, &new);
    let child = make_below(store, "child", &[&entity]);
    forget(store, "gone");
    assert_eq!(store.linked(&parent, Scope::Descendants).unwrap(), []);
    assert_eq!(store.linked(&child, Scope::Parents).unwrap(), []);
    let tagged = EntityQuery {
        tags: vec![("team".to_owned(), "core".to_owned())],
        ..EntityQuery::default()
    };
    assert_eq!(store.list(&tagged).unwrap(), []);
    assert_eq!(store.components().unwrap()[0].in_use, 2);
    let history = HistoryQuery {
        id: Some("gone".to_owned()),
        ..HistoryQuery::default()
    };
    assert_eq!(store.history(&history).unwrap().len(), 1);
    // The key of a removed entity's creation is free, its id is not.
    assert_eq!(store.create(&new, None).unwrap(), Created::IdTaken);
    new.entity.reference.id = "other".to_owned();
    created(store, &new);
}

fn entities_are_walked_from_the_oldest(subject: &Subject) {
    let store = &*subject.store;
    let rows: Vec<i64> = ["one", "two", "three"].map(|id| make(store, id).row).to_vec();
    forget(store, "two");
    assert_eq!(ids(&store.oldest(0, 5).unwrap()), ["one", "three"]);
    assert_eq!(ids(&store.oldest(0, 1).unwrap()), ["one"]);
    assert_eq!(ids(&store.oldest(rows[0], 5).unwrap()), ["three"]);
    assert_eq!(store.oldest(rows[2], 5).unwrap(), []);
}

fn a_journal_gives_up_only_what_is_old_and_its_entity_gone(subject: &Subject) {
    let store = &*subject.store;
    for id in ["gone", "stays"] {
        end(store, &make(store, id), Success::Yes);
    }
    forget(store, "gone");
    let page = |after, before, limit| JournalPage {
        journal: Journal::History,
        after,
        before: moment(before),
        limit,
    };
    let event = admin_event("history_pruned", "history");
    assert_eq!(store.journal_page(&page(0, 10, 9)).unwrap(), Default::default());
    let first = store.journal_page(&page(0, 11, 1)).unwrap();
    assert_eq!((first.rows.len(), first.next.is_some()), (1, true));
    let whole = store.journal_page(&page(0, 11, 9)).unwrap();
    assert_eq!(
        whole.rows, first.rows,
        "the end of it is not old, and the other is there"
    );
    let everything: Vec<i64> = (0..9).collect();
    assert_eq!(store.prune_journal(&page(0, 11, 9), &everything, &event).unwrap(), 1);
    let left: Vec<(String, i64)> = store
        .history(&HistoryQuery::default())
        .unwrap()
        .into_iter()
        .map(|row| (row.reference.id, row.version))
        .collect();
    let row = |id: &str, version| (id.to_owned(), version);
    assert_eq!(left, [row("gone", 2), row("stays", 1), row("stays", 2)]);
    let audit = JournalPage {
        journal: Journal::Audit,
        ..page(0, 31, 9)
    };
    let old = store.journal_page(&audit).unwrap().rows;
    assert_eq!(old.len(), 2);
    assert_eq!(store.prune_journal(&audit, &old, &event).unwrap(), 2);
    let actions: Vec<String> = audited(store).into_iter().map(|event| event.action).collect();
    assert_eq!(actions, ["history_pruned"], "what says what was pruned comes after it");
}

/// An empty store made ready for a check.
///
/// # Panics
/// When the component cannot be installed.
pub fn ready(store: Arc<impl Store + 'static>, kept: impl Any) -> Subject {
    samples::install(&*store).unwrap();
    Subject {
        store,
        kept: Box::new(kept),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FaultyStore, MemoryStore};
    use super::*;

    #[test]
    fn the_store_in_memory_keeps_every_promise() {
        suite(&|| {
            let store = Arc::new(MemoryStore::named("memories"));
            ready(store, ())
        });
    }

    #[test]
    fn a_wrapper_without_faults_keeps_every_promise() {
        suite(&|| {
            let store = Arc::new(FaultyStore::new(MemoryStore::named("memories")));
            ready(store, ())
        });
    }
}

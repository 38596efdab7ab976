//! The promises of [`Outbox`](crate::store::Outbox).

use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};

use super::{Subject, created, forget, ids, make};
use crate::model::{Change, DestinationHealth, Entity, EventId, NewDispatch, OwedPlan, Planned, Timestamp, sha256_hex};
use crate::store::samples::{
    Success, admin_event, change, ending, moment, new_dispatch, new_entity, target, target_digest,
};
use crate::store::{
    Acknowledged, AdminQuery, Applied, Backlog, Binding, Consumer, Created, DueQuery, EffectSet, Enqueued,
    HistoryQuery, Journal, JournalPage, Owed, Store, StoreError,
};

pub(super) const PROMISES: [fn(&Subject); 20] = [
    a_dispatch_is_stored_whole,
    outlines_come_in_the_order_of_their_dispatches_without_bodies,
    a_deduplication_key_is_held_until_its_dispatch_ends_badly,
    a_dispatch_takes_its_key_again_only_if_no_other_holds_it,
    of_two_enqueuings_of_one_key_one_is_new,
    a_dispatch_of_no_event_of_this_store_is_refused,
    an_end_writes_what_it_tells_in_its_commit,
    a_creation_writes_what_it_tells_in_its_commit,
    what_is_planned_twice_is_there_once,
    a_commit_whose_plan_cannot_be_written_leaves_nothing,
    what_is_due_is_found_the_longest_due_first,
    a_paused_destination_is_stepped_over_until_its_pause_ends,
    a_destination_is_told_of_while_it_fails,
    a_backlog_counts_dispatches_by_status_and_plans,
    a_plan_is_owed_until_it_is_settled,
    bindings_are_kept_by_name,
    a_consumer_is_owed_every_event_until_it_acknowledges_it,
    an_event_that_commits_late_is_pending,
    what_somebody_is_owed_stays_in_the_journal,
    a_removed_dispatch_leaves_its_key_and_nothing_to_deliver,
];

fn enqueued(store: &dyn Store, new: &NewDispatch) -> Entity {
    match store.enqueue(new).unwrap() {
        Enqueued::New(entity) => *entity,
        other => panic!("{} was not enqueued: {other:?}", new.entity.reference),
    }
}

fn send(store: &dyn Store, id: &str) -> Entity {
    enqueued(store, &new_dispatch(store, id, None))
}

/// A dispatch to the destination of that path, due at `moment(due)`.
fn send_to(store: &dyn Store, id: &str, path: &str, due: i64) -> Entity {
    let mut new = new_dispatch(store, id, None);
    new.dispatch.target = target(path);
    new.dispatch.target_digest = target_digest(path);
    new.entity.structural.next_attempt_at = Some(moment(due));
    enqueued(store, &new)
}

fn applied(store: &dyn Store, effects: &EffectSet) {
    assert_eq!(store.apply(effects).unwrap(), Applied::Written);
}

fn ended(store: &dyn Store, id: &str, success: Success) -> EventId {
    let effects = ending(store, &store.load(id).unwrap().unwrap(), success);
    applied(store, &effects);
    effects.change.row.id
}

fn audited(store: &dyn Store) -> Vec<String> {
    let events = store.admin_events(&AdminQuery::default()).unwrap().into_iter();
    events
        .map(|event| event.action)
        .filter(|action| action != "forgotten")
        .collect()
}

fn due(store: &dyn Store, before: i64, except: &[&str], limit: usize) -> Vec<String> {
    let query = DueQuery {
        before: moment(before),
        except_targets: except.iter().map(|path| target_digest(path)).collect(),
        limit,
    };
    ids(&store.due(&query).unwrap())
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn health(path: &str, failures: i64, paused_until: Option<Timestamp>) -> DestinationHealth {
    DestinationHealth {
        target_digest: target_digest(path),
        label: format!("file {path}"),
        failures,
        paused_until,
        last_error: (failures > 0).then(|| "no room".to_owned()),
    }
}

fn a_dispatch_is_stored_whole(subject: &Subject) {
    let store = &*subject.store;
    let mut new = new_dispatch(store, "whole", None);
    let told = make(store, "told");
    new.dispatch.event_id = Some(EventId::new(store.name(), "told", 1));
    new.dispatch.handler = Some("tell".to_owned());
    new.dispatch.deadline = Some(moment(99));
    new.dispatch.wants_acknowledgement = true;
    new.dispatch.body = b"\0\xff".to_vec();
    new.entity.tags.insert("t".to_owned(), "v".to_owned());
    let entity = enqueued(store, &new);
    assert_eq!(
        entity,
        Entity {
            row: entity.row,
            ..new.entity.clone()
        }
    );
    assert!(entity.row > told.row);
    assert_eq!(store.load("whole").unwrap(), Some(entity));
    assert_eq!(store.dispatch("whole").unwrap(), Some(new.dispatch.clone()));
    let history = HistoryQuery {
        id: Some("whole".to_owned()),
        ..HistoryQuery::default()
    };
    assert_eq!(store.history(&history).unwrap(), [new.row]);
    assert_eq!(store.components().unwrap()[0].in_use, 2);
    assert_eq!(store.dispatch("told").unwrap(), None);
    assert_eq!(store.dispatch("nobody").unwrap(), None);
}

fn outlines_come_in_the_order_of_their_dispatches_without_bodies(subject: &Subject) {
    let store = &*subject.store;
    let (one, two) = (send(store, "one"), send(store, "two"));
    let outlines = store.outlines(&[two, make(store, "run"), one]).unwrap();
    let told: Vec<_> = outlines
        .iter()
        .map(|outline| outline.as_ref().map(|outline| outline.dispatch.dedup_key.as_str()))
        .collect();
    assert_eq!(told, [Some("two"), None, Some("one")]);
    let (outline, body) = (outlines[0].clone().unwrap(), b"{\"id\":\"two\"}");
    assert_eq!(outline.dispatch.body, b"");
    assert_eq!((outline.body_bytes, outline.body_digest), (12, sha256_hex(body)));
    assert_eq!(store.outlines(&[]).unwrap(), []);
}

fn a_deduplication_key_is_held_until_its_dispatch_ends_badly(subject: &Subject) {
    let store = &*subject.store;
    let (first, delivered) = (send(store, "k"), send(store, "well"));
    let again = |id: &str, key: &str| {
        let mut new = new_dispatch(store, id, None);
        key.clone_into(&mut new.dispatch.dedup_key);
        new.dispatch.body = format!("{{\"id\":\"{key}\"}}").into_bytes();
        new
    };
    assert_eq!(
        store.enqueue(&again("x", "k")).unwrap(),
        Enqueued::Held(Box::new(first.clone()))
    );
    let mut other_body = again("x", "k");
    other_body.dispatch.body.push(b' ');
    assert_eq!(
        store.enqueue(&other_body).unwrap(),
        Enqueued::Different(Box::new(first.clone()))
    );
    let mut other_target = again("x", "k");
    other_target.dispatch.target_digest = target_digest("/elsewhere");
    assert_eq!(
        store.enqueue(&other_target).unwrap(),
        Enqueued::Different(Box::new(first))
    );
    assert_eq!(store.load("x").unwrap(), None);
    ended(store, "well", Success::Yes);
    let held = store.enqueue(&again("x", "well")).unwrap();
    assert!(matches!(held, Enqueued::Held(entity) if entity.row == delivered.row && entity.terminal));
    ended(store, "k", Success::No);
    enqueued(store, &again("x", "k"));
    assert_eq!(store.enqueue(&again("k", "free")).unwrap(), Enqueued::IdTaken);
}

fn a_dispatch_takes_its_key_again_only_if_no_other_holds_it(subject: &Subject) {
    let store = &*subject.store;
    send(store, "first");
    ended(store, "first", Success::No);
    let mut second = new_dispatch(store, "second", None);
    "first".clone_into(&mut second.dispatch.dedup_key);
    enqueued(store, &second);
    let dead = store.load("first").unwrap().unwrap();
    let mut revival = change(store, &dead, "pending");
    (revival.change.after.terminal, revival.change.after.success) = (false, false);
    revival.change.admin = vec![admin_event("revived", "dispatch/first")];
    let refused = store.apply(&revival).unwrap_err();
    assert!(matches!(refused, StoreError::KeyHeld { holder } if holder.id == "second"));
    assert_eq!(store.load("first").unwrap(), Some(dead));
    assert_eq!(audited(store), Vec::<String>::new());
    ended(store, "second", Success::No);
    applied(store, &revival);
    second.entity.reference.id = "third".to_owned();
    second.row.reference.id = "third".to_owned();
    let held = store.enqueue(&second).unwrap();
    assert!(matches!(held, Enqueued::Different(entity) if entity.reference.id == "first"));
}

fn of_two_enqueuings_of_one_key_one_is_new(subject: &Subject) {
    const CALLERS: usize = 8;
    let store = &*subject.store;
    let barrier = Barrier::new(CALLERS);
    let new: usize = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut new = new_dispatch(store, &format!("c{caller}"), None);
                    "once".clone_into(&mut new.dispatch.dedup_key);
                    new.dispatch.body = b"same".to_vec();
                    barrier.wait();
                    match store.enqueue(&new).unwrap() {
                        Enqueued::New(_) => 1,
                        Enqueued::Held(_) => 0,
                        other => panic!("{other:?}"),
                    }
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    assert_eq!((new, due(store, 99, &[], 9).len()), (1, 1));
}

fn a_dispatch_of_no_event_of_this_store_is_refused(subject: &Subject) {
    let store = &*subject.store;
    let unknown = EventId::new(store.name(), "nobody", 1);
    assert!(store.enqueue(&new_dispatch(store, "x", Some(&unknown))).is_err());
    assert_eq!(store.load("x").unwrap(), None);
    send(store, "x");
}

/// What the event of that id adds: a dispatch of that id, and a plan that is owed to `slow`.
fn planned(store: &dyn Store, id: &str, event_id: &EventId) -> Planned {
    Planned {
        dispatches: vec![new_dispatch(store, id, Some(event_id))],
        owed: vec![OwedPlan {
            handler: "slow".to_owned(),
            tries: 1,
            due_at: moment(50),
            error: Some("out of fuel".to_owned()),
        }],
    }
}

/// An end that tells: a dispatch of that id, and a plan that is owed to `slow`.
fn telling_end(store: &dyn Store, entity: &Entity, dispatch: &str) -> EffectSet {
    let mut effects = ending(store, entity, Success::No);
    let Change { row, planned: plan, .. } = &mut effects.change;
    *plan = planned(store, dispatch, &row.id);
    effects
}

fn an_end_writes_what_it_tells_in_its_commit(subject: &Subject) {
    let store = &*subject.store;
    let mut new = new_entity(store, "run", "told");
    new.entity.notify = json!({"handlers": []});
    let entity = created(store, &new);
    let mut effects = telling_end(store, &entity, "notice");
    let mut lost = effects.clone();
    lost.change.expected_version = 7;
    assert!(matches!(store.apply(&lost).unwrap(), Applied::Lost(_)));
    assert_eq!(store.load("notice").unwrap(), None);
    assert_eq!(store.owed(moment(99), 9).unwrap(), []);
    effects.change.admin = vec![admin_event("handler_failed", "run/told")];
    applied(store, &effects);
    let event_id = effects.change.row.id.clone();
    let dispatch = store.dispatch("notice").unwrap().unwrap();
    assert_eq!(dispatch, effects.change.planned.dispatches[0].dispatch);
    assert_eq!(dispatch.event_id.as_ref(), Some(&event_id));
    let owed = Owed {
        event_id,
        reference: entity.reference,
        envelope: effects.change.event.unwrap().envelope,
        settings: new.entity.notify,
        plan: effects.change.planned.owed[0].clone(),
    };
    assert_eq!(store.owed(moment(99), 9).unwrap(), std::slice::from_ref(&owed));
    assert_eq!(audited(store), ["handler_failed"]);
    forget(store, "told");
    assert_eq!(
        store.owed(moment(99), 9).unwrap(),
        [owed],
        "whatever becomes of the entity"
    );
    assert_eq!(store.dispatch("notice").unwrap(), Some(dispatch));
}

fn a_creation_writes_what_it_tells_in_its_commit(subject: &Subject) {
    let store = &*subject.store;
    let mut new = new_entity(store, "run", "stillborn");
    let effects = ending(store, &new.entity, Success::No);
    new.entity.terminal = true;
    new.event = effects.change.event;
    new.planned = planned(store, "notice", &new.row.id);
    new.admin = vec![admin_event("handler_failed", "run/stillborn")];
    new.parents = vec![crate::model::Reference::new("run", "missing")];
    assert!(matches!(store.create(&new, None).unwrap(), Created::ParentMissing(_)));
    assert_eq!((store.load("notice").unwrap(), audited(store).len()), (None, 0));
    new.parents.clear();
    created(store, &new);
    let dispatch = store.dispatch("notice").unwrap().unwrap();
    assert_eq!(dispatch.event_id, Some(new.row.id.clone()));
    assert_eq!(store.owed(moment(50), 9).unwrap()[0].event_id, new.row.id);
    assert_eq!(audited(store), ["handler_failed"]);
}

fn what_is_planned_twice_is_there_once(subject: &Subject) {
    let store = &*subject.store;
    send(store, "notice");
    let entity = make(store, "told");
    let mut effects = telling_end(store, &entity, "notice");
    effects.change.planned.dispatches[0].dispatch.body.push(b'!');
    applied(store, &effects);
    assert_eq!(store.load("told").unwrap().unwrap().status, "failed");
    assert_eq!(
        store.dispatch("notice").unwrap().unwrap().event_id,
        None,
        "the first is there"
    );
}

fn a_commit_whose_plan_cannot_be_written_leaves_nothing(subject: &Subject) {
    let store = &*subject.store;
    let entity = make(store, "told");
    let mut id_taken = telling_end(store, &entity, "told");
    "free".clone_into(&mut id_taken.change.planned.dispatches[0].dispatch.dedup_key);
    let mut policy_unknown = telling_end(store, &entity, "notice");
    "absent".clone_into(&mut policy_unknown.change.planned.dispatches[0].entity.policy.digest);
    for effects in [id_taken, policy_unknown] {
        assert!(store.apply(&effects).is_err());
        assert_eq!(store.load("told").unwrap(), Some(entity.clone()));
        assert_eq!(store.history(&HistoryQuery::default()).unwrap().len(), 1);
        assert_eq!(store.owed(moment(99), 9).unwrap(), []);
        assert_eq!(store.next_due().unwrap(), None);
    }
    applied(store, &telling_end(store, &entity, "notice"));
}

fn what_is_due_is_found_the_longest_due_first(subject: &Subject) {
    let store = &*subject.store;
    assert_eq!((due(store, 99, &[], 9).len(), store.next_due().unwrap()), (0, None));
    for (id, path, at) in [
        ("c", "/one", 30),
        ("a", "/two", 10),
        ("b", "/one", 20),
        ("d", "/two", 40),
    ] {
        send_to(store, id, path, at);
    }
    let mut lease = new_entity(store, "run", "no-dispatch");
    lease.entity.structural.lease_expires_at = Some(moment(5));
    created(store, &lease);
    assert_eq!(due(store, 99, &[], 9), ["a", "b", "c", "d"]);
    assert_eq!(due(store, 30, &[], 9), ["a", "b", "c"]);
    assert_eq!(due(store, 99, &[], 3), ["a", "b", "c"]);
    assert_eq!(due(store, 99, &[], 0), Vec::<String>::new());
    assert_eq!(due(store, 99, &["/two"], 9), ["b", "c"]);
    assert_eq!(due(store, 99, &["/one", "/two"], 9), Vec::<String>::new());
    assert_eq!(store.next_due().unwrap(), Some(moment(10)));
    ended(store, "a", Success::Yes);
    ended(store, "b", Success::No);
    assert_eq!(due(store, 99, &[], 9), ["c", "d"]);
    let mut claim = change(store, &store.load("c").unwrap().unwrap(), "delivering");
    claim.change.after.structural.next_attempt_at = Some(moment(60));
    applied(store, &claim);
    assert_eq!(due(store, 99, &[], 9), ["d", "c"]);
    assert_eq!(store.next_due().unwrap(), Some(moment(40)));
}

fn a_paused_destination_is_stepped_over_until_its_pause_ends(subject: &Subject) {
    let store = &*subject.store;
    for (id, path, at) in [("paused", "/one", 10), ("healthy", "/two", 20)] {
        send_to(store, id, path, at);
    }
    let mut failure = change(store, &send_to(store, "other", "/one", 15), "pending");
    failure.change.after.structural.next_attempt_at = Some(moment(15));
    failure.destination = Some(health("/one", 5, Some(moment(70))));
    applied(store, &failure);
    assert_eq!(due(store, 69, &[], 9), ["healthy"]);
    assert_eq!(store.next_due().unwrap(), Some(moment(20)));
    ended(store, "healthy", Success::Yes);
    assert_eq!(store.next_due().unwrap(), Some(moment(70)));
    assert_eq!(due(store, 70, &[], 9), ["paused", "other"]);
    let entity = make(store, "told");
    applied(store, &telling_end(store, &entity, "later"));
    ended(store, "later", Success::No);
    assert_eq!(store.next_due().unwrap(), Some(moment(50)), "the owed plan");
}

fn a_destination_is_told_of_while_it_fails(subject: &Subject) {
    let store = &*subject.store;
    let mut at = send_to(store, "x", "/one", 10);
    send_to(store, "y", "/two", 10);
    assert_eq!(store.destinations().unwrap(), []);
    let mut attempt = |outcome: DestinationHealth| {
        let mut effects = change(store, &at, "pending");
        effects.destination = Some(outcome);
        applied(store, &effects);
        at = effects.change.after;
    };
    attempt(health("/one", 1, None));
    attempt(health("/nowhere", 1, None));
    assert_eq!(store.destinations().unwrap(), [health("/one", 1, None)]);
    attempt(health("/two", 3, Some(moment(9))));
    attempt(health("/one", 2, Some(moment(7))));
    let failing = [health("/one", 2, Some(moment(7))), health("/two", 3, Some(moment(9)))];
    assert_eq!(store.destinations().unwrap(), failing);
    attempt(health("/one", 0, None));
    assert_eq!(store.destinations().unwrap(), failing[1..]);
    let mut lost = change(store, &store.load("y").unwrap().unwrap(), "pending");
    lost.change.expected_version = 9;
    lost.destination = Some(health("/two", 0, None));
    assert!(matches!(store.apply(&lost).unwrap(), Applied::Lost(_)));
    assert_eq!(store.destinations().unwrap(), failing[1..]);
}

fn a_backlog_counts_dispatches_by_status_and_plans(subject: &Subject) {
    let store = &*subject.store;
    assert_eq!(store.backlog().unwrap(), Backlog::default());
    for id in ["one", "two"] {
        send(store, id);
    }
    make(store, "ends");
    let mut end = ending(store, &store.load("ends").unwrap().unwrap(), Success::No);
    end.change.planned.owed = vec![OwedPlan {
        handler: "ops".to_owned(),
        tries: 1,
        due_at: moment(9),
        error: None,
    }];
    applied(store, &end);
    let status = store.load("one").unwrap().unwrap().status;
    let expected = |dispatches: &[(&str, u64)]| Backlog {
        dispatches: dispatches
            .iter()
            .map(|(status, count)| ((*status).to_owned(), *count))
            .collect(),
        owed_plans: 1,
    };
    assert_eq!(store.backlog().unwrap(), expected(&[(&status, 2)]));
    applied(store, &change(store, &store.load("two").unwrap().unwrap(), "zzz"));
    assert_eq!(store.backlog().unwrap(), expected(&[(&status, 1), ("zzz", 1)]));
}

fn a_plan_is_owed_until_it_is_settled(subject: &Subject) {
    let store = &*subject.store;
    for (id, at) in [("late", 60), ("early", 40)] {
        let mut effects = telling_end(store, &make(store, id), &format!("notice-{id}"));
        effects.change.planned.owed[0].due_at = moment(at);
        applied(store, &effects);
    }
    let owed = |before| store.owed(moment(before), 9).unwrap();
    assert_eq!(owed(39), []);
    assert_eq!(owed(40).len(), 1);
    assert_eq!(owed(60)[0].reference.id, "early");
    assert_eq!(store.owed(moment(60), 1).unwrap().len(), 1);
    let early = owed(40).remove(0);
    let again = OwedPlan {
        tries: 2,
        due_at: moment(80),
        error: None,
        ..early.plan.clone()
    };
    let later = Planned {
        dispatches: Vec::new(),
        owed: vec![again.clone()],
    };
    let failed = [admin_event("handler_failed", "run/early")];
    assert!(store.settle_owed(&early, &later, &failed).unwrap());
    assert!(
        !store.settle_owed(&early, &later, &failed).unwrap(),
        "it was tried meanwhile"
    );
    let early = owed(80).remove(1);
    assert_eq!(early.plan, again);
    let mut made = Planned {
        dispatches: vec![new_dispatch(store, "notice-early", Some(&early.event_id))],
        owed: Vec::new(),
    };
    made.dispatches.push(new_dispatch(store, "made", Some(&early.event_id)));
    assert!(
        store.settle_owed(&early, &made, &[]).unwrap(),
        "what is there is skipped"
    );
    assert!(!store.settle_owed(&early, &made, &failed).unwrap());
    assert_eq!(
        store.dispatch("made").unwrap().unwrap().event_id,
        Some(early.event_id.clone())
    );
    assert_eq!((owed(99).len(), audited(store).len()), (1, 1));
    let late = owed(99).remove(0);
    "absent".clone_into(&mut made.dispatches[1].entity.policy.digest);
    "another".clone_into(&mut made.dispatches[1].dispatch.dedup_key);
    made.dispatches[1].entity.reference.id = "another".to_owned();
    assert!(store.settle_owed(&late, &made, &failed).is_err());
    assert_eq!((owed(99), audited(store).len()), (vec![late], 1));
}

fn bindings_are_kept_by_name(subject: &Subject) {
    let store = &*subject.store;
    let binding = |name: &str, settings: Value| Binding {
        name: name.to_owned(),
        settings,
        created_at: moment(3),
        actor: "operator:tests".to_owned(),
    };
    let event = |action: &str| admin_event(action, "handler");
    for bound in [
        binding("b", json!({"n": 1})),
        binding("a", json!({})),
        binding("b", json!({"n": 2})),
    ] {
        store.put_binding(&bound, &event("handler_bound")).unwrap();
    }
    let kept = [binding("a", json!({})), binding("b", json!({"n": 2}))];
    assert_eq!(store.bindings().unwrap(), kept);
    assert!(store.drop_binding("a", &event("handler_unbound")).unwrap());
    assert!(!store.drop_binding("a", &event("handler_unbound")).unwrap());
    assert_eq!(store.bindings().unwrap(), kept[1..]);
    assert_eq!(
        audited(store),
        ["handler_bound", "handler_bound", "handler_bound", "handler_unbound"]
    );
}

fn consumer(name: &str, since: Option<i64>) -> Consumer {
    Consumer {
        name: name.to_owned(),
        since: since.map(moment),
        created_at: moment(2),
        retired_at: None,
    }
}

fn add(store: &dyn Store, name: &str, since: Option<i64>) -> bool {
    let event = admin_event("consumer_added", name);
    store.add_consumer(&consumer(name, since), &event).unwrap()
}

fn pending(store: &dyn Store, name: &str) -> Option<Vec<EventId>> {
    let pending = store.pending(name, 9).unwrap()?;
    Some(pending.into_iter().map(|(id, _)| id).collect())
}

/// An entity that ended at that moment, and its event.
fn end_at(store: &dyn Store, id: &str, at: i64) -> EventId {
    let mut effects = ending(store, &make(store, id), Success::Yes);
    effects.change.row.at = moment(at);
    applied(store, &effects);
    effects.change.row.id
}

fn a_consumer_is_owed_every_event_until_it_acknowledges_it(subject: &Subject) {
    let store = &*subject.store;
    let (one, two, three) = (end_at(store, "a", 20), end_at(store, "b", 30), end_at(store, "c", 40));
    assert_eq!(pending(store, "all"), None);
    assert!(add(store, "since", Some(30)) && add(store, "all", None));
    assert!(!add(store, "all", Some(1)));
    assert_eq!(
        pending(store, "all"),
        Some(vec![one.clone(), two.clone(), three.clone()])
    );
    assert_eq!(pending(store, "since"), Some(vec![two.clone(), three.clone()]));
    let first = store.pending("all", 1).unwrap().unwrap();
    assert_eq!(first, [(one.clone(), store.envelope(one.as_str()).unwrap().unwrap())]);
    let ack = |name: &str, event: &str| store.acknowledge(name, event, moment(50)).unwrap();
    assert_eq!(ack("all", two.as_str()), Acknowledged::New);
    assert_eq!(ack("all", two.as_str()), Acknowledged::Again);
    assert_eq!(ack("nobody", two.as_str()), Acknowledged::NoConsumer);
    let no_events = [EventId::new(store.name(), "a", 1), EventId::new(store.name(), "a", 9)];
    for id in [
        "",
        "x",
        "a:b:c",
        "otherone:a:2",
        no_events[0].as_str(),
        no_events[1].as_str(),
    ] {
        assert_eq!(ack("all", id), Acknowledged::NoEvent, "{id}");
    }
    assert_eq!(pending(store, "all"), Some(vec![one, three]));
    let counted = [(consumer("all", None), 2), (consumer("since", Some(30)), 2)];
    assert_eq!(store.consumers().unwrap(), counted);
    let retire = |name: &str| {
        store
            .retire_consumer(name, moment(60), &admin_event("consumer_retired", name))
            .unwrap()
    };
    assert!(retire("all"));
    assert!(!retire("all") && !retire("nobody"));
    assert_eq!(
        (pending(store, "all"), ack("all", two.as_str())),
        (None, Acknowledged::NoConsumer)
    );
    assert!(!add(store, "all", None), "its name is not used again");
    let retired = Consumer {
        retired_at: Some(moment(60)),
        ..consumer("all", None)
    };
    assert_eq!(store.consumers().unwrap()[0], (retired, 0));
    assert_eq!(audited(store), ["consumer_added", "consumer_added", "consumer_retired"]);
}

fn an_event_that_commits_late_is_pending(subject: &Subject) {
    let store = &*subject.store;
    assert!(add(store, "reader", None));
    let seen = end_at(store, "quick", 40);
    assert_eq!(
        store.acknowledge("reader", seen.as_str(), moment(41)).unwrap(),
        Acknowledged::New
    );
    let late = end_at(store, "slow", 30);
    assert_eq!(pending(store, "reader"), Some(vec![late]));
}

fn what_somebody_is_owed_stays_in_the_journal(subject: &Subject) {
    let store = &*subject.store;
    assert!(add(store, "one", None) && add(store, "two", Some(1_000)));
    let event = end_at(store, "told", 20);
    let mut planning = telling_end(store, &make(store, "planned"), "notice");
    planning.change.row.at = moment(20);
    applied(store, &planning);
    let planned = planning.change.row.id;
    for id in ["told", "planned"] {
        forget(store, id);
    }
    let page = JournalPage {
        journal: Journal::History,
        after: 0,
        before: moment(100),
        limit: 99,
    };
    let prune = || {
        let everything: Vec<i64> = (0..99).collect();
        let found = store.journal_page(&page).unwrap().rows.len();
        let gone = store.prune_journal(&page, &everything, &admin_event("history_pruned", "history"));
        assert_eq!(gone.unwrap(), found, "nothing goes that the page did not name");
        [&event, &planned].map(|id| store.envelope(id.as_str()).unwrap().is_some())
    };
    let ack = |id: &EventId| store.acknowledge("one", id.as_str(), moment(50)).unwrap();
    assert_eq!(prune(), [true, true]);
    assert_eq!(ack(&planned), Acknowledged::New);
    assert_eq!(
        prune(),
        [true, true],
        "one is owed to the consumer, the other to a handler"
    );
    let owed = store.owed(moment(99), 9).unwrap().remove(0);
    assert!(store.settle_owed(&owed, &Planned::default(), &[]).unwrap());
    assert_eq!(prune(), [true, false]);
    assert_eq!(ack(&planned), Acknowledged::NoEvent);
    let retired = admin_event("consumer_retired", "one");
    assert!(store.retire_consumer("one", moment(60), &retired).unwrap());
    assert_eq!(prune(), [false, false]);
}

fn a_removed_dispatch_leaves_its_key_and_nothing_to_deliver(subject: &Subject) {
    let store = &*subject.store;
    send(store, "gone");
    forget(store, "gone");
    assert_eq!(
        (store.dispatch("gone").unwrap(), store.next_due().unwrap()),
        (None, None)
    );
    let mut again = new_dispatch(store, "again", None);
    "gone".clone_into(&mut again.dispatch.dedup_key);
    enqueued(store, &again);
}

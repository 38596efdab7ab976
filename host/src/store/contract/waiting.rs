//! The promises about what waits for what, and about what goes on where something ended.

use super::queue::{applied, queued};
use super::{Subject, created, end, forget, ids, key, make};
use crate::model::{Entity, NewEntity, Reference, Stage};
use crate::store::samples::{
    Success, change, ending, moment, new_entity, new_queued, new_run, new_work, staged, successor, taking,
};
use crate::store::{
    Applied, Created, Dependency, EffectSet, EntityQuery, HeldLease, HistoryQuery, NewRun, ReadyQuery, Scope, Store,
    Work,
};

pub(super) const PROMISES: [fn(&Subject); 18] = [
    work_and_what_it_waits_for_come_with_it,
    what_does_not_exist_is_not_waited_for,
    nothing_waits_for_itself,
    what_ended_before_is_news_from_the_start,
    an_end_is_news_for_those_who_wait_for_it,
    an_end_is_told_once,
    what_ends_after_a_look_stays_news,
    a_row_that_changed_meanwhile_is_looked_at_again,
    what_has_ended_waits_for_nothing,
    a_removal_is_an_end_for_those_who_still_wait,
    a_row_that_is_removed_waits_for_nothing,
    a_unique_key_is_held_by_one_live_entity,
    an_attempt_has_one_successor,
    a_successor_takes_over_in_the_commit_of_the_end,
    a_successor_takes_the_place_of_the_one_before_it_with_whoever_waits,
    a_successor_that_is_made_later_takes_the_same_place,
    a_successor_that_cannot_be_stored_leaves_everything_as_it_was,
    a_creation_is_judged_in_the_order_of_its_answers,
];

fn waiting(store: &dyn Store, id: &str, after: &[&Entity]) -> Entity {
    let mut new = new_queued(store, id);
    new.entity.queued.as_mut().unwrap().stage = Some(Stage::Waiting);
    made(store, &new, &new_work(&new.entity.reference, after))
}

fn made(store: &dyn Store, new: &NewEntity, run: &NewRun) -> Entity {
    match store.create(new, Some(run)).unwrap() {
        Created::New {
            entity,
            runtime_id: None,
        } => *entity,
        other => panic!("{} was not created: {other:?}", new.entity.reference),
    }
}

/// What a row waits for, each with `+` when it succeeded, `-` when it did not, `?` when it goes on.
fn awaited(store: &dyn Store, row: &Entity) -> Vec<String> {
    let told = |dependency: Dependency| {
        let mark = match dependency.ended {
            None => '?',
            Some(true) => '+',
            Some(false) => '-',
        };
        format!("{mark}{}", dependency.on)
    };
    store.dependencies(row).unwrap().into_iter().map(told).collect()
}

fn news(store: &dyn Store) -> Vec<String> {
    let found = store.awaiting_ended(0, 9).unwrap();
    ids(&found).into_iter().map(str::to_owned).collect()
}

fn look(store: &dyn Store, row: &Entity) {
    let seen = store.dependencies(row).unwrap();
    store.looked_at(row, &seen).unwrap();
}

fn work_and_what_it_waits_for_come_with_it(subject: &Subject) {
    let store = &*subject.store;
    let (one, two) = (make(store, "one"), make(store, "two"));
    let row = waiting(store, "job", &[&two, &one, &two]);
    assert_eq!(awaited(store, &row), ["?run/one", "?run/two"]);
    assert_eq!(
        store.work(&row).unwrap(),
        Some(Work(serde_json::json!({"argv": ["true", "job"]})))
    );
    assert_eq!(store.runtimes(Some(std::slice::from_ref(&row.reference))).unwrap(), []);
    assert_eq!(store.resources(std::slice::from_ref(&row.reference)).unwrap(), []);
    assert_eq!(awaited(store, &one), [""; 0]);
    assert_eq!(news(store), [""; 0]);
}

fn what_does_not_exist_is_not_waited_for(subject: &Subject) {
    let store = &*subject.store;
    let one = make(store, "one");
    let gone = make(store, "gone");
    forget(store, "gone");
    let mut other_kind = one.clone();
    "play".clone_into(&mut other_kind.reference.kind);
    for missing in [&gone, &other_kind] {
        let new = new_queued(store, "job");
        let run = new_work(&new.entity.reference, &[&one, missing]);
        let answer = store.create(&new, Some(&run)).unwrap();
        assert_eq!(answer, Created::AwaitedMissing(missing.reference.clone()));
    }
    assert_eq!(store.load("job").unwrap(), None);
    queued(store, "job");
}

fn nothing_waits_for_itself(subject: &Subject) {
    let store = &*subject.store;
    let new = new_queued(store, "job");
    let run = new_work(&new.entity.reference, &[&new.entity]);
    let answer = store.create(&new, Some(&run)).unwrap();
    assert_eq!(answer, Created::AwaitedMissing(new.entity.reference));
}

fn what_ended_before_is_news_from_the_start(subject: &Subject) {
    let store = &*subject.store;
    let [well, badly, open] = ["well", "badly", "open"].map(|id| make(store, id));
    end(store, &well, Success::Yes);
    end(store, &badly, Success::No);
    let row = waiting(store, "job", &[&well, &badly, &open]);
    assert_eq!(awaited(store, &row), ["+run/well", "-run/badly", "?run/open"]);
    assert_eq!(news(store), ["job"]);
    assert_eq!(store.awaiting_ended(0, 9).unwrap(), [row]);
}

fn an_end_is_news_for_those_who_wait_for_it(subject: &Subject) {
    let store = &*subject.store;
    let [one, two] = ["one", "two"].map(|id| make(store, id));
    let both = waiting(store, "both", &[&one, &two]);
    let second = waiting(store, "second", &[&two]);
    let step = applied(store, &change(store, &one, "further"));
    assert_eq!(news(store), [""; 0]);
    end(store, &step, Success::Yes);
    assert_eq!(news(store), ["both"]);
    end(store, &two, Success::No);
    assert_eq!(news(store), ["both", "second"], "each once, the oldest first");
    assert_eq!(ids(&store.awaiting_ended(0, 1).unwrap()), ["both"]);
    assert_eq!(ids(&store.awaiting_ended(0, 0).unwrap()), [""; 0]);
    assert_eq!(ids(&store.awaiting_ended(both.row, 9).unwrap()), ["second"]);
    assert_eq!(awaited(store, &both), ["+run/one", "-run/two"]);
    assert_eq!(awaited(store, &second), ["-run/two"]);
    look(store, &both);
    look(store, &both);
    assert_eq!(news(store), ["second"]);
}

fn an_end_is_told_once(subject: &Subject) {
    let store = &*subject.store;
    let one = make(store, "one");
    let row = waiting(store, "job", &[&one]);
    end(store, &one, Success::Yes);
    look(store, &row);
    let mut revived = change(store, &store.load("one").unwrap().unwrap(), "running");
    (revived.change.after.terminal, revived.change.after.success) = (false, false);
    let revived = applied(store, &revived);
    let mut again = ending(store, &revived, Success::No);
    again.successor = Some(successor(store, &revived, "next"));
    applied(store, &again);
    assert_eq!(awaited(store, &row), ["+run/one"], "what it was first stays");
    assert_eq!(news(store), [""; 0]);
}

fn what_ends_after_a_look_stays_news(subject: &Subject) {
    let store = &*subject.store;
    let [one, two] = ["one", "two"].map(|id| make(store, id));
    let row = waiting(store, "job", &[&one, &two]);
    end(store, &one, Success::Yes);
    let seen = store.dependencies(&row).unwrap();
    end(store, &two, Success::Yes);
    store.looked_at(&row, &seen).unwrap();
    assert_eq!(news(store), ["job"]);
    look(store, &row);
    assert_eq!(news(store), [""; 0]);
}

fn a_row_that_changed_meanwhile_is_looked_at_again(subject: &Subject) {
    let store = &*subject.store;
    let one = make(store, "one");
    let row = waiting(store, "job", &[&one]);
    end(store, &one, Success::Yes);
    let seen = store.dependencies(&row).unwrap();
    let now = applied(store, &staged(store, &row, Stage::Later, None));
    store.looked_at(&row, &seen).unwrap();
    assert_eq!(news(store), ["job"]);
    store.looked_at(&now, &seen).unwrap();
    assert_eq!(news(store), [""; 0]);
}

fn what_has_ended_waits_for_nothing(subject: &Subject) {
    let store = &*subject.store;
    let [one, two] = ["one", "two"].map(|id| make(store, id));
    let row = waiting(store, "job", &[&one, &two]);
    end(store, &one, Success::No);
    assert_eq!(news(store), ["job"]);
    end(store, &row, Success::No);
    assert_eq!(news(store), [""; 0]);
    end(store, &two, Success::Yes);
    assert_eq!(news(store), [""; 0]);
    assert_eq!(
        awaited(store, &row),
        ["-run/one", "+run/two"],
        "it is told all the same"
    );
}

fn a_removal_is_an_end_for_those_who_still_wait(subject: &Subject) {
    let store = &*subject.store;
    let [open, ended] = ["open", "ended"].map(|id| make(store, id));
    let row = waiting(store, "job", &[&open, &ended]);
    end(store, &ended, Success::Yes);
    look(store, &row);
    forget(store, "ended");
    assert_eq!(news(store), [""; 0]);
    forget(store, "open");
    assert_eq!(news(store), ["job"]);
    assert_eq!(awaited(store, &row), ["-run/open", "+run/ended"]);
}

fn a_row_that_is_removed_waits_for_nothing(subject: &Subject) {
    let store = &*subject.store;
    let [one, two] = ["one", "two"].map(|id| make(store, id));
    let row = waiting(store, "job", &[&one, &two]);
    let next = waiting(store, "next", &[&row]);
    end(store, &one, Success::Yes);
    forget(store, "job");
    assert_eq!(awaited(store, &row), [""; 0]);
    assert_eq!(news(store), ["next"]);
    end(store, &two, Success::Yes);
    assert_eq!(awaited(store, &next), ["-job/job"]);
}

fn a_unique_key_is_held_by_one_live_entity(subject: &Subject) {
    let store = &*subject.store;
    let keyed = |id: &str| {
        let mut new = new_queued(store, id);
        new.entity.unique_key = Some("nightly".to_owned());
        new
    };
    let first = created(store, &keyed("first"));
    let answer = store.create(&keyed("second"), None).unwrap();
    assert_eq!(answer, Created::UniqueKeyHeld(Box::new(first.clone())));
    assert_eq!(store.load("second").unwrap(), None);
    let taken = applied(store, &taking(store, &first, "w", moment(50)));
    let answer = store.create(&keyed("second"), None).unwrap();
    assert_eq!(answer, Created::UniqueKeyHeld(Box::new(taken.clone())));
    end(store, &taken, Success::Yes);
    let second = created(store, &keyed("second"));
    forget(store, "second");
    assert_ne!(created(store, &keyed("third")).row, second.row);
}

fn an_attempt_has_one_successor(subject: &Subject) {
    let store = &*subject.store;
    let first = queued(store, "first");
    assert_eq!(store.successor(&first).unwrap(), None);
    let next = |id: &str| *successor(store, &first, id).new;
    let second = created(store, &next("second"));
    assert_eq!(store.successor(&first).unwrap(), Some(second.clone()));
    let answer = store.create(&next("third"), None).unwrap();
    assert_eq!(answer, Created::SucceededBy(Box::new(second.clone())));
    assert_eq!(store.load("third").unwrap(), None);
    end(store, &second, Success::No);
    let ended = Box::new(store.load("second").unwrap().unwrap());
    assert_eq!(store.create(&next("third"), None).unwrap(), Created::SucceededBy(ended));
    let row = waiting(store, "waits", &[&first]);
    assert_eq!(
        awaited(store, &row),
        ["-job/second"],
        "it is waited for in its last attempt"
    );
}

/// A row with all that a successor takes over, and the end that a successor follows.
fn orphaned(store: &dyn Store) -> (Entity, EffectSet) {
    let (parent, child) = (make(store, "parent"), "first-run");
    let mut new = new_queued(store, "first");
    new.parents = vec![parent.reference];
    new.entity.tags.insert("team".to_owned(), "core".to_owned());
    new.entity.unique_key = Some("nightly".to_owned());
    let first = made(store, &new, &new_work(&new.entity.reference, &[]));
    let held = applied(store, &taking(store, &first, "w", moment(50)));
    let mut below = new_entity(store, "run", child);
    below.parents = vec![first.reference.clone()];
    created(store, &below);
    let mut effects = ending(store, &held, Success::No);
    effects.successor = Some(successor(store, &first, "second"));
    (first, effects)
}

fn a_successor_takes_over_in_the_commit_of_the_end(subject: &Subject) {
    let store = &*subject.store;
    let (first, effects) = orphaned(store);
    let mut lost = effects.clone();
    lost.change.expected_version = 1;
    assert!(matches!(store.apply(&lost).unwrap(), Applied::Lost(_)));
    let mut goes_on = effects.clone();
    goes_on.change = staged(store, &store.load("first").unwrap().unwrap(), Stage::Doubted, None).change;
    applied(store, &goes_on);
    assert_eq!(
        store.load("second").unwrap(),
        None,
        "nothing follows what has not ended"
    );
    let mut effects = EffectSet {
        change: ending(store, &goes_on.change.after, Success::No).change,
        ..effects
    };
    effects.change.key = key("k", "d");
    let ended = applied(store, &effects);
    let second = store.load("second").unwrap().unwrap();
    let expected = effects.successor.unwrap().new.entity;
    assert_eq!(
        second,
        Entity {
            row: second.row,
            ..expected
        }
    );
    assert_eq!(
        (ended.unique_key, second.unique_key.as_deref()),
        (None, Some("nightly"))
    );
    assert_eq!(second.chain_parent.as_ref(), Some(&first.reference.id));
    assert_eq!(store.successor(&first).unwrap(), Some(second.clone()));
    assert_eq!(store.work(&second).unwrap(), store.work(&first).unwrap());
    assert!(store.work(&second).unwrap().is_some());
    assert_eq!(ids(&store.linked(&second, Scope::Parents).unwrap()), ["parent"]);
    assert_eq!(ids(&store.linked(&second, Scope::Children).unwrap()), [""; 0]);
    assert_eq!(ids(&store.linked(&first, Scope::Children).unwrap()), ["first-run"]);
    let tagged = EntityQuery {
        tags: vec![("team".to_owned(), "core".to_owned())],
        ..EntityQuery::default()
    };
    assert_eq!(ids(&store.list(&tagged).unwrap()), ["second", "first"]);
    let all = ReadyQuery {
        queues: Vec::new(),
        limit: 9,
    };
    assert_eq!(store.ready(&all).unwrap(), [second]);
    assert_eq!(store.components().unwrap()[0].in_use, 4);
    let history = HistoryQuery {
        id: Some("second".to_owned()),
        ..HistoryQuery::default()
    };
    assert_eq!(store.history(&history).unwrap().len(), 1);
}

fn a_successor_takes_the_place_of_the_one_before_it_with_whoever_waits(subject: &Subject) {
    let store = &*subject.store;
    let (first, effects) = orphaned(store);
    let early = waiting(store, "early", &[&first]);
    applied(store, &effects);
    assert_eq!(
        (awaited(store, &early), news(store).len()),
        (vec!["?job/second".to_owned()], 0)
    );
    let late = waiting(store, "late", &[&first]);
    assert_eq!(awaited(store, &late), ["?job/second"]);
    let second = store.load("second").unwrap().unwrap();
    forget(store, "first");
    assert_eq!(
        store.successor(&first).unwrap(),
        Some(second.clone()),
        "whatever becomes of it"
    );
    assert_eq!(news(store), [""; 0]);
    end(store, &second, Success::Yes);
    assert_eq!(awaited(store, &early), ["+job/second"]);
    assert_eq!(news(store), ["early", "late"]);
    forget(store, "second");
    assert_eq!(awaited(store, &early), ["+job/second"]);
}

fn a_successor_that_is_made_later_takes_the_same_place(subject: &Subject) {
    let store = &*subject.store;
    let (first, effects) = orphaned(store);
    let other = make(store, "other");
    let waits = waiting(store, "waits", &[&first]);
    let mut new = *effects.successor.unwrap().new;
    new.entity.unique_key = None;
    new.parents = vec![other.reference, Reference::new("run", "parent")];
    let second = made(store, &new, &new_work(&new.entity.reference, &[]));
    assert_eq!(
        ids(&store.linked(&second, Scope::Parents).unwrap()),
        ["parent", "other"]
    );
    assert_eq!(awaited(store, &waits), ["?job/second"]);
    end(store, &store.load("first").unwrap().unwrap(), Success::No);
    assert_eq!(awaited(store, &waits), ["?job/second"]);
    let told = waiting(store, "told", &[&second]);
    end(store, &second, Success::No);
    created(store, &successor(store, &second, "third").new);
    assert_eq!(awaited(store, &told), ["-job/second"], "what was told stays told");
}

fn a_successor_that_cannot_be_stored_leaves_everything_as_it_was(subject: &Subject) {
    let store = &*subject.store;
    let (first, effects) = orphaned(store);
    let before = store.load("first").unwrap();
    let row = waiting(store, "waits", &[&first]);
    let spoil: [fn(&mut NewEntity); 2] = [
        |new| "absent".clone_into(&mut new.entity.policy.digest),
        |new| "parent".clone_into(&mut new.entity.reference.id),
    ];
    for spoil in spoil {
        let mut effects = effects.clone();
        spoil(&mut effects.successor.as_mut().unwrap().new);
        assert!(store.apply(&effects).is_err());
        assert!(store.apply_all(&[effects]).is_err());
        assert_eq!(store.load("first").unwrap(), before);
        assert_eq!(awaited(store, &row), ["?job/first"]);
    }
    let mut unkeyed = *successor(store, &first, "other").new;
    unkeyed.entity.unique_key = None;
    created(store, &unkeyed);
    assert!(store.apply(&effects).is_err(), "it has one already");
    assert_eq!(store.load("first").unwrap(), before);
    assert_eq!(store.load("second").unwrap(), None);
}

fn a_creation_is_judged_in_the_order_of_its_answers(subject: &Subject) {
    let store = &*subject.store;
    let nobody = Reference::new("run", "nobody");
    let ended = make(store, "ended");
    end(store, &ended, Success::Yes);
    let mut holder = new_queued(store, "holder");
    holder.entity.unique_key = Some("u".to_owned());
    holder.key = key("k", "d");
    let holder = created(store, &holder);
    let first = make(store, "first");
    let second = created(store, &successor(store, &first, "second").new);
    // Everything is wrong with it; what is told is put right, until it is made.
    let mut new = new_entity(store, "run", "first");
    let mut run = new_run(&new.entity.reference);
    new.key = key("k", "d");
    run.lease = Some(HeldLease {
        reference: nobody.clone(),
        fence: 1,
        holder: "w".to_owned(),
        attempt: 1,
    });
    new.entity.chain_parent = Some("first".to_owned());
    new.entity.unique_key = Some("u".to_owned());
    new.parents = vec![nobody.clone(), ended.reference.clone()];
    run.after = vec![nobody.clone()];
    let make = |new: &NewEntity, run: &NewRun| store.create(new, Some(run)).unwrap();
    assert!(matches!(make(&new, &run), Created::KeyUsed { .. }));
    new.key = None;
    assert_eq!(make(&new, &run), Created::IdTaken);
    new.entity.reference.id = "new".to_owned();
    assert_eq!(make(&new, &run), Created::LeaseLost);
    run.lease = None;
    assert_eq!(make(&new, &run), Created::SucceededBy(Box::new(second)));
    new.entity.chain_parent = None;
    assert_eq!(make(&new, &run), Created::UniqueKeyHeld(Box::new(holder)));
    new.entity.unique_key = None;
    assert_eq!(make(&new, &run), Created::ParentMissing(nobody.clone()));
    new.parents.remove(0);
    assert_eq!(make(&new, &run), Created::ParentClosed(ended.reference));
    new.parents.clear();
    assert_eq!(make(&new, &run), Created::AwaitedMissing(nobody));
    run.after.clear();
    assert!(matches!(make(&new, &run), Created::New { .. }));
}

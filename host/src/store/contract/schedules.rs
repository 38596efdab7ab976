//! The promises of [`Schedules`](crate::store::Schedules).

use std::sync::Barrier;
use std::thread;

use serde_json::json;

use super::{Subject, forget, make};
use crate::model::schedule::{Cadence, Missed, Overlap, Schedule};
use crate::model::{DurationMs, Reference, Timestamp};
use crate::store::samples::{Success, admin_event, ending, moment, new_entity};
use crate::store::{AdminQuery, Applied, Created, Dependency, Fire, Fired, KeptSchedule, Steering, Store, Successor};

pub(super) const PROMISES: [fn(&Subject); 12] = [
    a_schedule_is_stored_whole_under_a_name_of_its_own,
    what_is_due_is_found_the_longest_over_first,
    a_fire_time_makes_its_entity_and_moves_the_schedule_on,
    a_schedule_is_fired_only_where_it_stands,
    a_fire_time_that_was_dealt_with_makes_nothing_and_moves_the_schedule_on,
    a_schedule_stands_where_it_stood_when_its_entity_cannot_be_made,
    of_many_that_fire_one_fire_time_one_makes_its_entity,
    a_hundred_schedules_of_one_second_all_fire,
    what_fire_times_started_is_found_until_it_ends,
    what_waits_behind_others_is_content_with_any_end,
    an_attempt_that_goes_on_stands_for_the_fire_time,
    what_is_remembered_of_a_fire_time_goes_with_its_entity_and_its_schedule,
];

/// A schedule whose next fire time is `moment(next)`.
fn kept(name: &str, next: i64) -> KeptSchedule {
    KeptSchedule {
        schedule: Schedule {
            name: name.to_owned(),
            cadence: Cadence::Every(DurationMs::from_ms(1_000)),
            overlap: Overlap::Queue,
            missed: Missed::All,
            paused: false,
            created_at: moment(0),
            next_fire_at: Some(moment(next)),
        },
        submission: json!({"argv": ["true"]}),
        actor: "operator:tests".to_owned(),
    }
}

fn add(store: &dyn Store, name: &str, next: i64) {
    let event = admin_event("schedule_added", name);
    assert!(store.add_schedule(&kept(name, next), &event).unwrap());
}

/// That the fire time `moment(at)` of a schedule, which stands there, makes the entity of that id.
fn fire(store: &dyn Store, name: &str, at: i64, id: &str) -> Fire {
    Fire {
        name: name.to_owned(),
        expected: moment(at),
        nominal: moment(at),
        next: Some(moment(at + 1_000)),
        new: new_entity(store, "run", id),
        work: None,
        behind: Vec::new(),
    }
}

fn made(store: &dyn Store, name: &str, at: i64, id: &str) {
    let fired = store.fire(&fire(store, name, at, id)).unwrap();
    assert!(
        matches!(&fired, Fired::Made(entity) if entity.reference.id == id),
        "{fired:?}"
    );
}

fn stands(store: &dyn Store, name: &str) -> Option<Timestamp> {
    store.schedules(Some(name)).unwrap()[0].schedule.next_fire_at
}

fn audited(store: &dyn Store) -> Vec<String> {
    let events = store.admin_events(&AdminQuery::default()).unwrap();
    events.into_iter().map(|event| event.action).collect()
}

fn a_schedule_is_stored_whole_under_a_name_of_its_own(subject: &Subject) {
    let store = subject.store.as_ref();
    let mut nightly = kept("nightly", 5);
    nightly.schedule.cadence = Cadence::Cron {
        expression: "30 6 * * *".to_owned(),
        zone: "Europe/Berlin".to_owned(),
    };
    (nightly.schedule.overlap, nightly.schedule.missed) = (Overlap::Skip, Missed::One);
    assert!(
        store
            .add_schedule(&nightly, &admin_event("schedule_added", "nightly"))
            .unwrap()
    );
    let other = kept("nightly", 9);
    assert!(
        !store
            .add_schedule(&other, &admin_event("schedule_added", "again"))
            .unwrap()
    );
    add(store, "hourly", 7);
    assert_eq!(store.schedules(Some("nightly")).unwrap(), [nightly.clone()]);
    assert_eq!(store.schedules(Some("weekly")).unwrap(), []);
    assert_eq!(store.schedules(None).unwrap(), [kept("hourly", 7), nightly]);
    assert_eq!(audited(store), ["schedule_added", "schedule_added"]);
}

fn what_is_due_is_found_the_longest_over_first(subject: &Subject) {
    let store = subject.store.as_ref();
    assert_eq!(store.next_fire().unwrap(), None);
    for (name, next) in [("late", 5), ("later", 7), ("latest", 6), ("not_yet", 9)] {
        add(store, name, next);
    }
    let due = |now| -> Vec<String> {
        let due = store.due_schedules(moment(now)).unwrap();
        due.into_iter().map(|kept| kept.schedule.name).collect()
    };
    assert_eq!(due(7), ["late", "latest", "later"]);
    assert_eq!(store.next_fire().unwrap(), Some(moment(5)));
    let steer = |steering| {
        store
            .steer_schedule("late", steering, &admin_event("steered", "late"))
            .unwrap()
    };
    assert!(steer(Steering::Pause));
    assert!(!steer(Steering::Pause), "it stands so already");
    assert_eq!(
        (due(8), store.next_fire().unwrap()),
        (vec!["latest".to_owned(), "later".to_owned()], Some(moment(6)))
    );
    assert!(steer(Steering::Resume(Some(moment(20)))));
    assert!(!steer(Steering::Resume(Some(moment(30)))));
    assert_eq!(stands(store, "late"), Some(moment(20)));
    assert_eq!(due(8), ["latest", "later"]);
    let events = audited(store);
    assert_eq!(events.iter().filter(|action| *action == "steered").count(), 2);
}

fn a_fire_time_makes_its_entity_and_moves_the_schedule_on(subject: &Subject) {
    let store = subject.store.as_ref();
    add(store, "hourly", 0);
    made(store, "hourly", 0, "first");
    made(store, "hourly", 1_000, "second");
    assert_eq!(stands(store, "hourly"), Some(moment(2_000)));
    let told: Vec<(Timestamp, String)> = store
        .occurrences("hourly", 9)
        .unwrap()
        .into_iter()
        .map(|occurrence| (occurrence.nominal, occurrence.entity.reference.id))
        .collect();
    let expected = [(moment(1_000), "second".to_owned()), (moment(0), "first".to_owned())];
    assert_eq!(told, expected);
    assert_eq!(store.occurrences("hourly", 1).unwrap().len(), 1);
}

fn a_schedule_is_fired_only_where_it_stands(subject: &Subject) {
    let store = subject.store.as_ref();
    add(store, "hourly", 0);
    let elsewhere = Fire {
        expected: moment(1_000),
        ..fire(store, "hourly", 0, "early")
    };
    assert_eq!(store.fire(&elsewhere).unwrap(), Fired::Changed);
    assert_eq!(
        store.fire(&fire(store, "unheard_of", 0, "early")).unwrap(),
        Fired::Changed
    );
    let steer = |steering| {
        store
            .steer_schedule("hourly", steering, &admin_event("steered", "hourly"))
            .unwrap()
    };
    assert!(steer(Steering::Pause));
    assert_eq!(store.fire(&fire(store, "hourly", 0, "early")).unwrap(), Fired::Changed);
    assert_eq!(store.load("early").unwrap(), None);
    assert!(steer(Steering::Resume(None)));
    assert_eq!(store.fire(&fire(store, "hourly", 0, "early")).unwrap(), Fired::Changed);
}

fn a_fire_time_that_was_dealt_with_makes_nothing_and_moves_the_schedule_on(subject: &Subject) {
    let store = subject.store.as_ref();
    add(store, "hourly", 0);
    made(store, "hourly", 0, "first");
    // The clock was put back, and the schedule paused and resumed since.
    let steer = |steering| {
        store
            .steer_schedule("hourly", steering, &admin_event("steered", "hourly"))
            .unwrap()
    };
    assert!(steer(Steering::Pause) && steer(Steering::Resume(Some(moment(0)))));
    assert_eq!(
        store.fire(&fire(store, "hourly", 0, "again")).unwrap(),
        Fired::AlreadyFired
    );
    assert_eq!(store.load("again").unwrap(), None);
    assert_eq!(stands(store, "hourly"), Some(moment(1_000)));
}

fn a_schedule_stands_where_it_stood_when_its_entity_cannot_be_made(subject: &Subject) {
    let store = subject.store.as_ref();
    add(store, "hourly", 0);
    make(store, "taken");
    let taken = store.fire(&fire(store, "hourly", 0, "taken")).unwrap();
    assert_eq!(taken, Fired::Refused(Created::IdTaken));
    let mut below = fire(store, "hourly", 0, "below");
    let parent = Reference::new("run", "missing");
    below.new.parents = vec![parent.clone()];
    assert_eq!(
        store.fire(&below).unwrap(),
        Fired::Refused(Created::ParentMissing(parent))
    );
    let mut unpinned = fire(store, "hourly", 0, "unpinned");
    unpinned.new.entity.policy.digest = "of nothing".to_owned();
    store.fire(&unpinned).unwrap_err();
    assert_eq!(stands(store, "hourly"), Some(moment(0)), "it did not move on");
    assert_eq!(store.occurrences("hourly", 9).unwrap(), []);
    made(store, "hourly", 0, "made");
}

fn of_many_that_fire_one_fire_time_one_makes_its_entity(subject: &Subject) {
    let store = subject.store.as_ref();
    add(store, "hourly", 0);
    let start = Barrier::new(8);
    let outcomes: Vec<Fired> = thread::scope(|scope| {
        let attempt = |number: usize| {
            let start = &start;
            scope.spawn(move || {
                let fire = fire(store, "hourly", 0, &format!("made_by_{number}"));
                start.wait();
                store.fire(&fire).unwrap()
            })
        };
        let threads: Vec<_> = (0..8).map(attempt).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let count = |wanted: fn(&Fired) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
    assert_eq!(count(|fired| matches!(fired, Fired::Made(_))), 1);
    assert_eq!(count(|fired| *fired == Fired::Changed), 7);
    assert_eq!(store.occurrences("hourly", 9).unwrap().len(), 1);
}

fn a_hundred_schedules_of_one_second_all_fire(subject: &Subject) {
    let store = subject.store.as_ref();
    for number in 0..100 {
        add(store, &format!("schedule_{number}"), 0);
    }
    let due = store.due_schedules(moment(0)).unwrap();
    assert_eq!(due.len(), 100);
    thread::scope(|scope| {
        for part in due.chunks(25) {
            scope.spawn(move || {
                for kept in part {
                    let name = &kept.schedule.name;
                    made(store, name, 0, &format!("of_{name}"));
                }
            });
        }
    });
    assert_eq!(store.due_schedules(moment(999)).unwrap(), []);
    assert_eq!(store.next_fire().unwrap(), Some(moment(1_000)));
}

fn what_fire_times_started_is_found_until_it_ends(subject: &Subject) {
    let store = subject.store.as_ref();
    add(store, "hourly", 0);
    made(store, "hourly", 0, "first");
    made(store, "hourly", 1_000, "second");
    let mut skipped = fire(store, "hourly", 2_000, "skipped");
    skipped.new.entity.terminal = true;
    assert!(matches!(store.fire(&skipped).unwrap(), Fired::Made(_)));
    let running = |limit| -> Vec<String> {
        let running = store.running_occurrences("hourly", limit).unwrap();
        running.into_iter().map(|entity| entity.reference.id).collect()
    };
    assert_eq!(running(9), ["first", "second"]);
    assert_eq!(running(1), ["first"]);
    let effects = ending(store, &store.load("first").unwrap().unwrap(), Success::Yes);
    assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
    assert_eq!(running(9), ["second"]);
    made(store, "hourly", 3_000, "third");
    assert_eq!(running(9), ["second", "third"]);
}

fn what_waits_behind_others_is_content_with_any_end(subject: &Subject) {
    let store = subject.store.as_ref();
    add(store, "hourly", 0);
    made(store, "hourly", 0, "first");
    made(store, "hourly", 1_000, "second");
    let end = |id: &str| {
        let effects = ending(store, &store.load(id).unwrap().unwrap(), Success::No);
        assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
    };
    end("first");
    let on = |id: &str| Reference::new("run", id);
    let behind = Fire {
        behind: vec![on("first"), on("second")],
        ..fire(store, "hourly", 2_000, "third")
    };
    assert!(matches!(store.fire(&behind).unwrap(), Fired::Made(_)));
    let waits = |second| {
        let third = store.load("third").unwrap().unwrap();
        let dependency = |id: &str, ended| Dependency { on: on(id), ended };
        let expected = [dependency("first", Some(true)), dependency("second", second)];
        assert_eq!(store.dependencies(&third).unwrap(), expected);
    };
    waits(None);
    end("second");
    waits(Some(true));
    let missing = Fire {
        behind: vec![on("missing")],
        ..fire(store, "hourly", 3_000, "fourth")
    };
    let refused = Fired::Refused(Created::AwaitedMissing(on("missing")));
    assert_eq!(store.fire(&missing).unwrap(), refused);
    assert_eq!(
        (store.load("fourth").unwrap(), stands(store, "hourly")),
        (None, Some(moment(3_000)))
    );
}

fn an_attempt_that_goes_on_stands_for_the_fire_time(subject: &Subject) {
    let store = subject.store.as_ref();
    add(store, "hourly", 0);
    made(store, "hourly", 0, "first");
    let mut effects = ending(store, &store.load("first").unwrap().unwrap(), Success::No);
    let mut next = new_entity(store, "run", "second");
    next.entity.chain_parent = Some("first".to_owned());
    next.entity.generation = 1;
    effects.successor = Some(Successor { new: Box::new(next) });
    assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
    let running = store.running_occurrences("hourly", 9).unwrap();
    assert_eq!(
        running
            .iter()
            .map(|entity| entity.reference.id.as_str())
            .collect::<Vec<_>>(),
        ["second"]
    );
    let occurrences = store.occurrences("hourly", 9).unwrap();
    assert_eq!((occurrences.len(), occurrences[0].nominal), (1, moment(0)));
}

fn what_is_remembered_of_a_fire_time_goes_with_its_entity_and_its_schedule(subject: &Subject) {
    let store = subject.store.as_ref();
    add(store, "hourly", 0);
    made(store, "hourly", 0, "first");
    made(store, "hourly", 1_000, "second");
    forget(store, "first");
    assert_eq!(store.occurrences("hourly", 9).unwrap().len(), 1);
    let drop_it = || {
        store
            .drop_schedule("hourly", &admin_event("schedule_removed", "hourly"))
            .unwrap()
    };
    assert!(drop_it());
    assert!(!drop_it());
    assert_eq!(store.occurrences("hourly", 9).unwrap(), []);
    assert!(store.load("second").unwrap().is_some(), "what it started stays");
    add(store, "hourly", 0);
    made(store, "hourly", 0, "third");
    assert_eq!(
        audited(store)
            .iter()
            .filter(|action| *action == "schedule_removed")
            .count(),
        1
    );
}

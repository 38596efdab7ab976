//! The promises of [`Queue`](crate::store::Queue): what may be taken, by whom, and for how long.

use std::sync::Barrier;
use std::thread;

use super::{Subject, created, end, forget, ids, key, make, run};
use crate::model::{DurationMs, Entity, LATE_WRITE, Stage, Timestamp};
use crate::store::samples::{
    Success, admin_event, change, ending, moment, new_entity, new_queued, new_run, staged, taking, worker,
};
use crate::store::{
    AdminQuery, Applied, Boot, Created, EffectSet, HeldLease, HistoryQuery, NoRoom, QueueSetup, QueueState,
    RENEWAL_DELAY_LIMITS, ReadyQuery, Renewal, RenewalDelays, Renewed, StagedQuery, Store, Worker,
};

pub(super) const PROMISES: [fn(&Subject); 22] = [
    queued_work_is_stored_whole_and_its_place_is_fixed,
    what_is_ready_comes_by_priority_and_then_by_age_whatever_its_queue,
    a_paused_queue_offers_nothing_and_admits_nobody,
    a_full_queue_offers_nothing_and_admits_nobody,
    a_queue_offers_no_more_than_it_has_room_for,
    what_is_held_already_needs_no_room,
    of_two_claims_of_one_row_one_is_written,
    changes_of_one_commit_come_out_each_by_itself,
    changes_of_which_one_cannot_be_stored_leave_nothing,
    what_is_due_of_a_stage_comes_in_pages,
    the_next_moment_of_a_stage_is_the_earliest,
    a_renewal_extends_a_lease_up_to_its_very_end,
    a_renewal_of_what_is_not_the_holders_any_more_is_lost,
    a_renewal_of_a_lease_that_ran_out_or_is_doubted_extends_nothing,
    a_renewal_makes_whoever_judged_the_old_end_lose,
    renewals_are_answered_in_their_order,
    delays_of_renewals_are_counted_by_their_upper_limits,
    a_run_is_made_only_for_a_lease_that_is_current,
    queues_are_those_that_were_set_up_and_those_with_work,
    workers_are_kept_until_they_are_taken_away,
    the_first_offset_of_a_boot_is_kept,
    late_writes_are_counted,
];

/// Leased work that is ready.
pub(super) fn queued(store: &dyn Store, id: &str) -> Entity {
    created(store, &new_queued(store, id))
}

fn queued_in(store: &dyn Store, id: &str, queue: &str, priority: i64) -> Entity {
    let mut new = new_queued(store, id);
    let place = new.entity.queued.as_mut().unwrap();
    queue.clone_into(&mut place.queue);
    place.priority = priority;
    created(store, &new)
}

pub(super) fn applied(store: &dyn Store, effects: &EffectSet) -> Entity {
    assert_eq!(store.apply(effects).unwrap(), Applied::Written);
    store.load(&effects.change.after.reference.id).unwrap().unwrap()
}

/// Leased work that `holder` has until then.
fn held(store: &dyn Store, id: &str, holder: &str, until: i64) -> Entity {
    let entity = queued(store, id);
    applied(store, &taking(store, &entity, holder, moment(until)))
}

fn ready(store: &dyn Store, queues: &[&str], limit: usize) -> Vec<String> {
    let query = ReadyQuery {
        queues: queues.iter().map(ToString::to_string).collect(),
        limit,
    };
    let found = store.ready(&query).unwrap();
    ids(&found).into_iter().map(str::to_owned).collect()
}

fn setup(name: &str, paused_at: Option<Timestamp>, limit: Option<i64>) -> QueueSetup {
    QueueSetup {
        name: name.to_owned(),
        paused_at,
        note: paused_at.map(|_| "enough".to_owned()),
        limit,
    }
}

fn set_up(store: &dyn Store, setup: &QueueSetup) {
    store
        .put_queue(setup, &admin_event("queue_set_up", &setup.name))
        .unwrap();
}

fn renewal(entity: &Entity, at: i64, until: i64) -> Renewal {
    Renewal {
        row: entity.row,
        fence: entity.fence,
        holder: entity.structural.leased_by.clone().unwrap(),
        until: moment(until),
        at: moment(at),
        late: None,
    }
}

fn renewed(store: &dyn Store, renewal: &Renewal) -> Renewed {
    let answers = store.renew(std::slice::from_ref(renewal)).unwrap();
    assert_eq!(answers.len(), 1);
    answers[0]
}

fn loaded(store: &dyn Store, entity: &Entity) -> Entity {
    store.load(&entity.reference.id).unwrap().unwrap()
}

fn queued_work_is_stored_whole_and_its_place_is_fixed(subject: &Subject) {
    let store = &*subject.store;
    let mut new = new_queued(store, "job");
    let place = new.entity.queued.as_mut().unwrap();
    (place.queue, place.priority) = ("night".to_owned(), i64::MIN);
    place.stage = Some(Stage::Waiting);
    let entity = created(store, &new);
    assert_eq!(entity.queued, new.entity.queued);
    assert_eq!(store.load("job").unwrap(), Some(entity.clone()));
    let mut moved = staged(store, &entity, Stage::Later, Some(moment(3)));
    let place = moved.change.after.queued.as_mut().unwrap();
    (place.queue, place.priority) = ("day".to_owned(), 7);
    let mut expected = new.entity.queued.clone().unwrap();
    for stage in [Some(Stage::Later), None] {
        moved.change.after.queued.as_mut().unwrap().stage = stage;
        expected.stage = stage;
        assert_eq!(applied(store, &moved).queued.as_ref(), Some(&expected));
        moved = change(store, &moved.change.after, "elsewhere");
    }
    let other = make(store, "no-job");
    let mut moved = change(store, &other, "queued");
    moved.change.after.queued = new.entity.queued;
    assert_eq!(applied(store, &moved).queued, None, "what is in no queue stays in none");
}

fn what_is_ready_comes_by_priority_and_then_by_age_whatever_its_queue(subject: &Subject) {
    let store = &*subject.store;
    assert_eq!(ready(store, &[], 9), [""; 0]);
    for (id, queue, priority) in [
        ("low", "day", -1),
        ("old", "night", 0),
        ("young", "day", 0),
        ("urgent", "night", 9),
        ("last", "day", -9),
        ("younger", "day", 0),
    ] {
        queued_in(store, id, queue, priority);
    }
    for stage in [Stage::Waiting, Stage::Later, Stage::Active, Stage::Doubted] {
        let entity = queued_in(store, stage.word(), "day", 99);
        applied(store, &staged(store, &entity, stage, None));
    }
    let ended = queued_in(store, "ended", "day", 99);
    end(store, &ended, Success::Yes);
    assert_eq!(
        ready(store, &[], 9),
        ["urgent", "old", "young", "younger", "low", "last"]
    );
    assert_eq!(ready(store, &[], 3), ["urgent", "old", "young"]);
    assert_eq!(ready(store, &[], 0), [""; 0]);
    assert_eq!(ready(store, &["day"], 9), ["young", "younger", "low", "last"]);
    assert_eq!(ready(store, &["day"], 1), ["young"]);
    assert_eq!(
        ready(store, &["night", "day", "night"], 4),
        ["urgent", "old", "young", "younger"]
    );
    assert_eq!(ready(store, &["nobody's"], 9), [""; 0]);
    let entity = store.load("old").unwrap().unwrap();
    applied(store, &taking(store, &entity, "w", moment(99)));
    assert_eq!(ready(store, &["night"], 9), ["urgent"]);
}

fn a_paused_queue_offers_nothing_and_admits_nobody(subject: &Subject) {
    let store = &*subject.store;
    let (here, there) = (
        queued_in(store, "here", "day", 0),
        queued_in(store, "there", "night", 0),
    );
    set_up(store, &setup("day", Some(moment(5)), Some(9)));
    assert_eq!(ready(store, &[], 9), ["there"]);
    assert_eq!(ready(store, &["day"], 9), [""; 0]);
    let mut taking_here = taking(store, &here, "w", moment(99));
    taking_here.change.key = key("k", "d");
    taking_here.change.admin = vec![admin_event("taken", "job/here")];
    assert_eq!(store.apply(&taking_here).unwrap(), Applied::NoRoom(NoRoom::Paused));
    assert_eq!(store.load("here").unwrap(), Some(here.clone()));
    assert_eq!(store.key_use(&here, "k").unwrap(), None);
    assert_eq!(store.admin_events(&AdminQuery::default()).unwrap().len(), 1);
    let mut elsewhere = taking_here.clone();
    "night".clone_into(&mut elsewhere.change.after.queued.as_mut().unwrap().queue);
    assert_eq!(
        store.apply(&elsewhere).unwrap(),
        Applied::NoRoom(NoRoom::Paused),
        "its queue is what was fixed at its creation"
    );
    applied(store, &taking(store, &there, "w", moment(99)));
    applied(store, &staged(store, &here, Stage::Later, None));
    set_up(store, &setup("day", None, Some(9)));
    applied(store, &staged(store, &loaded(store, &here), Stage::Ready, None));
    assert_eq!(ready(store, &[], 9), ["here"]);
    applied(store, &taking(store, &loaded(store, &here), "w", moment(99)));
}

fn a_full_queue_offers_nothing_and_admits_nobody(subject: &Subject) {
    let store = &*subject.store;
    let rows = ["one", "two", "three"].map(|id| queued_in(store, id, "day", 0));
    let elsewhere = queued_in(store, "elsewhere", "night", 0);
    applied(store, &taking(store, &elsewhere, "w", moment(50)));
    set_up(store, &setup("day", None, Some(2)));
    let taken = rows.each_ref().map(|row| taking(store, row, "w", moment(50)));
    let answers = store.apply_all(&taken).unwrap();
    let full = Applied::NoRoom(NoRoom::Full);
    assert_eq!(answers, [Applied::Written, Applied::Written, full.clone()]);
    assert_eq!(loaded(store, &rows[2]), rows[2]);
    assert_eq!(ready(store, &[], 9), [""; 0]);
    let doubted = staged(store, &loaded(store, &rows[0]), Stage::Doubted, Some(moment(60)));
    applied(store, &doubted);
    assert_eq!(store.apply(&taken[2]).unwrap(), full, "what is doubted is held");
    end(store, &loaded(store, &rows[0]), Success::No);
    assert_eq!(ready(store, &[], 9), ["three"]);
    applied(store, &taken[2]);
}

fn a_queue_offers_no_more_than_it_has_room_for(subject: &Subject) {
    let store = &*subject.store;
    for (id, queue, priority) in [("a", "day", 9), ("b", "day", 8), ("c", "day", 7), ("d", "night", 0)] {
        queued_in(store, id, queue, priority);
    }
    set_up(store, &setup("day", None, Some(2)));
    assert_eq!(ready(store, &[], 9), ["a", "b", "d"]);
    let entity = store.load("a").unwrap().unwrap();
    applied(store, &taking(store, &entity, "w", moment(50)));
    assert_eq!(ready(store, &[], 9), ["b", "d"]);
    set_up(store, &setup("day", None, Some(1)));
    assert_eq!(
        ready(store, &[], 9),
        ["d"],
        "a limit that was lowered stops nobody and admits nobody"
    );
    set_up(store, &setup("day", None, None));
    assert_eq!(ready(store, &[], 9), ["b", "c", "d"]);
}

fn what_is_held_already_needs_no_room(subject: &Subject) {
    let store = &*subject.store;
    let entity = held(store, "job", "w", 50);
    set_up(store, &setup("default", Some(moment(5)), Some(1)));
    let doubted = applied(store, &staged(store, &entity, Stage::Doubted, Some(moment(60))));
    let back = applied(store, &staged(store, &doubted, Stage::Active, None));
    applied(store, &staged(store, &back, Stage::Active, None));
}

fn of_two_claims_of_one_row_one_is_written(subject: &Subject) {
    const CALLERS: usize = 8;
    let store = &*subject.store;
    let entity = queued(store, "job");
    let barrier = Barrier::new(CALLERS);
    let winners: Vec<String> = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (barrier, entity) = (&barrier, &entity);
                scope.spawn(move || {
                    let holder = format!("w{caller}");
                    let claim = taking(store, entity, &holder, moment(50));
                    barrier.wait();
                    match store.apply_all(&[claim]).unwrap().remove(0) {
                        Applied::Written => Some(holder),
                        Applied::Lost(found) => {
                            assert_eq!(found.unwrap().fence, 1);
                            None
                        }
                        other => panic!("{other:?}"),
                    }
                })
            })
            .collect();
        let answers = callers.into_iter().map(|caller| caller.join().unwrap());
        answers.flatten().collect()
    });
    let now = loaded(store, &entity);
    assert_eq!(winners, Vec::from_iter(now.structural.leased_by));
    assert_eq!((now.version, now.fence), (2, 1));
}

fn changes_of_one_commit_come_out_each_by_itself(subject: &Subject) {
    let store = &*subject.store;
    assert_eq!(store.apply_all(&[]).unwrap(), []);
    let [one, two, three] = ["one", "two", "three"].map(|id| queued(store, id));
    let mut lost = taking(store, &two, "w", moment(50));
    lost.change.expected_version = 7;
    lost.change.admin = vec![admin_event("taken", "job/two")];
    let effects = [
        taking(store, &one, "w", moment(50)),
        lost,
        ending(store, &three, Success::Yes),
    ];
    let found = Some(Box::new(two.clone()));
    let expected = [Applied::Written, Applied::Lost(found), Applied::Written];
    let before = store.data_version().unwrap();
    assert_eq!(store.apply_all(&effects).unwrap(), expected);
    assert_ne!(store.data_version().unwrap(), before);
    assert_eq!(loaded(store, &two), two);
    assert_eq!(loaded(store, &one), effects[0].change.after);
    assert!(loaded(store, &three).terminal);
    assert_eq!(store.admin_events(&AdminQuery::default()).unwrap(), []);
    let twice = loaded(store, &one);
    let again = [
        staged(store, &twice, Stage::Doubted, None),
        staged(store, &twice, Stage::Ready, None),
    ];
    let answers = store.apply_all(&again).unwrap();
    assert_eq!(answers[0], Applied::Written);
    assert_eq!(answers[1], Applied::Lost(Some(Box::new(again[0].change.after.clone()))));
}

fn changes_of_which_one_cannot_be_stored_leave_nothing(subject: &Subject) {
    let store = &*subject.store;
    let rows = ["one", "two"].map(|id| queued(store, id));
    let mut effects = rows.each_ref().map(|row| taking(store, row, "w", moment(50)));
    "absent".clone_into(&mut effects[1].change.after.policy.digest);
    assert!(store.apply_all(&effects).is_err());
    assert_eq!(rows.each_ref().map(|row| loaded(store, row)), rows);
    assert_eq!(store.history(&HistoryQuery::default()).unwrap().len(), 2);
}

fn what_is_due_of_a_stage_comes_in_pages(subject: &Subject) {
    let store = &*subject.store;
    for (id, due) in [("c", Some(30)), ("a", Some(10)), ("b", Some(10)), ("never", None)] {
        let entity = queued(store, id);
        applied(store, &staged(store, &entity, Stage::Later, due.map(moment)));
    }
    held(store, "held", "w", 10);
    let page = |stage, before, after, limit| {
        let query = StagedQuery {
            stage,
            before: moment(before),
            after,
            limit,
        };
        store.staged_due(&query).unwrap()
    };
    let later = |before, after, limit| page(Stage::Later, before, after, limit);
    assert_eq!(ids(&later(99, None, 9)), ["a", "b", "c"]);
    assert_eq!(ids(&later(30, None, 9)), ["a", "b", "c"], "at its moment it is due");
    assert_eq!(ids(&later(29, None, 9)), ["a", "b"]);
    let mut walked = Vec::new();
    let mut after = None;
    while let Some(found) = later(99, after, 1).pop() {
        after = Some((found.due_at().unwrap(), found.row));
        walked.push(found.reference.id);
    }
    assert_eq!(walked, ["a", "b", "c"]);
    assert_eq!(ids(&later(99, None, 0)), [""; 0]);
    assert_eq!(
        ids(&page(Stage::Active, 10, None, 9)),
        ["held"],
        "a lease is due at its end"
    );
    assert_eq!(ids(&page(Stage::Active, 9, None, 9)), [""; 0]);
    assert_eq!(ids(&page(Stage::Waiting, 99, None, 9)), [""; 0]);
    end(store, &store.load("a").unwrap().unwrap(), Success::No);
    assert_eq!(ids(&later(10, None, 9)), ["b"]);
}

fn the_next_moment_of_a_stage_is_the_earliest(subject: &Subject) {
    let store = &*subject.store;
    assert_eq!(store.next_staged_due(Stage::Later).unwrap(), None);
    for (id, due) in [("b", Some(20)), ("a", Some(10)), ("never", None)] {
        let entity = queued(store, id);
        applied(store, &staged(store, &entity, Stage::Later, due.map(moment)));
    }
    held(store, "held", "w", 5);
    assert_eq!(store.next_staged_due(Stage::Later).unwrap(), Some(moment(10)));
    assert_eq!(store.next_staged_due(Stage::Active).unwrap(), Some(moment(5)));
    assert_eq!(store.next_staged_due(Stage::Doubted).unwrap(), None);
}

fn a_renewal_extends_a_lease_up_to_its_very_end(subject: &Subject) {
    let store = &*subject.store;
    let entity = held(store, "job", "w", 50);
    let told = store.history(&HistoryQuery::default()).unwrap();
    assert_eq!(renewed(store, &renewal(&entity, 50, 80)), Renewed::Extended);
    let now = loaded(store, &entity);
    let mut expected = entity.clone();
    expected.version += 1;
    expected.structural.lease_expires_at = Some(moment(80));
    assert_eq!(now, expected);
    assert_eq!(store.history(&HistoryQuery::default()).unwrap(), told);
    assert_eq!(store.next_staged_due(Stage::Active).unwrap(), Some(moment(80)));
    assert_eq!(renewed(store, &renewal(&entity, 60, 70)), Renewed::Extended);
    let now = loaded(store, &entity);
    assert_eq!(now.structural.lease_expires_at, Some(moment(80)), "it gets no shorter");
    assert_eq!(store.next_staged_due(Stage::Active).unwrap(), Some(moment(80)));
}

fn a_renewal_of_what_is_not_the_holders_any_more_is_lost(subject: &Subject) {
    let store = &*subject.store;
    let entity = held(store, "job", "w", 50);
    let good = renewal(&entity, 40, 80);
    let stale = [
        Renewal {
            fence: good.fence + 1,
            ..good.clone()
        },
        Renewal {
            fence: good.fence - 1,
            ..good.clone()
        },
        Renewal {
            holder: "v".to_owned(),
            ..good.clone()
        },
        Renewal {
            row: good.row + 1,
            ..good.clone()
        },
    ];
    for renewal in stale {
        assert_eq!(renewed(store, &renewal), Renewed::Lost, "{renewal:?}");
        assert_eq!(loaded(store, &entity), entity);
    }
    // Columns stay for the record when it has ended, or waits again: its stage says that nobody holds it.
    let waits = applied(store, &staged(store, &entity, Stage::Ready, None));
    assert_eq!(waits.structural.leased_by.as_deref(), Some("w"));
    assert_eq!(renewed(store, &good), Renewed::Lost);
    let again = applied(store, &staged(store, &waits, Stage::Active, None));
    assert_eq!(renewed(store, &good), Renewed::Extended);
    end(store, &loaded(store, &again), Success::Yes);
    let ended = loaded(store, &again);
    assert_eq!(renewed(store, &good), Renewed::Lost);
    assert_eq!(loaded(store, &entity), ended);
    forget(store, "job");
    assert_eq!(renewed(store, &good), Renewed::Lost);
}

fn a_renewal_of_a_lease_that_ran_out_or_is_doubted_extends_nothing(subject: &Subject) {
    let store = &*subject.store;
    let entity = held(store, "job", "w", 50);
    assert_eq!(renewed(store, &renewal(&entity, 51, 99)), Renewed::RanOut);
    assert_eq!(loaded(store, &entity), entity);
    let doubted = applied(store, &staged(store, &entity, Stage::Doubted, Some(moment(70))));
    let mut good = renewal(&doubted, 40, 99);
    assert_eq!(renewed(store, &good), Renewed::RanOut);
    assert_eq!(loaded(store, &entity), doubted);
    good.fence += 1;
    assert_eq!(renewed(store, &good), Renewed::Lost);
    good = renewal(&doubted, 40, 99);
    "v".clone_into(&mut good.holder);
    assert_eq!(renewed(store, &good), Renewed::Lost);
}

fn a_renewal_makes_whoever_judged_the_old_end_lose(subject: &Subject) {
    let store = &*subject.store;
    let entity = held(store, "job", "w", 50);
    let lapse = staged(store, &entity, Stage::Doubted, Some(moment(70)));
    assert_eq!(renewed(store, &renewal(&entity, 50, 80)), Renewed::Extended);
    let found = loaded(store, &entity);
    assert_eq!(
        store.apply(&lapse).unwrap(),
        Applied::Lost(Some(Box::new(found.clone())))
    );
    applied(store, &staged(store, &found, Stage::Doubted, Some(moment(90))));
}

fn renewals_are_answered_in_their_order(subject: &Subject) {
    let store = &*subject.store;
    assert_eq!(store.renew(&[]).unwrap(), []);
    let one = held(store, "one", "w", 50);
    let two = held(store, "two", "v", 50);
    let doubted = held(store, "three", "w", 50);
    applied(store, &staged(store, &doubted, Stage::Doubted, None));
    let mut lost = renewal(&two, 40, 80);
    lost.fence = 7;
    let all = [
        lost,
        renewal(&one, 40, 80),
        renewal(&doubted, 40, 80),
        renewal(&two, 40, 90),
    ];
    let expected = [Renewed::Lost, Renewed::Extended, Renewed::RanOut, Renewed::Extended];
    assert_eq!(store.renew(&all).unwrap(), expected);
    let ends = [&one, &two].map(|row| loaded(store, row).structural.lease_expires_at);
    assert_eq!(ends, [Some(moment(80)), Some(moment(90))]);
}

fn delays_of_renewals_are_counted_by_their_upper_limits(subject: &Subject) {
    let store = &*subject.store;
    let none = store.renewal_delays().unwrap().counts;
    let limits: Vec<Option<i64>> = RENEWAL_DELAY_LIMITS.into_iter().map(Some).chain([None]).collect();
    assert_eq!(none.iter().map(|(limit, _)| *limit).collect::<Vec<_>>(), limits);
    assert!(none.iter().all(|(_, count)| *count == 0));
    let entity = held(store, "job", "w", 50);
    let late = |ms| Renewal {
        late: Some(DurationMs::from_ms(ms)),
        ..renewal(&entity, 40, 80)
    };
    store
        .renew(&[late(0), late(5), late(6), renewal(&entity, 40, 80)])
        .unwrap();
    store.renew(&[late(300_000), late(300_001)]).unwrap();
    let RenewalDelays {
        counts: counted,
        total_ms,
    } = store.renewal_delays().unwrap();
    let counts: Vec<u64> = counted.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    assert_eq!(total_ms, 600_012);
}

fn a_run_is_made_only_for_a_lease_that_is_current(subject: &Subject) {
    let store = &*subject.store;
    let row = held(store, "job", "w", 50);
    let lease = HeldLease {
        reference: row.reference.clone(),
        fence: row.fence,
        holder: "w".to_owned(),
        attempt: 1,
    };
    let start = |id: &str, lease: &HeldLease| {
        let mut new = new_entity(store, "run", id);
        new.parents = vec![row.reference.clone()];
        let mut run = new_run(&new.entity.reference);
        run.lease = Some(lease.clone());
        store.create(&new, Some(&run)).unwrap()
    };
    let stale = [
        HeldLease {
            fence: 0,
            ..lease.clone()
        },
        HeldLease {
            fence: 2,
            ..lease.clone()
        },
        HeldLease {
            holder: "v".to_owned(),
            ..lease.clone()
        },
        HeldLease {
            reference: crate::model::Reference::new("run", "job"),
            ..lease.clone()
        },
        HeldLease {
            reference: crate::model::Reference::new("job", "nobody"),
            ..lease.clone()
        },
    ];
    for lease in stale {
        assert_eq!(start("run", &lease), Created::LeaseLost, "{lease:?}");
    }
    assert_eq!(store.load("run").unwrap(), None);
    assert!(matches!(
        start("run", &lease),
        Created::New {
            runtime_id: Some(_),
            ..
        }
    ));
    let doubted = applied(store, &staged(store, &row, Stage::Doubted, Some(moment(70))));
    assert_eq!(
        start("other", &lease),
        Created::LeaseLost,
        "its holder comes back first"
    );
    let back = applied(store, &staged(store, &doubted, Stage::Active, None));
    assert!(matches!(start("other", &lease), Created::New { .. }));
    end(store, &back, Success::Yes);
    assert_eq!(
        start("third", &lease),
        Created::LeaseLost,
        "before its parent is closed"
    );
}

fn queues_are_those_that_were_set_up_and_those_with_work(subject: &Subject) {
    let store = &*subject.store;
    assert_eq!(store.queues().unwrap(), []);
    let idle = setup("idle", Some(moment(7)), Some(3));
    set_up(store, &idle);
    let rows = ["a", "b", "c", "d", "e", "f"].map(|id| queued_in(store, id, "busy", 0));
    applied(store, &taking(store, &rows[0], "w", moment(80)));
    applied(store, &taking(store, &rows[1], "w", moment(60)));
    for (row, since) in [(2, 55), (5, 56)] {
        let mut doubt = staged(store, &rows[row], Stage::Doubted, Some(moment(90)));
        doubt.change.after.structural.unknown_since = Some(moment(since));
        applied(store, &doubt);
    }
    let mut back = staged(store, &rows[3], Stage::Ready, None);
    back.change.after.updated_at = moment(44);
    applied(store, &back);
    end(store, &queued_in(store, "gone", "ended", 0), Success::Yes);
    let busy = QueueState {
        setup: setup("busy", None, None),
        counts: vec![(Stage::Ready, 2), (Stage::Active, 2), (Stage::Doubted, 2)],
        ready_since: Some(moment(10)),
        doubted_since: Some(moment(55)),
        lease_ends_first: Some(moment(60)),
    };
    let idle = QueueState {
        setup: idle,
        ..QueueState::default()
    };
    assert_eq!(store.queues().unwrap(), [busy, idle]);
    let changed = setup("idle", None, None);
    set_up(store, &changed);
    assert_eq!(store.queues().unwrap()[1].setup, changed);
    let told: Vec<String> = store
        .admin_events(&AdminQuery::default())
        .unwrap()
        .into_iter()
        .map(|event| event.action)
        .collect();
    assert_eq!(told, ["queue_set_up", "queue_set_up"]);
    let _ = run(store, "no-queue");
    assert_eq!(store.queues().unwrap().len(), 2);
}

fn workers_are_kept_until_they_are_taken_away(subject: &Subject) {
    let store = &*subject.store;
    let [one, mut two, three] = ["one", "two", "three"].map(worker);
    for worker in [&one, &two, &three] {
        store.put_worker(worker).unwrap();
    }
    assert_eq!(store.workers().unwrap(), [one.clone(), two.clone(), three.clone()]);
    (two.heartbeat_at, two.queues, two.slots) = (moment(9), Vec::new(), 7);
    store.put_worker(&two).unwrap();
    assert_eq!(store.worker("two").unwrap().as_ref(), Some(&two));
    assert_eq!(store.workers().unwrap(), [one.clone(), two.clone(), three.clone()]);
    let stopped = |worker: &Worker, at| Worker {
        stopped_at: Some(moment(at)),
        ..worker.clone()
    };
    let two = stopped(&two, 30);
    store.put_worker(&two).unwrap();
    store.put_worker(&stopped(&three, 31)).unwrap();
    assert_eq!(store.workers().unwrap(), std::slice::from_ref(&one));
    assert_eq!(store.worker("two").unwrap(), Some(two));
    store.put_worker(&stopped(&worker("four"), 30)).unwrap();
    let row = held(store, "job", "two", 50);
    let doubted = applied(store, &staged(store, &row, Stage::Doubted, None));
    assert_eq!(store.forget_workers(moment(31)).unwrap(), 1);
    assert_eq!(store.worker("four").unwrap(), None);
    assert!(store.worker("two").unwrap().is_some(), "a row that is held names it");
    end(store, &doubted, Success::No);
    assert_eq!(store.forget_workers(moment(31)).unwrap(), 1);
    assert_eq!(store.worker("two").unwrap(), None);
    assert!(store.worker("three").unwrap().is_some());
    assert_eq!(store.forget_workers(moment(99)).unwrap(), 1);
    assert_eq!(store.worker("three").unwrap(), None);
    assert_eq!(store.workers().unwrap(), [one]);
}

fn the_first_offset_of_a_boot_is_kept(subject: &Subject) {
    let store = &*subject.store;
    let boot = |boot_id: &str, time_namespace| Boot {
        boot_id: boot_id.to_owned(),
        time_namespace,
    };
    assert_eq!(store.steady_offset(&boot("b", 0)).unwrap(), None);
    assert_eq!(store.keep_steady_offset(&boot("b", 0), -5).unwrap(), -5);
    assert_eq!(store.keep_steady_offset(&boot("b", 0), 9).unwrap(), -5);
    assert_eq!(store.keep_steady_offset(&boot("b", 1), 9).unwrap(), 9);
    assert_eq!(store.keep_steady_offset(&boot("c", 0), 8).unwrap(), 8);
    let kept = [boot("b", 0), boot("b", 1), boot("c", 0), boot("c", 1)].map(|boot| store.steady_offset(&boot).unwrap());
    assert_eq!(kept, [Some(-5), Some(9), Some(8), None]);
}

fn late_writes_are_counted(subject: &Subject) {
    let store = &*subject.store;
    assert_eq!(store.late_writes().unwrap(), 0);
    let events = [LATE_WRITE, "noted", LATE_WRITE].map(|action| admin_event(action, "job/a"));
    store.record(&events, &[]).unwrap();
    assert_eq!(store.late_writes().unwrap(), 2);
}

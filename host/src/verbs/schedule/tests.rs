//! Schedules against a store, with a clock that the test sets.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use super::*;
use crate::clock::Clock;
use crate::error::Error;
use crate::host::{Config, Host};
use crate::model::schedule::{Cadence, Missed, Overlap};
use crate::model::{Actor, Bytes, DurationMs, Entity, Outcome, Reason, Stage, Tags, Timestamp, Transition};
use crate::policy::Limits;
use crate::store::{EntityQuery, FaultyStore, MemoryStore, PlannedFault, Store, StoreError, When};
use crate::verbs::{TransitionOutcome, transition};
use crate::work::{QueueTerms, Work};

const HOUR: i64 = 3_600_000;

/// A home with a clock of its own, which stands at the hour.
struct Bench {
    host: Host,
    clock: Arc<AtomicI64>,
    home: tempfile::TempDir,
}

fn config(home: &Path, clock: &Arc<AtomicI64>) -> Config {
    Config {
        home: home.to_owned(),
        database: None,
        limits: Limits::DEFAULT,
        clock: Clock::Set(Arc::clone(clock)),
        compiler: None,
        program: Path::new("/nonexistent").to_owned(),
        shim: &[],
        variable: |_| None,
    }
}

impl Bench {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicI64::new(472_000 * HOUR));
        let host = Host::create(config(home.path(), &clock)).unwrap();
        Self { host, clock, home }
    }

    fn wait(&self, ms: i64) {
        self.clock.fetch_add(ms, Ordering::Relaxed);
    }

    /// Another process at the same store, whose clock is so far ahead.
    fn other(&self, ahead_ms: i64) -> Host {
        let clock = Arc::new(AtomicI64::new(self.clock.load(Ordering::Relaxed) + ahead_ms));
        Host::create(config(self.home.path(), &clock)).unwrap()
    }

    /// An hourly schedule.
    fn hourly(&self, name: &str, overlap: Overlap, missed: Missed) {
        let new = schedule(name, overlap, missed);
        assert!(add(&self.host, new, &tester()).unwrap().is_some());
    }

    fn fire(&self) -> FiredNow {
        fire_due(&self.host).unwrap()
    }

    /// What was made, oldest first, as the status and reason of each.
    fn made(&self) -> Vec<String> {
        made(self.host.store())
    }

    /// Ends what the newest fire time but `back` made.
    fn end(&self, name: &str, back: usize) {
        let entity = self
            .host
            .store()
            .occurrences(name, back + 1)
            .unwrap()
            .remove(back)
            .entity;
        let cancelled = Transition::new("cancelled", Reason::code("run.cancelled.manual_kill"), tester());
        let outcome = transition(&self.host, &entity, &cancelled).unwrap();
        assert!(matches!(outcome, TransitionOutcome::Applied { .. }), "{outcome:?}");
    }
}

fn made(store: &dyn Store) -> Vec<String> {
    let mut entities = store.list(&EntityQuery::default()).unwrap();
    entities.reverse();
    let word = |entity: Entity| format!("{} {}", entity.status, entity.reason.code);
    entities.into_iter().map(word).collect()
}

fn tester() -> Actor {
    Actor::new("operator", "tests")
}

fn schedule(name: &str, overlap: Overlap, missed: Missed) -> NewSchedule {
    let skipped = |code: &str| Outcome {
        status: "skipped".to_owned(),
        code: code.to_owned(),
    };
    let mut work = Work::new(vec![Bytes::from("true")], Bytes::from("/"));
    work.queue = Some(QueueTerms {
        run_kind: "session".to_owned(),
        lease_ms: None,
        attempts: None,
        not_before: None,
    });
    NewSchedule {
        name: name.to_owned(),
        cadence: Cadence::Every(DurationMs::from_ms(HOUR)),
        overlap,
        missed,
        submitted: Submitted {
            kind: "schedule_run".to_owned(),
            policy: None,
            name: None,
            tags: Tags::new(),
            parents: Vec::new(),
            notify: serde_json::Value::Null,
            queue: "default".to_owned(),
            priority: 0,
            unique_key: None,
            work,
            words: Words {
                due: "schedule.fired.due".to_owned(),
                overlaps: skipped("schedule.skipped.overlap"),
                missed: skipped("schedule.skipped.missed_fire"),
                refused: skipped("schedule.skipped.precondition"),
            },
        },
    }
}

const DUE: &str = "queued schedule.fired.due";
const OVERLAP: &str = "skipped schedule.skipped.overlap";
const MISSED: &str = "skipped schedule.skipped.missed_fire";

#[test]
fn a_fire_time_makes_work_that_a_worker_may_take() {
    let bench = Bench::new();
    bench.hourly("nightly", Overlap::Skip, Missed::One);
    assert_eq!(bench.fire(), FiredNow::default(), "nothing is due yet");
    bench.wait(HOUR);
    assert_eq!((bench.fire().submitted, bench.made()), (1, vec![DUE.to_owned()]));
    assert_eq!(bench.fire(), FiredNow::default(), "it was dealt with");
    let entity = bench.host.store().occurrences("nightly", 1).unwrap().remove(0).entity;
    assert_eq!(entity.queued.as_ref().unwrap().stage, Some(Stage::Ready));
    assert_eq!(entity.name.as_deref(), Some("nightly"));
    assert_eq!(
        entity.tags,
        BTreeMap::from([(SCHEDULE_TAG.to_owned(), "nightly".to_owned())])
    );
    let work = bench.host.store().work(&entity).unwrap().unwrap().0;
    assert_eq!(
        (&work["argv"][0], &work["queue"]["run_kind"]),
        (&"true".into(), &"session".into())
    );
    let evidence = &entity.reason.evidence[0];
    assert_eq!(
        (&evidence["schedule"], &evidence["late_ms"]),
        (&"nightly".into(), &0.into())
    );
}

/// Nobody looked for six and a half hours: how many are started, and how many the record of what is not counts.
fn after_an_absence(missed: Missed, started: usize, counted: u64) {
    let bench = Bench::new();
    bench.hourly("nightly", Overlap::Allow, missed);
    bench.wait(6 * HOUR + HOUR / 2);
    let fired = bench.fire();
    let word = missed.word();
    assert_eq!(
        (fired.submitted, fired.skipped),
        (started, usize::from(counted > 0)),
        "{word}"
    );
    let count = |wanted: &str| bench.made().iter().filter(|word| *word == wanted).count();
    assert_eq!(
        (count(DUE), count(MISSED)),
        (started, usize::from(counted > 0)),
        "{word}"
    );
    let occurrences = bench.host.store().occurrences("nightly", 9).unwrap();
    let lapse = occurrences.iter().find(|occurrence| occurrence.entity.terminal);
    let told = lapse.map_or(0, |lapse| lapse.entity.reason.evidence[0]["count"].as_u64().unwrap());
    assert_eq!(told, counted, "{word}");
    assert_eq!(bench.fire(), FiredNow::default(), "{word}: it is dealt with");
    bench.wait(HOUR / 2);
    assert_eq!(bench.fire().submitted, 1, "{word}: it goes on");
}

/// bugs-queues row 50.
#[test]
fn what_was_missed_in_six_hours_is_started_or_counted_as_each_policy_says() {
    after_an_absence(Missed::Skip, 0, 6);
    after_an_absence(Missed::One, 1, 5);
    after_an_absence(Missed::All, 6, 0);
}

/// bugs-queues row 52.
#[test]
fn two_schedulers_whose_clocks_are_five_seconds_apart_make_one_run() {
    let bench = Bench::new();
    bench.hourly("nightly", Overlap::Allow, Missed::One);
    bench.wait(HOUR - 5_000);
    let ahead = bench.other(5_000);
    assert_eq!(fire_due(&ahead).unwrap().submitted, 1, "for the one it is time");
    assert_eq!(bench.fire(), FiredNow::default());
    bench.wait(5_000);
    assert_eq!(bench.fire(), FiredNow::default(), "for the other it is done");
    assert_eq!(bench.made(), [DUE]);
}

/// bugs-queues row 38.
#[test]
fn a_hundred_schedules_of_one_second_fire_once_each_whoever_fires() {
    let bench = Bench::new();
    for number in 0..100 {
        bench.hourly(&format!("schedule-{number}"), Overlap::Skip, Missed::One);
    }
    bench.wait(HOUR);
    let hosts = [bench.other(0), bench.other(0), bench.other(1_000)];
    let start = Barrier::new(hosts.len());
    let submitted: usize = thread::scope(|scope| {
        let fire = |host| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                let fired = fire_due(host).unwrap();
                assert_eq!(fired.problems, [""; 0]);
                fired.submitted
            })
        };
        let threads: Vec<_> = hosts.iter().map(fire).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((submitted, bench.made()), (100, vec![DUE.to_owned(); 100]));
}

/// bugs-queues row 26.
#[test]
fn a_schedule_stays_where_it_is_when_its_work_cannot_be_inserted() {
    for when in [When::Before, When::After] {
        let clock = Arc::new(AtomicI64::new(472_000 * HOUR));
        let home = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultyStore::new(MemoryStore::named("faulty01")));
        let inner: Arc<dyn Store> = Arc::<FaultyStore<MemoryStore>>::clone(&store);
        let host = Host::with_store(config(home.path(), &clock), inner);
        host.ensure_bundled().unwrap();
        add(&host, schedule("nightly", Overlap::Allow, Missed::One), &tester()).unwrap();
        clock.fetch_add(HOUR, Ordering::Relaxed);
        let before = crate::store::Schedules::schedules(store.inner(), None).unwrap();
        let calls = store.calls();
        fire_due(&host).unwrap();
        let of_a_pass = store.calls() - calls;
        assert_eq!(made(store.inner()), [DUE]);
        // The insert is the last call of a pass that fires one.
        clock.fetch_add(HOUR, Ordering::Relaxed);
        store.plan(PlannedFault {
            call: store.calls() + of_a_pass,
            when,
            error: || StoreError::Busy { waited_ms: 0 },
        });
        let failed = fire_due(&host);
        assert!(
            matches!(failed, Err(Error::Store(StoreError::Busy { .. }))),
            "{when:?}: {failed:?}"
        );
        let moved = crate::store::Schedules::schedules(store.inner(), None).unwrap() != before;
        assert!(moved, "the first pass moved it on");
        let expected = if when == When::Before { 1 } else { 2 };
        assert_eq!(made(store.inner()).len(), expected, "{when:?}");
        fire_due(&host).unwrap();
        assert_eq!(
            made(store.inner()),
            [DUE, DUE],
            "{when:?}: once, whenever the answer was lost"
        );
    }
}

#[test]
fn what_would_overlap_is_skipped_until_the_one_before_has_ended() {
    let bench = Bench::new();
    bench.hourly("nightly", Overlap::Skip, Missed::One);
    for expected in [vec![DUE], vec![DUE, OVERLAP], vec![DUE, OVERLAP, OVERLAP]] {
        bench.wait(HOUR);
        bench.fire();
        assert_eq!(bench.made(), expected);
    }
    let skipped = bench.host.store().occurrences("nightly", 1).unwrap().remove(0).entity;
    assert_eq!(skipped.reason.evidence[0]["running"].as_array().unwrap().len(), 1);
    bench.end("nightly", 2);
    bench.wait(HOUR);
    assert_eq!(bench.fire().submitted, 1);
}

#[test]
fn what_overlaps_waits_for_all_before_it_whatever_their_end() {
    let bench = Bench::new();
    bench.hourly("nightly", Overlap::Queue, Missed::One);
    for _ in 0..3 {
        bench.wait(HOUR);
        assert_eq!(bench.fire().submitted, 1);
    }
    let store = bench.host.store();
    let newest = || store.occurrences("nightly", 1).unwrap().remove(0).entity;
    let open = || {
        let dependencies = store.dependencies(&newest()).unwrap();
        dependencies
            .into_iter()
            .map(|dependency| dependency.ended)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        newest().queued.unwrap().stage,
        Some(Stage::Waiting),
        "nobody may take it"
    );
    assert_eq!(open(), [None, None]);
    // The second is killed while it waits: the third still waits for the first.
    bench.end("nightly", 1);
    assert_eq!(open(), [None, Some(true)]);
    bench.end("nightly", 2);
    assert_eq!(open(), [Some(true), Some(true)]);
    let keeping = crate::verbs::lease::Keeping {
        grace: None,
        act: crate::verbs::repair::Act::Do,
    };
    crate::verbs::lease::keep(&bench.host, keeping).unwrap();
    assert_eq!(newest().queued.unwrap().stage, Some(Stage::Ready), "now it is its turn");
}

#[test]
fn what_holds_the_unique_key_is_overlapped_whatever_the_schedule_says() {
    let bench = Bench::new();
    let mut keyed = schedule("nightly", Overlap::Allow, Missed::One);
    keyed.submitted.unique_key = Some("backup".to_owned());
    assert!(add(&bench.host, keyed, &tester()).unwrap().is_some());
    for expected in [vec![DUE], vec![DUE, OVERLAP]] {
        bench.wait(HOUR);
        bench.fire();
        assert_eq!(bench.made(), expected);
    }
}

#[test]
fn what_comes_due_in_a_pause_is_neither_started_nor_recorded() {
    let bench = Bench::new();
    bench.hourly("nightly", Overlap::Allow, Missed::All);
    let store = bench.host.store();
    assert!(pause(&bench.host, "nightly", &tester()).unwrap());
    assert!(!pause(&bench.host, "nightly", &tester()).unwrap());
    bench.wait(6 * HOUR + HOUR / 2);
    assert_eq!((bench.fire(), store.next_fire().unwrap()), (FiredNow::default(), None));
    assert!(resume(&bench.host, "nightly", &tester()).unwrap());
    assert_eq!(bench.fire(), FiredNow::default());
    let next = store.next_fire().unwrap();
    assert_eq!(
        next,
        Some(Timestamp::from_ms(472_007 * HOUR)),
        "on the grid of its creation"
    );
    bench.wait(HOUR / 2);
    assert_eq!((bench.fire().submitted, bench.made()), (1, vec![DUE.to_owned()]));
}

#[test]
fn a_schedule_that_cannot_be_fired_keeps_no_other_back() {
    let bench = Bench::new();
    bench.hourly("first", Overlap::Allow, Missed::One);
    let mut lost = schedule("lost", Overlap::Allow, Missed::One);
    lost.submitted.policy = Some("schedule_run@9.9.9".to_owned());
    let refused = add(&bench.host, lost, &tester());
    assert!(
        matches!(refused, Err(Error::UnknownPolicy { .. })),
        "it is judged when it is added"
    );
    let mut broken = crate::store::KeptSchedule {
        schedule: bench.host.store().schedules(Some("first")).unwrap().remove(0).schedule,
        submission: schedule("", Overlap::Allow, Missed::One).submitted.stored(),
        actor: "operator:tests".to_owned(),
    };
    broken.schedule.name = "broken".to_owned();
    broken.schedule.cadence = Cadence::Cron {
        expression: "0 * * * *".to_owned(),
        zone: "Europe/Atlantis".to_owned(),
    };
    let event = crate::store::samples::admin_event("schedule_added", "broken");
    assert!(bench.host.store().add_schedule(&broken, &event).unwrap());
    bench.wait(HOUR);
    let fired = bench.fire();
    assert_eq!(fired.submitted, 1);
    assert!(
        matches!(fired.problems.as_slice(), [problem] if problem.contains("broken") && problem.contains("Atlantis")),
        "{:?}",
        fired.problems
    );
    let view = look(&bench.host, "broken", (5, 5)).unwrap();
    assert!(view.problem.unwrap().contains("Atlantis") && view.upcoming.is_empty());
}

#[test]
fn what_belongs_below_something_that_has_ended_is_skipped() {
    let bench = Bench::new();
    let parent = crate::model::Create::new("play", "opening", tester());
    let parent = crate::verbs::create(&bench.host, &parent, crate::verbs::IdChoice::Given, None).unwrap();
    let mut below = schedule("below", Overlap::Skip, Missed::One);
    below.submitted.parents = vec![parent.entity.reference.clone()];
    assert!(add(&bench.host, below, &tester()).unwrap().is_some());
    bench.wait(HOUR);
    assert_eq!(bench.fire().submitted, 1);
    bench.end("below", 0);
    let merged = Transition::new("merged", Reason::code("play.merged.ok"), tester());
    transition(&bench.host, &parent.entity, &merged).unwrap();
    bench.wait(HOUR);
    assert_eq!(bench.fire().skipped, 1);
    let made = bench.made();
    assert_eq!(made.last().unwrap(), "skipped schedule.skipped.precondition");
}

#[test]
fn a_name_is_taken_once_and_a_word_that_the_policy_does_not_know_is_refused() {
    let bench = Bench::new();
    bench.hourly("nightly", Overlap::Skip, Missed::One);
    assert!(
        add(&bench.host, schedule("nightly", Overlap::Skip, Missed::One), &tester())
            .unwrap()
            .is_none()
    );
    let named = add(
        &bench.host,
        schedule("no such name", Overlap::Skip, Missed::One),
        &tester(),
    );
    assert!(matches!(named, Err(Error::Invalid(invalid)) if invalid.code == "name"));
    let mut unknown = schedule("other", Overlap::Skip, Missed::One);
    unknown.submitted.words.overlaps.status = "passed_over".to_owned();
    let unknown = add(&bench.host, unknown, &tester());
    assert!(matches!(unknown, Err(Error::Invalid(invalid)) if invalid.code == "status"));
    remove(&bench.host, "nightly", &tester()).unwrap();
    assert!(matches!(
        remove(&bench.host, "nightly", &tester()),
        Err(Error::NotFound { .. })
    ));
    bench.hourly("nightly", Overlap::Skip, Missed::One);
}

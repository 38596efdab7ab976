//! Every call that a step of leased work makes of its store fails once, before and after its work: the row is whole,
//! nothing of it is lost, and whoever goes on comes to the same end.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;

use super::claim::{Taken, claim};
use super::keep::{Keeping, keep};
use super::start::{Started, start};
use super::submit::{Submission, submit};
use super::terms::Row;
use crate::clock::Clock;
use crate::error::Error;
use crate::host::{Config, Host};
use crate::model::lease::handed_back;
use crate::model::{Actor, Bytes, Create, Entity, QUEUE_DEFAULT, Reference, Stage};
use crate::policy::Limits;
use crate::store::samples::new_runtime;
use crate::store::{
    EntityQuery, FaultyStore, HistoryQuery, MemoryStore, NewRun, PlannedFault, Store, StoreError, When,
    Work as StoredWork,
};
use crate::verbs::create::{IdChoice, create, make, policy_for};
use crate::verbs::repair::Act;
use crate::verbs::settle::settle;
use crate::verbs::transition::{Beside, write};
use crate::work::{QueueTerms, Work};

/// Longer than any lease, grace or delay.
const LONG_MS: i64 = 3_600_000;

/// More often than this nobody has to go on until all is well.
const ROUNDS_MAX: usize = 3;

/// How each bench is prepared, and what is done to it.
type Step = fn(&Bench) -> Result<(), Error>;

/// A host over a store whose calls fail when told to, and one row in it.
pub(super) struct Bench {
    pub(super) host: Host,
    pub(super) store: Arc<FaultyStore<MemoryStore>>,
    policy: &'static str,
    _home: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new(policy: &'static str) -> Self {
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
        let store = Arc::new(FaultyStore::new(MemoryStore::named("faulty02")));
        let inner: Arc<dyn Store> = Arc::<FaultyStore<MemoryStore>>::clone(&store);
        let host = Host::with_store(config, inner);
        host.ensure_bundled().unwrap();
        create(&host, &Create::new("session", "first", tester()), IdChoice::Given, None).unwrap();
        Self {
            host,
            store,
            policy,
            _home: home,
        }
    }

    /// As long as anything takes passes.
    pub(super) fn wait(&self) {
        let Clock::Set(clock) = &self.host.config().clock else {
            unreachable!("the clock is set");
        };
        clock.fetch_add(LONG_MS, Ordering::Relaxed);
    }

    fn keep(&self) -> Result<(), Error> {
        let keeping = Keeping {
            grace: None,
            act: Act::Do,
        };
        let failures = keep(&self.host, keeping)?.into_iter().filter_map(|kept| kept.failure);
        failures.map(Err).next().unwrap_or(Ok(()))
    }

    /// Whoever keeps the queue comes by as often as a row needs it.
    fn keep_on(&self) -> Result<(), Error> {
        for _ in 0..3 {
            self.wait();
            self.keep()?;
        }
        Ok(())
    }

    pub(super) fn submit(&self, attempts: i64, after: &[&str]) -> Result<(), Error> {
        let mut create = Create::new("schedule_run", "row", tester());
        create.idempotency_key = Some("k".to_owned());
        let mut work = Work::new(vec![Bytes::from("true")], Bytes::from("/"));
        work.queue = Some(QueueTerms {
            run_kind: "session".to_owned(),
            lease_ms: None,
            attempts: Some(attempts),
            not_before: None,
        });
        let submission = Submission {
            create,
            id: IdChoice::Given,
            policy: Some(self.policy.to_owned()),
            work,
            queue: QUEUE_DEFAULT.to_owned(),
            priority: 0,
            after: after.iter().map(|id| Reference::new("session", id)).collect(),
            not_before: None,
            unique_key: None,
        };
        submit(&self.host, submission).map(drop)
    }

    pub(super) fn claim(&self) -> Result<Option<Taken>, Error> {
        let now = self.host.steady_now()?;
        Ok(claim(&self.host, ("worker", now), &[], 1)?.pop())
    }

    /// A row that is held, and whose run has left its exit record.
    fn ended_run(&self) -> Result<(), Error> {
        self.submit(1, &[])?;
        let taken = self.claim()?.unwrap();
        let mut work = taken.row.work.clone();
        work.queue = None;
        work.lease = Some(taken.lease.clone());
        let directory = self.host.run_dir("run");
        let mut asked = Create::new("session", "run", tester());
        asked.parents = vec![taken.row.entity.reference.clone()];
        let selected = policy_for(&self.host, "session", None)?;
        make(&self.host, &asked, IdChoice::Given, &selected, |new| {
            let mut runtime = new_runtime(&new.entity.reference);
            runtime.attempt_token = "t".to_owned();
            runtime.run_dir = Some(directory.clone().into_os_string().into_encoded_bytes());
            Some(NewRun {
                runtime: Some(runtime),
                work: StoredWork(json!(work)),
                directories: Vec::new(),
                lease: work.lease.clone(),
                after: Vec::new(),
            })
        })?;
        std::fs::create_dir_all(&directory).unwrap();
        let record = json!({
            "v": 1, "token": "t", "worker_pid": 7, "raw_status": 0, "exit_code": 0, "term_signal": null,
            "core_dumped": false, "cause": "exit", "stop": null, "started_at_ms": 1, "ended_at_ms": 2,
            "duration_ms": 1, "user_ms": 0, "system_ms": 0, "max_rss_bytes": 0, "boot_id": "b",
            "lost_output_bytes": 0, "spawn_error": null,
            "set": {"empty": true, "proof": "subreaper_echild", "survivors": [], "survivors_total": 0},
        });
        std::fs::write(directory.join("exit.json"), record.to_string()).unwrap();
        Ok(())
    }

    fn rows(&self) -> Vec<Entity> {
        let query = EntityQuery {
            kind: Some("schedule_run".to_owned()),
            ..EntityQuery::default()
        };
        let mut rows = self.store.inner().list(&query).unwrap();
        rows.sort_by_key(|row| row.generation);
        rows
    }

    /// The one attempt that has no successor.
    pub(super) fn last(&self) -> Entity {
        self.rows().pop().unwrap()
    }

    /// Each row agrees with its history, each end has its event, and a chain has one row a generation.
    pub(super) fn assert_whole(&self, context: &str) {
        let store = self.store.inner();
        for (generation, row) in self.rows().iter().enumerate() {
            let id = &row.reference.id;
            assert_eq!(row.generation, i64::try_from(generation).unwrap(), "{context}: {id}");
            assert!(store.work(row).unwrap().is_some(), "{context}: {id} lost its work");
            let query = HistoryQuery {
                id: Some(id.clone()),
                ..HistoryQuery::default()
            };
            let history = store.history(&query).unwrap();
            let versions: Vec<i64> = history.iter().map(|step| step.version).collect();
            assert_eq!(
                versions,
                (1..=row.version).collect::<Vec<_>>(),
                "{context}: {id} is half-written"
            );
            let last = history.last().unwrap();
            assert_eq!(last.status, row.status, "{context}: {id}");
            let event = store.envelope(last.id.as_str()).unwrap();
            assert_eq!(
                event.is_some(),
                row.terminal,
                "{context}: the end of {id} and its event"
            );
            let stage = row.queued.as_ref().and_then(|queued| queued.stage);
            assert_eq!(stage.is_none(), row.terminal, "{context}: {id} can be found again");
        }
    }
}

fn tester() -> Actor {
    Actor::new("operator", "tests")
}

pub(super) fn error() -> StoreError {
    StoreError::Busy { waited_ms: 0 }
}

pub(super) fn stage(row: &Entity) -> Option<Stage> {
    row.queued.as_ref()?.stage
}

/// Fails each call of the step in turn, then makes the step again until it is done, each time after a while.
fn check(policy: &'static str, prepared: Step, step: Step, done: fn(&Bench) -> bool) {
    for when in [When::Before, When::After] {
        for nth in 1.. {
            let bench = Bench::new(policy);
            prepared(&bench).unwrap();
            let before = bench.store.calls();
            bench.store.plan(PlannedFault {
                call: before + nth,
                when,
                error,
            });
            let outcome = step(&bench);
            let made = bench.store.calls() - before;
            let context = format!("{policy}: call {nth} of {made}, {when:?}");
            bench.assert_whole(&context);
            if made < nth {
                assert!(
                    outcome.is_ok() && done(&bench),
                    "{context}: it fails by itself: {outcome:?}"
                );
                break;
            }
            for _ in 0..ROUNDS_MAX {
                if !done(&bench) {
                    bench.keep_on().unwrap();
                    step(&bench).unwrap();
                }
            }
            let rows = bench.rows();
            assert!(done(&bench), "{context}: it is never done after {outcome:?}: {rows:?}");
            bench.assert_whole(&context);
        }
    }
}

const BOTH: [&str; 2] = ["schedule_run@1", "schedule_run@2"];

#[test]
fn a_submission_that_waits_survives_every_failing_call() {
    for policy in BOTH {
        check(
            policy,
            |_| Ok(()),
            |bench| {
                bench.submit(3, &["first"])?;
                bench.keep()
            },
            |bench| bench.rows().len() == 1 && stage(&bench.last()) == Some(Stage::Waiting),
        );
    }
}

#[test]
fn a_claim_survives_every_failing_call() {
    for policy in BOTH {
        check(
            policy,
            |bench| bench.submit(9, &[]),
            |bench| bench.claim().map(drop),
            |bench| stage(&bench.last()) == Some(Stage::Active),
        );
    }
}

/// There is no shim here: every start fails, which is the end of the row's one attempt.
#[test]
fn a_start_that_fails_survives_every_failing_call() {
    for policy in BOTH {
        check(
            policy,
            |bench| bench.submit(1, &[]),
            |bench| {
                let Some(taken) = bench.claim()? else { return Ok(()) };
                if let Started::Run(run) = start(&bench.host, &taken, &[])? {
                    super::end_row_of(&bench.host, &run)?;
                }
                Ok(())
            },
            |bench| {
                let last = bench.last();
                let codes = [
                    "run.failed.spawn_error",
                    "run.failed.spawn_identity_lost",
                    "run.failed.lease_attempts_exhausted",
                ];
                last.terminal && codes.contains(&last.reason.code.as_str())
            },
        );
    }
}

#[test]
fn the_end_of_a_row_survives_every_failing_call_and_is_the_end_that_was_seen() {
    // Under 1.x whoever judges a row whose lease ran out does not look at what became of its run.
    check(
        "schedule_run@2",
        Bench::ended_run,
        |bench| {
            let run = bench.host.store().load("run")?.unwrap();
            settle(&bench.host, run).map(drop)
        },
        |bench| bench.rows().len() == 1 && bench.last().status == "completed",
    );
}

#[test]
fn a_holder_that_is_given_up_has_one_successor_whichever_call_fails() {
    check(
        "schedule_run@2",
        |bench| {
            bench.submit(9, &[])?;
            bench.claim().map(drop)
        },
        Bench::keep_on,
        |bench| {
            let rows = bench.rows();
            rows.len() == 2 && rows[0].status == "orphaned" && stage(&rows[1]) == Some(Stage::Ready)
        },
    );
}

#[test]
fn a_lapse_that_requeues_survives_every_failing_call() {
    check(
        "schedule_run@1",
        |bench| {
            bench.submit(9, &[])?;
            bench.claim().map(drop)
        },
        Bench::keep_on,
        |bench| bench.rows().len() == 1 && stage(&bench.last()) == Some(Stage::Ready),
    );
}

#[test]
fn what_is_handed_back_survives_every_failing_call() {
    for policy in BOTH {
        check(
            policy,
            |bench| {
                bench.submit(9, &[])?;
                bench.claim().map(drop)
            },
            |bench| {
                let entity = bench.host.store().load(&bench.last().reference.id)?.unwrap();
                let row = Row::of(&bench.host, entity, None)?.unwrap();
                let (fence, now) = (row.entity.fence, bench.host.now());
                if stage(&row.entity) == Some(Stage::Active) {
                    let back = handed_back(&row.lifecycle, &row.entity, fence, now).unwrap();
                    write(&bench.host, &row.entity, &back, &Beside::NOTHING)?;
                }
                bench.keep()
            },
            |bench| stage(&bench.last()) == Some(Stage::Ready),
        );
    }
}

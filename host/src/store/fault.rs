//! A store whose calls fail when told to: before the inner store is asked, or after it did its work.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{
    Acknowledged, Activation, AdminQuery, Applied, Backlog, Belongings, Binding, Boot, Component, ComponentRecord,
    Consumer, Created, Dependency, DueQuery, EffectSet, Enqueued, EntityQuery, Fire, Fired, HistoryQuery, JournalPage,
    Judged, Judging, KeptSchedule, Lookup, NewRun, Occurrence, OldRows, Outbox, Outline, Owed, PageBack, Queue,
    QueueSetup, QueueState, ReadyQuery, Removed, Renewal, RenewalDelays, Renewed, Rows, RuntimeAdded, RuntimeUpdate,
    Schedules, Scope, Shadow, Signed, StagedQuery, Steering, Store, StoreError, Upkeep, Work, Worker,
};
use crate::model::{
    AdminEvent, DestinationHealth, Dispatch, Entity, EventId, HistoryRow, NewDispatch, NewEntity, Planned,
    RaisedLimits, Reference, Resource, Runtime, Stage, Timestamp,
};

/// When a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the inner store is asked: nothing happened.
    Before,
    /// After the inner store did its work: it happened, and the answer is lost.
    After,
}

/// One fault to come.
#[derive(Clone, Copy, Debug)]
pub struct PlannedFault {
    /// Which call fails, counted from 1 over all methods; [`Store::name`] does not count, it cannot fail.
    pub call: usize,
    /// Before or after its work.
    pub when: When,
    /// The error it answers.
    pub error: fn() -> StoreError,
}

/// The wrapper.
#[derive(Debug)]
pub struct FaultyStore<S> {
    inner: S,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: usize,
    planned: Vec<PlannedFault>,
}

impl<S: Store> FaultyStore<S> {
    /// A wrapper that fails nothing yet.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            state: Mutex::default(),
        }
    }

    /// Plans a fault.
    pub fn plan(&self, fault: PlannedFault) {
        self.state().planned.push(fault);
    }

    /// How many calls were made.
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    /// The store inside.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call<T>(&self, call: impl FnOnce(&S) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut state = self.state();
        state.calls += 1;
        let number = state.calls;
        let planned = state.planned.iter().copied().find(|fault| fault.call == number);
        drop(state);
        match planned {
            Some(PlannedFault {
                when: When::Before,
                error,
                ..
            }) => Err(error()),
            Some(PlannedFault {
                when: When::After,
                error,
                ..
            }) => call(&self.inner).and_then(|_| Err(error())),
            None => call(&self.inner),
        }
    }
}

/// Every method but `name`, each as one call.
macro_rules! calls {
    ($($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        $(fn $method(&self, $($argument: $type),*) -> Result<$answer, StoreError> {
            self.call(|inner| inner.$method($($argument),*))
        })+
    };
}

impl<S: Store> Store for FaultyStore<S> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    calls! {
        data_version() -> i64;
        create(new: &NewEntity, run: Option<&NewRun>) -> Created;
        apply(effects: &EffectSet) -> Applied;
        apply_all(effects: &[EffectSet]) -> Vec<Applied>;
        add_runtime(runtime: &Runtime, event: &AdminEvent) -> RuntimeAdded;
        update_runtimes(updates: &[RuntimeUpdate]) -> ();
        record(events: &[AdminEvent], runtimes: &[RuntimeUpdate]) -> ();
        load(id: &str) -> Option<Entity>;
        key_use(entity: &Entity, key: &str) -> Option<(String, HistoryRow)>;
        look_up(lookup: &Lookup, limit: usize) -> Vec<Entity>;
        list(query: &EntityQuery) -> Vec<Entity>;
        linked(entity: &Entity, scope: Scope) -> Vec<Entity>;
        history(query: &HistoryQuery) -> Vec<HistoryRow>;
        envelope(event_id: &str) -> Option<Value>;
        admin_events(query: &AdminQuery) -> Vec<AdminEvent>;
        runtimes(owners: Option<&[Reference]>) -> Vec<Runtime>;
        runtime(id: i64) -> Option<Runtime>;
        work(entity: &Entity) -> Option<Work>;
        works(entities: &[Entity]) -> Vec<Option<Work>>;
        belongings(entities: &[Entity]) -> Vec<Belongings>;
        install(components: &[Component], activations: &[Activation], events: &[AdminEvent]) -> ();
        activate(activation: &Activation, event: &AdminEvent) -> bool;
        remove_component(digest: &str, event: &AdminEvent) -> bool;
        components() -> Vec<ComponentRecord>;
        live_pins() -> Vec<(String, i64)>;
        signatures() -> Vec<(String, Signed)>;
        raised_limits(digest: &str) -> RaisedLimits;
        descriptor(digest: &str) -> Option<String>;
        component_bytes(digest: &str) -> Option<Vec<u8>>;
        activations(kind: &str) -> Vec<Activation>;
        resources(owners: &[Reference]) -> Vec<Resource>;
        drop_runtimes(owner: &Entity, rows: Rows, events: &[AdminEvent]) -> bool;
        drop_resource(id: i64) -> ();
        remove(entity: &Entity, event: &AdminEvent) -> Removed;
        oldest(after_row: i64, limit: usize) -> Vec<Entity>;
        journal_page(page: &JournalPage) -> OldRows;
        prune_journal(page: &JournalPage, rows: &[i64], event: &AdminEvent) -> usize;
        upkeep() -> Upkeep;
    }
}

impl<S: Store> Outbox for FaultyStore<S> {
    calls! {
        enqueue(new: &NewDispatch) -> Enqueued;
        dispatch(id: &str) -> Option<Dispatch>;
        notices_of(entity: &Entity, limit: usize) -> Vec<Entity>;
        outlines(dispatches: &[Entity]) -> Vec<Option<Outline>>;
        due(query: &DueQuery) -> Vec<Entity>;
        next_due() -> Option<Timestamp>;
        owed(before: Timestamp, limit: usize) -> Vec<Owed>;
        settle_owed(owed: &Owed, planned: &Planned, events: &[AdminEvent]) -> bool;
        destinations() -> Vec<DestinationHealth>;
        backlog() -> Backlog;
        bindings() -> Vec<Binding>;
        put_binding(binding: &Binding, event: &AdminEvent) -> ();
        drop_binding(name: &str, event: &AdminEvent) -> bool;
        add_consumer(consumer: &Consumer, event: &AdminEvent) -> bool;
        consumers() -> Vec<(Consumer, u64)>;
        pending(consumer: &str, limit: usize) -> Option<Vec<(EventId, Value)>>;
        acknowledge(consumer: &str, event_id: &str, at: Timestamp) -> Acknowledged;
        retire_consumer(name: &str, at: Timestamp, event: &AdminEvent) -> bool;
    }
}

impl<S: Store> Judging for FaultyStore<S> {
    calls! {
        history_back(page: &PageBack) -> Vec<(i64, HistoryRow)>;
        audit_back(page: &PageBack) -> Vec<AdminEvent>;
        shadow(kind: &str) -> Option<Shadow>;
        shadows() -> Vec<Shadow>;
        put_shadow(shadow: &Shadow, event: &AdminEvent) -> bool;
        drop_shadow(kind: &str, event: &AdminEvent) -> bool;
        record_judged(events: &[AdminEvent], runtimes: &[RuntimeUpdate], judged: &Judged) -> ();
    }
}

impl<S: Store> Queue for FaultyStore<S> {
    calls! {
        ready(query: &ReadyQuery) -> Vec<Entity>;
        staged_due(query: &StagedQuery) -> Vec<Entity>;
        next_staged_due(stage: Stage) -> Option<Timestamp>;
        renew(renewals: &[Renewal]) -> Vec<Renewed>;
        renewal_delays() -> RenewalDelays;
        dependencies(row: &Entity) -> Vec<Dependency>;
        awaiting_ended(after_row: i64, limit: usize) -> Vec<Entity>;
        looked_at(row: &Entity, seen: &[Dependency]) -> ();
        queues() -> Vec<QueueState>;
        put_queue(queue: &QueueSetup, event: &AdminEvent) -> ();
        put_worker(worker: &Worker) -> ();
        forget_workers(before: Timestamp) -> usize;
        workers() -> Vec<Worker>;
        worker(holder: &str) -> Option<Worker>;
        steady_offset(boot: &Boot) -> Option<i64>;
        keep_steady_offset(boot: &Boot, offset_ms: i64) -> i64;
        late_writes() -> u64;
        successor(row: &Entity) -> Option<Entity>;
    }
}

impl<S: Store> Schedules for FaultyStore<S> {
    calls! {
        add_schedule(new: &KeptSchedule, event: &AdminEvent) -> bool;
        schedules(name: Option<&str>) -> Vec<KeptSchedule>;
        due_schedules(now: Timestamp) -> Vec<KeptSchedule>;
        next_fire() -> Option<Timestamp>;
        steer_schedule(name: &str, steering: Steering, event: &AdminEvent) -> bool;
        drop_schedule(name: &str, event: &AdminEvent) -> bool;
        occurrences(name: &str, limit: usize) -> Vec<Occurrence>;
        running_occurrences(name: &str, limit: usize) -> Vec<Entity>;
        fire(fire: &Fire) -> Fired;
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::model::OwedPlan;
    use crate::store::sqlite::tests::place;
    use crate::store::{MemoryStore, OpenMode, SqliteStore, samples};

    #[test]
    fn the_chosen_call_fails_before_or_after_its_work_and_no_other() {
        let store = FaultyStore::new(MemoryStore::named("faultily"));
        let full = || StoreError::Full {
            path: "/full".to_owned(),
        };
        store.plan(PlannedFault {
            call: 2,
            when: When::Before,
            error: full,
        });
        store.plan(PlannedFault {
            call: 3,
            when: When::After,
            error: full,
        });
        samples::install(&store).unwrap();
        for (id, stored) in [("before", false), ("after", true), ("well", true)] {
            let answer = store.create(&samples::new_entity(&store, "run", id), None);
            assert_eq!(matches!(answer, Err(StoreError::Full { .. })), id != "well");
            assert_eq!(store.inner().load(id).unwrap().is_some(), stored, "{id}");
        }
        assert_eq!(store.calls(), 4);
    }

    type Call = fn(&dyn Store) -> Result<(), StoreError>;

    /// What a notice goes through, a call a step; each reads again what it needs, so that it can be made again.
    const NOTICE: [Call; 10] = [
        |store| store.create(&samples::new_entity(store, "run", "told"), None).map(drop),
        |store| store.put_binding(&binding(), &event("handler_bound")),
        |store| store.add_consumer(&consumer(), &event("consumer_added")).map(drop),
        |store| {
            let Some(entity) = store.load("told")?.filter(|entity| !entity.terminal) else {
                return Ok(());
            };
            let mut effects = samples::ending(store, &entity, samples::Success::No);
            let id = effects.change.row.id.clone();
            effects.change.planned.dispatches = vec![samples::new_dispatch(store, "planned", Some(&id))];
            effects.change.planned.owed = vec![owed()];
            store.apply(&effects).map(drop)
        },
        |store| store.enqueue(&samples::new_dispatch(store, "sent", None)).map(drop),
        |store| {
            let Some(found) = store.owed(samples::moment(99), 1)?.pop() else {
                return Ok(());
            };
            let planned = Planned {
                dispatches: vec![samples::new_dispatch(store, "late", Some(&found.event_id))],
                owed: Vec::new(),
            };
            store.settle_owed(&found, &planned, &[]).map(drop)
        },
        |store| {
            let due = DueQuery {
                before: samples::moment(10),
                except_targets: Vec::new(),
                limit: 1,
            };
            let Some(claimed) = store
                .due(&due)?
                .into_iter()
                .find(|entity| entity.reference.id == "planned")
            else {
                return Ok(());
            };
            let mut attempt = samples::ending(store, &claimed, samples::Success::Yes);
            attempt.change.event = None;
            store.apply(&attempt).map(drop)
        },
        |store| {
            for (id, _) in store.pending("reader", 9)?.unwrap_or_default() {
                store.acknowledge("reader", id.as_str(), samples::moment(50))?;
            }
            Ok(())
        },
        |store| store.drop_binding("bound", &event("handler_unbound")).map(drop),
        |store| {
            store
                .retire_consumer("reader", samples::moment(60), &event("consumer_retired"))
                .map(drop)
        },
    ];

    fn event(action: &str) -> AdminEvent {
        samples::admin_event(action, "notice")
    }

    fn binding() -> Binding {
        Binding {
            name: "bound".to_owned(),
            settings: Value::Null,
            created_at: samples::moment(1),
            actor: "tests".to_owned(),
        }
    }

    fn consumer() -> Consumer {
        Consumer {
            name: "reader".to_owned(),
            since: None,
            created_at: samples::moment(1),
            retired_at: None,
        }
    }

    fn owed() -> OwedPlan {
        OwedPlan {
            handler: "slow".to_owned(),
            tries: 1,
            due_at: samples::moment(40),
            error: None,
        }
    }

    /// Makes every step, those that fail once more.
    fn make(store: &dyn Store) {
        samples::install(store).unwrap();
        for call in NOTICE {
            if call(store).is_err() {
                call(store).unwrap();
            }
        }
    }

    /// What is left when every step was made; audit rows aside, of which a step that is made again may leave two.
    fn left(store: &dyn Store) -> String {
        let ids = ["told", "planned", "sent", "late"];
        let entities: Vec<Entity> = ids.iter().map(|id| store.load(id).unwrap().unwrap()).collect();
        format!(
            "{entities:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            store.outlines(&entities).unwrap(),
            store.history(&HistoryQuery::default()).unwrap(),
            store.next_due().unwrap(),
            store.owed(samples::moment(99), 9).unwrap(),
            store.bindings().unwrap(),
            store.consumers().unwrap(),
        )
    }

    #[test]
    fn a_notice_comes_out_the_same_whichever_call_fails_once_before_or_after_its_work() {
        let faultless = FaultyStore::new(MemoryStore::named("faultily"));
        make(&faultless);
        let (calls, whole) = (faultless.calls(), left(&faultless));
        for call in 2..=calls {
            for when in [When::Before, When::After] {
                let (_directory, path) = place();
                let file = SqliteStore::open(&path, OpenMode::Create).unwrap();
                let store = FaultyStore::new(file);
                store.plan(PlannedFault {
                    call,
                    when,
                    error: || StoreError::Busy { waited_ms: 5_000 },
                });
                make(&store);
                let expected = whole.replace("faultily", store.name());
                assert_eq!(left(&store), expected, "call {call} failed {when:?}");
            }
        }
    }
}

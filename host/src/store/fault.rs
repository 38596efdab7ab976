//! A store whose calls fail when told to: before the inner store is asked, or after it did its work.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{
    Acknowledged, Activation, AdminQuery, Applied, Belongings, Binding, Component, ComponentRecord, Consumer, Created,
    DueQuery, EffectSet, Enqueued, EntityQuery, HistoryQuery, JournalPage, Lookup, NewRun, OldRows, Outbox, Outline,
    Owed, Removed, Rows, RuntimeAdded, RuntimeUpdate, Scope, Store, StoreError, Work,
};
use crate::model::{
    AdminEvent, DestinationHealth, Dispatch, Entity, EventId, HistoryRow, NewDispatch, NewEntity, Planned, Reference,
    Resource, Runtime, Timestamp,
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
        belongings(entities: &[Entity]) -> Vec<Belongings>;
        install(components: &[Component], activations: &[Activation], events: &[AdminEvent]) -> ();
        activate(activation: &Activation, event: &AdminEvent) -> bool;
        remove_component(digest: &str, event: &AdminEvent) -> bool;
        components() -> Vec<ComponentRecord>;
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
    }
}

impl<S: Store> Outbox for FaultyStore<S> {
    calls! {
        enqueue(new: &NewDispatch) -> Enqueued;
        dispatch(id: &str) -> Option<Dispatch>;
        outlines(dispatches: &[Entity]) -> Vec<Option<Outline>>;
        due(query: &DueQuery) -> Vec<Entity>;
        next_due() -> Option<Timestamp>;
        owed(before: Timestamp, limit: usize) -> Vec<Owed>;
        settle_owed(owed: &Owed, planned: &Planned, events: &[AdminEvent]) -> bool;
        destinations() -> Vec<DestinationHealth>;
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::store::{MemoryStore, samples};

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
}

//! A store of components alone.

use std::collections::BTreeMap;

use crate::model::{
    AdminEvent, DestinationHealth, Dispatch, Entity, EventId, HistoryRow, NewDispatch, NewEntity, Planned, Reference,
    Resource, Runtime, Timestamp,
};
use crate::store::{
    Acknowledged, Activation, AdminQuery, Applied, Backlog, Belongings, Binding, Component, ComponentRecord, Consumer,
    Created, DueQuery, EffectSet, Enqueued, EntityQuery, Fire, Fired, HistoryQuery, JournalPage, KeptSchedule, Lookup,
    NewRun, Occurrence, OldRows, Outbox, Outline, Owed, Removed, Rows, RuntimeAdded, RuntimeUpdate, Schedules, Scope,
    Steering, Store, StoreError, Upkeep, Work,
};

/// Holds components and their descriptors; every other method is one that policies never call.
#[derive(Default)]
pub(super) struct FakeStore {
    components: BTreeMap<String, (String, Vec<u8>)>,
}

impl FakeStore {
    pub(super) fn add(&mut self, digest: &str, descriptor: &str, bytes: Vec<u8>) {
        self.components
            .insert(digest.to_owned(), (descriptor.to_owned(), bytes));
    }
}

fn never<T>() -> Result<T, StoreError> {
    unreachable!("policies read components and nothing else")
}

impl Store for FakeStore {
    fn name(&self) -> &str {
        "fake"
    }

    fn descriptor(&self, digest: &str) -> Result<Option<String>, StoreError> {
        Ok(self.components.get(digest).map(|(descriptor, _)| descriptor.clone()))
    }

    fn component_bytes(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.components.get(digest).map(|(_, bytes)| bytes.clone()))
    }

    fn components(&self) -> Result<Vec<ComponentRecord>, StoreError> {
        Ok(Vec::new())
    }

    fn activations(&self, _: &str) -> Result<Vec<Activation>, StoreError> {
        Ok(Vec::new())
    }

    fn data_version(&self) -> Result<i64, StoreError> {
        never()
    }

    fn create(&self, _: &NewEntity, _: Option<&NewRun>) -> Result<Created, StoreError> {
        never()
    }

    fn apply(&self, _: &EffectSet) -> Result<Applied, StoreError> {
        never()
    }

    fn add_runtime(&self, _: &Runtime, _: &AdminEvent) -> Result<RuntimeAdded, StoreError> {
        never()
    }

    fn update_runtimes(&self, _: &[RuntimeUpdate]) -> Result<(), StoreError> {
        never()
    }

    fn record(&self, _: &[AdminEvent], _: &[RuntimeUpdate]) -> Result<(), StoreError> {
        never()
    }

    fn load(&self, _: &str) -> Result<Option<Entity>, StoreError> {
        never()
    }

    fn belongings(&self, _: &[Entity]) -> Result<Vec<Belongings>, StoreError> {
        never()
    }

    fn key_use(&self, _: &Entity, _: &str) -> Result<Option<(String, HistoryRow)>, StoreError> {
        never()
    }

    fn look_up(&self, _: &Lookup, _: usize) -> Result<Vec<Entity>, StoreError> {
        never()
    }

    fn list(&self, _: &EntityQuery) -> Result<Vec<Entity>, StoreError> {
        never()
    }

    fn linked(&self, _: &Entity, _: Scope) -> Result<Vec<Entity>, StoreError> {
        never()
    }

    fn history(&self, _: &HistoryQuery) -> Result<Vec<HistoryRow>, StoreError> {
        never()
    }

    fn envelope(&self, _: &str) -> Result<Option<serde_json::Value>, StoreError> {
        never()
    }

    fn admin_events(&self, _: &AdminQuery) -> Result<Vec<AdminEvent>, StoreError> {
        never()
    }

    fn runtimes(&self, _: Option<&[Reference]>) -> Result<Vec<Runtime>, StoreError> {
        never()
    }

    fn runtime(&self, _: i64) -> Result<Option<Runtime>, StoreError> {
        never()
    }

    fn work(&self, _: &Entity) -> Result<Option<Work>, StoreError> {
        never()
    }

    fn install(&self, _: &[Component], _: &[Activation], _: &[AdminEvent]) -> Result<(), StoreError> {
        never()
    }

    fn activate(&self, _: &Activation, _: &AdminEvent) -> Result<bool, StoreError> {
        never()
    }

    fn remove_component(&self, _: &str, _: &AdminEvent) -> Result<bool, StoreError> {
        never()
    }

    fn resources(&self, _: &[Reference]) -> Result<Vec<Resource>, StoreError> {
        never()
    }

    fn drop_runtimes(&self, _: &Entity, _: Rows, _: &[AdminEvent]) -> Result<bool, StoreError> {
        never()
    }

    fn drop_resource(&self, _: i64) -> Result<(), StoreError> {
        never()
    }

    fn remove(&self, _: &Entity, _: &AdminEvent) -> Result<Removed, StoreError> {
        never()
    }

    fn oldest(&self, _: i64, _: usize) -> Result<Vec<Entity>, StoreError> {
        never()
    }

    fn journal_page(&self, _: &JournalPage) -> Result<OldRows, StoreError> {
        never()
    }

    fn prune_journal(&self, _: &JournalPage, _: &[i64], _: &AdminEvent) -> Result<usize, StoreError> {
        never()
    }

    fn upkeep(&self) -> Result<Upkeep, StoreError> {
        never()
    }
}

impl Outbox for FakeStore {
    fn enqueue(&self, _: &NewDispatch) -> Result<Enqueued, StoreError> {
        never()
    }

    fn dispatch(&self, _: &str) -> Result<Option<Dispatch>, StoreError> {
        never()
    }

    fn notices_of(&self, _: &Entity, _: usize) -> Result<Vec<Entity>, StoreError> {
        never()
    }

    fn outlines(&self, _: &[Entity]) -> Result<Vec<Option<Outline>>, StoreError> {
        never()
    }

    fn due(&self, _: &DueQuery) -> Result<Vec<Entity>, StoreError> {
        never()
    }

    fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        never()
    }

    fn owed(&self, _: Timestamp, _: usize) -> Result<Vec<Owed>, StoreError> {
        never()
    }

    fn settle_owed(&self, _: &Owed, _: &Planned, _: &[AdminEvent]) -> Result<bool, StoreError> {
        never()
    }

    fn destinations(&self) -> Result<Vec<DestinationHealth>, StoreError> {
        never()
    }

    fn backlog(&self) -> Result<Backlog, StoreError> {
        never()
    }

    fn bindings(&self) -> Result<Vec<Binding>, StoreError> {
        never()
    }

    fn put_binding(&self, _: &Binding, _: &AdminEvent) -> Result<(), StoreError> {
        never()
    }

    fn drop_binding(&self, _: &str, _: &AdminEvent) -> Result<bool, StoreError> {
        never()
    }

    fn add_consumer(&self, _: &Consumer, _: &AdminEvent) -> Result<bool, StoreError> {
        never()
    }

    fn consumers(&self) -> Result<Vec<(Consumer, u64)>, StoreError> {
        never()
    }

    fn pending(&self, _: &str, _: usize) -> Result<Option<Vec<(EventId, serde_json::Value)>>, StoreError> {
        never()
    }

    fn acknowledge(&self, _: &str, _: &str, _: Timestamp) -> Result<Acknowledged, StoreError> {
        never()
    }

    fn retire_consumer(&self, _: &str, _: Timestamp, _: &AdminEvent) -> Result<bool, StoreError> {
        never()
    }
}

impl Schedules for FakeStore {
    fn add_schedule(&self, _: &KeptSchedule, _: &AdminEvent) -> Result<bool, StoreError> {
        never()
    }

    fn schedules(&self, _: Option<&str>) -> Result<Vec<KeptSchedule>, StoreError> {
        never()
    }

    fn due_schedules(&self, _: Timestamp) -> Result<Vec<KeptSchedule>, StoreError> {
        never()
    }

    fn next_fire(&self) -> Result<Option<Timestamp>, StoreError> {
        never()
    }

    fn steer_schedule(&self, _: &str, _: Steering, _: &AdminEvent) -> Result<bool, StoreError> {
        never()
    }

    fn drop_schedule(&self, _: &str, _: &AdminEvent) -> Result<bool, StoreError> {
        never()
    }

    fn occurrences(&self, _: &str, _: usize) -> Result<Vec<Occurrence>, StoreError> {
        never()
    }

    fn running_occurrences(&self, _: &str, _: usize) -> Result<Vec<Entity>, StoreError> {
        never()
    }

    fn fire(&self, _: &Fire) -> Result<Fired, StoreError> {
        never()
    }
}

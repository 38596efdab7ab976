//! The handle's part for the outbox.

use serde_json::Value;

use super::command::{Answer, Command};
use super::store::{ANSWER_FITS, SqliteStore};
use super::{consumers, outbox};
use crate::model::{AdminEvent, DestinationHealth, Dispatch, Entity, EventId, NewDispatch, Planned, Timestamp};
use crate::store::{
    Acknowledged, Backlog, Binding, Consumer, DueQuery, Enqueued, Outbox, Outline, Owed, Store as _, StoreError,
};

impl Outbox for SqliteStore {
    fn enqueue(&self, new: &NewDispatch) -> Result<Enqueued, StoreError> {
        let Answer::Enqueued(enqueued) = self.write(Command::Enqueue(Box::new(new.clone())))? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(enqueued)
    }

    fn dispatch(&self, id: &str) -> Result<Option<Dispatch>, StoreError> {
        self.read("reading a dispatch", |db| outbox::dispatch(db, id, self.name()))
    }

    fn outlines(&self, dispatches: &[Entity]) -> Result<Vec<Option<Outline>>, StoreError> {
        self.read("reading dispatches", |db| outbox::outlines(db, dispatches, self.name()))
    }

    fn notices_of(&self, entity: &Entity, limit: usize) -> Result<Vec<Entity>, StoreError> {
        self.read("reading dispatches", |db| outbox::notices_of(db, entity, limit))
    }

    fn due(&self, query: &DueQuery) -> Result<Vec<Entity>, StoreError> {
        self.read("looking for due dispatches", |db| outbox::due(db, query))
    }

    fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("looking for the next due time", outbox::next_due)
    }

    fn owed(&self, before: Timestamp, limit: usize) -> Result<Vec<Owed>, StoreError> {
        self.read("looking for owed plans", |db| {
            outbox::owed(db, before, limit, self.name())
        })
    }

    fn settle_owed(&self, owed: &Owed, planned: &Planned, events: &[AdminEvent]) -> Result<bool, StoreError> {
        self.flag(Command::SettleOwed(
            Box::new(owed.clone()),
            planned.clone(),
            events.to_vec(),
        ))
    }

    fn destinations(&self) -> Result<Vec<DestinationHealth>, StoreError> {
        self.read("listing destinations", outbox::destinations)
    }

    fn backlog(&self) -> Result<Backlog, StoreError> {
        self.read("counting dispatches", outbox::backlog)
    }

    fn bindings(&self) -> Result<Vec<Binding>, StoreError> {
        self.read("listing bindings", consumers::bindings)
    }

    fn put_binding(&self, binding: &Binding, event: &AdminEvent) -> Result<(), StoreError> {
        self.write(Command::PutBinding(binding.clone(), event.clone()))
            .map(drop)
    }

    fn drop_binding(&self, name: &str, event: &AdminEvent) -> Result<bool, StoreError> {
        self.flag(Command::DropBinding(name.to_owned(), event.clone()))
    }

    fn add_consumer(&self, consumer: &Consumer, event: &AdminEvent) -> Result<bool, StoreError> {
        self.flag(Command::AddConsumer(consumer.clone(), event.clone()))
    }

    fn consumers(&self) -> Result<Vec<(Consumer, u64)>, StoreError> {
        self.read("listing consumers", consumers::consumers)
    }

    fn pending(&self, consumer: &str, limit: usize) -> Result<Option<Vec<(EventId, Value)>>, StoreError> {
        self.read("looking for pending events", |db| {
            consumers::pending(db, consumer, limit, self.name())
        })
    }

    fn acknowledge(&self, consumer: &str, event_id: &str, at: Timestamp) -> Result<Acknowledged, StoreError> {
        let command = Command::Acknowledge(consumer.to_owned(), event_id.to_owned(), at);
        let Answer::Acknowledged(acknowledged) = self.write(command)? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(acknowledged)
    }

    fn retire_consumer(&self, name: &str, at: Timestamp, event: &AdminEvent) -> Result<bool, StoreError> {
        self.flag(Command::RetireConsumer(name.to_owned(), at, event.clone()))
    }
}

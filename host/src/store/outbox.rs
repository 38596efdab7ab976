//! The outbox as a store keeps it: dispatches, plans that are owed, destinations, bindings and consumers.

use serde_json::Value;

use super::StoreError;
use crate::model::{
    AdminEvent, DestinationHealth, Dispatch, Entity, EventId, NewDispatch, OwedPlan, Planned, Reference, Timestamp,
};

/// What a store does for notices. A part of [`super::Store`]; the same rules hold: a method is one business step in one
/// transaction, a lost race is a value.
pub trait Outbox: Send + Sync {
    /// Adds a dispatch with its first history row.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn enqueue(&self, new: &NewDispatch) -> Result<Enqueued, StoreError>;

    /// What a dispatch delivers, body included; none when the entity is no dispatch or is gone.
    ///
    /// # Errors
    /// The store cannot be read.
    fn dispatch(&self, id: &str) -> Result<Option<Dispatch>, StoreError>;

    /// What these dispatches deliver, without their bodies, in their order: as many statements for many as for one.
    ///
    /// # Errors
    /// The store cannot be read.
    fn outlines(&self, dispatches: &[Entity]) -> Result<Vec<Option<Outline>>, StoreError>;

    /// Dispatches that tell the events of an entity, newest first, at most `limit` of them.
    ///
    /// # Errors
    /// The store cannot be read.
    fn notices_of(&self, entity: &Entity, limit: usize) -> Result<Vec<Entity>, StoreError>;

    /// Dispatches for which something is due, the longest due first; not those to a destination that is paused beyond
    /// the moment asked for. What is dead or waits for a paused destination costs nothing here.
    ///
    /// # Errors
    /// The store cannot be read.
    fn due(&self, query: &DueQuery) -> Result<Vec<Entity>, StoreError>;

    /// When the next dispatch or owed plan is due; what goes to a destination that is paused is due when its pause ends.
    /// None when there is nothing to wait for.
    ///
    /// # Errors
    /// The store cannot be read.
    fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Plans that are owed and due before a moment, the longest due first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn owed(&self, before: Timestamp, limit: usize) -> Result<Vec<Owed>, StoreError>;

    /// Settles a plan that was owed: its dispatches are added and nothing is owed any more, or it is owed again as
    /// `planned.owed` says. False, and nothing is written, when it is not owed (any more) after `tries` tries.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn settle_owed(&self, owed: &Owed, planned: &Planned, events: &[AdminEvent]) -> Result<bool, StoreError>;

    /// How destinations have been doing: those with a failure since their last success.
    ///
    /// # Errors
    /// The store cannot be read.
    fn destinations(&self) -> Result<Vec<DestinationHealth>, StoreError>;

    /// How many dispatches there are, and plans that are owed. Reads a row of each: for somebody who looks now and then.
    ///
    /// # Errors
    /// The store cannot be read.
    fn backlog(&self) -> Result<Backlog, StoreError>;

    /// The bindings, in order of their names.
    ///
    /// # Errors
    /// The store cannot be read.
    fn bindings(&self) -> Result<Vec<Binding>, StoreError>;

    /// Adds or replaces a binding, with its audit row.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn put_binding(&self, binding: &Binding, event: &AdminEvent) -> Result<(), StoreError>;

    /// Takes a binding away, with its audit row; false when there is none of that name.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn drop_binding(&self, name: &str, event: &AdminEvent) -> Result<bool, StoreError>;

    /// Adds a consumer, with its audit row; false when there is or was one of that name.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn add_consumer(&self, consumer: &Consumer, event: &AdminEvent) -> Result<bool, StoreError>;

    /// All consumers, in order of their names, with how many events each is owed.
    ///
    /// # Errors
    /// The store cannot be read.
    fn consumers(&self) -> Result<Vec<(Consumer, u64)>, StoreError>;

    /// Events that a consumer is owed and did not acknowledge, oldest first: a set, never a position, so that an event
    /// that commits late is found. None when there is no such active consumer.
    ///
    /// # Errors
    /// The store cannot be read.
    fn pending(&self, consumer: &str, limit: usize) -> Result<Option<Vec<(EventId, Value)>>, StoreError>;

    /// Acknowledges an event for a consumer; twice is one row.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn acknowledge(&self, consumer: &str, event_id: &str, at: Timestamp) -> Result<Acknowledged, StoreError>;

    /// Retires a consumer and releases what it is owed, with its audit row; false when there is no active one.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn retire_consumer(&self, name: &str, at: Timestamp, event: &AdminEvent) -> Result<bool, StoreError>;
}

/// How an enqueueing came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Enqueued {
    /// It is stored.
    New(Box<Entity>),
    /// Its deduplication key is held by this dispatch, which delivers the same bytes to the same target.
    Held(Box<Entity>),
    /// Its deduplication key is held by this dispatch, which delivers something else.
    Different(Box<Entity>),
    /// Its id is or was in use.
    IdTaken,
}

/// A dispatch without its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// What it delivers; the body is empty.
    pub dispatch: Dispatch,
    /// Length of the body in bytes.
    pub body_bytes: u64,
    /// SHA-256 of the body, in hexadecimal.
    pub body_digest: String,
}

/// Which dispatches are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueQuery {
    /// Due at or before.
    pub before: Timestamp,
    /// Not those to these targets: they are paused, or as many as may are on their way.
    pub except_targets: Vec<String>,
    /// At most so many.
    pub limit: usize,
}

/// What an outbox holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Dispatches by status, in order of the statuses' names.
    pub dispatches: Vec<(String, u64)>,
    /// Plans that are owed.
    pub owed_plans: u64,
}

/// A plan that is owed, with the event it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Owed {
    /// The event.
    pub event_id: EventId,
    /// Whose it is.
    pub reference: Reference,
    /// What is to be told.
    pub envelope: Value,
    /// The notify settings of the entity; kept here, because an entity may be removed before its events are told.
    pub settings: Value,
    /// Which plan, and how often it was tried.
    pub plan: OwedPlan,
}

/// A handler that the store binds for every entity created later, unless a settings file says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// Its name.
    pub name: String,
    /// Its settings, in the shape of `[notify.handlers.NAME]` of a settings file.
    pub settings: Value,
    /// When it was added.
    pub created_at: Timestamp,
    /// By whom.
    pub actor: String,
}

/// Somebody outside who is owed every event and says when he has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its name.
    pub name: String,
    /// Events that occurred at or after this are owed; none: all there are.
    pub since: Option<Timestamp>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was retired; none while it is active.
    pub retired_at: Option<Timestamp>,
}

/// How an acknowledgement came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// It is stored.
    New,
    /// It was there.
    Again,
    /// There is no such active consumer.
    NoConsumer,
    /// There is no such event.
    NoEvent,
}

//! Schedules as a store keeps them: what is due again and again, and what became of each fire time.

use serde_json::Value;

use super::{Created, NewRun, StoreError};
use crate::model::schedule::Schedule;
use crate::model::{AdminEvent, Entity, NewEntity, Reference, Timestamp};

/// What a store does for schedules. A part of [`super::Store`]; the same rules hold: a method is one business step in one
/// transaction, a lost race is a value.
pub trait Schedules: Send + Sync {
    /// Adds a schedule, with its audit row; false when there is one of that name.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn add_schedule(&self, new: &KeptSchedule, event: &AdminEvent) -> Result<bool, StoreError>;

    /// All schedules, in order of their names, or the one of a name.
    ///
    /// # Errors
    /// The store cannot be read.
    fn schedules(&self, name: Option<&str>) -> Result<Vec<KeptSchedule>, StoreError>;

    /// Schedules of which a fire time is over, the longest over first; not those that are paused.
    ///
    /// # Errors
    /// The store cannot be read.
    fn due_schedules(&self, now: Timestamp) -> Result<Vec<KeptSchedule>, StoreError>;

    /// The next fire time of any schedule that is not paused; none when there is nothing to wait for.
    ///
    /// # Errors
    /// The store cannot be read.
    fn next_fire(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Pauses a schedule or lets it go on, with its audit row. False, and nothing is written, when it is gone or stands
    /// so already.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn steer_schedule(&self, name: &str, steering: Steering, event: &AdminEvent) -> Result<bool, StoreError>;

    /// Takes a schedule away with what it remembers of its fire times, with an audit row; false when there is none of that
    /// name. What it started stays.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn drop_schedule(&self, name: &str, event: &AdminEvent) -> Result<bool, StoreError>;

    /// What became of fire times, newest first, at most `limit` of them.
    ///
    /// # Errors
    /// The store cannot be read.
    fn occurrences(&self, name: &str, limit: usize) -> Result<Vec<Occurrence>, StoreError>;

    /// What fire times started that has not ended, oldest first, at most `limit` of them.
    ///
    /// # Errors
    /// The store cannot be read.
    fn running_occurrences(&self, name: &str, limit: usize) -> Result<Vec<Entity>, StoreError>;

    /// Makes the entity of a fire time, remembers that it stands for it, and moves the schedule on: one commit. Nothing is
    /// written unless the answer is [`Fired::Made`] or [`Fired::AlreadyFired`].
    ///
    /// # Errors
    /// The store failed; nothing was written, and the schedule stands where it stood.
    fn fire(&self, fire: &Fire) -> Result<Fired, StoreError>;
}

/// A schedule as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptSchedule {
    /// When it fires, and how it stands.
    pub schedule: Schedule,
    /// What it starts, as JSON: opaque to the store.
    pub submission: Value,
    /// Who added it.
    pub actor: String,
}

/// How a schedule is to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// Nothing is fired.
    Pause,
    /// It goes on, from this fire time.
    Resume(Option<Timestamp>),
}

/// What became of a fire time.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// The fire time.
    pub nominal: Timestamp,
    /// When it was dealt with.
    pub fired_at: Timestamp,
    /// What stands for it: the last of its attempts, when it was begun anew. When that is removed, what is remembered of
    /// the fire time goes with it.
    pub entity: Entity,
}

/// One fire time, decided in full before anything is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Fire {
    /// The schedule.
    pub name: String,
    /// Where it must stand.
    pub expected: Timestamp,
    /// The fire time that is dealt with.
    pub nominal: Timestamp,
    /// Where the schedule stands afterwards; none when there is no more.
    pub next: Option<Timestamp>,
    /// What stands for it.
    pub new: NewEntity,
    /// What it brings along, when it is work for a worker.
    pub work: Option<NewRun>,
    /// What it waits for, however that ends.
    pub behind: Vec<Reference>,
}

/// How a fire time came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Fired {
    /// Its entity is stored.
    Made(Box<Entity>),
    /// Something stands for it already; the schedule was moved on.
    AlreadyFired,
    /// The schedule stands elsewhere, is paused or gone: somebody else was first.
    Changed,
    /// The entity cannot be made: never [`Created::New`].
    Refused(Created),
}

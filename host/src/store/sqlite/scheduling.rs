//! The handle's part for schedules.

use super::command::{Answer, Command};
use super::connection::Db;
use super::failure::Fault;
use super::schedules;
use super::store::{ANSWER_FITS, SqliteStore};
use crate::model::{AdminEvent, Entity, Timestamp};
use crate::store::{Fire, Fired, KeptSchedule, Occurrence, Schedules, Steering, StoreError};

/// A step on schedules that writes.
pub(super) enum Step {
    Add(KeptSchedule, AdminEvent),
    Steer(String, Steering, AdminEvent),
    Drop(String, AdminEvent),
    Fire(Box<Fire>),
}

impl Step {
    /// Takes the step in the transaction that is open.
    pub(super) fn run(&self, db: &Db) -> Result<Answer, Fault> {
        Ok(match self {
            Self::Add(new, event) => Answer::Flag(schedules::add(db, new, event)?),
            Self::Steer(name, steering, event) => Answer::Flag(schedules::steer(db, name, *steering, event)?),
            Self::Drop(name, event) => Answer::Flag(schedules::remove(db, name, event)?),
            Self::Fire(fire) => Answer::Fired(schedules::fire(db, fire)?),
        })
    }

    /// The entity it makes.
    pub(super) fn entity(&self) -> Option<&str> {
        match self {
            Self::Fire(fire) => Some(&fire.new.entity.reference.id),
            Self::Add(..) | Self::Steer(..) | Self::Drop(..) => None,
        }
    }

    /// What is being done, for errors.
    pub(super) const fn doing(&self) -> &'static str {
        match self {
            Self::Add(..) => "adding a schedule",
            Self::Steer(..) => "pausing or resuming a schedule",
            Self::Drop(..) => "removing a schedule",
            Self::Fire(_) => "firing a schedule",
        }
    }
}

impl SqliteStore {
    fn step(&self, step: Step) -> Result<Answer, StoreError> {
        self.write(Command::Schedules(Box::new(step)))
    }

    fn flagged(&self, step: Step) -> Result<bool, StoreError> {
        self.flag(Command::Schedules(Box::new(step)))
    }
}

impl Schedules for SqliteStore {
    fn add_schedule(&self, new: &KeptSchedule, event: &AdminEvent) -> Result<bool, StoreError> {
        self.flagged(Step::Add(new.clone(), event.clone()))
    }

    fn schedules(&self, name: Option<&str>) -> Result<Vec<KeptSchedule>, StoreError> {
        self.read("reading schedules", |db| schedules::schedules(db, name))
    }

    fn due_schedules(&self, now: Timestamp) -> Result<Vec<KeptSchedule>, StoreError> {
        self.read("looking for due schedules", |db| schedules::due(db, now))
    }

    fn next_fire(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("looking for the next fire time", schedules::next_fire)
    }

    fn steer_schedule(&self, name: &str, steering: Steering, event: &AdminEvent) -> Result<bool, StoreError> {
        self.flagged(Step::Steer(name.to_owned(), steering, event.clone()))
    }

    fn drop_schedule(&self, name: &str, event: &AdminEvent) -> Result<bool, StoreError> {
        self.flagged(Step::Drop(name.to_owned(), event.clone()))
    }

    fn occurrences(&self, name: &str, limit: usize) -> Result<Vec<Occurrence>, StoreError> {
        self.read("reading fire times", |db| schedules::occurrences(db, name, limit))
    }

    fn running_occurrences(&self, name: &str, limit: usize) -> Result<Vec<Entity>, StoreError> {
        self.read("reading what a schedule started", |db| {
            schedules::running(db, name, limit)
        })
    }

    fn fire(&self, fire: &Fire) -> Result<Fired, StoreError> {
        let Answer::Fired(fired) = self.step(Step::Fire(Box::new(fire.clone())))? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(fired)
    }
}

//! The handle's part for schedules.

use super::schedules;
use super::store::{ANSWER_FITS, SqliteStore};
use super::writer::{Answer, Command};
use crate::model::{AdminEvent, Entity, Timestamp};
use crate::store::{Fire, Fired, KeptSchedule, Occurrence, Schedules, Steering, StoreError};

impl Schedules for SqliteStore {
    fn add_schedule(&self, new: &KeptSchedule, event: &AdminEvent) -> Result<bool, StoreError> {
        self.flag(Command::AddSchedule(Box::new(new.clone()), event.clone()))
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
        self.flag(Command::SteerSchedule(name.to_owned(), steering, event.clone()))
    }

    fn drop_schedule(&self, name: &str, event: &AdminEvent) -> Result<bool, StoreError> {
        self.flag(Command::DropSchedule(name.to_owned(), event.clone()))
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
        let Answer::Fired(fired) = self.write(Command::Fire(Box::new(fire.clone())))? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(fired)
    }
}

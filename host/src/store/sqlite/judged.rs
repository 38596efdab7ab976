//! The handle's part for judging.

use super::command::Command;
use super::store::SqliteStore;
use super::{history, judging};
use crate::model::{AdminEvent, HistoryRow};
use crate::store::{Judged, Judging, PageBack, RuntimeUpdate, Shadow, StoreError};

impl Judging for SqliteStore {
    fn history_back(&self, page: &PageBack) -> Result<Vec<(i64, HistoryRow)>, StoreError> {
        self.read("reading history", |db| history::back(db, page, self.own_name()))
    }

    fn audit_back(&self, page: &PageBack) -> Result<Vec<AdminEvent>, StoreError> {
        self.read("reading audit rows", |db| history::audit_back(db, page))
    }

    fn shadow(&self, kind: &str) -> Result<Option<Shadow>, StoreError> {
        self.read("looking for a shadow", |db| judging::shadow(db, kind))
    }

    fn shadows(&self) -> Result<Vec<Shadow>, StoreError> {
        self.read("listing shadows", judging::shadows)
    }

    fn put_shadow(&self, shadow: &Shadow, event: &AdminEvent) -> Result<bool, StoreError> {
        self.flag(Command::PutShadow(Box::new(shadow.clone()), event.clone()))
    }

    fn drop_shadow(&self, kind: &str, event: &AdminEvent) -> Result<bool, StoreError> {
        self.flag(Command::DropShadow(kind.to_owned(), event.clone()))
    }

    fn record_judged(
        &self,
        events: &[AdminEvent],
        runtimes: &[RuntimeUpdate],
        judged: &Judged,
    ) -> Result<(), StoreError> {
        let command = Command::Record(events.to_vec(), runtimes.to_vec(), Some(judged.clone()));
        self.write(command).map(drop)
    }
}

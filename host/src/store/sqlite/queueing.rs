//! The queue's part of the trait, on one connection or on the writer.

use super::command::{Answer, Command};
use super::store::{ANSWER_FITS, SqliteStore};
use super::{queue, waiting, workers};
use crate::model::{AdminEvent, Entity, Stage, Timestamp};
use crate::store::{
    Boot, Dependency, Queue, QueueSetup, QueueState, ReadyQuery, Renewal, RenewalDelays, Renewed, StagedQuery,
    StoreError, Worker,
};

impl Queue for SqliteStore {
    fn ready(&self, query: &ReadyQuery) -> Result<Vec<Entity>, StoreError> {
        self.read("looking for work", |db| queue::ready(db, query))
    }

    fn staged_due(&self, query: &StagedQuery) -> Result<Vec<Entity>, StoreError> {
        self.read("looking for due work", |db| queue::staged_due(db, query))
    }

    fn next_staged_due(&self, stage: Stage) -> Result<Option<Timestamp>, StoreError> {
        self.read("looking for due work", |db| queue::next_staged_due(db, stage))
    }

    fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        let Answer::Renewed(renewed) = self.write(Command::Renew(renewals.to_vec()))? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(renewed)
    }

    fn renewal_delays(&self) -> Result<RenewalDelays, StoreError> {
        self.read("reading delays of renewals", queue::renewal_delays)
    }

    fn dependencies(&self, row: &Entity) -> Result<Vec<Dependency>, StoreError> {
        self.read("reading what work waits for", |db| waiting::dependencies(db, row))
    }

    fn awaiting_ended(&self, after_row: i64, limit: usize) -> Result<Vec<Entity>, StoreError> {
        self.read("looking for work that waited", |db| {
            waiting::awaiting_ended(db, after_row, limit)
        })
    }

    fn looked_at(&self, row: &Entity, seen: &[Dependency]) -> Result<(), StoreError> {
        self.flag(Command::LookedAt((row.row, row.version), seen.to_vec()))
            .map(drop)
    }

    fn queues(&self) -> Result<Vec<QueueState>, StoreError> {
        self.read("listing queues", queue::queues)
    }

    fn put_queue(&self, setup: &QueueSetup, event: &AdminEvent) -> Result<(), StoreError> {
        self.write(Command::PutQueue(setup.clone(), event.clone())).map(drop)
    }

    fn put_worker(&self, worker: &Worker) -> Result<(), StoreError> {
        self.write(Command::PutWorker(Box::new(worker.clone()))).map(drop)
    }

    fn forget_workers(&self, before: Timestamp) -> Result<usize, StoreError> {
        let Answer::Count(forgotten) = self.write(Command::ForgetWorkers(before))? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(forgotten)
    }

    fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        self.read("listing workers", workers::workers)
    }

    fn worker(&self, holder: &str) -> Result<Option<Worker>, StoreError> {
        self.read("reading a worker", |db| workers::worker(db, holder))
    }

    fn steady_offset(&self, boot: &Boot) -> Result<Option<i64>, StoreError> {
        self.read("reading the time of a boot", |db| workers::steady_offset(db, boot))
    }

    fn keep_steady_offset(&self, boot: &Boot, offset_ms: i64) -> Result<i64, StoreError> {
        let Answer::Offset(kept) = self.write(Command::KeepSteadyOffset(boot.clone(), offset_ms))? else {
            unreachable!("{ANSWER_FITS}")
        };
        Ok(kept)
    }

    fn late_writes(&self) -> Result<u64, StoreError> {
        self.read("counting late writes", queue::late_writes)
    }

    fn successor(&self, row: &Entity) -> Result<Option<Entity>, StoreError> {
        self.read("looking for a successor", |db| {
            waiting::successor(db, &row.reference.id)
        })
    }
}

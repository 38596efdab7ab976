//! The one thread of a process that writes.
//!
//! It takes what is waiting, runs every command in a savepoint of one transaction, commits once, and answers after the
//! commit. A command that fails or writes nothing leaves the others alone. When SQLite ends the transaction by itself
//! every command of it is answered with the error, none with its outcome.

use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::command::{Answer, Command};
use super::connection::{Access, Db, Reads, Source};
use super::failure::{again, explain};
use super::lanes::{Dead, Inbox, Job, Lanes, Outcome, lanes};
use super::readers::Readers;
use super::reserve;
use crate::store::StoreError;

/// Pages of the log (4 MiB of 4 KiB) from which on a process that goes on writing works it into the database.
const CHECKPOINT_PAGES: i64 = 1_024;

/// The same (1 MiB) for the first commit of a process. A command that finds no other process at the store reads the whole
/// log to open it, so short commands keep it short.
const CHECKPOINT_PAGES_FIRST: i64 = 256;

/// Asking for the size of the log costs as much as a small statement: a process asks at its first commit and then at
/// every so many.
const CHECKPOINT_EVERY: u64 = 16;

/// The hand-over to the thread, which is started by the first command.
pub(super) struct Writer {
    source: Arc<Source>,
    running: Mutex<Option<Running>>,
}

struct Running {
    lanes: Lanes,
    thread: JoinHandle<()>,
}

impl Writer {
    /// A writer that was not needed yet.
    pub(super) const fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            running: Mutex::new(None),
        }
    }

    /// Hands a command over and waits for its answer.
    pub(super) fn submit(&self, readers: &Readers, command: Command) -> Outcome {
        let doing = command.doing();
        let (reply, answer) = sync_channel(1);
        let gone = |what: &str| StoreError::Failed {
            doing,
            source: what.into(),
        };
        let lanes = self.lanes(readers)?;
        let handed = lanes.hand_over(Job { command, reply });
        handed.map_err(|Dead| gone("the writing thread has died"))?;
        answer
            .recv()
            .unwrap_or_else(|_| Err(gone("the writing thread died before it answered")))
    }

    fn lanes(&self, readers: &Readers) -> Result<Lanes, StoreError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = running.as_ref().filter(|running| !running.thread.is_finished()) {
            return Ok(running.lanes.clone());
        }
        let (lanes, inbox) = lanes();
        let at_work = Work {
            source: Arc::clone(&self.source),
            db: readers.give_up_one(),
            committed: 0,
        };
        let spawned = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || at_work.serve(inbox));
        let failed = |error| StoreError::Failed {
            doing: "starting the writing thread",
            source: Box::new(error),
        };
        *running = Some(Running {
            lanes: lanes.clone(),
            thread: spawned.map_err(failed)?,
        });
        Ok(lanes)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { lanes, thread }) = running {
            drop(lanes); // the thread ends when nobody can hand it anything
            let _ = thread.join(); // it answered everybody or told its panic already
        }
    }
}

/// The thread's own state.
struct Work {
    source: Arc<Source>,
    db: Option<Db>,
    committed: u64,
}

impl Work {
    fn serve(mut self, mut inbox: Inbox) {
        if self
            .db
            .as_ref()
            .is_some_and(|db| db.only_reads(Reads::AndWrites).is_err())
        {
            self.db = None;
        }
        let mut reserved = false;
        while let Some(batch) = inbox.next_batch() {
            for (job, outcome) in batch.iter().zip(self.commit(&batch)) {
                let _ = job.reply.send(outcome); // whoever asked may be gone
            }
            if !reserved {
                reserve::keep(&self.source.path); // given up earlier, perhaps, and there is room again
                reserved = true;
            }
            // Whoever makes a home waits for it: the log full of components is left to the next command.
            if !batch.iter().any(|job| job.command.is_installation()) {
                self.checkpoint_when_due();
            }
        }
    }

    /// One transaction for all of them, and one more for what ends or stops things when the disk was too full for it
    /// and the reserve can be given up.
    fn commit(&mut self, batch: &[Job]) -> Vec<Outcome> {
        let jobs: Vec<&Job> = batch.iter().collect();
        let mut outcomes = self.attempt(&jobs);
        let starved = |(job, outcome): (&Job, &Outcome)| {
            job.command.may_spend_reserve() && matches!(outcome, Err(StoreError::Full { .. }))
        };
        let places: Vec<usize> = (0..batch.len())
            .filter(|at| starved((&batch[*at], &outcomes[*at])))
            .collect();
        if places.is_empty() || !reserve::free(&self.source.path) {
            return outcomes;
        }
        let again: Vec<&Job> = places.iter().map(|at| &batch[*at]).collect();
        for (at, outcome) in places.into_iter().zip(self.attempt(&again)) {
            outcomes[at] = outcome;
        }
        outcomes
    }

    fn attempt(&mut self, batch: &[&Job]) -> Vec<Outcome> {
        let started = Instant::now();
        let doing = batch.first().map_or("writing", |job| job.command.doing());
        let path = self.source.path.clone();
        let all = |error: &StoreError| batch.iter().map(|_| Err(again(error))).collect();
        let db = match self.db.take().map_or_else(|| self.source.connect(Access::Write), Ok) {
            Ok(db) => self.db.insert(db),
            Err(error) => return all(&explain(error, &path, doing, started.elapsed())),
        };
        if let Err(error) = begin(db, self.source.tuning.busy_wait) {
            return all(&explain(error, &path, doing, started.elapsed()));
        }
        let alone = batch.len() == 1; // rolled back whole if it writes nothing: it needs no savepoint
        let mut outcomes = Vec::with_capacity(batch.len());
        for job in batch {
            let run = if alone {
                job.command.run(db)
            } else {
                job.command.run_in_savepoint(db)
            };
            let outcome = run.map_err(|fault| fault.explain(&path, job.command.doing(), started.elapsed()));
            if db.connection.is_autocommit() {
                // SQLite ended the transaction: nothing of the batch is there, whatever was answered so far.
                let source = "the transaction ended by itself".into();
                let error = outcome.err().unwrap_or(StoreError::Failed { doing, source });
                return all(&error);
            }
            outcomes.push(outcome);
        }
        let written = outcomes
            .iter()
            .filter(|outcome| outcome.as_ref().is_ok_and(Answer::wrote))
            .count();
        if written == 0 {
            let _ = db.connection.execute_batch("ROLLBACK"); // nothing to undo but the lock
            return outcomes;
        }
        if let Err(error) = db.write("COMMIT", []) {
            let _ = db.connection.execute_batch("ROLLBACK"); // fails when SQLite did it already
            return all(&explain(error, &path, doing, started.elapsed()));
        }
        db.note_pages();
        self.committed += 1;
        self.source.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.source
            .counters
            .commands
            .fetch_add(u64::try_from(written).unwrap_or(0), Ordering::Relaxed);
        outcomes
    }

    /// Works the log into the database when it has grown past its mark, after everybody was answered.
    ///
    /// A log that is worked in is begun anew by the next write, but only while a connection somewhere remembers that it
    /// is: a chain of short processes would never see it shrink, and each would read all of it. So a process that finds
    /// a long log at its first commit also empties it, if nobody is reading.
    fn checkpoint_when_due(&self) {
        if self.committed % CHECKPOINT_EVERY != 1 {
            return;
        }
        let Some(db) = &self.db else { return };
        let pages = |sql| {
            db.row(sql, [], |row| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))
                .ok()
                .flatten()
        };
        let Some((log, done)) = pages("PRAGMA wal_checkpoint(NOOP)") else {
            return;
        };
        let most = match self.committed {
            1 => CHECKPOINT_PAGES_FIRST,
            _ => CHECKPOINT_PAGES,
        };
        if log - done <= most {
            return;
        }
        let worked_in = pages("PRAGMA wal_checkpoint(PASSIVE)");
        self.source.counters.note_checkpoint();
        if self.committed == 1 && worked_in.is_some_and(|(log, done)| log == done) {
            let patience = self.source.tuning.busy_wait;
            if db.connection.busy_timeout(Duration::ZERO).is_ok() {
                let _ = pages("PRAGMA wal_checkpoint(TRUNCATE)"); // somebody reads: another process will do it
                let _ = db.connection.busy_timeout(patience); // fails only for a closed connection
            }
        }
    }
}

/// Between two tries to begin: a commit long, so that the moment between two commits of somebody else is soon hit.
const TRY_EVERY: Duration = Duration::from_millis(1);

/// Begins a transaction that writes, as soon as nobody else is in one. SQLite's own waiting looks again after up to a tenth
/// of a second: beside a process that writes without a pause it hardly ever comes at the right moment, and a lease that is
/// to be renewed runs out.
fn begin(db: &Db, patience: Duration) -> rusqlite::Result<()> {
    let started = Instant::now();
    db.connection.busy_timeout(Duration::ZERO)?;
    let begun = loop {
        match db.write("BEGIN IMMEDIATE", []) {
            Err(error) if is_busy(&error) && started.elapsed() < patience => thread::park_timeout(TRY_EVERY),
            begun => break begun,
        }
    };
    db.connection.busy_timeout(patience)?;
    begun.map(drop)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

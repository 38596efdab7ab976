//! The one thread of a process that writes, and what waits for it.
//!
//! It takes what is waiting, runs every command in a savepoint of one transaction, commits once, and answers after the
//! commit. A command that fails or writes nothing leaves the others alone. When SQLite ends the transaction by itself
//! every command of it is answered with the error, none with its outcome.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::connection::{Access, Db, Reads, Source};
use super::failure::{Fault, again, explain};
use super::readers::Readers;
use super::{activation, consumers, entity, history, outbox, removal, reserve, runtime, schedules};
use crate::model::{AdminEvent, Entity, NewDispatch, NewEntity, Planned, Runtime, Timestamp};
use crate::store::{
    Acknowledged, Activation, Applied, Binding, Consumer, Created, EffectSet, Enqueued, Fire, Fired, Installation,
    JournalPage, KeptSchedule, NewRun, Owed, Removed, Rows, RuntimeAdded, RuntimeUpdate, Steering, StoreError,
};

/// Commands that may wait; whoever comes later waits to hand its own over.
const QUEUE_MAX: usize = 1_024;

/// The most commands of one commit, so that the first of them does not wait for too many others.
const BATCH_MAX: usize = 512;

/// Pages of the log (4 MiB of 4 KiB) from which on a process that goes on writing works it into the database.
const CHECKPOINT_PAGES: i64 = 1_024;

/// The same (1 MiB) for the first commit of a process. A command that finds no other process at the store reads the whole
/// log to open it, so short commands keep it short.
const CHECKPOINT_PAGES_FIRST: i64 = 256;

/// Asking for the size of the log costs as much as a small statement: a process asks at its first commit and then at
/// every so many.
const CHECKPOINT_EVERY: u64 = 16;

/// A step that writes.
pub(super) enum Command {
    Create(Box<NewEntity>, Option<Box<NewRun>>),
    Apply(Box<EffectSet>),
    AddRuntime(Box<Runtime>, AdminEvent),
    UpdateRuntimes(Vec<RuntimeUpdate>),
    Record(Vec<AdminEvent>, Vec<RuntimeUpdate>),
    Install(Box<Installation>),
    Activate(Activation, AdminEvent),
    RemoveComponent(String, AdminEvent),
    DropRuntimes(Box<Entity>, Rows, Vec<AdminEvent>),
    DropResource(i64),
    Remove(Box<Entity>, AdminEvent),
    PruneJournal(JournalPage, Vec<i64>, AdminEvent),
    Enqueue(Box<NewDispatch>),
    SettleOwed(Box<Owed>, Planned, Vec<AdminEvent>),
    PutBinding(Binding, AdminEvent),
    DropBinding(String, AdminEvent),
    AddConsumer(Consumer, AdminEvent),
    RetireConsumer(String, Timestamp, AdminEvent),
    Acknowledge(String, String, Timestamp),
    AddSchedule(Box<KeptSchedule>, AdminEvent),
    SteerSchedule(String, Steering, AdminEvent),
    DropSchedule(String, AdminEvent),
    Fire(Box<Fire>),
}

/// What it came to.
pub(super) enum Answer {
    Created(Created),
    Applied(Applied),
    RuntimeAdded(RuntimeAdded),
    Flag(bool),
    Removed(Removed),
    Count(usize),
    Enqueued(Enqueued),
    Acknowledged(Acknowledged),
    Fired(Fired),
    Done,
}

impl Answer {
    /// Whether there is something to commit.
    const fn wrote(&self) -> bool {
        match self {
            Self::Created(created) => matches!(created, Created::New { .. }),
            Self::Applied(applied) => matches!(applied, Applied::Written),
            Self::RuntimeAdded(added) => matches!(added, RuntimeAdded::New(_)),
            Self::Flag(flag) => *flag,
            Self::Removed(removed) => matches!(removed, Removed::Gone),
            Self::Enqueued(enqueued) => matches!(enqueued, Enqueued::New(_)),
            Self::Acknowledged(acknowledged) => matches!(acknowledged, Acknowledged::New),
            Self::Fired(fired) => matches!(fired, Fired::Made(_) | Fired::AlreadyFired),
            Self::Count(_) | Self::Done => true,
        }
    }
}

impl Command {
    fn run(&self, db: &Db) -> Result<Answer, Fault> {
        Ok(match self {
            Self::Create(new, run) => Answer::Created(entity::create(db, new, run.as_deref())?),
            Self::Apply(effects) => Answer::Applied(entity::apply(db, effects)?),
            Self::AddRuntime(new, event) => {
                let added = runtime::add(db, new)?;
                if matches!(added, RuntimeAdded::New(_)) {
                    history::record(db, event)?;
                }
                Answer::RuntimeAdded(added)
            }
            Self::UpdateRuntimes(updates) => {
                runtime::update(db, updates)?;
                Answer::Done
            }
            Self::Record(events, updates) => {
                let is_news = runtime::update(db, updates)? || updates.is_empty();
                if is_news {
                    events.iter().try_for_each(|event| history::record(db, event))?;
                }
                Answer::Flag(is_news)
            }
            Self::Install(installation) => {
                activation::install(db, installation)?;
                Answer::Done
            }
            Self::Activate(activation, event) => {
                let known = activation::activate(db, activation)?;
                if known {
                    history::record(db, event)?;
                }
                Answer::Flag(known)
            }
            Self::RemoveComponent(digest, event) => Answer::Flag(activation::remove(db, digest, event)?),
            Self::DropRuntimes(owner, rows, events) => Answer::Flag(removal::drop_runtimes(db, owner, *rows, events)?),
            Self::DropResource(id) => {
                removal::drop_resource(db, *id)?;
                Answer::Done
            }
            Self::Remove(entity, event) => Answer::Removed(removal::remove(db, entity, event)?),
            Self::PruneJournal(page, rows, event) => Answer::Count(removal::prune_journal(db, page, rows, event)?),
            Self::Enqueue(new) => Answer::Enqueued(outbox::enqueue(db, new)?),
            Self::SettleOwed(owed, planned, events) => Answer::Flag(outbox::settle(db, owed, planned, events)?),
            Self::PutBinding(binding, event) => {
                consumers::put_binding(db, binding, event)?;
                Answer::Done
            }
            Self::DropBinding(name, event) => Answer::Flag(consumers::drop_binding(db, name, event)?),
            Self::AddConsumer(consumer, event) => Answer::Flag(consumers::add(db, consumer, event)?),
            Self::RetireConsumer(name, at, event) => Answer::Flag(consumers::retire(db, name, *at, event)?),
            Self::Acknowledge(name, event_id, at) => {
                Answer::Acknowledged(consumers::acknowledge(db, name, event_id, *at)?)
            }
            Self::AddSchedule(new, event) => Answer::Flag(schedules::add(db, new, event)?),
            Self::SteerSchedule(name, steering, event) => Answer::Flag(schedules::steer(db, name, *steering, event)?),
            Self::DropSchedule(name, event) => Answer::Flag(schedules::remove(db, name, event)?),
            Self::Fire(fire) => Answer::Fired(schedules::fire(db, fire)?),
        })
    }

    /// The entity it is about: two commands on one entity never share a commit.
    fn entity(&self) -> Option<&str> {
        match self {
            Self::Create(new, _) => Some(&new.entity.reference.id),
            Self::Apply(effects) => Some(&effects.change.after.reference.id),
            Self::DropRuntimes(entity, ..) | Self::Remove(entity, _) => Some(&entity.reference.id),
            Self::AddRuntime(new, _) => Some(&new.owner.id),
            Self::Enqueue(new) => Some(&new.entity.reference.id),
            Self::Fire(fire) => Some(&fire.new.entity.reference.id),
            Self::UpdateRuntimes(_)
            | Self::Record(..)
            | Self::Install(..)
            | Self::Activate(..)
            | Self::RemoveComponent(..)
            | Self::DropResource(_)
            | Self::PruneJournal(..)
            | Self::SettleOwed(..)
            | Self::PutBinding(..)
            | Self::DropBinding(..)
            | Self::AddConsumer(..)
            | Self::RetireConsumer(..)
            | Self::Acknowledge(..)
            | Self::AddSchedule(..)
            | Self::SteerSchedule(..)
            | Self::DropSchedule(..) => None,
        }
    }

    /// Whether the reserve may be spent on it: what ends or stops things, not what starts them.
    const fn may_spend_reserve(&self) -> bool {
        match self {
            Self::Apply(_) | Self::UpdateRuntimes(_) | Self::Record(..) => true,
            // What makes room may use the room it makes.
            Self::DropRuntimes(..) | Self::DropResource(_) | Self::Remove(..) | Self::PruneJournal(..) => true,
            Self::Create(..)
            | Self::AddRuntime(..)
            | Self::Install(..)
            | Self::Activate(..)
            | Self::RemoveComponent(..)
            | Self::Enqueue(_)
            | Self::SettleOwed(..)
            | Self::PutBinding(..)
            | Self::DropBinding(..)
            | Self::AddConsumer(..)
            | Self::RetireConsumer(..)
            | Self::Acknowledge(..)
            | Self::AddSchedule(..)
            | Self::SteerSchedule(..)
            | Self::DropSchedule(..)
            | Self::Fire(_) => false,
        }
    }

    /// What is being done, for errors.
    const fn doing(&self) -> &'static str {
        match self {
            Self::Create(..) => "creating an entity",
            Self::Apply(_) => "applying a change",
            Self::AddRuntime(..) => "adding a runtime row",
            Self::UpdateRuntimes(_) => "writing runtime rows",
            Self::Record(..) => "writing audit rows",
            Self::Install(..) => "installing a component",
            Self::Activate(..) => "activating a component",
            Self::RemoveComponent(..) => "removing a component",
            Self::DropRuntimes(..) => "removing runtime rows",
            Self::DropResource(_) => "removing a resource",
            Self::Remove(..) => "removing an entity",
            Self::PruneJournal(..) => "pruning a journal",
            Self::Enqueue(_) => "adding a dispatch",
            Self::SettleOwed(..) => "settling a plan",
            Self::PutBinding(..) => "writing a binding",
            Self::DropBinding(..) => "removing a binding",
            Self::AddConsumer(..) => "adding a consumer",
            Self::RetireConsumer(..) => "retiring a consumer",
            Self::Acknowledge(..) => "acknowledging an event",
            Self::AddSchedule(..) => "adding a schedule",
            Self::SteerSchedule(..) => "pausing or resuming a schedule",
            Self::DropSchedule(..) => "removing a schedule",
            Self::Fire(_) => "firing a schedule",
        }
    }
}

type Outcome = Result<Answer, StoreError>;

struct Job {
    command: Command,
    reply: SyncSender<Outcome>,
}

/// The hand-over to the thread, which is started by the first command.
pub(super) struct Writer {
    source: Arc<Source>,
    running: Mutex<Option<Running>>,
}

struct Running {
    queue: SyncSender<Job>,
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
        let queue = self.queue(readers)?;
        queue
            .send(Job { command, reply })
            .map_err(|_| gone("the writing thread has died"))?;
        answer
            .recv()
            .unwrap_or_else(|_| Err(gone("the writing thread died before it answered")))
    }

    fn queue(&self, readers: &Readers) -> Result<SyncSender<Job>, StoreError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = running.as_ref().filter(|running| !running.thread.is_finished()) {
            return Ok(running.queue.clone());
        }
        let (queue, jobs) = sync_channel(QUEUE_MAX);
        let at_work = Work {
            source: Arc::clone(&self.source),
            db: readers.give_up_one(),
            committed: 0,
        };
        let spawned = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || at_work.serve(&jobs));
        let failed = |error| StoreError::Failed {
            doing: "starting the writing thread",
            source: Box::new(error),
        };
        *running = Some(Running {
            queue: queue.clone(),
            thread: spawned.map_err(failed)?,
        });
        Ok(queue)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { queue, thread }) = running {
            drop(queue); // the thread ends when nobody can hand it anything
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
    fn serve(mut self, jobs: &Receiver<Job>) {
        if self
            .db
            .as_ref()
            .is_some_and(|db| db.only_reads(Reads::AndWrites).is_err())
        {
            self.db = None;
        }
        let mut left_over = None;
        let mut reserved = false;
        while let Some(first) = left_over.take().or_else(|| jobs.recv().ok()) {
            let (batch, next) = collect(first, jobs);
            left_over = next;
            for (job, outcome) in batch.iter().zip(self.commit(&batch)) {
                let _ = job.reply.send(outcome); // whoever asked may be gone
            }
            if !reserved {
                reserve::keep(&self.source.path); // given up earlier, perhaps, and there is room again
                reserved = true;
            }
            // Whoever makes a home waits for it: the log full of components is left to the next command.
            if !batch.iter().any(|job| matches!(job.command, Command::Install(_))) {
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
        if let Err(error) = db.write("BEGIN IMMEDIATE", []) {
            return all(&explain(error, &path, doing, started.elapsed()));
        }
        let alone = batch.len() == 1; // rolled back whole if it writes nothing: it needs no savepoint
        let mut outcomes = Vec::with_capacity(batch.len());
        for job in batch {
            let run = if alone {
                job.command.run(db)
            } else {
                in_savepoint(db, &job.command)
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

/// The commands of the next commit, and the first of the one after it.
fn collect(first: Job, jobs: &Receiver<Job>) -> (Vec<Job>, Option<Job>) {
    let mut entities: HashSet<String> = first.command.entity().map(str::to_owned).into_iter().collect();
    let mut batch = vec![first];
    while batch.len() < BATCH_MAX {
        let Ok(job) = jobs.try_recv() else { break };
        if job
            .command
            .entity()
            .is_some_and(|entity| !entities.insert(entity.to_owned()))
        {
            return (batch, Some(job));
        }
        batch.push(job);
    }
    (batch, None)
}

/// Runs one command so that it leaves nothing behind unless it wrote what it was to write.
fn in_savepoint(db: &Db, command: &Command) -> Result<Answer, Fault> {
    db.write("SAVEPOINT command", [])?;
    let answer = command.run(db);
    if db.connection.is_autocommit() {
        return answer;
    }
    if !answer.as_ref().is_ok_and(Answer::wrote) {
        db.write("ROLLBACK TO command", [])?;
    }
    db.write("RELEASE command", [])?;
    answer
}

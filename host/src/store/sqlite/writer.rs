//! The one thread of a process that writes, and what waits for it.
//!
//! It takes what is waiting, runs every command in a savepoint of one transaction, commits once, and answers after the
//! commit. A command that fails or writes nothing leaves the others alone. When SQLite ends the transaction by itself
//! every command of it is answered with the error, none with its outcome.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::connection::{Access, Db, Reads, Source};
use super::failure::{Fault, again, explain};
use super::readers::Readers;
use super::scheduling::Step;
use super::{activation, consumers, entity, history, outbox, queue, removal, reserve, runtime};
use crate::model::{AdminEvent, Entity, NewDispatch, NewEntity, Planned, Runtime, Timestamp};
use crate::store::{
    Acknowledged, Activation, Applied, Binding, Boot, Consumer, Created, EffectSet, Enqueued, Fired, Installation,
    JournalPage, NewRun, Owed, QueueSetup, Removed, Renewal, Renewed, Rows, RuntimeAdded, RuntimeUpdate, StoreError,
    Worker,
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
    ApplyAll(Vec<EffectSet>),
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
    Renew(Vec<Renewal>),
    PutQueue(QueueSetup, AdminEvent),
    PutWorker(Box<Worker>),
    DropWorker(String),
    LookedAt(i64),
    KeepSteadyOffset(Boot, i64),
    Schedules(Box<Step>),
}

/// What it came to.
pub(super) enum Answer {
    Created(Created),
    Applied(Applied),
    AppliedAll(Vec<Applied>),
    Renewed(Vec<Renewed>),
    Offset(i64),
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
    fn wrote(&self) -> bool {
        match self {
            Self::Created(created) => matches!(created, Created::New { .. }),
            Self::Applied(applied) => matches!(applied, Applied::Written),
            Self::AppliedAll(applied) => applied.contains(&Applied::Written),
            Self::Renewed(_) => true,
            Self::RuntimeAdded(added) => matches!(added, RuntimeAdded::New(_)),
            Self::Flag(flag) => *flag,
            Self::Removed(removed) => matches!(removed, Removed::Gone),
            Self::Enqueued(enqueued) => matches!(enqueued, Enqueued::New(_)),
            Self::Acknowledged(acknowledged) => matches!(acknowledged, Acknowledged::New),
            Self::Fired(fired) => matches!(fired, Fired::Made(_) | Fired::AlreadyFired),
            Self::Count(_) | Self::Offset(_) | Self::Done => true,
        }
    }
}

impl Command {
    fn run(&self, db: &Db) -> Result<Answer, Fault> {
        Ok(match self {
            Self::Create(new, run) => Answer::Created(entity::create(db, new, run.as_deref())?),
            Self::Apply(effects) => Answer::Applied(entity::apply(db, effects)?),
            Self::ApplyAll(effects) => Answer::AppliedAll(apply_all(db, effects)?),
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
            Self::Renew(renewals) => Answer::Renewed(queue::renew(db, renewals)?),
            Self::PutQueue(setup, event) => {
                queue::put(db, setup, event)?;
                Answer::Done
            }
            Self::PutWorker(worker) => {
                queue::put_worker(db, worker)?;
                Answer::Done
            }
            Self::DropWorker(holder) => {
                queue::drop_worker(db, holder)?;
                Answer::Done
            }
            Self::LookedAt(row) => Answer::Flag(queue::looked_at(db, *row)?),
            Self::KeepSteadyOffset(boot, offset_ms) => Answer::Offset(queue::keep_steady_offset(db, boot, *offset_ms)?),
            Self::Schedules(step) => step.run(db)?,
        })
    }

    /// The entities it is about: two commands on one entity never share a commit.
    fn entities(&self) -> Vec<&str> {
        match self {
            Self::Create(new, _) => vec![&new.entity.reference.id],
            Self::Apply(effects) => vec![&effects.change.after.reference.id],
            Self::ApplyAll(all) => all
                .iter()
                .map(|effects| effects.change.after.reference.id.as_str())
                .collect(),
            Self::DropRuntimes(entity, ..) | Self::Remove(entity, _) => vec![&entity.reference.id],
            Self::AddRuntime(new, _) => vec![&new.owner.id],
            Self::Enqueue(new) => vec![&new.entity.reference.id],
            Self::Schedules(step) => step.entity().into_iter().collect(),
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
            | Self::Renew(_)
            | Self::PutQueue(..)
            | Self::PutWorker(_)
            | Self::DropWorker(_)
            | Self::LookedAt(_)
            | Self::KeepSteadyOffset(..) => Vec::new(),
        }
    }

    /// Whether the reserve may be spent on it: what ends or stops things, not what starts them.
    const fn may_spend_reserve(&self) -> bool {
        match self {
            Self::Apply(_) | Self::ApplyAll(_) | Self::UpdateRuntimes(_) | Self::Record(..) | Self::Renew(_) => true,
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
            | Self::Schedules(_)
            | Self::PutQueue(..)
            | Self::PutWorker(_)
            | Self::DropWorker(_)
            | Self::LookedAt(_)
            | Self::KeepSteadyOffset(..) => false,
        }
    }

    /// What is being done, for errors.
    const fn doing(&self) -> &'static str {
        match self {
            Self::Create(..) => "creating an entity",
            Self::Apply(_) => "applying a change",
            Self::ApplyAll(_) => "applying changes",
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
            Self::Renew(_) => "renewing leases",
            Self::PutQueue(..) => "setting a queue up",
            Self::PutWorker(_) => "noting a worker",
            Self::DropWorker(_) => "removing a worker",
            Self::LookedAt(_) => "noting a look",
            Self::KeepSteadyOffset(..) => "keeping the time of a boot",
            Self::Schedules(step) => step.doing(),
        }
    }

    /// Whether it goes before whatever else waits: a lease that is not renewed in time is lost.
    const fn is_urgent(&self) -> bool {
        matches!(self, Self::Renew(_))
    }

    const fn is_installation(&self) -> bool {
        matches!(self, Self::Install(_))
    }
}

type Outcome = Result<Answer, StoreError>;

struct Job {
    command: Command,
    reply: SyncSender<Outcome>,
}

/// The two lanes to the thread. Whatever is urgent has one of its own, which never fills up; the other is told of it, so
/// that the thread wakes, unless it is full and the thread is awake anyway.
#[derive(Clone)]
struct Lanes {
    urgent: Sender<Job>,
    ordinary: SyncSender<Option<Job>>,
}

impl Lanes {
    fn hand_over(&self, job: Job) -> Result<(), Dead> {
        if !job.command.is_urgent() {
            return self.ordinary.send(Some(job)).map_err(|_| Dead);
        }
        self.urgent.send(job).map_err(|_| Dead)?;
        match self.ordinary.try_send(None) {
            Ok(()) | Err(TrySendError::Full(_)) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(Dead),
        }
    }
}

/// The thread is gone.
struct Dead;

/// What the thread reads.
struct Inbox {
    urgent: Receiver<Job>,
    ordinary: Receiver<Option<Job>>,
    /// The first command of the commit after the one that is being made.
    left_over: Option<Job>,
}

impl Inbox {
    /// The commands of the next commit; none when nobody can hand over any.
    fn next_batch(&mut self) -> Option<Vec<Job>> {
        loop {
            let urgent: Vec<Job> = self.urgent.try_iter().take(BATCH_MAX).collect();
            if !urgent.is_empty() {
                return Some(urgent);
            }
            if let Some(first) = self.left_over.take() {
                return Some(self.fill(first));
            }
            if let Some(first) = self.ordinary.recv().ok()? {
                return Some(self.fill(first));
            }
        }
    }

    /// A commit as large as may be: no two commands on one entity, and nothing urgent is kept waiting for it.
    fn fill(&mut self, first: Job) -> Vec<Job> {
        let mut entities: HashSet<String> = owned(&first.command).collect();
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX {
            let Ok(next) = self.ordinary.try_recv() else { break };
            let Some(job) = next else { break };
            if job.command.entities().iter().any(|entity| entities.contains(*entity)) {
                self.left_over = Some(job);
                break;
            }
            entities.extend(owned(&job.command));
            batch.push(job);
        }
        batch
    }
}

fn owned(command: &Command) -> impl Iterator<Item = String> {
    command.entities().into_iter().map(str::to_owned)
}

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
        let (ordinary, ordinary_inbox) = sync_channel(QUEUE_MAX);
        let (urgent, urgent_inbox) = channel();
        let lanes = Lanes { urgent, ordinary };
        let inbox = Inbox {
            urgent: urgent_inbox,
            ordinary: ordinary_inbox,
            left_over: None,
        };
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

/// Applies several changes, each in a savepoint of its own: what one of them comes to changes nothing for the others.
fn apply_all(db: &Db, effects: &[EffectSet]) -> Result<Vec<Applied>, Fault> {
    let mut all = Vec::with_capacity(effects.len());
    for one in effects {
        db.write("SAVEPOINT change", [])?;
        let applied = entity::apply(db, one)?;
        if applied != Applied::Written {
            db.write("ROLLBACK TO change", [])?;
        }
        db.write("RELEASE change", [])?;
        all.push(applied);
    }
    Ok(all)
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

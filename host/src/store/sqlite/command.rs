//! What the writing thread is asked to do: each command is one step, run in a transaction that somebody else opened.

use super::connection::Db;
use super::failure::Fault;
use super::scheduling::Step;
use super::{
    activation, consumers, creation, entity, history, judging, outbox, queue, removal, runtime, waiting, workers,
};
use crate::model::{AdminEvent, Entity, NewDispatch, NewEntity, Planned, Runtime, Timestamp};
use crate::store::{
    Acknowledged, Activation, Applied, Binding, Boot, Consumer, Created, Dependency, EffectSet, Enqueued, Fired,
    Installation, JournalPage, Judged, NewRun, Owed, QueueSetup, Removed, Renewal, Renewed, Rows, RuntimeAdded,
    RuntimeUpdate, Shadow, Worker,
};

/// A step that writes.
pub(super) enum Command {
    Create(Box<NewEntity>, Option<Box<NewRun>>),
    Apply(Box<EffectSet>),
    ApplyAll(Vec<EffectSet>),
    AddRuntime(Box<Runtime>, AdminEvent),
    UpdateRuntimes(Vec<RuntimeUpdate>),
    /// Audit rows, runtime rows of the same fact, and what a shadow said of it.
    Record(Vec<AdminEvent>, Vec<RuntimeUpdate>, Option<Judged>),
    Install(Box<Installation>),
    Activate(Activation, AdminEvent),
    PutShadow(Box<Shadow>, AdminEvent),
    DropShadow(String, AdminEvent),
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
    ForgetWorkers(Timestamp),
    /// A row by number and version.
    LookedAt((i64, i64), Vec<Dependency>),
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
    pub(super) fn wrote(&self) -> bool {
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
    /// Does it, in the transaction that is open.
    pub(super) fn run(&self, db: &Db) -> Result<Answer, Fault> {
        Ok(match self {
            Self::Create(new, run) => Answer::Created(creation::create(db, new, run.as_deref())?),
            Self::Apply(effects) => Answer::Applied(entity::apply(db, effects)?),
            Self::ApplyAll(effects) => Answer::AppliedAll(apply_all(db, effects)?),
            Self::AddRuntime(new, event) => Answer::RuntimeAdded(add_runtime(db, new, event)?),
            Self::UpdateRuntimes(updates) => {
                runtime::update(db, updates)?;
                Answer::Done
            }
            Self::Record(events, updates, judged) => {
                let is_news = runtime::update(db, updates)? || updates.is_empty();
                if is_news {
                    events.iter().try_for_each(|event| history::record(db, event))?;
                    judged.iter().try_for_each(|judged| judging::count(db, judged))?;
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
            Self::PutShadow(shadow, event) => Answer::Flag(judging::put(db, shadow, event)?),
            Self::DropShadow(kind, event) => Answer::Flag(judging::remove(db, kind, event)?),
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
                workers::put_worker(db, worker)?;
                Answer::Done
            }
            Self::ForgetWorkers(before) => Answer::Count(workers::forget_workers(db, *before)?),
            Self::LookedAt(row, seen) => Answer::Flag(waiting::looked_at(db, *row, seen)?),
            Self::Schedules(step) => step.run(db)?,
            Self::KeepSteadyOffset(boot, offset_ms) => {
                Answer::Offset(workers::keep_steady_offset(db, boot, *offset_ms)?)
            }
        })
    }

    /// Runs it so that it leaves nothing behind unless it wrote what it was to write.
    pub(super) fn run_in_savepoint(&self, db: &Db) -> Result<Answer, Fault> {
        db.write("SAVEPOINT command", [])?;
        let answer = self.run(db);
        if db.connection.is_autocommit() {
            return answer;
        }
        if !answer.as_ref().is_ok_and(Answer::wrote) {
            db.write("ROLLBACK TO command", [])?;
        }
        db.write("RELEASE command", [])?;
        answer
    }

    /// The entities it is about: two commands on one entity never share a commit.
    pub(super) fn entities(&self) -> Vec<&str> {
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
            Self::UpdateRuntimes(_)
            | Self::Record(..)
            | Self::Install(..)
            | Self::Activate(..)
            | Self::PutShadow(..)
            | Self::DropShadow(..)
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
            | Self::ForgetWorkers(_)
            | Self::LookedAt(..)
            | Self::KeepSteadyOffset(..) => Vec::new(),
            Self::Schedules(step) => step.entity().into_iter().collect(),
        }
    }

    /// Whether the reserve may be spent on it: what ends or stops things, not what starts them.
    pub(super) const fn may_spend_reserve(&self) -> bool {
        match self {
            Self::Apply(_) | Self::ApplyAll(_) | Self::UpdateRuntimes(_) | Self::Record(..) | Self::Renew(_) => true,
            // What makes room may use the room it makes.
            Self::DropRuntimes(..) | Self::DropResource(_) | Self::Remove(..) | Self::PruneJournal(..) => true,
            Self::Create(..)
            | Self::AddRuntime(..)
            | Self::Install(..)
            | Self::Activate(..)
            | Self::PutShadow(..)
            | Self::DropShadow(..)
            | Self::RemoveComponent(..)
            | Self::Enqueue(_)
            | Self::SettleOwed(..)
            | Self::PutBinding(..)
            | Self::DropBinding(..)
            | Self::AddConsumer(..)
            | Self::RetireConsumer(..)
            | Self::Acknowledge(..)
            | Self::PutQueue(..)
            | Self::PutWorker(_)
            | Self::ForgetWorkers(_)
            | Self::LookedAt(..)
            | Self::KeepSteadyOffset(..)
            | Self::Schedules(_) => false,
        }
    }

    /// What is being done, for errors.
    pub(super) const fn doing(&self) -> &'static str {
        match self {
            Self::Create(..) => "creating an entity",
            Self::Apply(_) => "applying a change",
            Self::ApplyAll(_) => "applying changes",
            Self::AddRuntime(..) => "adding a runtime row",
            Self::UpdateRuntimes(_) => "writing runtime rows",
            Self::Record(..) => "writing audit rows",
            Self::Install(..) => "installing a component",
            Self::Activate(..) => "activating a component",
            Self::PutShadow(..) => "letting a policy judge",
            Self::DropShadow(..) => "ending a shadow",
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
            Self::ForgetWorkers(_) => "removing workers that stopped",
            Self::LookedAt(..) => "noting a look",
            Self::KeepSteadyOffset(..) => "keeping the time of a boot",
            Self::Schedules(step) => step.doing(),
        }
    }

    /// Whether it goes before whatever else waits: a lease that is not renewed in time is lost.
    pub(super) const fn is_urgent(&self) -> bool {
        matches!(self, Self::Renew(_))
    }

    /// Whether it adds components.
    pub(super) const fn is_installation(&self) -> bool {
        matches!(self, Self::Install(_))
    }
}

/// Applies several changes. One that loses has written nothing by then, so that it needs no savepoint of its own.
fn apply_all(db: &Db, effects: &[EffectSet]) -> Result<Vec<Applied>, Fault> {
    effects.iter().map(|one| entity::apply(db, one)).collect()
}

fn add_runtime(db: &Db, new: &Runtime, event: &AdminEvent) -> Result<RuntimeAdded, Fault> {
    let added = runtime::add(db, new)?;
    if matches!(added, RuntimeAdded::New(_)) {
        history::record(db, event)?;
    }
    Ok(added)
}

//! Leased work in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{MemoryStore, State, Step};
use crate::model::{AdminEvent, Entity, LATE_WRITE, Queued, Reference, Stage, Timestamp};
use crate::store::{
    Boot, Created, Dependency, HeldLease, NewRun, NoRoom, Queue, QueueSetup, QueueState, RENEWAL_DELAY_LIMITS,
    ReadyQuery, Renewal, RenewalDelays, Renewed, StagedQuery, StoreError, Successor, Worker,
};

/// What there is beside the rows themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    setups: BTreeMap<String, QueueSetup>,
    /// Who waits, for whom: whether it ended and with success, and whether that is news.
    dependencies: BTreeMap<(i64, i64), (Option<bool>, bool)>,
    /// Rows for which any end of what they wait for will do.
    any_end: BTreeSet<i64>,
    /// What is or was waited for, by number.
    names: BTreeMap<i64, Reference>,
    workers: Vec<Worker>,
    offsets: Vec<(Boot, i64)>,
    /// By upper limit, -1 for all above.
    delays: BTreeMap<i64, u64>,
    delays_total_ms: u64,
}

fn stage(entity: &Entity) -> Option<Stage> {
    entity.queued.as_ref()?.stage
}

fn is_held(entity: &Entity) -> bool {
    stage(entity).is_some_and(Stage::is_held)
}

impl State {
    fn queued(&self) -> impl Iterator<Item = (&Entity, &Queued)> {
        self.entities
            .values()
            .filter_map(|entity| Some((entity, entity.queued.as_ref()?)))
    }

    /// How many rows of a queue may be taken beside those that are held, or why none.
    fn room(&self, queue: &str) -> Result<usize, NoRoom> {
        let Some(setup) = self.queue.setups.get(queue) else {
            return Ok(usize::MAX);
        };
        if setup.paused_at.is_some() {
            return Err(NoRoom::Paused);
        }
        let Some(most) = setup.limit else { return Ok(usize::MAX) };
        let in_queue = self.queued().filter(|(_, queued)| queued.queue == queue);
        let held = in_queue.filter(|(entity, _)| is_held(entity)).count();
        match usize::try_from(most).unwrap_or(0).saturating_sub(held) {
            0 => Err(NoRoom::Full),
            room => Ok(room),
        }
    }

    /// Why a row that is not held yet cannot be taken now.
    pub(super) fn refused(&self, before: &Entity, after: &Entity) -> Option<NoRoom> {
        let queued = after.queued.as_ref()?;
        let takes = is_held(after) && !is_held(before);
        takes.then(|| self.room(&queued.queue).err()).flatten()
    }

    fn ready(&self, query: &ReadyQuery) -> Vec<Entity> {
        let mut by_queue: BTreeMap<&str, Vec<&Entity>> = BTreeMap::new();
        for (entity, queued) in self.queued() {
            let is_asked = query.queues.is_empty() || query.queues.contains(&queued.queue);
            if is_asked && queued.stage == Some(Stage::Ready) {
                by_queue.entry(&queued.queue).or_default().push(entity);
            }
        }
        let order = |entity: &Entity| {
            let priority = entity.queued.as_ref().map(|queued| queued.priority);
            (Reverse(priority), entity.row)
        };
        let mut found: Vec<Entity> = Vec::new();
        for (queue, mut rows) in by_queue {
            rows.sort_by_key(|entity| order(entity));
            let room = self.room(queue).unwrap_or(0);
            found.extend(rows.into_iter().take(room).cloned());
        }
        found.sort_by_key(order);
        found.truncate(query.limit);
        found
    }

    fn staged_due(&self, query: &StagedQuery) -> Vec<Entity> {
        let place = |entity: &Entity| entity.due_at().map(|at| (at, entity.row));
        let staged = self.queued().filter(|(_, queued)| queued.stage == Some(query.stage));
        let mut found: Vec<Entity> = staged
            .filter(|(entity, _)| entity.due_at().is_some_and(|at| at <= query.before))
            .filter(|(entity, _)| query.after.is_none() || place(entity) > query.after)
            .map(|(entity, _)| entity.clone())
            .collect();
        found.sort_by_key(place);
        found.truncate(query.limit);
        found
    }

    fn renew(&mut self, renewal: &Renewal) -> Renewed {
        if let Some(late) = renewal.late {
            let limit = RENEWAL_DELAY_LIMITS.into_iter().find(|limit| late.as_ms() <= *limit);
            *self.queue.delays.entry(limit.unwrap_or(-1)).or_default() += 1;
            self.queue.delays_total_ms += u64::try_from(late.as_ms()).unwrap_or(0);
        }
        let is_holders = |entity: &&mut Entity| {
            entity.fence == renewal.fence
                && entity.structural.leased_by.as_ref() == Some(&renewal.holder)
                && is_held(entity)
        };
        let Some(entity) = self.entities.get_mut(&renewal.row).filter(is_holders) else {
            return Renewed::Lost;
        };
        let holds = entity.structural.lease_expires_at.is_some_and(|end| end >= renewal.at);
        if stage(entity) != Some(Stage::Active) || !holds {
            return Renewed::RanOut;
        }
        entity.structural.lease_expires_at = entity.structural.lease_expires_at.max(Some(renewal.until));
        entity.version += 1;
        Renewed::Extended
    }

    /// Why nothing is made: its key or its place in a chain is taken, or the lease it is to be run for is lost.
    pub(super) fn refusal(&self, new: &Entity, run: Option<&NewRun>) -> Option<Created> {
        if let Some(lease) = run.and_then(|run| run.lease.as_ref())
            && !self.is_current(lease)
        {
            return Some(Created::LeaseLost);
        }
        let before = new.chain_parent.as_deref();
        if let Some(successor) = before.and_then(|before| self.successor(before)) {
            return Some(Created::SucceededBy(Box::new(successor.clone())));
        }
        let key = new.unique_key.as_ref()?;
        let holder = self
            .entities
            .values()
            .find(|other| other.unique_key.as_ref() == Some(key))?;
        Some(Created::UniqueKeyHeld(Box::new(holder.clone())))
    }

    fn is_current(&self, lease: &HeldLease) -> bool {
        self.by_reference(&lease.reference).is_some_and(|row| {
            let is_holders = row.structural.leased_by.as_ref() == Some(&lease.holder);
            row.fence == lease.fence && is_holders && stage(row) == Some(Stage::Active)
        })
    }

    fn successor(&self, id: &str) -> Option<&Entity> {
        self.entities
            .values()
            .find(|entity| entity.chain_parent.as_deref() == Some(id))
    }

    /// What a new row waits for, or the first that does not exist.
    pub(super) fn awaited(&self, after: &[Reference]) -> Result<Vec<&Entity>, Reference> {
        let last = |reference: &Reference| {
            let mut found = self.by_reference(reference).ok_or_else(|| reference.clone())?;
            // A successor is younger than the one before it, so that a chain has an end.
            let younger = |found: &Entity| {
                let successor = self.successor(&found.reference.id);
                successor.filter(|successor| successor.row > found.row)
            };
            while let Some(successor) = younger(found) {
                found = successor;
            }
            Ok(found)
        };
        after.iter().map(last).collect()
    }

    pub(super) fn await_all(&mut self, row: i64, awaited: &[(i64, Option<bool>)]) {
        for (on, ended) in awaited {
            let dependency = (*ended, ended.is_some());
            self.queue.dependencies.entry((row, *on)).or_insert(dependency);
            if let Some(awaited) = self.entities.get(on) {
                self.queue.names.insert(*on, awaited.reference.clone());
            }
        }
    }

    /// The same, for a row that waits for nothing else: any end will do.
    pub(super) fn await_ends(&mut self, row: i64, behind: &[Reference]) -> Result<(), Reference> {
        let awaited: Vec<(i64, Option<bool>)> = self
            .awaited(behind)?
            .into_iter()
            .map(|on| (on.row, on.terminal.then_some(true)))
            .collect();
        self.await_all(row, &awaited);
        if !awaited.is_empty() {
            self.queue.any_end.insert(row);
        }
        Ok(())
    }

    /// Tells whoever waits for an entity that it ended; it is news for those that have not ended themselves.
    pub(super) fn note_end(&mut self, row: i64, success: bool) {
        for ((waiting, on), (ended, is_news)) in &mut self.queue.dependencies {
            if *on == row && ended.is_none() {
                *ended = Some(success || self.queue.any_end.contains(waiting));
                *is_news = self.entities.get(waiting).is_some_and(|waiting| !waiting.terminal);
            }
        }
    }

    /// Nothing is news for a row that ended.
    pub(super) fn wait_no_more(&mut self, row: i64) {
        for ((waiting, _), (_, is_news)) in &mut self.queue.dependencies {
            *is_news &= *waiting != row;
        }
    }

    /// Adds the attempt that follows a row that ends. It takes over its work, what it is linked below, and whoever waits
    /// for it.
    pub(super) fn succeed(&mut self, before: &Entity, successor: &Successor) -> Result<(), StoreError> {
        let new = &successor.new.entity;
        let has_one = new
            .chain_parent
            .as_deref()
            .is_some_and(|id| self.successor(id).is_some());
        if has_one || self.ids.contains_key(&new.reference.id) {
            return Err(StoreError::Failed {
                doing: "applying a change",
                source: "the id of a successor is taken, or there is one".into(),
            });
        }
        let added = self.add(new, &successor.new.row, None)?;
        if let Some(work) = self.works.get(&before.row).cloned() {
            self.works.insert(added.row, work);
        }
        self.take_over(before.row, &added);
        Ok(())
    }

    /// Puts an attempt where the one before it is: below the same entities, and before whoever still waits for it.
    pub(super) fn take_over(&mut self, before: i64, added: &Entity) {
        let parents: Vec<i64> = self
            .links
            .iter()
            .filter(|(_, child)| *child == before)
            .map(|(parent, _)| *parent)
            .collect();
        self.links.extend(parents.into_iter().map(|parent| (parent, added.row)));
        let is_open = |(_, on): &(i64, i64), (ended, _): &mut (Option<bool>, bool)| *on == before && ended.is_none();
        let open: Vec<_> = self.queue.dependencies.extract_if(.., is_open).collect();
        for ((waiting, _), dependency) in open {
            self.queue.dependencies.insert((waiting, added.row), dependency);
        }
        self.queue.names.insert(added.row, added.reference.clone());
    }

    /// Forgets what a row that is removed waits for, and tells whoever waits for it.
    pub(super) fn forget_dependencies(&mut self, row: i64) {
        self.queue.dependencies.retain(|(waiting, _), _| *waiting != row);
        self.queue.any_end.remove(&row);
        self.note_end(row, false);
    }

    fn queues(&self) -> Vec<QueueState> {
        let mut states: BTreeMap<String, QueueState> = BTreeMap::new();
        let empty = |name: &str| QueueState {
            setup: self.queue.setups.get(name).cloned().unwrap_or_else(|| QueueSetup {
                name: name.to_owned(),
                ..QueueSetup::default()
            }),
            ..QueueState::default()
        };
        for name in self.queue.setups.keys() {
            states.insert(name.clone(), empty(name));
        }
        for stage in Stage::ALL {
            for (entity, queued) in self.queued().filter(|(_, queued)| queued.stage == Some(stage)) {
                let state = states
                    .entry(queued.queue.clone())
                    .or_insert_with(|| empty(&queued.queue));
                match state.counts.last_mut().filter(|(counted, _)| *counted == stage) {
                    Some((_, count)) => *count += 1,
                    None => state.counts.push((stage, 1)),
                }
                let first = |known: Option<Timestamp>, seen: Option<Timestamp>| known.into_iter().chain(seen).min();
                match stage {
                    Stage::Ready => state.ready_since = first(state.ready_since, Some(entity.updated_at)),
                    Stage::Active => {
                        state.lease_ends_first = first(state.lease_ends_first, entity.structural.lease_expires_at);
                    }
                    Stage::Doubted => {
                        state.doubted_since = first(state.doubted_since, entity.structural.unknown_since);
                    }
                    Stage::Waiting | Stage::Later => {}
                }
            }
        }
        states.into_values().collect()
    }
}

impl Queue for MemoryStore {
    fn ready(&self, query: &ReadyQuery) -> Result<Vec<Entity>, StoreError> {
        Ok(self.state().ready(query))
    }

    fn staged_due(&self, query: &StagedQuery) -> Result<Vec<Entity>, StoreError> {
        Ok(self.state().staged_due(query))
    }

    fn next_staged_due(&self, wanted: Stage) -> Result<Option<Timestamp>, StoreError> {
        let state = self.state();
        let staged = state.queued().filter(|(_, queued)| queued.stage == Some(wanted));
        Ok(staged.filter_map(|(entity, _)| entity.due_at()).min())
    }

    fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        self.commit(|state| {
            Ok(Step::Wrote(
                renewals.iter().map(|renewal| state.renew(renewal)).collect(),
            ))
        })
    }

    fn renewal_delays(&self) -> Result<RenewalDelays, StoreError> {
        let state = self.state();
        let count = |limit: i64| state.queue.delays.get(&limit).copied().unwrap_or(0);
        let limits = RENEWAL_DELAY_LIMITS
            .into_iter()
            .map(|limit| (Some(limit), count(limit)));
        Ok(RenewalDelays {
            counts: limits.chain([(None, count(-1))]).collect(),
            total_ms: state.queue.delays_total_ms,
        })
    }

    fn dependencies(&self, row: &Entity) -> Result<Vec<Dependency>, StoreError> {
        let state = self.state();
        let of_row = state
            .queue
            .dependencies
            .iter()
            .filter(|((waiting, _), _)| *waiting == row.row);
        let found = of_row.map(|((_, on), (ended, _))| Dependency {
            on: state.queue.names[on].clone(),
            ended: *ended,
        });
        Ok(found.collect())
    }

    fn awaiting_ended(&self, after_row: i64, limit: usize) -> Result<Vec<Entity>, StoreError> {
        let state = self.state();
        let news = state.queue.dependencies.iter().filter(|(_, (_, is_news))| *is_news);
        let waiting: BTreeSet<i64> = news.map(|((waiting, _), _)| *waiting).collect();
        let rows = waiting.into_iter().filter(|row| *row > after_row).take(limit);
        Ok(rows.filter_map(|row| state.entities.get(&row).cloned()).collect())
    }

    fn looked_at(&self, row: &Entity, seen: &[Dependency]) -> Result<(), StoreError> {
        let saw = |on: &Reference| seen.iter().any(|seen| seen.on == *on && seen.ended.is_some());
        self.commit(|state| {
            let now = state.entities.get(&row.row);
            if now.is_none_or(|now| now.version != row.version) {
                return Ok(Step::WroteNothing(()));
            }
            for ((waiting, on), (_, is_news)) in &mut state.queue.dependencies {
                if *waiting == row.row && saw(&state.queue.names[on]) {
                    *is_news = false;
                }
            }
            Ok(Step::Wrote(()))
        })
    }

    fn queues(&self) -> Result<Vec<QueueState>, StoreError> {
        Ok(self.state().queues())
    }

    fn put_queue(&self, setup: &QueueSetup, event: &AdminEvent) -> Result<(), StoreError> {
        self.commit(|state| {
            state.queue.setups.insert(setup.name.clone(), setup.clone());
            state.record(std::slice::from_ref(event));
            Ok(Step::Wrote(()))
        })
    }

    fn put_worker(&self, worker: &Worker) -> Result<(), StoreError> {
        self.commit(|state| {
            let known = state
                .queue
                .workers
                .iter_mut()
                .find(|known| known.holder == worker.holder);
            match known {
                Some(known) => *known = worker.clone(),
                None => state.queue.workers.push(worker.clone()),
            }
            Ok(Step::Wrote(()))
        })
    }

    fn forget_workers(&self, before: Timestamp) -> Result<usize, StoreError> {
        self.commit(|state| {
            let held = state.entities.values().filter(|entity| is_held(entity));
            let named: BTreeSet<String> = held.filter_map(|entity| entity.structural.leased_by.clone()).collect();
            let known = state.queue.workers.len();
            let stays =
                |worker: &Worker| worker.stopped_at.is_none_or(|at| at >= before) || named.contains(&worker.holder);
            state.queue.workers.retain(stays);
            Ok(Step::Wrote(known - state.queue.workers.len()))
        })
    }

    fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        let state = self.state();
        let at_work = state.queue.workers.iter().filter(|worker| worker.stopped_at.is_none());
        Ok(at_work.cloned().collect())
    }

    fn worker(&self, holder: &str) -> Result<Option<Worker>, StoreError> {
        let state = self.state();
        Ok(state
            .queue
            .workers
            .iter()
            .find(|worker| worker.holder == holder)
            .cloned())
    }

    fn steady_offset(&self, boot: &Boot) -> Result<Option<i64>, StoreError> {
        let state = self.state();
        Ok(state
            .queue
            .offsets
            .iter()
            .find(|(known, _)| known == boot)
            .map(|(_, offset)| *offset))
    }

    fn keep_steady_offset(&self, boot: &Boot, offset_ms: i64) -> Result<i64, StoreError> {
        self.commit(|state| {
            let known = state.queue.offsets.iter().find(|(known, _)| known == boot);
            if let Some((_, offset)) = known {
                return Ok(Step::WroteNothing(*offset));
            }
            state.queue.offsets.push((boot.clone(), offset_ms));
            Ok(Step::Wrote(offset_ms))
        })
    }

    fn late_writes(&self) -> Result<u64, StoreError> {
        let state = self.state();
        let late = state.admin_events.iter().filter(|event| event.action == LATE_WRITE);
        Ok(u64::try_from(late.count()).unwrap_or(u64::MAX))
    }

    fn successor(&self, row: &Entity) -> Result<Option<Entity>, StoreError> {
        Ok(self.state().successor(&row.reference.id).cloned())
    }
}

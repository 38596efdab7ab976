//! The outbox in memory.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{MemoryStore, State, Step};
use crate::model::{
    AdminEvent, DestinationHealth, Dispatch, Entity, EventId, HistoryRow, NewDispatch, OwedPlan, Planned, Timestamp,
    sha256_hex,
};
use crate::store::{Acknowledged, Backlog, Binding, Consumer, DueQuery, Enqueued, Outbox, Outline, Owed, StoreError};

/// What there is beside entities and history.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// By their entity's number.
    dispatches: BTreeMap<i64, Dispatch>,
    /// By the digest of the target.
    destinations: Vec<DestinationHealth>,
    /// With the history row's number and the settings of its entity.
    owed: Vec<(i64, Value, OwedPlan)>,
    bindings: BTreeMap<String, Binding>,
    consumers: BTreeMap<String, Consumer>,
    /// Consumer and history row.
    acknowledged: BTreeSet<(String, i64)>,
}

fn refused(doing: &'static str, what: String) -> StoreError {
    StoreError::Failed {
        doing,
        source: what.into(),
    }
}

const fn holds(entity: &Entity) -> bool {
    !entity.terminal || entity.success
}

impl State {
    /// The dispatch other than `row` that holds a deduplication key.
    fn holder(&self, row: i64, dedup_key: &str) -> Option<(&Entity, &Dispatch)> {
        let mut dispatches = self.outbox.dispatches.iter();
        dispatches.find_map(|(other, dispatch)| {
            let entity = &self.entities[other];
            (*other != row && dispatch.dedup_key == dedup_key && holds(entity)).then_some((entity, dispatch))
        })
    }

    fn enqueue(&mut self, new: &NewDispatch) -> Result<Step<Enqueued>, StoreError> {
        let dispatch = &new.dispatch;
        if let Some((entity, other)) = self.holder(0, &dispatch.dedup_key) {
            let is_same = other.body == dispatch.body && other.target_digest == dispatch.target_digest;
            let entity = Box::new(entity.clone());
            return Ok(Step::WroteNothing(if is_same {
                Enqueued::Held(entity)
            } else {
                Enqueued::Different(entity)
            }));
        }
        if self.ids.contains_key(&new.entity.reference.id) {
            return Ok(Step::WroteNothing(Enqueued::IdTaken));
        }
        if let Some(id) = dispatch.event_id.as_ref().filter(|id| !self.knows(id)) {
            return Err(refused("adding a dispatch", format!("this store has no event {id}")));
        }
        let entity = self.add(&new.entity, &new.row, None)?;
        self.outbox.dispatches.insert(entity.row, dispatch.clone());
        let is_known = |known: &DestinationHealth| known.target_digest == dispatch.target_digest;
        if !self.outbox.destinations.iter().any(is_known) {
            self.outbox.destinations.push(DestinationHealth {
                target_digest: dispatch.target_digest.clone(),
                ..DestinationHealth::default()
            });
        }
        Ok(Step::Wrote(Enqueued::New(Box::new(entity))))
    }

    /// Whether an event id is of an entity that is or was here.
    fn knows(&self, id: &EventId) -> bool {
        let id = id.as_str().split_once(':').and_then(|(_, rest)| rest.rsplit_once(':'));
        id.is_some_and(|(id, _)| self.ids.contains_key(id))
    }

    fn add_dispatches(&mut self, dispatches: &[NewDispatch]) -> Result<(), StoreError> {
        for new in dispatches {
            let (Step::Wrote(answer) | Step::WroteNothing(answer)) = self.enqueue(new)?;
            if answer == Enqueued::IdTaken {
                let what = format!("the id {} is or was in use", new.entity.reference.id);
                return Err(refused("adding a dispatch", what));
            }
        }
        Ok(())
    }

    /// Adds what the event of the newest history row, which is this entity's, is to tell.
    pub(super) fn plan(&mut self, entity: &Entity, planned: &Planned) -> Result<(), StoreError> {
        let event = self.history_made;
        for owed in &planned.owed {
            self.outbox.owed.push((event, entity.notify.clone(), owed.clone()));
        }
        self.add_dispatches(&planned.dispatches)
    }

    /// Refuses a change by which a dispatch would take a key that another holds.
    pub(super) fn dedup_key_is_free(&self, before: &Entity, after: &Entity) -> Result<(), StoreError> {
        let Some(dispatch) = self.outbox.dispatches.get(&after.row) else {
            return Ok(());
        };
        match self.holder(after.row, &dispatch.dedup_key) {
            Some((holder, _)) if holds(after) && !holds(before) => Err(StoreError::KeyHeld {
                holder: holder.reference.clone(),
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn note_health(&mut self, health: &DestinationHealth) {
        let mut known = self.outbox.destinations.iter_mut();
        if let Some(known) = known.find(|known| known.target_digest == health.target_digest) {
            known.clone_from(health);
        }
    }

    /// What goes with an entity.
    pub(super) fn forget_dispatch(&mut self, row: i64) {
        self.outbox.dispatches.remove(&row);
    }

    /// What goes with history rows.
    pub(super) fn forget_acknowledgements(&mut self, rows: &BTreeSet<i64>) {
        self.outbox.acknowledged.retain(|(_, row)| !rows.contains(row));
    }

    /// Whether somebody is still to be told of the event of a history row.
    pub(super) fn is_owed(&self, number: i64) -> bool {
        let consumers = self.outbox.consumers.values();
        self.outbox.owed.iter().any(|(row, ..)| *row == number)
            || consumers.into_iter().any(|consumer| self.owes(consumer, number))
    }

    fn owes(&self, consumer: &Consumer, number: i64) -> bool {
        let (row, envelope) = &self.history[&number];
        envelope.is_some()
            && consumer.retired_at.is_none()
            && consumer.since.is_none_or(|since| row.at >= since)
            && !self.outbox.acknowledged.contains(&(consumer.name.clone(), number))
    }

    fn active(&self, name: &str) -> Option<&Consumer> {
        let found = self.outbox.consumers.get(name);
        found.filter(|consumer| consumer.retired_at.is_none())
    }

    fn event(&self, event_id: &str) -> Option<i64> {
        let is_event =
            |(row, envelope): &(HistoryRow, Option<Value>)| row.id.as_str() == event_id && envelope.is_some();
        let found = self.history.iter().find(|(_, kept)| is_event(kept));
        found.map(|(number, _)| *number)
    }

    fn acknowledge(&mut self, name: &str, event_id: &str) -> Step<Acknowledged> {
        if self.active(name).is_none() {
            return Step::WroteNothing(Acknowledged::NoConsumer);
        }
        let Some(event) = self.event(event_id) else {
            return Step::WroteNothing(Acknowledged::NoEvent);
        };
        if self.outbox.acknowledged.insert((name.to_owned(), event)) {
            Step::Wrote(Acknowledged::New)
        } else {
            Step::WroteNothing(Acknowledged::Again)
        }
    }

    fn settle(&mut self, owed: &Owed, planned: &Planned, events: &[AdminEvent]) -> Result<Step<bool>, StoreError> {
        let plan = &owed.plan;
        let of_event = |row: &i64| self.history.get(row).is_some_and(|(row, _)| row.id == owed.event_id);
        let is_it = |(row, _, kept): &(i64, Value, OwedPlan)| {
            of_event(row) && kept.handler == plan.handler && kept.tries == plan.tries
        };
        let Some(at) = self.outbox.owed.iter().position(is_it) else {
            return Ok(Step::WroteNothing(false));
        };
        match planned.owed.iter().find(|again| again.handler == plan.handler) {
            Some(again) => self.outbox.owed[at].2 = again.clone(),
            None => drop(self.outbox.owed.remove(at)),
        }
        self.add_dispatches(&planned.dispatches)?;
        self.record(events);
        Ok(Step::Wrote(true))
    }

    fn pause_of(&self, dispatch: &Dispatch) -> Option<Timestamp> {
        let mut known = self.outbox.destinations.iter();
        known
            .find(|known| known.target_digest == dispatch.target_digest)
            .and_then(|known| known.paused_until)
    }
}

impl Outbox for MemoryStore {
    fn enqueue(&self, new: &NewDispatch) -> Result<Enqueued, StoreError> {
        self.commit(|state| state.enqueue(new))
    }

    fn dispatch(&self, id: &str) -> Result<Option<Dispatch>, StoreError> {
        let state = self.state();
        let found = state
            .by_id(id)
            .and_then(|entity| state.outbox.dispatches.get(&entity.row));
        Ok(found.cloned())
    }

    fn outlines(&self, dispatches: &[Entity]) -> Result<Vec<Option<Outline>>, StoreError> {
        let state = self.state();
        let outline = |entity: &Entity| {
            let dispatch = state.outbox.dispatches.get(&entity.row)?;
            Some(Outline {
                body_bytes: u64::try_from(dispatch.body.len()).unwrap_or(u64::MAX),
                body_digest: sha256_hex(&dispatch.body),
                dispatch: Dispatch {
                    body: Vec::new(),
                    ..dispatch.clone()
                },
            })
        };
        Ok(dispatches.iter().map(outline).collect())
    }

    fn notices_of(&self, entity: &Entity, limit: usize) -> Result<Vec<Entity>, StoreError> {
        let state = self.state();
        let of_entity = |event: &EventId| event.entity_id() == entity.reference.id;
        let found = state.outbox.dispatches.iter().rev();
        let rows = found.filter(|(_, dispatch)| dispatch.event_id.as_ref().is_some_and(of_entity));
        Ok(rows.map(|(row, _)| state.entities[row].clone()).take(limit).collect())
    }

    fn due(&self, query: &DueQuery) -> Result<Vec<Entity>, StoreError> {
        let state = self.state();
        let mut found: Vec<&Entity> = Vec::new();
        for (row, dispatch) in &state.outbox.dispatches {
            let entity = &state.entities[row];
            let is_due = entity.due_at().is_some_and(|due| due <= query.before);
            let is_paused = state.pause_of(dispatch).is_some_and(|until| until > query.before);
            if is_due && !is_paused && !query.except_targets.contains(&dispatch.target_digest) {
                found.push(entity);
            }
        }
        found.sort_by_key(|entity| (entity.due_at(), entity.row));
        Ok(found.into_iter().take(query.limit).cloned().collect())
    }

    fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let state = self.state();
        let dispatches = state.outbox.dispatches.iter().filter_map(|(row, dispatch)| {
            let due = state.entities[row].due_at()?;
            Some(due.max(state.pause_of(dispatch).unwrap_or(due)))
        });
        let plans = state.outbox.owed.iter().map(|(.., plan)| plan.due_at);
        Ok(dispatches.chain(plans).min())
    }

    fn owed(&self, before: Timestamp, limit: usize) -> Result<Vec<Owed>, StoreError> {
        let state = self.state();
        let mut due: Vec<_> = state
            .outbox
            .owed
            .iter()
            .filter(|(.., plan)| plan.due_at <= before)
            .collect();
        due.sort_by_key(|(.., plan)| plan.due_at);
        let told = |(number, settings, plan): &(i64, Value, OwedPlan)| {
            let (row, envelope) = &state.history[number];
            Owed {
                event_id: row.id.clone(),
                reference: row.reference.clone(),
                envelope: envelope.clone().unwrap_or_default(),
                settings: settings.clone(),
                plan: plan.clone(),
            }
        };
        Ok(due.into_iter().take(limit).map(told).collect())
    }

    fn settle_owed(&self, owed: &Owed, planned: &Planned, events: &[AdminEvent]) -> Result<bool, StoreError> {
        self.commit(|state| state.settle(owed, planned, events))
    }

    fn destinations(&self) -> Result<Vec<DestinationHealth>, StoreError> {
        let state = self.state();
        let failing = state.outbox.destinations.iter().filter(|known| known.failures > 0);
        Ok(failing.cloned().collect())
    }

    fn backlog(&self) -> Result<Backlog, StoreError> {
        let state = self.state();
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        for row in state.outbox.dispatches.keys() {
            *counted.entry(state.entities[row].status.clone()).or_default() += 1;
        }
        Ok(Backlog {
            dispatches: counted.into_iter().collect(),
            owed_plans: state.outbox.owed.len() as u64,
        })
    }

    fn bindings(&self) -> Result<Vec<Binding>, StoreError> {
        Ok(self.state().outbox.bindings.values().cloned().collect())
    }

    fn put_binding(&self, binding: &Binding, event: &AdminEvent) -> Result<(), StoreError> {
        self.commit(|state| {
            state.outbox.bindings.insert(binding.name.clone(), binding.clone());
            state.record(std::slice::from_ref(event));
            Ok(Step::Wrote(()))
        })
    }

    fn drop_binding(&self, name: &str, event: &AdminEvent) -> Result<bool, StoreError> {
        self.commit(|state| {
            if state.outbox.bindings.remove(name).is_none() {
                return Ok(Step::WroteNothing(false));
            }
            state.record(std::slice::from_ref(event));
            Ok(Step::Wrote(true))
        })
    }

    fn add_consumer(&self, consumer: &Consumer, event: &AdminEvent) -> Result<bool, StoreError> {
        self.commit(|state| {
            if state.outbox.consumers.contains_key(&consumer.name) {
                return Ok(Step::WroteNothing(false));
            }
            state.outbox.consumers.insert(consumer.name.clone(), consumer.clone());
            state.record(std::slice::from_ref(event));
            Ok(Step::Wrote(true))
        })
    }

    fn consumers(&self) -> Result<Vec<(Consumer, u64)>, StoreError> {
        let state = self.state();
        let counted = state.outbox.consumers.values().map(|consumer| {
            let owed = state.history.keys().filter(|number| state.owes(consumer, **number));
            (consumer.clone(), u64::try_from(owed.count()).unwrap_or(u64::MAX))
        });
        Ok(counted.collect())
    }

    fn pending(&self, consumer: &str, limit: usize) -> Result<Option<Vec<(EventId, Value)>>, StoreError> {
        let state = self.state();
        let Some(consumer) = state.active(consumer) else {
            return Ok(None);
        };
        let owed = state
            .history
            .iter()
            .filter(|(number, _)| state.owes(consumer, **number));
        let told = owed.filter_map(|(_, (row, envelope))| Some((row.id.clone(), envelope.clone()?)));
        Ok(Some(told.take(limit).collect()))
    }

    fn acknowledge(&self, consumer: &str, event_id: &str, _at: Timestamp) -> Result<Acknowledged, StoreError> {
        self.commit(|state| Ok(state.acknowledge(consumer, event_id)))
    }

    fn retire_consumer(&self, name: &str, at: Timestamp, event: &AdminEvent) -> Result<bool, StoreError> {
        self.commit(|state| {
            let active = state.outbox.consumers.get_mut(name);
            let Some(consumer) = active.filter(|consumer| consumer.retired_at.is_none()) else {
                return Ok(Step::WroteNothing(false));
            };
            consumer.retired_at = Some(at);
            state.record(std::slice::from_ref(event));
            Ok(Step::Wrote(true))
        })
    }
}

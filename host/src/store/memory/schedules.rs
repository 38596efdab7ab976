//! Schedules in memory.

use std::collections::BTreeMap;

use super::{MemoryStore, State, Step};
use crate::model::{AdminEvent, Entity, Timestamp};
use crate::store::{Created, Fire, Fired, KeptSchedule, Occurrence, Schedules, Steering, StoreError};

/// What there is beside entities and history.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    schedules: BTreeMap<String, KeptSchedule>,
    /// By schedule and fire time: what stands for it, and when it was dealt with.
    occurrences: BTreeMap<(String, Timestamp), (i64, Timestamp)>,
}

impl State {
    /// An entity is removed: what is remembered of its fire time goes with it.
    pub(super) fn forget_occurrence(&mut self, row: i64) {
        self.schedules.occurrences.retain(|_, (entity, _)| *entity != row);
    }

    /// An attempt goes on where another one was given up: it stands for the same fire time, if that one did.
    pub(super) fn take_over_occurrence(&mut self, before: &str, row: i64) {
        let before = self.ids.get(before).copied();
        for (entity, _) in self.schedules.occurrences.values_mut() {
            if Some(*entity) == before {
                *entity = row;
            }
        }
    }

    fn of_schedule<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = Occurrence> + 'a {
        let mine = self.schedules.occurrences.iter().filter(move |((of, _), _)| of == name);
        mine.map(|((_, nominal), (row, fired_at))| Occurrence {
            nominal: *nominal,
            fired_at: *fired_at,
            entity: self.entities[row].clone(),
        })
    }

    fn fire(&mut self, fire: &Fire) -> Result<Step<Fired>, StoreError> {
        let kept = self.schedules.schedules.get_mut(&fire.name);
        let stands =
            |kept: &&mut KeptSchedule| !kept.schedule.paused && kept.schedule.next_fire_at == Some(fire.expected);
        let Some(kept) = kept.filter(stands) else {
            return Ok(Step::WroteNothing(Fired::Changed));
        };
        kept.schedule.next_fire_at = fire.next;
        let key = (fire.name.clone(), fire.nominal);
        if self.schedules.occurrences.contains_key(&key) {
            return Ok(Step::Wrote(Fired::AlreadyFired));
        }
        match self.create(&fire.new, fire.work.as_ref())? {
            Step::Wrote(Created::New { entity, .. }) => {
                if let Err(missing) = self.await_ends(entity.row, &fire.behind) {
                    return Ok(Step::WroteNothing(Fired::Refused(Created::AwaitedMissing(missing))));
                }
                self.schedules.occurrences.insert(key, (entity.row, entity.created_at));
                Ok(Step::Wrote(Fired::Made(entity)))
            }
            Step::Wrote(refused) | Step::WroteNothing(refused) => Ok(Step::WroteNothing(Fired::Refused(refused))),
        }
    }
}

impl MemoryStore {
    /// A step on one schedule, with its audit row; nothing when it answers false.
    fn on_schedules(&self, event: &AdminEvent, step: impl FnOnce(&mut Kept) -> bool) -> Result<bool, StoreError> {
        self.commit(|state| {
            if !step(&mut state.schedules) {
                return Ok(Step::WroteNothing(false));
            }
            state.record(std::slice::from_ref(event));
            Ok(Step::Wrote(true))
        })
    }
}

impl Schedules for MemoryStore {
    fn add_schedule(&self, new: &KeptSchedule, event: &AdminEvent) -> Result<bool, StoreError> {
        self.on_schedules(event, |kept| {
            let name = &new.schedule.name;
            let is_new = !kept.schedules.contains_key(name);
            kept.schedules.entry(name.clone()).or_insert_with(|| new.clone());
            is_new
        })
    }

    fn schedules(&self, name: Option<&str>) -> Result<Vec<KeptSchedule>, StoreError> {
        let state = self.state();
        let all = state.schedules.schedules.values();
        Ok(all
            .filter(|kept| name.is_none_or(|name| kept.schedule.name == name))
            .cloned()
            .collect())
    }

    fn due_schedules(&self, now: Timestamp) -> Result<Vec<KeptSchedule>, StoreError> {
        let mut due = self.schedules(None)?;
        due.retain(|kept| !kept.schedule.paused && kept.schedule.next_fire_at.is_some_and(|next| next <= now));
        due.sort_by_key(|kept| kept.schedule.next_fire_at);
        Ok(due)
    }

    fn next_fire(&self) -> Result<Option<Timestamp>, StoreError> {
        let going = self.schedules(None)?;
        let going = going.iter().filter(|kept| !kept.schedule.paused);
        Ok(going.filter_map(|kept| kept.schedule.next_fire_at).min())
    }

    fn steer_schedule(&self, name: &str, steering: Steering, event: &AdminEvent) -> Result<bool, StoreError> {
        self.on_schedules(event, |kept| {
            let paused = matches!(steering, Steering::Resume(_));
            let found = kept.schedules.get_mut(name);
            let Some(kept) = found.filter(|kept| kept.schedule.paused == paused) else {
                return false;
            };
            kept.schedule.paused = !paused;
            if let Steering::Resume(next) = steering {
                kept.schedule.next_fire_at = next;
            }
            true
        })
    }

    fn drop_schedule(&self, name: &str, event: &AdminEvent) -> Result<bool, StoreError> {
        self.on_schedules(event, |kept| {
            kept.occurrences.retain(|(of, _), _| of != name);
            kept.schedules.remove(name).is_some()
        })
    }

    fn occurrences(&self, name: &str, limit: usize) -> Result<Vec<Occurrence>, StoreError> {
        Ok(self.state().of_schedule(name).rev().take(limit).collect())
    }

    fn running_occurrences(&self, name: &str, limit: usize) -> Result<Vec<Entity>, StoreError> {
        let state = self.state();
        let entities = state.of_schedule(name).map(|occurrence| occurrence.entity);
        Ok(entities.filter(|entity| !entity.terminal).take(limit).collect())
    }

    fn fire(&self, fire: &Fire) -> Result<Fired, StoreError> {
        self.commit(|state| state.fire(fire))
    }
}

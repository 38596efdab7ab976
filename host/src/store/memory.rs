//! The store in memory: the trait's promises in the plainest form, the reference for tests of the others.
//!
//! One lock, one copy of everything, look-ups by walking. Nothing is kept when it is dropped.

mod judging;
mod outbox;
mod queue;
mod schedules;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{
    Activation, AdminQuery, Applied, Belongings, Component, ComponentRecord, Created, EffectSet, EntityQuery,
    HistoryQuery, Journal, JournalPage, Lookup, NewRun, OldRows, Removed, Rows, RuntimeAdded, RuntimeUpdate, Scope,
    Shadow, Signed, Store, StoreError, Upkeep, Work,
};
use crate::model::{
    AdminEvent, Change, Entity, Event, HistoryRow, NewEntity, PolicyPin, Queued, RaisedLimits, Reference, Resource,
    Runtime, Timestamp,
};

/// A store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    name: String,
    state: Mutex<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    commits: i64,
    /// Every id ever used, with its number.
    ids: BTreeMap<String, i64>,
    entities: BTreeMap<i64, Entity>,
    /// Parent and child.
    links: BTreeSet<(i64, i64)>,
    /// By number.
    history: BTreeMap<i64, (HistoryRow, Option<Value>)>,
    history_made: i64,
    admin_events: Vec<AdminEvent>,
    admin_events_made: i64,
    /// By scope (an entity, 0 for creations) and key.
    keys: HashMap<(i64, String), KeyRow>,
    runtimes: BTreeMap<i64, Runtime>,
    runtimes_made: i64,
    works: HashMap<i64, Work>,
    resources: BTreeMap<i64, Resource>,
    resources_made: i64,
    components: Vec<Kept>,
    activations: Vec<Activation>,
    /// By kind.
    shadows: BTreeMap<String, Shadow>,
    outbox: outbox::Kept,
    queue: queue::Kept,
    schedules: schedules::Kept,
}

#[derive(Clone, Debug)]
struct KeyRow {
    entity: i64,
    id: String,
    version: i64,
    command_digest: String,
}

#[derive(Clone, Debug)]
struct Kept {
    component: Component,
    installed: bool,
}

impl MemoryStore {
    /// An empty store of that name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a step on a copy, which becomes the state when the step says that it wrote.
    fn commit<T>(&self, step: impl FnOnce(&mut State) -> Result<Step<T>, StoreError>) -> Result<T, StoreError> {
        let mut state = self.state();
        let mut copy = state.clone();
        match step(&mut copy)? {
            Step::Wrote(answer) => {
                copy.commits += 1;
                *state = copy;
                Ok(answer)
            }
            Step::WroteNothing(answer) => Ok(answer),
        }
    }
}

/// A queue and a priority are fixed at creation; where work stands in it is not.
fn after_queued(before: Option<Queued>, after: Option<&Queued>) -> Option<Queued> {
    before.map(|fixed| Queued {
        stage: after.and_then(|queued| queued.stage),
        ..fixed
    })
}

enum Step<T> {
    Wrote(T),
    WroteNothing(T),
}

impl State {
    fn by_id(&self, id: &str) -> Option<&Entity> {
        self.entities.get(self.ids.get(id)?)
    }

    fn by_reference(&self, reference: &Reference) -> Option<&Entity> {
        self.by_id(&reference.id)
            .filter(|entity| entity.reference == *reference)
    }

    fn installed(&self, digest: &str) -> Option<&Component> {
        let kept = self
            .components
            .iter()
            .find(|kept| kept.installed && kept.component.record.digest == digest);
        kept.map(|kept| &kept.component)
    }

    fn pin(&self, wanted: &PolicyPin) -> Result<PolicyPin, StoreError> {
        let digest = &wanted.digest;
        let record = &self.installed(digest).ok_or_else(|| not_installed(digest))?.record;
        Ok(PolicyPin {
            name: record.name.clone(),
            version: record.version.clone(),
            ..wanted.clone()
        })
    }

    fn is_active(&self, record: &ComponentRecord) -> bool {
        let newest = self
            .activations
            .iter()
            .rev()
            .find(|activation| activation.kind == record.kind);
        newest.is_some_and(|activation| activation.digest == record.digest)
    }

    fn put_in_force(&mut self, activation: &Activation) {
        self.activations.push(activation.clone());
        self.shadows
            .retain(|kind, shadow| *kind != activation.kind || shadow.digest != activation.digest);
    }

    fn in_use(&self, digest: &str) -> i64 {
        let pinned = self.entities.values().filter(|entity| entity.policy.digest == digest);
        i64::try_from(pinned.count()).unwrap_or(i64::MAX)
    }

    fn has_runtime(&self, entity: &Entity) -> bool {
        self.runtimes.values().any(|runtime| runtime.owner == entity.reference)
    }

    fn key_is_free(&self, entity: &Entity) -> Result<(), StoreError> {
        let holder = self.entities.values().find(|other| {
            other.row != entity.row && other.unique_key.is_some() && other.unique_key == entity.unique_key
        });
        match holder {
            None => Ok(()),
            Some(_) => Err(StoreError::Failed {
                doing: "writing an entity",
                source: "its unique key is held".into(),
            }),
        }
    }

    fn append(&mut self, row: &HistoryRow, event: Option<&Event>) -> Result<(), StoreError> {
        let digest = &row.policy_digest;
        self.installed(digest).ok_or_else(|| not_installed(digest))?;
        self.history_made += 1;
        let envelope = event.map(|event| event.envelope.clone());
        self.history.insert(self.history_made, (row.clone(), envelope));
        Ok(())
    }

    fn record(&mut self, events: &[AdminEvent]) {
        for event in events {
            self.admin_events_made += 1;
            let id = self.admin_events_made;
            self.admin_events.push(AdminEvent { id, ..event.clone() });
        }
    }

    /// Whether one of the rows was changed.
    fn update_runtimes(&mut self, updates: &[RuntimeUpdate]) -> bool {
        let mut changed = false;
        for update in updates {
            if let Some(runtime) = self.runtimes.get_mut(&update.id) {
                changed |= update.change(runtime);
            }
        }
        changed
    }

    fn create(&mut self, new: &NewEntity, run: Option<&NewRun>) -> Result<Step<Created>, StoreError> {
        if let Some(used) = new.key.as_ref().and_then(|key| self.keys.get(&(0, key.key.clone())))
            && let Some(entity) = self.entities.get(&used.entity)
        {
            let entity = Box::new(entity.clone());
            return Ok(Step::WroteNothing(Created::KeyUsed {
                entity,
                command_digest: used.command_digest.clone(),
            }));
        }
        let reference = &new.entity.reference;
        if self.ids.contains_key(&reference.id) {
            return Ok(Step::WroteNothing(Created::IdTaken));
        }
        if let Some(answer) = self.refusal(&new.entity, run) {
            return Ok(Step::WroteNothing(answer));
        }
        let mut parents = Vec::with_capacity(new.parents.len());
        for parent in &new.parents {
            let Some(found) = self.by_reference(parent) else {
                return Ok(Step::WroteNothing(Created::ParentMissing(parent.clone())));
            };
            let of_parent = |runtime: &&Runtime| runtime.owner == *parent;
            let stopping = self
                .runtimes
                .values()
                .filter(of_parent)
                .any(|runtime| runtime.stop_intent.is_some());
            if found.terminal || stopping {
                return Ok(Step::WroteNothing(Created::ParentClosed(parent.clone())));
            }
            parents.push(found.row);
        }
        let awaited = match self.awaited(run.map_or(&[], |run| &run.after)) {
            Ok(awaited) => awaited
                .into_iter()
                .map(|on| (on.row, on.terminal.then_some(on.success)))
                .collect(),
            Err(missing) => return Ok(Step::WroteNothing(Created::AwaitedMissing(missing))),
        };
        let awaited: Vec<(i64, Option<bool>)> = awaited;
        let entity = self.add(&new.entity, &new.row, new.event.as_ref())?;
        let row = entity.row;
        let before = new.entity.chain_parent.as_ref().and_then(|id| self.ids.get(id));
        if let Some(before) = before.copied() {
            self.take_over(before, &entity);
        }
        self.await_all(row, &awaited);
        self.links.extend(parents.into_iter().map(|parent| (parent, row)));
        self.plan(&entity, &new.planned)?;
        self.record(&new.admin);
        if let Some(key) = &new.key {
            let (version, command_digest) = (new.row.version, key.command_digest.clone());
            let used = KeyRow {
                entity: row,
                id: reference.id.clone(),
                version,
                command_digest,
            };
            self.keys.insert((0, key.key.clone()), used);
        }
        let runtime_id = run.and_then(|run| self.add_run(&entity, run));
        Ok(Step::Wrote(Created::New {
            entity: Box::new(entity),
            runtime_id,
        }))
    }

    /// Adds an entity whose id is free, with its first history row.
    fn add(&mut self, entity: &Entity, row: &HistoryRow, event: Option<&Event>) -> Result<Entity, StoreError> {
        let entity = Entity {
            row: i64::try_from(self.ids.len() + 1).unwrap_or(i64::MAX),
            policy: self.pin(&entity.policy)?,
            ..entity.clone()
        };
        self.key_is_free(&entity)?;
        self.append(row, event)?;
        self.ids.insert(entity.reference.id.clone(), entity.row);
        self.entities.insert(entity.row, entity.clone());
        if let Some(before) = &entity.chain_parent {
            self.take_over_occurrence(before, entity.row);
        }
        Ok(entity)
    }

    fn add_run(&mut self, entity: &Entity, run: &NewRun) -> Option<i64> {
        self.works.insert(entity.row, run.work.clone());
        let new = run.runtime.as_ref()?;
        for directory in &run.directories {
            self.resources_made += 1;
            let resource = Resource {
                id: self.resources_made,
                owner: entity.reference.clone(),
                directory: directory.clone(),
                created_at: new.created_at,
            };
            self.resources.insert(resource.id, resource);
        }
        Some(self.keep_runtime(Runtime {
            owner: entity.reference.clone(),
            ..new.clone()
        }))
    }

    fn keep_runtime(&mut self, runtime: Runtime) -> i64 {
        self.runtimes_made += 1;
        let id = self.runtimes_made;
        self.runtimes.insert(id, Runtime { id, ..runtime });
        id
    }

    fn add_runtime(&mut self, runtime: &Runtime, event: &AdminEvent) -> Step<RuntimeAdded> {
        let of_owner = |other: &&Runtime| other.owner == runtime.owner && !other.is_stopped();
        match self.by_reference(&runtime.owner) {
            None => return Step::WroteNothing(RuntimeAdded::OwnerMissing),
            Some(owner) if owner.terminal => return Step::WroteNothing(RuntimeAdded::OwnerEnded),
            Some(_) => {}
        }
        if let Some(other) = self.runtimes.values().find(of_owner) {
            return Step::WroteNothing(RuntimeAdded::InUse(other.id));
        }
        let id = self.keep_runtime(runtime.clone());
        self.record(std::slice::from_ref(event));
        Step::Wrote(RuntimeAdded::New(id))
    }

    fn apply(&mut self, effects: &EffectSet) -> Result<Step<Applied>, StoreError> {
        let change = &effects.change;
        let key = change
            .key
            .as_ref()
            .map(|key| ((change.after.row, key.key.clone()), key.command_digest.clone()));
        let current = self
            .entities
            .get(&change.after.row)
            .filter(|found| found.version == change.expected_version);
        let shadow = self.shadows.get(&change.after.reference.kind);
        let is_judged = effects.shadow.fits(shadow.map(|shadow| shadow.digest.as_str()));
        let fits =
            current.filter(|_| is_judged && key.as_ref().is_none_or(|(place, _)| !self.keys.contains_key(place)));
        let Some(before) = fits.cloned() else {
            let found = self.by_id(&change.after.reference.id).cloned().map(Box::new);
            return Ok(Step::WroteNothing(Applied::Lost(found)));
        };
        let after = self.merge(&before, change)?;
        if let Some(why) = self.refused(&before, &after) {
            return Ok(Step::WroteNothing(Applied::NoRoom(why)));
        }
        self.key_is_free(&after)?;
        self.dedup_key_is_free(&before, &after)?;
        self.append(&change.row, change.event.as_ref())?;
        self.entities.insert(after.row, after.clone());
        self.plan(&after, &change.planned)?;
        if let Some(health) = &effects.destination {
            self.note_health(health);
        }
        self.record(&change.admin);
        if let Some(judged) = effects.shadow.judged() {
            self.count_judged(judged);
        }
        self.update_runtimes(&effects.runtimes);
        if let Some((place, command_digest)) = key {
            let (entity, id, version) = (after.row, after.reference.id.clone(), change.row.version);
            self.keys.insert(
                place,
                KeyRow {
                    entity,
                    id,
                    version,
                    command_digest,
                },
            );
        }
        if after.terminal && !before.terminal {
            match &effects.successor {
                Some(successor) => self.succeed(&after, successor)?,
                None => self.note_end(after.row, after.success),
            }
            self.wait_no_more(after.row);
        }
        Ok(Step::Wrote(Applied::Written))
    }

    /// The entity as it will be: what is fixed at creation stays.
    fn merge(&self, before: &Entity, change: &Change) -> Result<Entity, StoreError> {
        let fixed = before.clone();
        Ok(Entity {
            reference: fixed.reference,
            name: fixed.name,
            tags: fixed.tags,
            root: fixed.root,
            generation: fixed.generation,
            chain_parent: fixed.chain_parent,
            notify: fixed.notify,
            queued: after_queued(fixed.queued, change.after.queued.as_ref()),
            created_at: fixed.created_at,
            policy: self.pin(&change.after.policy)?,
            ..change.after.clone()
        })
    }

    fn install(&mut self, component: &Component) {
        let digest = &component.record.digest;
        let fresh = Kept {
            component: component.clone(),
            installed: true,
        };
        let mut all = self.components.iter_mut();
        match all.find(|kept| kept.component.record.digest == *digest) {
            Some(kept) if kept.installed => {
                if !component.record.raised.is_empty() {
                    kept.component.record.raised = component.record.raised.clone();
                }
                let known = &mut kept.component.signatures;
                for signed in &component.signatures {
                    if known.iter().all(|other| other.public_key != signed.public_key) {
                        known.push(signed.clone());
                    }
                }
            }
            Some(kept) => *kept = fresh,
            None => self.components.push(fresh),
        }
    }

    fn drop_runtimes(&mut self, owner: &Entity, rows: Rows, events: &[AdminEvent]) -> Step<bool> {
        let is_owners = |runtime: &Runtime| runtime.owner == owner.reference;
        if self
            .runtimes
            .values()
            .any(|runtime| is_owners(runtime) && !runtime.is_stopped())
        {
            return Step::WroteNothing(false);
        }
        let stays = |runtime: &Runtime| rows == Rows::WithoutToken && runtime.resume_token.is_some();
        self.runtimes.retain(|_, runtime| !is_owners(runtime) || stays(runtime));
        self.record(events);
        Step::Wrote(true)
    }

    fn remove(&mut self, entity: &Entity, event: &AdminEvent) -> Step<Removed> {
        let (row, reference) = (entity.row, &entity.reference);
        let found = self.entities.get(&row);
        if found.is_none_or(|found| found.version != entity.version) {
            return Step::WroteNothing(Removed::Changed(found.cloned().map(Box::new)));
        }
        let has_runtimes = self.runtimes.values().any(|runtime| runtime.owner == *reference);
        let has_resources = self.resources.values().any(|resource| resource.owner == *reference);
        if has_runtimes || has_resources {
            return Step::WroteNothing(Removed::Holding);
        }
        self.entities.remove(&row);
        self.links.retain(|(parent, child)| *parent != row && *child != row);
        self.works.remove(&row);
        self.forget_dependencies(row);
        self.keys.retain(|(scope, _), _| *scope != row);
        self.forget_dispatch(row);
        self.forget_occurrence(row);
        self.record(std::slice::from_ref(event));
        Step::Wrote(Removed::Gone)
    }

    /// Rows of a journal in order: number, when it was written, whether it may go when it is old.
    fn journal(&self, journal: Journal) -> Vec<(i64, Timestamp, bool)> {
        match journal {
            Journal::History => {
                let rows = self.history.iter();
                let may_go =
                    |number: i64, row: &HistoryRow| self.by_id(&row.reference.id).is_none() && !self.is_owed(number);
                rows.map(|(number, (row, _))| (*number, row.at, may_go(*number, row)))
                    .collect()
            }
            Journal::Audit => self
                .admin_events
                .iter()
                .map(|event| (event.id, event.at, true))
                .collect(),
        }
    }

    fn prune_journal(&mut self, page: &JournalPage, rows: &[i64], event: &AdminEvent) -> usize {
        self.record(std::slice::from_ref(event));
        let mut going = self.journal(page.journal);
        going.retain(|(row, at, may_go)| rows.contains(row) && *at < page.before && *may_go);
        let going: BTreeSet<i64> = going.into_iter().map(|(row, ..)| row).collect();
        match page.journal {
            Journal::History => {
                self.history.retain(|number, _| !going.contains(number));
                self.forget_acknowledgements(&going);
            }
            Journal::Audit => self.admin_events.retain(|event| !going.contains(&event.id)),
        }
        going.len()
    }

    fn children(&self, row: i64) -> impl Iterator<Item = i64> {
        self.links
            .range((row, i64::MIN)..=(row, i64::MAX))
            .map(|(_, child)| *child)
    }

    fn parents(&self, row: i64) -> impl Iterator<Item = i64> {
        let above = self.links.iter().filter(move |(_, child)| *child == row);
        above.map(|(parent, _)| *parent)
    }

    fn belongings(&self, entity: &Entity) -> Belongings {
        let reference = |row| self.entities[&row].reference.clone();
        let mut runtimes = self.runtimes.values().rev();
        Belongings {
            parents: self.parents(entity.row).map(reference).collect(),
            children: self.children(entity.row).map(reference).collect(),
            runtime: runtimes.find(|runtime| runtime.owner == entity.reference).cloned(),
            work: self.works.get(&entity.row).cloned(),
        }
    }

    fn descendants(&self, row: i64) -> Vec<i64> {
        let (mut seen, mut found, mut level) = (BTreeSet::from([row]), Vec::new(), BTreeSet::from([row]));
        while !level.is_empty() {
            let below: BTreeSet<i64> = level.iter().flat_map(|row| self.children(*row)).collect();
            level = below.into_iter().filter(|row| seen.insert(*row)).collect();
            found.extend(&level);
        }
        found
    }
}

fn not_installed(digest: &str) -> StoreError {
    let source = format!("the component {digest} is not installed").into();
    StoreError::Failed {
        doing: "pinning to a policy",
        source,
    }
}

fn matches(entity: &Entity, query: &EntityQuery) -> bool {
    query.kind.as_ref().is_none_or(|kind| *kind == entity.reference.kind)
        && query
            .except_kind
            .as_ref()
            .is_none_or(|kind| *kind != entity.reference.kind)
        && (query.statuses.is_empty() || query.statuses.contains(&entity.status))
        && query.terminal.is_none_or(|terminal| terminal == entity.terminal)
        && query.success.is_none_or(|success| success == entity.success)
        && query
            .tags
            .iter()
            .all(|(key, value)| entity.tags.get(key) == Some(value))
        && (query.name.is_none() || query.name == entity.name)
        && query.since.is_none_or(|since| entity.created_at >= since)
        && query.before_row.is_none_or(|before| entity.row < before)
}

impl Store for MemoryStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn data_version(&self) -> Result<i64, StoreError> {
        Ok(self.state().commits)
    }

    fn create(&self, new: &NewEntity, run: Option<&NewRun>) -> Result<Created, StoreError> {
        self.commit(|state| state.create(new, run))
    }

    fn apply(&self, effects: &EffectSet) -> Result<Applied, StoreError> {
        self.commit(|state| state.apply(effects))
    }

    fn apply_all(&self, effects: &[EffectSet]) -> Result<Vec<Applied>, StoreError> {
        self.commit(|state| {
            let mut all = Vec::with_capacity(effects.len());
            for one in effects {
                let mut copy = state.clone();
                all.push(match copy.apply(one)? {
                    Step::Wrote(applied) => {
                        *state = copy;
                        applied
                    }
                    Step::WroteNothing(applied) => applied,
                });
            }
            Ok(if all.contains(&Applied::Written) {
                Step::Wrote(all)
            } else {
                Step::WroteNothing(all)
            })
        })
    }

    fn add_runtime(&self, runtime: &Runtime, event: &AdminEvent) -> Result<RuntimeAdded, StoreError> {
        self.commit(|state| Ok(state.add_runtime(runtime, event)))
    }

    fn update_runtimes(&self, updates: &[RuntimeUpdate]) -> Result<(), StoreError> {
        self.commit(|state| {
            state.update_runtimes(updates);
            Ok(Step::Wrote(()))
        })
    }

    fn record(&self, events: &[AdminEvent], runtimes: &[RuntimeUpdate]) -> Result<(), StoreError> {
        self.commit(|state| {
            if !state.update_runtimes(runtimes) && !runtimes.is_empty() {
                return Ok(Step::WroteNothing(()));
            }
            state.record(events);
            Ok(Step::Wrote(()))
        })
    }

    fn load(&self, id: &str) -> Result<Option<Entity>, StoreError> {
        Ok(self.state().by_id(id).cloned())
    }

    fn key_use(&self, entity: &Entity, key: &str) -> Result<Option<(String, HistoryRow)>, StoreError> {
        let state = self.state();
        let Some(used) = state.keys.get(&(entity.row, key.to_owned())) else {
            return Ok(None);
        };
        let of_key = |row: &HistoryRow| row.reference.id == used.id && row.version == used.version;
        let row = state.history.values().map(|(row, _)| row).find(|row| of_key(row));
        Ok(row.map(|row| (used.command_digest.clone(), row.clone())))
    }

    fn look_up(&self, lookup: &Lookup, limit: usize) -> Result<Vec<Entity>, StoreError> {
        let state = self.state();
        let newest_first = || state.entities.values().rev();
        let found: Vec<&Entity> = match lookup {
            Lookup::IdPrefix { kind, prefix } => {
                let of_kind = |entity: &&Entity| kind.as_ref().is_none_or(|kind| *kind == entity.reference.kind);
                match state.by_id(prefix).filter(of_kind) {
                    Some(exact) => vec![exact],
                    None => {
                        let mut found: Vec<&Entity> = state.entities.values().filter(of_kind).collect();
                        found.retain(|entity| entity.reference.id.starts_with(prefix));
                        found.sort_by_key(|entity| &entity.reference.id);
                        found
                    }
                }
            }
            Lookup::Name(name) => newest_first()
                .find(|entity| entity.name.as_ref() == Some(name))
                .into_iter()
                .collect(),
            Lookup::NewestRun => newest_first()
                .find(|entity| state.has_runtime(entity))
                .into_iter()
                .collect(),
            Lookup::NewestFailedRun => {
                let failed = |entity: &&Entity| entity.terminal && !entity.success && state.has_runtime(entity);
                newest_first().find(failed).into_iter().collect()
            }
        };
        Ok(found.into_iter().take(limit).cloned().collect())
    }

    fn list(&self, query: &EntityQuery) -> Result<Vec<Entity>, StoreError> {
        let state = self.state();
        let found = state.entities.values().rev().filter(|entity| matches(entity, query));
        Ok(found.take(query.limit.unwrap_or(usize::MAX)).cloned().collect())
    }

    fn linked(&self, entity: &Entity, scope: Scope) -> Result<Vec<Entity>, StoreError> {
        let state = self.state();
        let rows: Vec<i64> = match scope {
            Scope::Parents => state.parents(entity.row).collect(),
            Scope::Children => state.children(entity.row).collect(),
            Scope::Descendants => state.descendants(entity.row),
        };
        Ok(rows.iter().map(|row| state.entities[row].clone()).collect())
    }

    fn history(&self, query: &HistoryQuery) -> Result<Vec<HistoryRow>, StoreError> {
        let state = self.state();
        let mut rows: Vec<HistoryRow> = state.history.values().map(|(row, _)| row.clone()).collect();
        rows.retain(|row| query.id.as_ref().is_none_or(|id| *id == row.reference.id));
        rows.retain(|row| query.since.is_none_or(|since| row.at >= since));
        let first = rows.len().saturating_sub(query.newest.unwrap_or(usize::MAX));
        Ok(rows.split_off(first))
    }

    fn envelope(&self, event_id: &str) -> Result<Option<Value>, StoreError> {
        let state = self.state();
        let row = state.history.values().find(|(row, _)| row.id.as_str() == event_id);
        Ok(row.and_then(|(_, envelope)| envelope.clone()))
    }

    fn admin_events(&self, query: &AdminQuery) -> Result<Vec<AdminEvent>, StoreError> {
        let mut events = self.state().admin_events.clone();
        events.retain(|event| query.target.is_none() || query.target == event.target);
        events.retain(|event| query.since.is_none_or(|since| event.at >= since));
        Ok(events)
    }

    fn runtimes(&self, owners: Option<&[Reference]>) -> Result<Vec<Runtime>, StoreError> {
        let mut runtimes: Vec<Runtime> = self.state().runtimes.values().cloned().collect();
        runtimes.retain(|runtime| match owners {
            Some(owners) => owners.contains(&runtime.owner),
            None => !runtime.is_stopped(),
        });
        Ok(runtimes)
    }

    fn runtime(&self, id: i64) -> Result<Option<Runtime>, StoreError> {
        Ok(self.state().runtimes.get(&id).cloned())
    }

    fn work(&self, entity: &Entity) -> Result<Option<Work>, StoreError> {
        Ok(self.state().works.get(&entity.row).cloned())
    }

    fn works(&self, entities: &[Entity]) -> Result<Vec<Option<Work>>, StoreError> {
        entities.iter().map(|entity| self.work(entity)).collect()
    }

    fn belongings(&self, entities: &[Entity]) -> Result<Vec<Belongings>, StoreError> {
        let state = self.state();
        Ok(entities.iter().map(|entity| state.belongings(entity)).collect())
    }

    fn install(
        &self,
        components: &[Component],
        activations: &[Activation],
        events: &[AdminEvent],
    ) -> Result<(), StoreError> {
        self.commit(|state| {
            components.iter().for_each(|component| state.install(component));
            for activation in activations {
                let digest = &activation.digest;
                state.installed(digest).ok_or_else(|| not_installed(digest))?;
                state.put_in_force(activation);
            }
            state.record(events);
            Ok(Step::Wrote(()))
        })
    }

    fn activate(&self, activation: &Activation, event: &AdminEvent) -> Result<bool, StoreError> {
        self.commit(|state| {
            if state.installed(&activation.digest).is_none() {
                return Ok(Step::WroteNothing(false));
            }
            state.put_in_force(activation);
            state.record(std::slice::from_ref(event));
            Ok(Step::Wrote(true))
        })
    }

    fn remove_component(&self, digest: &str, event: &AdminEvent) -> Result<bool, StoreError> {
        self.commit(|state| {
            let found = state.installed(digest);
            let is_shadow = state.shadows.values().any(|shadow| shadow.digest == digest);
            if found.is_none_or(|found| is_shadow || state.is_active(&found.record) || state.in_use(digest) > 0) {
                return Ok(Step::WroteNothing(false));
            }
            for kept in &mut state.components {
                kept.installed &= kept.component.record.digest != digest;
            }
            state.record(std::slice::from_ref(event));
            Ok(Step::Wrote(true))
        })
    }

    fn live_pins(&self) -> Result<Vec<(String, i64)>, StoreError> {
        let state = self.state();
        let installed = state.components.iter().filter(|kept| kept.installed);
        let counted = installed.map(|kept| {
            let digest = &kept.component.record.digest;
            let is_live = |entity: &&Entity| entity.policy.digest == *digest && !entity.terminal;
            let live = state.entities.values().filter(is_live).count();
            (digest.clone(), i64::try_from(live).unwrap_or(i64::MAX))
        });
        Ok(counted.filter(|(_, live)| *live > 0).collect())
    }

    fn signatures(&self) -> Result<Vec<(String, Signed)>, StoreError> {
        let state = self.state();
        let installed = state.components.iter().filter(|kept| kept.installed);
        let signed = installed.flat_map(|kept| {
            let component = &kept.component;
            let digest = &component.record.digest;
            component
                .signatures
                .iter()
                .map(move |signed| (digest.clone(), signed.clone()))
        });
        Ok(signed.collect())
    }

    fn components(&self) -> Result<Vec<ComponentRecord>, StoreError> {
        let state = self.state();
        let installed = state.components.iter().filter(|kept| kept.installed);
        let records = installed.map(|kept| {
            let record = &kept.component.record;
            let (active, in_use) = (state.is_active(record), state.in_use(&record.digest));
            ComponentRecord {
                active,
                in_use,
                ..record.clone()
            }
        });
        Ok(records.collect())
    }

    fn raised_limits(&self, digest: &str) -> Result<RaisedLimits, StoreError> {
        let state = self.state();
        let found = state.installed(digest);
        Ok(found
            .map(|component| component.record.raised.clone())
            .unwrap_or_default())
    }

    fn descriptor(&self, digest: &str) -> Result<Option<String>, StoreError> {
        Ok(self
            .state()
            .installed(digest)
            .map(|component| component.descriptor.clone()))
    }

    fn component_bytes(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state().installed(digest).map(|component| component.bytes.clone()))
    }

    fn activations(&self, kind: &str) -> Result<Vec<Activation>, StoreError> {
        let state = self.state();
        Ok(state
            .activations
            .iter()
            .rev()
            .filter(|activation| activation.kind == kind)
            .cloned()
            .collect())
    }

    fn resources(&self, owners: &[Reference]) -> Result<Vec<Resource>, StoreError> {
        let state = self.state();
        let found = state.resources.values();
        Ok(found
            .filter(|resource| owners.contains(&resource.owner))
            .cloned()
            .collect())
    }

    fn drop_runtimes(&self, owner: &Entity, rows: Rows, events: &[AdminEvent]) -> Result<bool, StoreError> {
        self.commit(|state| Ok(state.drop_runtimes(owner, rows, events)))
    }

    fn drop_resource(&self, id: i64) -> Result<(), StoreError> {
        self.commit(|state| {
            state.resources.remove(&id);
            Ok(Step::Wrote(()))
        })
    }

    fn remove(&self, entity: &Entity, event: &AdminEvent) -> Result<Removed, StoreError> {
        self.commit(|state| Ok(state.remove(entity, event)))
    }

    fn oldest(&self, after_row: i64, limit: usize) -> Result<Vec<Entity>, StoreError> {
        let state = self.state();
        let later = state.entities.range(after_row.saturating_add(1)..);
        Ok(later.take(limit).map(|(_, entity)| entity.clone()).collect())
    }

    fn journal_page(&self, page: &JournalPage) -> Result<OldRows, StoreError> {
        let mut rows = self.state().journal(page.journal);
        rows.retain(|(row, ..)| *row > page.after);
        rows.truncate(page.limit);
        let seen: Vec<_> = rows
            .into_iter()
            .map(|(row, at, may_go)| (row, at < page.before, may_go))
            .collect();
        Ok(OldRows::of(&seen))
    }

    fn prune_journal(&self, page: &JournalPage, rows: &[i64], event: &AdminEvent) -> Result<usize, StoreError> {
        self.commit(|state| Ok(Step::Wrote(state.prune_journal(page, rows, event))))
    }

    fn upkeep(&self) -> Result<Upkeep, StoreError> {
        Ok(Upkeep::default())
    }
}

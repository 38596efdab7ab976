//! Who a kill reaches: the targets and what is linked below them, each with what is known of its processes.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use super::budget::Budget;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Asked, Entity, KillNode, KillSet, PlannedKill, Reach, Runtime, Standing, cascades, plan_kill};
use crate::store::{Scope, StoreError};
use crate::verbs::identity::{is_changing_hands, standing, unreadable};
use crate::verbs::settle::settle;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The entities, each followed by the sets that it has beside the newest.
    pub(super) nodes: Vec<KillNode>,
    /// Beside each, its runtime that is not stopped.
    pub(super) runtimes: Vec<Option<Runtime>>,
    /// Beside each, the one it was found below first.
    pub(super) above: Vec<Option<usize>>,
}

impl Walk {
    /// What is to be done with them.
    pub(super) fn plan(&self) -> Vec<PlannedKill> {
        plan_kill(&self.nodes)
    }

    /// The places of all sets of the entity at this place, which is that of the newest.
    fn sets(&self, place: usize) -> std::ops::Range<usize> {
        let older = self.nodes[place + 1..].iter();
        place..place + 1 + older.take_while(|node| node.set == KillSet::Older).count()
    }

    /// Whether the entity of a node has other sets.
    pub(super) fn is_one_of_several(&self, place: usize) -> bool {
        let next = self.nodes.get(place + 1);
        self.nodes[place].set == KillSet::Older || next.is_some_and(|node| node.set == KillSet::Older)
    }
}

/// Finds everything a kill of the targets reaches now. Like any other reading this records ends that wait to be recorded;
/// a store that cannot be written is tried once, and keeps nobody from being stopped.
pub(super) fn walk(host: &Host, targets: &[Entity], reach: Reach, budget: &mut Budget) -> Result<Walk, Error> {
    let mut found = Walk::default();
    let mut look = Look {
        host,
        budget,
        unwritable: None,
    };
    let mut places: HashMap<i64, usize> = HashMap::new();
    let mut open: VecDeque<usize> = VecDeque::new();
    for target in targets {
        if let Entry::Vacant(place) = places.entry(target.row) {
            place.insert(found.nodes.len());
            open.push_back(found.nodes.len());
            found.add(&mut look, target, Asked::Directly, None)?;
        }
    }
    while let Some(place) = open.pop_front() {
        let node = &found.nodes[place];
        let lifecycle = host.lifecycle(&node.entity)?;
        if node.asked == Asked::Directly && !cascades(&lifecycle, &node.entity.status, reach) {
            continue;
        }
        for child in host.store().linked(&node.entity, Scope::Children)? {
            let below = match places.get(&child.row) {
                Some(known) => *known,
                None => {
                    let new = found.nodes.len();
                    places.insert(child.row, new);
                    open.push_back(new);
                    found.add(&mut look, &child, Asked::Below, Some(place))?;
                    new
                }
            };
            let sets = found.sets(below);
            found.nodes[place].below.extend(sets);
        }
    }
    Ok(found)
}

impl Walk {
    fn add(&mut self, look: &mut Look<'_>, entity: &Entity, asked: Asked, above: Option<usize>) -> Result<(), Error> {
        let (entity, sets) = look.at(entity)?;
        let lifecycle = look.host.lifecycle(&entity)?;
        let mut sets = sets.into_iter();
        let (runtime, standing) = match sets.next() {
            Some((runtime, standing)) => (Some(runtime), standing),
            None => (None, Standing::Nothing),
        };
        let newest = KillNode {
            row: lifecycle.kill_row(&entity.status).cloned(),
            is_run: lifecycle.descriptor().execution.is_some(),
            entity,
            asked,
            set: KillSet::Newest,
            standing,
            below: Vec::new(),
        };
        let place = self.nodes.len();
        let older = sets.map(|(runtime, standing)| {
            let node = KillNode {
                row: None,
                set: KillSet::Older,
                standing,
                below: vec![place],
                ..newest.clone()
            };
            (node, Some(runtime))
        });
        let older: Vec<_> = older.collect();
        for (node, runtime) in std::iter::once((newest, runtime)).chain(older) {
            self.nodes.push(node);
            self.runtimes.push(runtime);
            self.above.push(above);
        }
        Ok(())
    }
}

/// What a walk looks with.
struct Look<'a> {
    host: &'a Host,
    budget: &'a mut Budget,
    /// Why the store could not be written.
    unwritable: Option<StoreError>,
}

impl Look<'_> {
    /// An entity as it is now, with its sets of processes, the newest first.
    fn at(&mut self, entity: &Entity) -> Result<(Entity, Vec<(Runtime, Standing)>), Error> {
        let host = self.host;
        let stands = |runtime: &Runtime| standing(host, runtime).unwrap_or_else(|error| unreadable(&error));
        // Before the exit files are read: a shim that is gone had written its own.
        let seen: HashMap<i64, Standing> = open(host, entity)?
            .into_iter()
            .map(|runtime| self.in_new_hands(runtime))
            .map(|runtime| (runtime.id, stands(&runtime)))
            .collect();
        if seen.is_empty() {
            return Ok((fresh(host, entity)?, Vec::new()));
        }
        let settled = self.settled(fresh(host, entity)?)?;
        let sets: Vec<(Runtime, Standing)> = open(host, &settled)?
            .into_iter()
            .map(|runtime| {
                let standing = seen.get(&runtime.id).cloned().unwrap_or_else(|| stands(&runtime));
                (runtime, standing)
            })
            .collect();
        Ok(match sets.is_empty() {
            true => (fresh(host, &settled)?, sets),
            false => (settled, sets),
        })
    }

    /// The row as it is once a shim that is just taking the set over is recorded, if that comes in time. What cannot be read
    /// is told by the look that follows.
    fn in_new_hands(&mut self, runtime: Runtime) -> Runtime {
        let host = self.host;
        let mut newest = runtime;
        let _ = self.budget.wait_for(|| {
            if !is_changing_hands(host, &newest).unwrap_or(false) {
                return Some(());
            }
            newest = host.store().runtime(newest.id).ok()??;
            None
        });
        newest
    }

    fn settled(&mut self, entity: Entity) -> Result<Entity, Error> {
        if self.unwritable.is_some() {
            return Ok(entity);
        }
        let host = self.host;
        match self.budget.write(|| settle(host, entity.clone())) {
            Ok(settled) => Ok(settled),
            Err(Error::Store(error)) => {
                tracing::warn!(%error, entity = %entity.reference, "its end could not be recorded yet");
                self.unwritable = Some(error);
                Ok(entity)
            }
            // A record that cannot be read tells nothing; nobody else waits for it.
            Err(Error::Process(error)) => {
                tracing::warn!(%error, entity = %entity.reference, "its exit record cannot be read");
                Ok(entity)
            }
            Err(error) => Err(error),
        }
    }
}

/// The entity as it is stored: after its runtime was seen to be stopped, with the end that was written in the same commit.
fn fresh(host: &Host, entity: &Entity) -> Result<Entity, Error> {
    let stored = host.store().load(&entity.reference.id)?;
    Ok(stored.unwrap_or_else(|| entity.clone()))
}

/// The runtimes of an entity that are not stopped, the newest first.
pub(super) fn open(host: &Host, entity: &Entity) -> Result<Vec<Runtime>, Error> {
    let runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
    let open = runtimes.into_iter().rev().filter(|runtime| !runtime.is_stopped());
    Ok(open.collect())
}

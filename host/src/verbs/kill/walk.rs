//! Who a kill reaches: the targets and what is linked below them, each with what is known of its processes.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use super::budget::Budget;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Asked, Entity, KillNode, PlannedKill, Reach, Runtime, Standing, cascades, plan_kill};
use crate::store::{Scope, StoreError};
use crate::verbs::identity::{is_changing_hands, standing, unreadable};
use crate::verbs::settle::settle;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The entities.
    pub(super) nodes: Vec<KillNode>,
    /// Beside each, its newest runtime that is not stopped.
    pub(super) runtimes: Vec<Option<Runtime>>,
    /// Beside each, the one it was found below first.
    pub(super) above: Vec<Option<usize>>,
}

impl Walk {
    /// What is to be done with them.
    pub(super) fn plan(&self) -> Vec<PlannedKill> {
        plan_kill(&self.nodes)
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
            found.nodes[place].below.push(below);
        }
    }
    Ok(found)
}

impl Walk {
    fn add(&mut self, look: &mut Look<'_>, entity: &Entity, asked: Asked, above: Option<usize>) -> Result<(), Error> {
        let (entity, runtime, standing) = look.at(entity)?;
        let lifecycle = look.host.lifecycle(&entity)?;
        self.nodes.push(KillNode {
            row: lifecycle.kill_row(&entity.status).cloned(),
            is_run: lifecycle.descriptor().execution.is_some(),
            entity,
            asked,
            standing,
            below: Vec::new(),
        });
        self.runtimes.push(runtime);
        self.above.push(above);
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
    /// An entity as it is now, with its processes.
    fn at(&mut self, entity: &Entity) -> Result<(Entity, Option<Runtime>, Standing), Error> {
        let host = self.host;
        let Some(runtime) = newest(host, entity)? else {
            return Ok((fresh(host, entity)?, None, Standing::Nothing));
        };
        let runtime = self.in_new_hands(runtime);
        // Before the exit file is read: a shim that is gone had written it.
        let standing = standing(host, &runtime).unwrap_or_else(|error| unreadable(&error));
        let settled = self.settled(fresh(host, entity)?)?;
        Ok(match newest(host, &settled)? {
            None => (fresh(host, &settled)?, None, Standing::Nothing),
            Some(runtime) => (settled, Some(runtime), standing),
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

/// The newest runtime of an entity that is not stopped.
pub(super) fn newest(host: &Host, entity: &Entity) -> Result<Option<Runtime>, Error> {
    let runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
    Ok(runtimes.into_iter().rfind(|runtime| !runtime.is_stopped()))
}

//! How an entity stands, for a command that only reads.

use std::collections::HashSet;

use crate::error::Error;
use crate::host::Host;
use crate::model::{Entity, Reference};
use crate::store::StoreError;
use crate::verbs::settle::{exit_record, settle};

/// An entity as a command shows it that only reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// As it is: an end that waited is recorded.
    Settled(Entity),
    /// As it is stored: its end waits to be recorded, and the store cannot be written.
    EndWaits(Entity),
}

/// The same as [`settle`] for a command that only reads: a store that cannot be written, or has no room, is no reason to
/// show nothing.
///
/// # Errors
/// The store cannot be read, or the exit file cannot be.
pub fn standing(host: &Host, entity: Entity) -> Result<Standing, Error> {
    match settle(host, entity.clone()) {
        Ok(settled) => Ok(Standing::Settled(settled)),
        Err(Error::Store(StoreError::ReadOnly { .. } | StoreError::Full { .. })) => Ok(Standing::EndWaits(entity)),
        Err(error) => Err(error),
    }
}

impl Standing {
    /// The entity, however it was seen.
    pub fn into_entity(self) -> Entity {
        match self {
            Self::Settled(entity) | Self::EndWaits(entity) => entity,
        }
    }
}

/// The same for a listing, in its order: entities that did not end are looked at in one read together.
///
/// # Errors
/// As [`standing`]; what was recorded before stays.
pub fn standings(host: &Host, entities: Vec<Entity>) -> Result<Vec<Standing>, Error> {
    let alive = entities.iter().filter(|entity| !entity.terminal);
    let alive: Vec<Reference> = alive.map(|entity| entity.reference.clone()).collect();
    let runtimes = if alive.is_empty() {
        Vec::new()
    } else {
        host.store().runtimes(Some(&alive))?
    };
    let mut unsettled: HashSet<Reference> = HashSet::new();
    for runtime in runtimes {
        if runtime.is_stopped() || exit_record(&runtime)?.is_some() {
            unsettled.insert(runtime.owner);
        }
    }
    let stands = |entity: Entity| match unsettled.contains(&entity.reference) {
        true => standing(host, entity),
        false => Ok(Standing::Settled(entity)),
    };
    entities.into_iter().map(stands).collect()
}

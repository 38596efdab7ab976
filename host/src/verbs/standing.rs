//! How an entity stands, for a command that only reads.

use std::collections::HashSet;

use crate::error::Error;
use crate::host::Host;
use crate::model::{Entity, Reference};
use crate::store::StoreError;
use crate::verbs::repair::{is_suspect, is_unwatched, repair};

/// An entity as a command shows it that only reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// As it is: an end that waited is recorded.
    Settled(Entity),
    /// As it is stored: its end waits to be recorded, and the store cannot be written.
    EndWaits(Entity),
}

/// The same as [`repair`] for a command that only reads: a store that cannot be written, or has no room, is no reason to
/// show nothing.
///
/// # Errors
/// The store cannot be read, or the exit file cannot be.
pub fn standing(host: &Host, entity: Entity) -> Result<Standing, Error> {
    match repair(host, entity.clone()) {
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

/// The same for a listing, in its order: what did not end is looked at in one read together, and so is what lives on of
/// what did, as far as nobody watches it.
///
/// # Errors
/// As [`standing`]; what was recorded before stays.
pub fn standings(host: &Host, entities: Vec<Entity>) -> Result<Vec<Standing>, Error> {
    let (ended, alive): (Vec<&Entity>, Vec<&Entity>) = entities.iter().partition(|entity| entity.terminal);
    let mut unsettled: HashSet<Reference> = HashSet::new();
    if !alive.is_empty() {
        let alive: Vec<Reference> = alive.iter().map(|entity| entity.reference.clone()).collect();
        for runtime in host.store().runtimes(Some(&alive))? {
            if is_suspect(host, &runtime)? {
                unsettled.insert(runtime.owner);
            }
        }
    }
    if !ended.is_empty() {
        let ended: HashSet<&Reference> = ended.iter().map(|entity| &entity.reference).collect();
        // What is not stopped is little, however much has ended.
        let open = host.store().runtimes(None)?.into_iter();
        let lingering = open.filter(|runtime| ended.contains(&runtime.owner) && is_unwatched(runtime));
        unsettled.extend(lingering.map(|runtime| runtime.owner));
    }
    let stands = |entity: Entity| match unsettled.contains(&entity.reference) {
        true => standing(host, entity),
        false => Ok(Standing::Settled(entity)),
    };
    entities.into_iter().map(stands).collect()
}

//! What holds for a row: its policy's lease rule, what was asked for when it was submitted, and the settings of whoever judges.

use crate::error::Error;
use crate::host::Host;
use crate::model::lease::{Asked, Terms, rule};
use crate::model::{DurationMs, Entity, Lifecycle, Timestamp};
use crate::work::{QueueTerms, Work};

/// A row with what decides about it.
pub(super) struct Row {
    /// The row as it was read.
    pub(super) entity: Entity,
    /// Its policy's graph.
    pub(super) lifecycle: std::sync::Arc<Lifecycle>,
    /// What it is to do.
    pub(super) work: Work,
    /// What holds for it.
    pub(super) terms: Terms,
}

impl Row {
    /// None when the entity is no leased work.
    pub(super) fn of(host: &Host, entity: Entity, grace: Option<DurationMs>) -> Result<Option<Self>, Error> {
        let lifecycle = host.lifecycle(&entity)?;
        let Some(rule) = rule(&lifecycle).filter(|_| entity.queued.is_some()) else {
            return Ok(None);
        };
        let Some(work) = stored_work(host, &entity)? else {
            return Ok(None);
        };
        let asked = asked(work.queue.as_ref(), grace);
        let terms = Terms::of(rule, asked);
        Ok(Some(Self {
            entity,
            lifecycle,
            work,
            terms,
        }))
    }

    /// When its submitter wants it to begin at the earliest.
    pub(super) fn not_before(&self) -> Option<Timestamp> {
        self.work.queue.as_ref()?.not_before
    }
}

fn asked(queue: Option<&QueueTerms>, grace: Option<DurationMs>) -> Asked {
    Asked {
        lease: queue.and_then(|queue| queue.lease_ms),
        attempts: queue.and_then(|queue| queue.attempts),
        grace,
    }
}

/// The work specification of an entity, when it has one that this version understands.
pub(super) fn stored_work(host: &Host, entity: &Entity) -> Result<Option<Work>, Error> {
    let stored = host.store().work(entity)?;
    Ok(stored.and_then(|work| serde_json::from_value(work.0).ok()))
}

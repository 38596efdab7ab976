//! What holds for a row: its policy's lease rule, what was asked for when it was submitted, and the settings of whoever judges.

use crate::error::Error;
use crate::host::Host;
use crate::model::lease::{Asked, Terms, rule};
use crate::model::{DurationMs, Entity, Lifecycle, Timestamp};
use crate::store::Work as StoredWork;
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
        let work = match entity.queued.is_some() {
            true => host.store().work(&entity)?,
            false => None,
        };
        Self::with_work(host, entity, work, grace)
    }

    /// The rows of these entities, those that are no leased work left out.
    pub(super) fn of_all(host: &Host, entities: Vec<Entity>) -> Result<Vec<Self>, Error> {
        let works = host.store().works(&entities)?;
        let rows = entities.into_iter().zip(works);
        let rows = rows.filter_map(|(entity, work)| Self::with_work(host, entity, work, None).transpose());
        rows.collect()
    }

    fn with_work(
        host: &Host,
        entity: Entity,
        work: Option<StoredWork>,
        grace: Option<DurationMs>,
    ) -> Result<Option<Self>, Error> {
        let lifecycle = host.lifecycle(&entity)?;
        let Some(rule) = rule(&lifecycle).filter(|_| entity.queued.is_some()) else {
            return Ok(None);
        };
        let Some(work) = work.and_then(understood) else {
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

/// What the end of an attempt is judged by beside the run: how its row stands.
pub(crate) struct RowSeen {
    /// Which start of the row the run is, and how many are left to it.
    pub(crate) attempts: (i64, i64),
    /// The code of the kill that ended the row, and when.
    pub(crate) killed: Option<(String, Timestamp)>,
}

/// The row of the run of an attempt. None for a run of its own, or when the row is gone.
pub(crate) fn row_of_run(host: &Host, run: &Entity) -> Result<Option<RowSeen>, Error> {
    let Some(lease) = stored_work(host, run)?.and_then(|work| work.lease) else {
        return Ok(None);
    };
    let Some(entity) = host.store().load(&lease.reference.id)? else {
        return Ok(None);
    };
    let Some(row) = Row::of(host, entity, None)? else {
        return Ok(None);
    };
    let code = &row.entity.reason.code;
    let mut kills = row.lifecycle.descriptor().kill.iter();
    let is_kill = kills.any(|kill| [&kill.term_code, &kill.force_code, &kill.stale_code].contains(&code));
    let killed = row.entity.terminal && is_kill;
    Ok(Some(RowSeen {
        attempts: (lease.attempt, row.terms.attempts.saturating_sub(lease.attempt).max(0)),
        killed: killed.then(|| (code.clone(), row.entity.updated_at)),
    }))
}

/// The work specification of an entity, when it has one that this version understands.
pub(super) fn stored_work(host: &Host, entity: &Entity) -> Result<Option<Work>, Error> {
    Ok(host.store().work(entity)?.and_then(understood))
}

fn understood(work: StoredWork) -> Option<Work> {
    serde_json::from_value(work.0).ok()
}

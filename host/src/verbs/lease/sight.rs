//! What is known of queued work, for whoever explains it. Looks, and decides nothing.

use super::judge::run_under;
use super::operate::is_given_up;
use super::terms::Row;
use super::worker::at_work;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Entity, QueueSight, Stage};
use crate::store::Scope;

/// What is known of it; none when it is no queued work.
pub(crate) fn queue_sight(host: &Host, entity: &Entity) -> Result<Option<QueueSight>, Error> {
    let Some(queued) = &entity.queued else { return Ok(None) };
    let store = host.store();
    let queue = store
        .queues()?
        .into_iter()
        .find(|queue| queue.setup.name == queued.queue);
    let counts = queue.as_ref().map(|queue| queue.counts.as_slice()).unwrap_or_default();
    let held = counts
        .iter()
        .filter(|(stage, _)| stage.is_held())
        .map(|(_, count)| count)
        .sum();
    let setup = queue.as_ref().map(|queue| &queue.setup);
    let mut workers = at_work(host)?;
    workers.retain(|worker| worker.queues.is_empty() || worker.queues.contains(&queued.queue));
    let row = Row::of(host, entity.clone(), None)?;
    let successor = store.successor(entity)?;
    let run = match queued.stage {
        Some(Stage::Active | Stage::Doubted) => run_under(host, entity)?.map(|(run, _)| run),
        _ => store.linked(entity, Scope::Children)?.pop(),
    };
    Ok(Some(QueueSight {
        stage: queued.stage,
        queue: queued.queue.clone(),
        paused: setup
            .filter(|setup| setup.paused_at.is_some())
            .map(|setup| setup.note.clone().unwrap_or_default()),
        held: (held, setup.and_then(|setup| setup.limit)),
        workers: (workers.len(), workers.iter().map(|worker| worker.slots).sum()),
        awaited: store
            .dependencies(entity)?
            .into_iter()
            .map(|dependency| (dependency.on, dependency.ended))
            .collect(),
        run: run.map(|run| run.reference),
        waits_for_confirmation: successor.is_none() && row.as_ref().is_some_and(is_given_up),
        successor: successor.map(|successor| successor.reference),
        attempts: row.as_ref().map_or(0, |row| row.terms.attempts),
        steady: host.steady_now()?,
    }))
}

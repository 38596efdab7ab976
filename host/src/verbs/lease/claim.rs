//! Taking rows: a worker's turn at the queue.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::time::Duration;

use super::terms::Row;
use crate::error::Error;
use crate::host::Host;
use crate::model::lease::{claim as decide_claim, may_claim, rule};
use crate::model::{Entity, Stage, Timestamp};
use crate::process::take_in_order;
use crate::store::{HeldLease, ReadyQuery};
use crate::verbs::transition::{TransitionOutcome, write_all};

/// How long a worker waits for its turn before it goes without: many claims long. Who is stopped at its turn, by a debugger
/// say, does not keep the others from work.
const PATIENCE: Duration = Duration::from_millis(500);

/// A row that was taken.
pub struct Taken {
    /// The row, held.
    pub(super) row: Row,
    /// The authority over it.
    pub lease: HeldLease,
}

/// Takes at most so many rows of these queues (none: of all), in one commit, for a holder with its last heartbeat. The
/// workers of a machine take turns, so that they do not take from each other; what says who has a row is the
/// compare-and-set. What is taken is lost unless it is renewed: [`super::work`] does all of it.
///
/// # Errors
/// The store failed. If that was after the commit, what was taken is found when its lease runs out.
pub fn claim(
    host: &Host,
    (holder, heartbeat): (&str, Timestamp),
    queues: &[String],
    most: usize,
) -> Result<Vec<Taken>, Error> {
    let directory = host.config().home().join("claiming");
    if !directory.exists() {
        // The first worker of a home makes it; where it cannot be had, the store alone keeps order.
        let _ = DirBuilder::new().mode(0o700).create(&directory);
    }
    let _turn = take_in_order(&directory, PATIENCE);
    let query = ReadyQuery {
        queues: queues.to_vec(),
        limit: most,
    };
    let steady = host.steady_now()?;
    let mut rows = Vec::new();
    let mut commands = Vec::new();
    for row in Row::of_all(host, host.store().ready(&query)?)? {
        let age = steady.since(heartbeat);
        if !rule(&row.lifecycle).is_some_and(|rule| may_claim(rule, Some(age))) {
            continue;
        }
        if let Some(command) = decide_claim(&row.lifecycle, &row.entity, &row.terms, holder, steady) {
            commands.push((row.entity.clone(), command));
            rows.push(row);
        }
    }
    if commands.is_empty() {
        return Ok(Vec::new());
    }
    let outcomes = write_all(host, &commands)?;
    let taken = rows.into_iter().zip(outcomes).filter_map(|(row, outcome)| {
        let TransitionOutcome::Applied { entity, .. } = outcome else {
            return None;
        };
        Some(Taken {
            lease: lease_of(&entity, holder),
            row: Row { entity: *entity, ..row },
        })
    });
    Ok(taken.collect())
}

fn lease_of(entity: &Entity, holder: &str) -> HeldLease {
    HeldLease {
        reference: entity.reference.clone(),
        fence: entity.fence,
        holder: holder.to_owned(),
        attempt: entity.structural.lease_attempts.unwrap_or(1),
    }
}

/// Whether a row is held under this lease now.
pub(super) fn is_held_under(entity: &Entity, lease: &HeldLease) -> bool {
    let stage = entity.queued.as_ref().and_then(|queued| queued.stage);
    entity.fence == lease.fence && stage.is_some_and(Stage::is_held)
}

//! Another round for what was given up, asked for by an operator.

use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, Entity, Reference, outbox};
use crate::store::StoreError;
use crate::verbs::outbox::acknowledge::{dispatch_of, no_dispatch};
use crate::verbs::transition::{Beside, TransitionOutcome, write};

/// How a retry came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Retried {
    /// It is due now, its attempts counted from zero.
    Due(Box<Entity>),
    /// It was waiting for its next attempt, which is due now; attempts that were made still count.
    Sooner(Box<Entity>),
    /// Another one holds its deduplication key by now: that one tells what it would have told. Nothing was written.
    Held(Reference),
    /// Its status does not admit it; in the policy's words.
    Rejected(TransitionOutcome),
}

/// Asks for another round of a dispatch that was given up, or for the next attempt of one that waits to be made now.
///
/// # Errors
/// The entity is no dispatch, or the store failed: nothing was written.
pub fn retry(host: &Host, entity: &Entity, actor: &Actor) -> Result<Retried, Error> {
    dispatch_of(host, entity)?;
    let lifecycle = host.lifecycle(entity)?;
    let waits = !entity.terminal && entity.due_at().is_some_and(|due| due > host.now());
    let command = if waits {
        outbox::sooner(&lifecycle, entity, actor.clone(), host.now())
    } else {
        outbox::revived(&lifecycle, entity, actor.clone(), host.now())
    };
    let command = command.ok_or_else(|| no_dispatch(entity))?;
    let outcome = match write(host, entity, &command, &Beside::NOTHING) {
        Err(Error::Store(StoreError::KeyHeld { holder })) => return Ok(Retried::Held(holder)),
        outcome => outcome?,
    };
    Ok(match outcome {
        TransitionOutcome::Applied { entity, .. } if waits => Retried::Sooner(entity),
        TransitionOutcome::Applied { entity, .. } => Retried::Due(entity),
        other => Retried::Rejected(other),
    })
}

//! A receiver says that it has a dispatch, by presenting the token that came with it.

use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, DISPATCH_KIND, Dispatch, Entity, Invalid, outbox};
use crate::notify::{KEY_FILE, KeyError, verifies};
use crate::verbs::transition::{Beside, TransitionOutcome, write};

/// How a token was taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Presented {
    /// The dispatch is acknowledged.
    Acknowledged(Box<Entity>),
    /// It was before.
    Again(Box<Entity>),
    /// Its status does not admit it; in the policy's words.
    Rejected(TransitionOutcome),
}

/// Acknowledges a dispatch.
///
/// # Errors
/// The entity is no dispatch, wants no acknowledgement, or the token is another: nothing was written.
pub fn acknowledge(host: &Host, entity: &Entity, presented: &str, actor: &Actor) -> Result<Presented, Error> {
    let dispatch = dispatch_of(host, entity)?;
    if !dispatch.wants_acknowledgement {
        let message = format!("{} wants no acknowledgement", entity.reference);
        return Err(Invalid::new("token", message, None).into());
    }
    let is_right = verifies(host.config().home(), &entity.reference.id, presented);
    if !is_right.map_err(key_unread)? {
        let message = format!("that is not the token of {}", entity.reference);
        let hint = "it came with the dispatch: header runwarden-acknowledgement, or RUNWARDEN_ACK_TOKEN".to_owned();
        return Err(Invalid::new("token", message, Some(hint)).into());
    }
    let lifecycle = host.lifecycle(entity)?;
    let command = outbox::acknowledged(&lifecycle, entity, actor.clone());
    let command = command.ok_or_else(|| no_dispatch(entity))?;
    if entity.status == command.target {
        return Ok(Presented::Again(Box::new(entity.clone())));
    }
    Ok(match write(host, entity, &command, &Beside::NOTHING)? {
        TransitionOutcome::Applied { entity, .. } => Presented::Acknowledged(entity),
        other => Presented::Rejected(other),
    })
}

/// What an entity delivers.
pub(super) fn dispatch_of(host: &Host, entity: &Entity) -> Result<Dispatch, Error> {
    let dispatch = host.store().dispatch(&entity.reference.id)?;
    dispatch.ok_or_else(|| no_dispatch(entity).into())
}

pub(super) fn no_dispatch(entity: &Entity) -> Invalid {
    let message = format!("{} is no {DISPATCH_KIND}", entity.reference);
    Invalid::new("dispatch", message, Some("`runwarden outbox ls` lists them".to_owned()))
}

fn key_unread(error: KeyError) -> Error {
    Error::Home {
        doing: "check the token with",
        path: KEY_FILE.to_owned(),
        source: std::io::Error::other(error),
    }
}

//! A notice that an operator sends himself, to a destination of the settings in force.

use serde_json::Value;

use super::enqueue::{dispatch_policy, enqueued, target_digest};
use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, Destination, Dispatch, DurationMs, Entity, Invalid, NotifySettings};
use crate::store::Enqueued;

/// How often a drawn id is drawn again when it is taken.
const DRAWS_MAX: usize = 4;

/// What is sent, and where to.
#[derive(Clone, Debug, PartialEq)]
pub struct Sending {
    /// `HANDLER/DESTINATION`, or a handler that has one destination.
    pub to: String,
    /// One JSON value.
    pub body: Value,
    /// One notice at a time has it; none: drawn.
    pub dedup_key: Option<String>,
    /// It is no longer sent after so long.
    pub deadline: Option<DurationMs>,
    /// The receiver is to present the token.
    pub wants_acknowledgement: bool,
}

/// Puts a notice into the outbox; true when it was there, with the same content.
///
/// # Errors
/// There is no such destination, the key stands for another notice, or the store failed: nothing was written.
pub fn send(host: &Host, settings: &NotifySettings, sending: &Sending, actor: &Actor) -> Result<(Entity, bool), Error> {
    let (handler, name, target) = destination(settings, &sending.to)?;
    let policy = dispatch_policy(host)?;
    for _ in 0..DRAWS_MAX {
        let key = match &sending.dedup_key {
            Some(key) => format!("operator/{key}"),
            None => format!("operator/{}", host.draw_id()?),
        };
        let dispatch = Dispatch {
            event_id: None,
            handler: Some(handler.to_owned()),
            destination: name.to_owned(),
            target: target.clone(),
            target_digest: target_digest(target),
            body: sending.body.to_string().into_bytes(),
            dedup_key: key,
            deadline: sending.deadline.map(|after| host.now().plus(after)),
            wants_acknowledgement: sending.wants_acknowledgement,
        };
        let new = enqueued(host, &policy, actor, dispatch)?;
        crash::point("send.decided");
        match host.store().enqueue(&new)? {
            Enqueued::New(entity) => {
                crash::point("send.committed");
                host.wake();
                host.remember_dispatches([entity.reference.id.clone()]);
                return Ok((*entity, false));
            }
            Enqueued::Held(entity) => return Ok((*entity, true)),
            Enqueued::Different(entity) => {
                let message = format!("{} has that key and says something else", entity.reference);
                let hint = "use a new key for a new notice".to_owned();
                return Err(Invalid::new("dedup-key", message, Some(hint)).into());
            }
            Enqueued::IdTaken => {}
        }
    }
    Err(Error::IdTaken {
        id: "a drawn id".to_owned(),
    })
}

/// The destination that a word means.
fn destination<'a>(
    settings: &'a NotifySettings,
    word: &'a str,
) -> Result<(&'a str, &'a str, &'a Destination), Invalid> {
    let (handler, name) = word
        .split_once('/')
        .map_or((word, None), |(handler, name)| (handler, Some(name)));
    let all = || {
        let of = |handler: &crate::model::BoundHandler| {
            let names = handler.destinations.keys();
            names.map(|name| format!("{}/{name}", handler.name)).collect::<Vec<_>>()
        };
        settings.handlers.iter().flat_map(of).collect::<Vec<_>>()
    };
    let unknown = |what: String| {
        let known = all();
        let hint = if known.is_empty() {
            "nothing is bound here: `runwarden notify add NAME --exec 'prog {payload}'` binds something".to_owned()
        } else {
            format!("there are {}", known.join(", "))
        };
        Invalid::new("to", what, Some(hint))
    };
    let bound = settings.handlers.iter().find(|bound| bound.name == handler);
    let bound = bound.ok_or_else(|| unknown(format!("no handler is named `{handler}`")))?;
    let mut fitting = bound
        .destinations
        .iter()
        .filter(|(destination, _)| name.is_none_or(|name| name == destination.as_str()));
    match (fitting.next(), fitting.next()) {
        (Some((name, target)), None) => Ok((&bound.name, name, target)),
        (Some(_), Some(_)) => Err(unknown(format!("`{handler}` has several destinations"))),
        _ => Err(unknown(format!(
            "`{handler}` has no destination `{}`",
            name.unwrap_or_default()
        ))),
    }
}

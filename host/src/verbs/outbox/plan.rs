//! What an event adds to the outbox: each bound handler that matches is asked for its plan, before the write.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::enqueue::{dispatch_policy, enqueued, target_digest};
use crate::error::Error;
use crate::host::Host;
use crate::model::{
    Actor, AdminEvent, BoundHandler, Dispatch, Event, EventId, NewDispatch, NotifySettings, Planned, Reference, outbox,
};
use crate::policy::PolicyFault;

/// All plans of one event together take at most so long; what is left is planned by the reconciler (SEMANTICS 3).
const PLANS_MOST: Duration = Duration::from_secs(1);

/// Why a plan is owed whose settings this version cannot read.
pub(super) const UNREADABLE: &str = "its settings were written by another version, and this one cannot read them";

/// The names of handlers in settings that cannot be read as a whole: the event is owed to each, until a version that can
/// read them plans it.
fn named(notify: &Value) -> impl Iterator<Item = &str> {
    let handlers = notify["handlers"].as_array().into_iter().flatten();
    handlers.filter_map(|handler| handler["name"].as_str())
}

/// Plans the notices of an event of an entity with these settings. Nothing here fails the event: a handler that does is
/// owed its plan, with an audit row.
///
/// # Errors
/// The store cannot be read, or there is no entropy.
pub(crate) fn plan(
    host: &Host,
    reference: &Reference,
    notify: &Value,
    event: &Event,
) -> Result<(Planned, Vec<AdminEvent>), Error> {
    let mut planned = Planned::default();
    let mut audit = Vec::new();
    if notify.is_null() {
        return Ok((planned, audit));
    }
    let Some(settings) = NotifySettings::of_stored(notify) else {
        let owed = |name| outbox::replanned(name, 1, Some(UNREADABLE.to_owned()), host.now());
        planned.owed = named(notify).map(owed).collect();
        return Ok((planned, audit));
    };
    let begun = Instant::now();
    let status = event.envelope["status"].as_str().unwrap_or_default();
    for handler in &settings.handlers {
        if !handler.filter.admits(&reference.kind, status) {
            continue;
        }
        let left = PLANS_MOST.saturating_sub(begun.elapsed());
        if left.is_zero() {
            planned.owed.push(outbox::replanned(&handler.name, 0, None, host.now()));
            continue;
        }
        match ask(host, handler, event, left)? {
            Ok(dispatches) => planned.dispatches.extend(dispatches),
            Err(fault) => {
                audit.push(failed(host, reference, handler, &event.id, &fault));
                let error = Some(fault.to_string());
                planned
                    .owed
                    .push(outbox::replanned(&handler.name, 1, error, host.now()));
            }
        }
    }
    Ok((planned, audit))
}

/// Asks one handler.
pub(super) fn ask(
    host: &Host,
    handler: &BoundHandler,
    event: &Event,
    left: Duration,
) -> Result<Result<Vec<NewDispatch>, PolicyFault>, Error> {
    let planned = match host.policies().plan(handler, &event.envelope, left) {
        Ok(planned) => planned,
        Err(fault) => return Ok(Err(fault)),
    };
    if planned.is_empty() {
        return Ok(Ok(Vec::new()));
    }
    let policy = dispatch_policy(host)?;
    let actor = Actor::system("plan");
    let rows = planned.into_iter().map(|planned| {
        let target = &handler.destinations[&planned.destination];
        let dispatch = Dispatch {
            event_id: Some(event.id.clone()),
            handler: Some(handler.name.clone()),
            target: target.clone(),
            target_digest: target_digest(target),
            destination: planned.destination,
            body: planned.body,
            dedup_key: planned.dedup_key,
            deadline: planned.deadline,
            wants_acknowledgement: planned.wants_acknowledgement,
        };
        enqueued(host, &policy, &actor, dispatch)
    });
    Ok(Ok(rows.collect::<Result<_, Error>>()?))
}

/// The audit row of a handler that failed.
pub(super) fn failed(
    host: &Host,
    reference: &Reference,
    handler: &BoundHandler,
    event_id: &EventId,
    fault: &PolicyFault,
) -> AdminEvent {
    AdminEvent {
        id: 0,
        at: host.now(),
        action: "handler_failed".to_owned(),
        target: Some(reference.to_string()),
        actor: "system:plan".to_owned(),
        details: json!({
            "handler": handler.name,
            "component": handler.component,
            "digest": handler.digest,
            "event_id": event_id,
            "error": fault.to_string(),
        }),
    }
}

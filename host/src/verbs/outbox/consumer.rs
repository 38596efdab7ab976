//! Programs outside that fetch events themselves: each is owed every one until it says that it has it.

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, AdminEvent, Timestamp};
use crate::store::Consumer;

/// Adds a consumer that is owed events since then; none: all there are. None when one has or had the name.
///
/// # Errors
/// The store failed; nothing was written.
pub fn add_consumer(
    host: &Host,
    name: &str,
    since: Option<Timestamp>,
    actor: &Actor,
) -> Result<Option<Consumer>, Error> {
    let consumer = Consumer {
        name: name.to_owned(),
        since,
        created_at: host.now(),
        retired_at: None,
    };
    let details = json!({"since": since.map(Timestamp::to_rfc3339)});
    let event = audit(host, "consumer_added", name, actor, details);
    Ok(host.store().add_consumer(&consumer, &event)?.then_some(consumer))
}

/// Retires a consumer: nothing is owed to it any more. False when there is no active one of that name.
///
/// # Errors
/// The store failed; nothing was written.
pub fn retire_consumer(host: &Host, name: &str, actor: &Actor) -> Result<bool, Error> {
    let event = audit(host, "consumer_retired", name, actor, Value::Null);
    Ok(host.store().retire_consumer(name, event.at, &event)?)
}

fn audit(host: &Host, action: &str, name: &str, actor: &Actor, details: Value) -> AdminEvent {
    AdminEvent {
        id: 0,
        at: host.now(),
        action: action.to_owned(),
        target: Some(format!("consumer/{name}")),
        actor: actor.to_string(),
        details,
    }
}

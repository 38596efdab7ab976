//! Bindings of the store: handlers that are told of what is created later, wherever a settings file says nothing else.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, AdminEvent, BoundHandler, Entity, Invalid, Layer, PlannedDispatch, validate_id};
use crate::notify::settings::{Chosen, State, entry};
use crate::store::{Binding, HistoryQuery};
use crate::verbs::notices::Installed;

/// How long a plan that is only looked at may take; the limits of a component hold beside it.
const PREVIEW_WALL: Duration = Duration::from_secs(1);

/// Adds a binding, or replaces the one of that name; it is judged whole before it is written. `settings` has the shape of
/// a handler's table in a settings file; relative paths in it begin at `base`, and are kept absolute.
///
/// # Errors
/// Something is wrong with it (everything is told), or the store failed: nothing was written.
pub fn bind(host: &Host, name: &str, settings: &Value, base: &Path, actor: &Actor) -> Result<BoundHandler, Error> {
    validate_id(name).map_err(|error| Invalid::new("name", error.to_string(), None))?;
    let read = entry(settings, Some(base));
    let chosen = match read.state {
        State::Configured(configured) => Chosen {
            layer: Layer::Store,
            configured,
        },
        State::Unset | State::Disabled => return Err(refused(name, &read.problems).into()),
    };
    let bound = Installed::new(host)
        .bind(name, &chosen)?
        .map_err(|problems| refused(name, &problems))?;
    let binding = Binding {
        name: name.to_owned(),
        settings: chosen.configured.settings(),
        created_at: host.now(),
        actor: actor.to_string(),
    };
    let details = json!({"component": bound.component, "digest": bound.digest, "settings": binding.settings});
    host.store()
        .put_binding(&binding, &event(host, "notify_bound", name, actor, details))?;
    Ok(bound)
}

/// Takes a binding away; false when there is none of that name. What was created under it keeps it.
///
/// # Errors
/// The store failed; nothing was written.
pub fn unbind(host: &Host, name: &str, actor: &Actor) -> Result<bool, Error> {
    let event = event(host, "notify_unbound", name, actor, json!({}));
    Ok(host.store().drop_binding(name, &event)?)
}

/// What a handler would send of an event; nothing is sent or written.
///
/// # Errors
/// The handler failed.
pub fn preview(host: &Host, handler: &BoundHandler, envelope: &Value) -> Result<Vec<PlannedDispatch>, Error> {
    Ok(host.policies().plan(handler, envelope, PREVIEW_WALL)?)
}

/// The envelope of the newest event that an entity made; none when it made none.
///
/// # Errors
/// The store cannot be read.
pub fn newest_event(host: &Host, entity: &Entity) -> Result<Option<Value>, Error> {
    let query = HistoryQuery {
        id: Some(entity.reference.id.clone()),
        ..HistoryQuery::default()
    };
    for row in host.store().history(&query)?.iter().rev() {
        if let Some(envelope) = host.store().envelope(row.id.as_str())? {
            return Ok(Some(envelope));
        }
    }
    Ok(None)
}

fn refused(name: &str, problems: &[crate::notify::settings::Problem]) -> Invalid {
    let said: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
    let said = if said.is_empty() {
        "it configures nothing".to_owned()
    } else {
        said.join("; ")
    };
    Invalid::new("binding", format!("{name} cannot be bound: {said}"), None)
}

fn event(host: &Host, action: &str, name: &str, actor: &Actor, details: Value) -> AdminEvent {
    AdminEvent {
        id: 0,
        at: host.now(),
        action: action.to_owned(),
        target: Some(name.to_owned()),
        actor: actor.to_string(),
        details,
    }
}

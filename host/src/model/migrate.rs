//! Moving a live entity to another policy of its kind: where it goes, and what it is there.
//!
//! Nothing about its work changes: a process, a lease, a place in a queue, a fence, notify settings and planned notices stay
//! as they are, and no event is made. What cannot stay as it is under the other policy keeps the entity where it is.

use serde_json::{Map, Value, json};

use super::entity::STRUCTURAL_NAMES;
use super::{
    Actor, AdminEvent, Change, Entity, EventId, Fields, HistoryRow, Lifecycle, Migration, Planned, PolicyPin, Reason,
    StatusMapping, Timestamp, coerce,
};

/// The reason code of the history row: a word of the host's own, which no policy declares.
pub const MIGRATED: &str = "host.policy.migrated";

/// The policy that entities are moved to.
#[derive(Clone, Copy, Debug)]
pub struct NewPolicy<'a> {
    /// What they are pinned to from then on.
    pub pin: &'a PolicyPin,
    /// Its graph.
    pub lifecycle: &'a Lifecycle,
}

/// What whoever moves entities says of how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveOrders {
    /// Statuses left and entered; they go before what the policy says.
    pub statuses: Vec<StatusMapping>,
    /// Fields that are given up: the history row keeps their values.
    pub dropped: Vec<String>,
    /// Why, in words; kept with the history.
    pub reason: Option<String>,
}

/// Whether the new policy exports `migrate.map`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapFunction {
    /// It does: it is asked where no row fits.
    Exported,
    /// It does not.
    Absent,
}

/// Which way leads from a status to the new policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// To this status.
    To(String),
    /// The policy's function knows.
    Ask,
    /// None.
    Nowhere,
}

/// Where an entity goes, and what is patched on the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapped {
    /// The status entered.
    pub status: String,
    /// Fields set; null gives one up, whether the new policy declares it or not.
    pub patch: Fields,
}

/// What an entity brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// A runtime that is not stopped: its end is still to be judged.
    Runtime,
    /// Nothing that runs.
    Nothing,
}

/// Why an entity stays under its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotMoved {
    /// `ended`, `no_place`, `would_end`, `field`, `queue`, `execution`, `function`, or `lost_race`.
    pub code: &'static str,
    /// In words; the same for every entity that is kept by the same thing.
    pub message: String,
}

impl NotMoved {
    /// A reason.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// Which way leads from the status of an entity under `from` to the new policy: what was ordered, else the first row that
/// fits, else its function. A policy that says nothing of any other version keeps statuses of the same name.
pub fn way(from: &PolicyPin, status: &str, to: NewPolicy<'_>, orders: &MoveOrders, function: MapFunction) -> Way {
    if let Some(ordered) = target(&orders.statuses, status) {
        return Way::To(ordered.to_owned());
    }
    let same = || match to.lifecycle.status(status) {
        Some(_) => Way::To(status.to_owned()),
        None => Way::Nowhere,
    };
    let rows = &to.lifecycle.descriptor().migrations;
    match (rows.iter().find(|row| fits(row, from, to.pin)), function) {
        (Some(row), _) => target(&row.statuses, status).map_or_else(same, |to| Way::To(to.to_owned())),
        (None, MapFunction::Exported) => Way::Ask,
        (None, MapFunction::Absent) if rows.is_empty() => same(),
        (None, MapFunction::Absent) => Way::Nowhere,
    }
}

fn target<'a>(mappings: &'a [StatusMapping], status: &str) -> Option<&'a str> {
    let mapping = mappings.iter().find(|mapping| mapping.from == status)?;
    Some(&mapping.to)
}

/// Whether a row is about the policy that an entity is under.
fn fits(row: &Migration, from: &PolicyPin, to: &PolicyPin) -> bool {
    let name = if row.from_name.is_empty() {
        &to.name
    } else {
        &row.from_name
    };
    let rest = from.version.strip_prefix(row.from_version.as_str());
    *name == from.name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// That no way leads from where an entity is.
pub fn no_place(entity: &Entity, to: NewPolicy<'_>) -> NotMoved {
    let message = format!(
        "status `{}` of {} has no place in {}",
        entity.status,
        label(&entity.policy),
        label(to.pin)
    );
    NotMoved::new("no_place", message)
}

/// What an entity becomes under the new policy; pure and total.
///
/// # Errors
/// [`NotMoved`] says what keeps it where it is.
pub fn migrate(
    to: NewPolicy<'_>,
    (entity, carried): (&Entity, Carried),
    mapped: &Mapped,
    orders: &MoveOrders,
    (actor, store, now): (&Actor, &str, Timestamp),
) -> Result<Change, NotMoved> {
    admitted(to, entity, mapped, carried)?;
    let mut after = entity.successor(&entity.reason, now);
    after.policy = to.pin.clone();
    let given_up = carry_fields(to, &mut after, mapped, orders)?;
    after.enter(to.lifecycle, &mapped.status);
    after.line_up(to.lifecycle);
    let stage = |entity: &Entity| entity.queued.as_ref().and_then(|queued| queued.stage);
    if let (before, after) = (stage(entity), stage(&after))
        && before != after
    {
        let words = |stage: Option<super::Stage>| stage.map_or("none", super::Stage::word);
        let message = format!(
            "as `{}` of {} it would be {} in its queue, and is {}: its place stays",
            mapped.status,
            label(to.pin),
            words(after),
            words(before)
        );
        return Err(NotMoved::new("queue", message));
    }
    let particulars = particulars(entity, to.pin, &given_up, orders);
    let row = HistoryRow {
        id: EventId::new(store, &entity.reference.id, after.version),
        reference: entity.reference.clone(),
        previous_status: Some(entity.status.clone()),
        status: mapped.status.clone(),
        reason: Reason::code(MIGRATED).summary(summary(entity, to.pin, orders)),
        actor: actor.clone(),
        at: now,
        version: after.version,
        policy_digest: to.pin.digest.clone(),
        metadata: json!({"migration": particulars}),
        guarded: Value::Null,
    };
    let mut details = particulars;
    details["previous_status"] = json!(entity.status);
    details["new_status"] = json!(mapped.status);
    let audit = AdminEvent {
        id: 0,
        at: now,
        action: "policy_migrated".to_owned(),
        target: Some(entity.reference.to_string()),
        actor: actor.to_string(),
        details,
    };
    Ok(Change {
        after,
        expected_version: entity.version,
        row,
        event: None,
        planned: Planned::default(),
        admin: vec![audit],
        key: None,
    })
}

/// Whether the entity may be in that status under the new policy, with what runs for it.
fn admitted(to: NewPolicy<'_>, entity: &Entity, mapped: &Mapped, carried: Carried) -> Result<(), NotMoved> {
    if entity.terminal {
        return Err(NotMoved::new("ended", "it has ended: what has ended keeps its policy"));
    }
    let Some(status) = to.lifecycle.status(&mapped.status) else {
        return Err(no_place(entity, to));
    };
    if status.terminal {
        let message = format!(
            "`{}` would become `{}`, which is terminal in {}: a migration ends nothing",
            entity.status,
            status.name,
            label(to.pin)
        );
        return Err(NotMoved::new("would_end", message));
    }
    if carried == Carried::Runtime && to.lifecycle.descriptor().execution.is_none() {
        let message = format!("it is run, and {} does not say what an end means", label(to.pin));
        return Err(NotMoved::new("execution", message));
    }
    Ok(())
}

/// Fits the fields to those that the new policy declares; those that were given up come back, with their values.
fn carry_fields(
    to: NewPolicy<'_>,
    after: &mut Entity,
    mapped: &Mapped,
    orders: &MoveOrders,
) -> Result<Fields, NotMoved> {
    let mut given_up = Fields::new();
    let is_column = |name: &str| STRUCTURAL_NAMES.contains(&name);
    let dropped = orders.dropped.iter();
    let nulls = mapped.patch.iter().filter(|(_, value)| value.is_null());
    let leaving = dropped.chain(nulls.map(|(name, _)| name));
    for name in leaving.filter(|name| !is_column(name)) {
        given_up.extend(after.fields.remove_entry(name));
    }
    for (name, value) in mapped.patch.iter().filter(|(_, value)| !value.is_null()) {
        after.set_field(name, value);
    }
    let mut fitted = Fields::new();
    for (name, value) in &after.fields {
        let Some(field) = to.lifecycle.field(name) else {
            let message = format!("{} has no field `{name}`", label(to.pin));
            return Err(NotMoved::new("field", message));
        };
        let value = coerce(name, field.kind, value).map_err(|_| {
            let (to, kind) = (label(to.pin), field.kind.words());
            NotMoved::new(
                "field",
                format!("field `{name}` of {to} takes {kind}, and it has another"),
            )
        })?;
        fitted.insert(name.clone(), value);
    }
    after.fields = fitted;
    Ok(given_up)
}

/// From where to where, for history and audit.
fn particulars(entity: &Entity, to: &PolicyPin, given_up: &Fields, orders: &MoveOrders) -> Value {
    let mut particulars = Map::new();
    particulars.insert("from".to_owned(), json!(entity.policy));
    particulars.insert("to".to_owned(), json!(to));
    if !given_up.is_empty() {
        particulars.insert("given_up".to_owned(), json!(given_up));
    }
    if let Some(reason) = &orders.reason {
        particulars.insert("reason".to_owned(), json!(reason));
    }
    Value::Object(particulars)
}

fn summary(entity: &Entity, to: &PolicyPin, orders: &MoveOrders) -> String {
    let moved = format!("moved from {} to {}", label(&entity.policy), label(to));
    match &orders.reason {
        Some(reason) => format!("{moved}: {reason}"),
        None => moved,
    }
}

fn label(pin: &PolicyPin) -> String {
    format!("{}@{}", pin.name, pin.version)
}

#[cfg(test)]
mod tests;

//! The decision: what a command means for an entity under its policy's graph.
//!
//! Judged in this order (SEMANTICS 2): invalid → expected statuses, expected version, field guards → edge and actor →
//! required patch and guard fields → the write. The idempotency key is looked up by the verb, between the first two.

use serde_json::{Value, json};

use super::measure::measure_end;
use super::{
    Actor, AdminEvent, Change, Edge, Entity, EventId, Fields, HistoryRow, KeyUse, LeaseChange, LeaseStep, Lifecycle,
    Override, Planned, Reason, SameStatus, Stage, Timestamp, Transition, coerce, json_equal,
};

/// What a command comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// It is written, unless a guard function refuses.
    Apply(Box<Change>),
    /// An expectation did not hold.
    Conflict(Conflict),
    /// The policy forbids it.
    Rejected(Refusal),
    /// The command itself is wrong.
    Invalid(Invalid),
}

/// The status and version that were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The status.
    pub status: String,
    /// The version.
    pub version: i64,
}

impl Found {
    /// What an entity shows.
    pub fn of(entity: &Entity) -> Self {
        Self {
            status: entity.status.clone(),
            version: entity.version,
        }
    }
}

/// An expectation that did not hold, or a race that was lost: a value, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// What was found instead.
    pub found: Found,
    /// `status`, `version`, `fence`, `guard` or `lost_race`.
    pub code: &'static str,
    /// In words.
    pub message: String,
}

/// A refusal by the policy; it is audited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was found.
    pub found: Found,
    /// `terminal`, `no_edge`, `same_status`, `actor`, the guard's own code, or `policy_fault`.
    pub code: String,
    /// In words.
    pub message: String,
}

/// A command that is wrong whatever the entity's state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// `status`, `reason`, `actor`, `field`, `override`, `id`, `patch`, `guard` or `key`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to give instead.
    pub hint: Option<String>,
}

impl Invalid {
    /// Something wrong, with what to give instead.
    pub fn new(code: &'static str, message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint,
        }
    }
}

/// Whether the command is wrong whatever state the entity is in.
///
/// # Errors
/// [`Invalid`] says what is wrong.
pub fn validate(lifecycle: &Lifecycle, command: &Transition) -> Result<(), Invalid> {
    fitted(lifecycle, command).map(|_| ())
}

/// Decides a transition: pure and total.
///
/// `store` is the store's name, of which the ids of history rows are made.
pub fn decide(lifecycle: &Lifecycle, entity: &Entity, command: &Transition, store: &str, now: Timestamp) -> Decision {
    let fitted = match fitted(lifecycle, command) {
        Ok(fitted) => fitted,
        Err(invalid) => return Decision::Invalid(invalid),
    };
    if let Some(invalid) = lease_patch(entity, command) {
        return Decision::Invalid(invalid);
    }
    if let Some(conflict) = expectations(entity, command, &fitted.guards) {
        return Decision::Conflict(conflict);
    }
    let crossing = match crossing(lifecycle, entity, command) {
        Ok(crossing) => crossing,
        Err(refusal) => return Decision::Rejected(refusal),
    };
    if let Crossing::Edge(edge) = crossing
        && let Some(invalid) = missing_fields(edge, command, &fitted)
    {
        return Decision::Invalid(invalid);
    }
    let admin = override_event(entity, command, crossing, now);
    let mut after = entity.successor(&command.reason, now);
    for (name, value) in &fitted.patch {
        after.set_field(name, value);
    }
    after.enter(lifecycle, &command.target);
    if let Some(step) = &command.lease {
        step.carry_out(&mut after);
    }
    after.line_up(lifecycle);
    if command.lease.is_none() && leaves_its_holder(entity, &after) {
        // Moved by hand from under its worker, whose later writes are conflicts.
        LeaseStep::free(LeaseChange::Release { due_at: None }).carry_out(&mut after);
        after.line_up(lifecycle);
    } else if command.lease.is_none() && is_hurried(lifecycle, entity, &after) {
        LeaseStep::free(LeaseChange::Schedule { due_at: None }).carry_out(&mut after);
        after.line_up(lifecycle);
    }
    measure_end(lifecycle, entity, &mut after, &fitted.patch, now);
    if after.terminal {
        after.unique_key = None;
    }
    let row = HistoryRow {
        id: EventId::new(store, &entity.reference.id, after.version),
        reference: entity.reference.clone(),
        previous_status: Some(entity.status.clone()),
        status: command.target.clone(),
        reason: command.reason.clone(),
        actor: command.actor.clone(),
        at: now,
        version: after.version,
        policy_digest: entity.policy.digest.clone(),
        metadata: command.metadata.clone(),
        guarded: Value::Null,
    };
    Decision::Apply(Box::new(Change {
        after,
        expected_version: entity.version,
        row,
        event: None,
        planned: Planned::default(),
        admin,
        key: None,
    }))
}

/// The fields of a lease, which are the host's once work was queued: a fence would be worth nothing otherwise.
const LEASE_FIELDS: [&str; 4] = ["leased_by", "lease_expires_at", "lease_attempts", "unknown_since"];

fn lease_patch(entity: &Entity, command: &Transition) -> Option<Invalid> {
    entity.queued.as_ref()?;
    let name = LEASE_FIELDS.iter().find(|name| command.patch.contains_key(**name))?;
    let message = format!("`{name}` of queued work is written by whoever holds it, and by nobody else");
    Some(Invalid::new("field", message, Some("leave it out".to_owned())))
}

fn leaves_its_holder(before: &Entity, after: &Entity) -> bool {
    let is_held = |entity: &Entity| {
        let stage = entity.queued.as_ref().and_then(|queued| queued.stage);
        stage.is_some_and(Stage::is_held)
    };
    is_held(before) && !is_held(after) && !after.terminal
}

/// Put back into its queue by hand between two attempts: whoever does that does not mean to wait for the delay.
fn is_hurried(lifecycle: &Lifecycle, before: &Entity, after: &Entity) -> bool {
    let rule = lifecycle.descriptor().lease.as_ref();
    let is_later = |entity: &Entity| entity.queued.as_ref().and_then(|queued| queued.stage) == Some(Stage::Later);
    rule.is_some_and(|rule| before.status != rule.queued && after.status == rule.queued)
        && is_later(before)
        && is_later(after)
}

impl Change {
    /// Whether an event is due: a terminal status is entered from another one, or an announced one is entered.
    pub fn makes_event(&self, lifecycle: &Lifecycle) -> bool {
        let moved = self.row.previous_status.as_deref() != Some(self.row.status.as_str());
        let announced = lifecycle
            .status(&self.row.status)
            .is_some_and(|status| status.announced);
        moved && (announced || (self.after.terminal && lifecycle.descriptor().emits_events))
    }

    /// The same change with its idempotency key.
    #[must_use]
    pub fn with_key(mut self, key: Option<KeyUse>) -> Self {
        self.key = key;
        self
    }
}

/// Patch and guards in the form their fields keep.
struct Fitted {
    patch: Fields,
    guards: Fields,
}

/// The way a command takes.
#[derive(Clone, Copy)]
enum Crossing<'a> {
    /// A declared edge.
    Edge(&'a Edge),
    /// The same status again.
    Same,
    /// No edge, or out of a terminal status, by override.
    Overridden(&'a Override),
}

fn fitted(lifecycle: &Lifecycle, command: &Transition) -> Result<Fitted, Invalid> {
    if lifecycle.status(&command.target).is_none() {
        return Err(unknown_status(lifecycle, &command.target));
    }
    for status in command.expected_statuses.iter().flatten() {
        // `none` is accepted and never matches: a status is never null here (SEMANTICS 10.15).
        if status != "none" && lifecycle.status(status).is_none() {
            return Err(unknown_status(lifecycle, status));
        }
    }
    validate_reason(lifecycle, &command.reason)?;
    validate_actor(&command.actor)?;
    validate_metadata(&command.metadata)?;
    if let Some(overriding) = &command.overriding
        && (overriding.actor.trim().is_empty() || overriding.justification.trim().is_empty())
    {
        let hint = "give --override-actor A and --justification T".to_owned();
        return Err(Invalid::new(
            "override",
            "an override needs an actor and a justification",
            Some(hint),
        ));
    }
    Ok(Fitted {
        patch: fit(lifecycle, &command.patch)?,
        guards: fit(lifecycle, &command.guards)?,
    })
}

pub(super) fn unknown_status(lifecycle: &Lifecycle, status: &str) -> Invalid {
    let known: Vec<&str> = lifecycle
        .descriptor()
        .statuses
        .iter()
        .map(|status| status.name.as_str())
        .collect();
    let message = format!("`{status}` is no status of {}", lifecycle.kind());
    Invalid::new(
        "status",
        message,
        Some(format!("its statuses are {}", known.join(", "))),
    )
}

pub(super) fn validate_reason(lifecycle: &Lifecycle, reason: &Reason) -> Result<(), Invalid> {
    if reason.code.is_empty() {
        return Err(Invalid::new(
            "reason",
            "a transition needs a reason",
            Some("add --reason CODE".to_owned()),
        ));
    }
    if lifecycle.admits_reason(&reason.code) {
        return Ok(());
    }
    let message = format!("`{}` is no reason code of {}", reason.code, lifecycle.kind());
    let hint = format!("`runwarden policy show {}` lists its reason codes", lifecycle.kind());
    Err(Invalid::new("reason", message, Some(hint)))
}

pub(super) fn validate_actor(actor: &Actor) -> Result<(), Invalid> {
    actor
        .problem()
        .map_or(Ok(()), |problem| Err(Invalid::new("actor", problem, None)))
}

pub(super) fn validate_metadata(metadata: &Value) -> Result<(), Invalid> {
    if metadata.is_null() || metadata.is_object() {
        return Ok(());
    }
    Err(Invalid::new("metadata", "metadata is a JSON object", None))
}

pub(super) fn fit(lifecycle: &Lifecycle, values: &Fields) -> Result<Fields, Invalid> {
    let mut fitted = Fields::new();
    for (name, value) in values {
        let Some(field) = lifecycle.field(name) else {
            let known: Vec<&str> = lifecycle
                .descriptor()
                .fields
                .iter()
                .map(|field| field.name.as_str())
                .collect();
            let hint = if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("it has {}", known.join(", "))
            };
            return Err(Invalid::new(
                "field",
                format!("`{name}` is no field of {}", lifecycle.kind()),
                Some(hint),
            ));
        };
        let value = coerce(name, field.kind, value).map_err(|e| Invalid::new("field", e.to_string(), None))?;
        fitted.insert(name.clone(), value);
    }
    Ok(fitted)
}

fn expectations(entity: &Entity, command: &Transition, guards: &Fields) -> Option<Conflict> {
    let conflict = |code, message| {
        Some(Conflict {
            found: Found::of(entity),
            code,
            message,
        })
    };
    if let Some(expected) = &command.expected_statuses
        && !expected.contains(&entity.status)
    {
        let wanted = if expected.is_empty() {
            "nothing".to_owned()
        } else {
            expected.join(" or ")
        };
        return conflict("status", format!("expected status {wanted}, found {}", entity.status));
    }
    if let Some(expected) = command.expected_version.filter(|expected| *expected != entity.version) {
        return conflict(
            "version",
            format!("expected version {expected}, found {}", entity.version),
        );
    }
    if let Some(fence) = command.lease.as_ref().and_then(|step| step.fence)
        && fence != entity.fence
    {
        return conflict("fence", format!("written under fence {fence}, found {}", entity.fence));
    }
    let (name, wanted) = guards
        .iter()
        .find(|(name, wanted)| !json_equal(&entity.field(name), wanted))?;
    conflict(
        "guard",
        format!("expected {name} = {wanted}, found {}", entity.field(name)),
    )
}

fn crossing<'a>(lifecycle: &'a Lifecycle, entity: &Entity, command: &'a Transition) -> Result<Crossing<'a>, Refusal> {
    let (from, to) = (entity.status.as_str(), command.target.as_str());
    let refuse = |code: &str, message: String| Refusal {
        found: Found::of(entity),
        code: code.to_owned(),
        message,
    };
    if let Some(edge) = lifecycle.edge(from, to) {
        if !edge.actors.is_empty() && !edge.actors.contains(&command.actor.kind) {
            let admitted = edge.actors.join(", ");
            return Err(refuse(
                "actor",
                format!("{from} -> {to} is for {admitted} only, not for {}", command.actor.kind),
            ));
        }
        return Ok(Crossing::Edge(edge));
    }
    if from == to && lifecycle.descriptor().same_status == SameStatus::Append {
        return Ok(Crossing::Same);
    }
    if let Some(overriding) = &command.overriding {
        return Ok(Crossing::Overridden(overriding));
    }
    if from == to {
        return Err(refuse(
            "same_status",
            format!("it is {from} already, and the policy admits no second write"),
        ));
    }
    if entity.terminal {
        return Err(refuse("terminal", format!("{from} is terminal: it stays")));
    }
    Err(refuse("no_edge", format!("the policy has no edge {from} -> {to}")))
}

fn missing_fields(edge: &Edge, command: &Transition, fitted: &Fitted) -> Option<Invalid> {
    let way = format!("{} -> {}", edge.from, edge.to);
    if let Some(name) = edge
        .required_patch
        .iter()
        .find(|name| !fitted.patch.contains_key(*name))
    {
        let hint = format!("add --set {name}=VALUE");
        return Some(Invalid::new("patch", format!("{way} must set `{name}`"), Some(hint)));
    }
    if command.expected_version.is_some() {
        return None;
    }
    let name = edge
        .required_guards
        .iter()
        .find(|name| !fitted.guards.contains_key(*name))?;
    let hint = format!("add --guard {name}=VALUE or --expect-version N");
    Some(Invalid::new("guard", format!("{way} must guard `{name}`"), Some(hint)))
}

/// The audit row of an override (ADR-0057 D4); written when a missing edge was crossed, and also when an override was
/// given on a declared edge out of a terminal status (SEMANTICS 10.7).
fn override_event(entity: &Entity, command: &Transition, way: Crossing<'_>, now: Timestamp) -> Vec<AdminEvent> {
    let overriding = match (way, &command.overriding) {
        (Crossing::Overridden(overriding), _) | (Crossing::Edge(_), Some(overriding)) => overriding,
        (Crossing::Same, _) | (Crossing::Edge(_), None) => return Vec::new(),
    };
    vec![AdminEvent {
        id: 0,
        at: now,
        action: "status_transition_override".to_owned(),
        target: Some(entity.reference.to_string()),
        actor: overriding.actor.clone(),
        details: json!({
            "entity_type": entity.reference.kind,
            "previous_status": entity.status,
            "new_status": command.target,
            "reason_code": command.reason.code,
            "justification": overriding.justification,
        }),
    }]
}

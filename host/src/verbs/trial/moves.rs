//! `[[case]]` and `[[guard]]`: what becomes of a command.

use serde_json::Value;

use super::cases::Tester;
use super::expect::{Came, Expected};
use crate::model::{
    Actor, Create, Decision, Entity, EventId, Fields, HistoryRow, PolicyPin, Reason, Reference, Tags, Timestamp,
    Transition, create, decide,
};
use crate::policy::{GuardRequest, Surroundings};

/// The store that the ids of a case are made of, and the id of its entity.
const STORE: &str = "cases";

/// A command, and the entity that it meets.
#[derive(Clone, Debug)]
pub(super) struct Situation {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) actor: Actor,
    pub(super) reason: Option<String>,
    pub(super) set: Fields,
    pub(super) guards: Fields,
    pub(super) fields: Fields,
    pub(super) tags: Tags,
    pub(super) now: Timestamp,
    /// Newest first.
    pub(super) history: Vec<Was>,
    pub(super) children: Vec<Child>,
}

/// A row of its history.
#[derive(Clone, Debug)]
pub(super) struct Was {
    pub(super) status: String,
    pub(super) actor: Actor,
    pub(super) reason: Option<String>,
    pub(super) at: Timestamp,
}

/// An entity linked below.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) kind: String,
    pub(super) id: Option<String>,
    pub(super) status: String,
    pub(super) terminal: bool,
    pub(super) success: bool,
}

/// What the graph, and the guard where the edge is guarded, say of a command.
#[derive(Clone, Debug)]
pub(super) struct MoveCase {
    pub(super) situation: Situation,
    pub(super) expected: Expected,
}

/// What the guard alone says of it.
#[derive(Clone, Debug)]
pub(super) struct GuardCase {
    pub(super) situation: Situation,
    pub(super) expected: Expected,
}

impl MoveCase {
    pub(super) fn asked(&self, tester: &Tester<'_>) -> Result<Came, String> {
        let (situation, lifecycle) = (&self.situation, tester.lifecycle());
        let entity = situation.entity(tester)?;
        let command = situation.command(tester);
        Ok(match decide(lifecycle, &entity, &command, STORE, situation.now) {
            Decision::Invalid(invalid) => Came::new("invalid", Some(invalid.code), invalid.message),
            Decision::Conflict(conflict) => Came::new("conflict", Some(conflict.code), conflict.message),
            Decision::Rejected(refusal) => Came::new("rejected", Some(&refusal.code), refusal.message),
            Decision::Apply(_) => {
                let edge = lifecycle.edge(&situation.from, &situation.to);
                let guarded = edge.is_some_and(|edge| edge.guarded);
                match guarded.then(|| situation.put_to_guard(tester, &entity, &command)) {
                    None | Some(Answer::Admitted) => Came::new("applied", None, ""),
                    Some(Answer::Refused(code, message)) => Came::new("rejected", Some(&code), message),
                    Some(Answer::Failed(why)) => Came::new("rejected", Some("policy_fault"), why),
                }
            }
        })
    }
}

impl GuardCase {
    pub(super) fn asked(&self, tester: &Tester<'_>) -> Result<Came, String> {
        let situation = &self.situation;
        let edge = tester.lifecycle().edge(&situation.from, &situation.to);
        if !edge.is_some_and(|edge| edge.guarded) {
            return Err(format!(
                "no guarded edge leads from {} to {}",
                situation.from, situation.to
            ));
        }
        let entity = situation.entity(tester)?;
        let answer = situation.put_to_guard(tester, &entity, &situation.command(tester));
        Ok(match answer {
            Answer::Admitted => Came::new("admitted", None, ""),
            Answer::Refused(code, message) => Came::new("refused", Some(&code), message),
            Answer::Failed(why) => Came::new("fault", None, why),
        })
    }
}

/// What the guard said.
enum Answer {
    Admitted,
    Refused(String, String),
    Failed(String),
}

impl Situation {
    pub(super) fn described(&self) -> String {
        format!("{} → {} by {}", self.from, self.to, self.actor.kind)
    }

    pub(super) fn entity(&self, tester: &Tester<'_>) -> Result<Entity, String> {
        entity(tester, &self.from, (&self.fields, &self.tags), self.now)
    }

    pub(super) fn command(&self, tester: &Tester<'_>) -> Transition {
        let codes = &tester.lifecycle().descriptor().reason_codes;
        let first = || codes.first().map(|reason| reason.code.clone()).unwrap_or_default();
        let code = self.reason.clone().unwrap_or_else(first);
        let mut command = Transition::new(&self.to, Reason::code(&code), self.actor.clone());
        command.patch.clone_from(&self.set);
        command.guards.clone_from(&self.guards);
        command
    }

    fn put_to_guard(&self, tester: &Tester<'_>, entity: &Entity, command: &Transition) -> Answer {
        let surroundings = self.surroundings(tester, entity);
        match tester.ready.guard(request(entity, command, &surroundings)) {
            Ok(None) => Answer::Admitted,
            Ok(Some((code, message))) => Answer::Refused(code, message),
            Err(fault) => Answer::Failed(fault.to_string()),
        }
    }

    /// What its functions may see: as much of it as the descriptor asks for, as in front of an entity.
    pub(super) fn surroundings(&self, tester: &Tester<'_>, entity: &Entity) -> Surroundings {
        let reads = &tester.lifecycle().descriptor().reads;
        let rows = usize::try_from(reads.history).unwrap_or_default();
        let children: &[Child] = if reads.children { &self.children } else { &[] };
        let child = |(place, child): (usize, &Child)| child.entity(place, &tester.pin, self.now);
        let row = |place: usize| self.history_row(entity, place);
        Surroundings {
            now: self.now,
            parameters: tester.parameters.clone(),
            children: children.iter().enumerate().map(child).collect(),
            history: (0..self.history.len().min(rows)).map(row).collect(),
        }
    }

    fn history_row(&self, entity: &Entity, place: usize) -> HistoryRow {
        let (was, age) = (&self.history[place], i64::try_from(place).unwrap_or(i64::MAX));
        let version = entity.version.saturating_sub(age).max(1);
        HistoryRow {
            id: EventId::new(STORE, &entity.reference.id, version),
            reference: entity.reference.clone(),
            previous_status: self.history.get(place + 1).map(|before| before.status.clone()),
            status: was.status.clone(),
            reason: Reason::code(was.reason.as_deref().unwrap_or_default()),
            actor: was.actor.clone(),
            at: was.at,
            version,
            policy_digest: entity.policy.digest.clone(),
            metadata: Value::Null,
            guarded: Value::Null,
        }
    }
}

impl Child {
    fn entity(&self, place: usize, pin: &PolicyPin, now: Timestamp) -> Entity {
        let id = self.id.clone().unwrap_or_else(|| format!("child-{}", place + 1));
        let mut entity = Entity::new(Reference::new(&self.kind, &id), pin.clone(), now);
        entity.status.clone_from(&self.status);
        entity.terminal = self.terminal;
        entity.success = self.success;
        entity
    }
}

pub(super) fn request<'a>(
    entity: &'a Entity,
    command: &'a Transition,
    surroundings: &'a Surroundings,
) -> GuardRequest<'a> {
    GuardRequest {
        entity,
        target: &command.target,
        reason: &command.reason,
        actor: &command.actor,
        patch: &command.patch,
        guards: &command.guards,
        overridden: command.overriding.is_some(),
        surroundings,
    }
}

/// An entity in a status, with these fields and labels: made as any other, then put there.
pub(super) fn entity(
    tester: &Tester<'_>,
    status: &str,
    (fields, tags): (&Fields, &Tags),
    now: Timestamp,
) -> Result<Entity, String> {
    let lifecycle = tester.lifecycle();
    if lifecycle.status(status).is_none() {
        return Err(format!("`{status}` is no status of {}", lifecycle.descriptor().label()));
    }
    let codes = &lifecycle.descriptor().reason_codes;
    let code = codes.first().map(|reason| reason.code.as_str()).unwrap_or_default();
    let mut command = Create::new(lifecycle.kind(), STORE, Actor::new("operator", STORE));
    command.reason = Reason::code(code);
    command.fields.clone_from(fields);
    command.tags.clone_from(tags);
    let made = create(lifecycle, &tester.pin, &command, STORE, now).map_err(|invalid| invalid.message)?;
    let mut entity = made.entity;
    entity.enter(lifecycle, status);
    Ok(entity)
}

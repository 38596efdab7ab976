//! What components of this line are asked, from what the host knows.

use super::bindings::exports::runwarden::notify::notifier;
use super::bindings::exports::runwarden::policy::{execution, guard, health};
use super::bindings::runwarden::types::types as shared;
use crate::model::{Actor, Descriptor, Entity, Fields, HistoryRow, Reads, Reason};
use crate::policy::calls::{GuardRequest, HealthRequest, MapRequest, Surroundings, VerdictRequest, attempts};
use crate::policy::unjudged::{Binding, Event};

pub(super) fn guard(reads: &Reads, asked: GuardRequest<'_>) -> guard::Request {
    guard::Request {
        entity: entity(asked.entity, reads),
        target: asked.target.to_owned(),
        reason: reason(asked.reason),
        actor: actor(asked.actor),
        patch: named(asked.patch),
        guards: named(asked.guards),
        overridden: asked.overridden,
        surroundings: surroundings(asked.surroundings),
        ext: Vec::new(),
    }
}

pub(super) fn ending(descriptor: &Descriptor, asked: &VerdictRequest<'_>) -> execution::Ending {
    let artifacts = asked.artifacts.iter();
    let own = || attempts(descriptor, &asked.entity.structural);
    let (attempt, attempts_left) = asked.of_row.unwrap_or_else(own);
    execution::Ending {
        entity: entity(asked.entity, &descriptor.reads),
        exit_code: asked.exit_code,
        signal: asked.signal,
        cause: asked.cause.to_owned(),
        stop_intent: asked.stop_intent.map(str::to_owned),
        started_at: asked.started_at.as_ms(),
        ended_at: asked.ended_at.as_ms(),
        duration: asked.duration.as_ms(),
        usage: asked.usage.map(|(user, system, max_resident_bytes)| execution::Usage {
            user,
            system,
            max_resident_bytes,
        }),
        attempt,
        attempts_left,
        artifacts: artifacts
            .map(|(kind, location)| execution::Artifact {
                kind: kind.clone(),
                location: location.clone(),
            })
            .collect(),
        evidence_wanted: asked.evidence_wanted,
        artifacts_missing: asked.artifacts_missing.to_vec(),
        last_output: asked.last_output.to_vec(),
        by_table: asked.by_table.map(|outcome| execution::Outcome {
            status: outcome.status.clone(),
            code: outcome.code.clone(),
        }),
        surroundings: surroundings(asked.surroundings),
        ext: Vec::new(),
    }
}

pub(super) fn observation(reads: &Reads, asked: HealthRequest<'_>) -> health::Observation {
    let signs = asked.signs;
    health::Observation {
        entity: entity(asked.entity, reads),
        process: signs.process.word().to_owned(),
        last_activity_at: signs.last_activity_at.as_ms(),
        messages: signs.messages,
        has_artifacts: signs.has_artifacts,
        has_stale_locks: signs.has_stale_locks,
        spawn_kind: signs.spawn_kind.clone(),
        surroundings: surroundings(asked.surroundings),
        ext: Vec::new(),
    }
}

/// The entity that is to be carried over, and what may be seen beside it.
pub(super) fn mapping(reads: &Reads, asked: MapRequest<'_>) -> (shared::Entity, shared::Surroundings) {
    (entity(asked.entity, reads), surroundings(asked.surroundings))
}

pub(super) fn event(event: &Event) -> notifier::Envelope {
    notifier::Envelope {
        event_id: event.event_id.clone(),
        schema: event.schema.clone(),
        kind: event.kind.clone(),
        id: event.id.clone(),
        status: event.status.clone(),
        success: event.success,
        reason_code: event.reason_code.clone(),
        occurred_at: event.occurred_at.as_ms(),
        json: event.json.clone(),
        ext: Vec::new(),
    }
}

pub(super) fn binding(binding: &Binding<'_>) -> notifier::Binding {
    notifier::Binding {
        name: binding.name.to_owned(),
        config: named(&binding.config),
        destinations: binding.destinations.clone(),
        ext: Vec::new(),
    }
}

fn surroundings(surroundings: &Surroundings) -> shared::Surroundings {
    shared::Surroundings {
        now: surroundings.now.as_ms(),
        parameters: named(&surroundings.parameters),
        children: surroundings.children.iter().map(child).collect(),
        history: surroundings.history.iter().map(history_row).collect(),
        ext: Vec::new(),
    }
}

/// An entity as a component reads it; tags only if the descriptor asked for them.
fn entity(entity: &Entity, reads: &Reads) -> shared::Entity {
    let tags = entity.tags.iter().filter(|_| reads.tags);
    shared::Entity {
        kind: entity.reference.kind.clone(),
        id: entity.reference.id.clone(),
        status: entity.status.clone(),
        version: entity.version,
        reason: reason(&entity.reason),
        fields: named(&entity.all_fields()),
        tags: tags
            .map(|(key, value)| shared::Tag {
                key: key.clone(),
                value: value.clone(),
            })
            .collect(),
        created_at: entity.created_at.as_ms(),
        updated_at: entity.updated_at.as_ms(),
        root: entity.root.clone().unwrap_or_else(|| entity.reference.id.clone()),
        generation: entity.generation,
        chain_parent: entity.chain_parent.clone(),
        ext: Vec::new(),
    }
}

fn child(entity: &Entity) -> shared::Child {
    shared::Child {
        kind: entity.reference.kind.clone(),
        id: entity.reference.id.clone(),
        status: entity.status.clone(),
        terminal: entity.terminal,
        success: entity.success,
        ext: Vec::new(),
    }
}

fn history_row(row: &HistoryRow) -> shared::HistoryRow {
    shared::HistoryRow {
        previous_status: row.previous_status.clone(),
        status: row.status.clone(),
        version: row.version,
        reason: reason(&row.reason),
        actor: actor(&row.actor),
        at: row.at.as_ms(),
        ext: Vec::new(),
    }
}

fn reason(reason: &Reason) -> shared::Reason {
    shared::Reason {
        code: reason.code.clone(),
        summary: reason.summary.clone(),
        evidence: reason.evidence.iter().map(ToString::to_string).collect(),
    }
}

fn actor(actor: &Actor) -> shared::Actor {
    shared::Actor {
        kind: actor.kind.clone(),
        id: actor.id.clone(),
    }
}

/// Fields as a component reads them.
fn named(fields: &Fields) -> Vec<shared::NamedJson> {
    fields
        .iter()
        .map(|(name, value)| shared::NamedJson {
            name: name.clone(),
            json: value.to_string(),
        })
        .collect()
}

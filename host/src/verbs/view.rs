//! Entities as people and programs read them, with what belongs to them.

use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{AdminEvent, Bytes, Entity, FieldKind, HistoryRow, Lifecycle, Reference, Runtime, Timestamp};
use crate::store::Belongings;
use crate::verbs::kept;

/// An entity with what belongs to it.
#[derive(Clone, Debug)]
pub struct EntityView {
    /// The entity.
    pub entity: Entity,
    /// References it is linked below.
    pub parents: Vec<String>,
    /// References linked below it.
    pub children: Vec<String>,
    /// Its newest runtime row.
    pub runtime: Option<Runtime>,
    /// Its work specification, as stored.
    pub work: Option<Value>,
    /// The document that `--json` shows.
    pub json: Value,
}

/// Gathers what belongs to an entity.
///
/// # Errors
/// The store cannot be read.
pub fn view(host: &Host, entity: Entity) -> Result<EntityView, Error> {
    let belongings = host.store().belongings(std::slice::from_ref(&entity))?;
    view_of(host, entity, belongings.into_iter().next().unwrap_or_default())
}

/// The same for a listing, in its order, from one snapshot.
///
/// # Errors
/// The store cannot be read.
pub fn views(host: &Host, entities: Vec<Entity>) -> Result<Vec<EntityView>, Error> {
    let belongings = host.store().belongings(&entities)?;
    entities
        .into_iter()
        .zip(belongings)
        .map(|(entity, belongings)| view_of(host, entity, belongings))
        .collect()
}

fn view_of(host: &Host, entity: Entity, belongings: Belongings) -> Result<EntityView, Error> {
    let references = |of: &[Reference]| of.iter().map(Reference::to_string).collect::<Vec<_>>();
    let parents = references(&belongings.parents);
    let children = references(&belongings.children);
    let runtime = belongings.runtime;
    let work = belongings.work.map(|work| work.0);
    let lifecycle = host.lifecycle(&entity)?;
    let json = entity_json(
        &entity,
        &lifecycle,
        (&parents, &children),
        runtime.as_ref(),
        work.as_ref(),
    );
    Ok(EntityView {
        entity,
        parents,
        children,
        runtime,
        work,
        json,
    })
}

/// The JSON document of an entity (the command-line contract names its members).
fn entity_json(
    entity: &Entity,
    lifecycle: &Lifecycle,
    (parents, children): (&[String], &[String]),
    runtime: Option<&Runtime>,
    work: Option<&Value>,
) -> Value {
    let command = work.map(|work| json!({"argv": work["argv"], "cwd": work["cwd"]}));
    json!({
        "ref": entity.reference.to_string(),
        "kind": entity.reference.kind,
        "id": entity.reference.id,
        "name": entity.name,
        "status": entity.status,
        "terminal": entity.terminal,
        "success": entity.success,
        "version": entity.version,
        "reason": {
            "code": entity.reason.code,
            "summary": entity.reason.summary,
            "evidence": entity.reason.evidence,
        },
        "policy": entity.policy,
        "fields": shown_fields(entity, lifecycle),
        "tags": entity.tags,
        "parents": parents,
        "children": children,
        "lineage": {
            "root": entity.root.as_deref().unwrap_or(&entity.reference.id),
            "generation": entity.generation,
            "chain_parent": entity.chain_parent,
        },
        "command": command,
        "runtime": runtime.map(runtime_json),
        "notify": entity.notify,
        "run_dir": runtime.and_then(|runtime| runtime.run_dir.clone()).map(Bytes),
        "created_at": entity.created_at.to_rfc3339(),
        "updated_at": entity.updated_at.to_rfc3339(),
        "ended_at": entity.structural.ended_at.map(Timestamp::to_rfc3339),
    })
}

/// Fields as shown: moments in RFC 3339.
fn shown_fields(entity: &Entity, lifecycle: &Lifecycle) -> Map<String, Value> {
    let shown = |name: &str, value: Value| match (lifecycle.field(name).map(|field| field.kind), value.as_i64()) {
        (Some(FieldKind::Timestamp), Some(ms)) => Value::from(Timestamp::from_ms(ms).to_rfc3339()),
        _ => value,
    };
    entity
        .all_fields()
        .into_iter()
        .map(|(name, value)| (name.clone(), shown(&name, value)))
        .collect()
}

/// The JSON document of a runtime row, as a part of its entity's.
pub(crate) fn runtime_json(runtime: &Runtime) -> Value {
    json!({
        "id": runtime.id,
        "state": runtime.state.word(),
        "kind": runtime.kind.word(),
        "host": runtime.place.host,
        "handle": runtime.remote_handle,
        "pid": runtime.worker.as_ref().map(|worker| worker.pid),
        "shim_pid": runtime.shim.as_ref().map(|shim| shim.pid),
        "level": runtime.level,
        "containment": runtime.containment.word(),
        "cgroup": runtime.cgroup.clone().map(Bytes),
        "stop_unconfirmed": runtime.stop_unconfirmed,
        "resume_token": runtime.resume_token.is_some(),
    })
}

/// The JSON document of a history row.
pub fn history_json(row: &HistoryRow) -> Value {
    let mut document = json!({
        "id": row.id,
        "ref": row.reference.to_string(),
        "previous_status": row.previous_status,
        "status": row.status,
        "reason": {"code": row.reason.code, "summary": row.reason.summary, "evidence": row.reason.evidence},
        "actor": row.actor,
        "at": row.at.to_rfc3339(),
        "version": row.version,
        "policy_digest": row.policy_digest,
        "metadata": row.metadata,
    });
    if !row.guarded.is_null() {
        let name = if kept::end_of(&row.guarded).is_some() {
            "end"
        } else {
            "guarded"
        };
        document[name] = row.guarded.clone();
    }
    document
}

/// The JSON document of an audit row.
pub fn admin_json(event: &AdminEvent) -> Value {
    json!({
        "id": event.id,
        "at": event.at.to_rfc3339(),
        "action": event.action,
        "target": event.target,
        "actor": event.actor,
        "details": event.details,
    })
}

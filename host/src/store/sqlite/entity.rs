//! Rows of entities: made, read and changed.

use rusqlite::{Row, params};

use super::columns::{Columns, json};
use super::connection::Db;
use super::failure::Fault;
use super::history::{self, Outline};
use super::{outbox, queue, removal, runtime, schedules};
use crate::model::{
    Change, Entity, Event, HistoryRow, NewEntity, PolicyPin, Queued, Reason, Reference, Stage, Structural,
};
use crate::store::{Applied, Created, EffectSet, NewRun, StoreError};

/// The columns [`decode`] takes, of `entities e`, `entity_ids i` and `components c`.
pub(super) const COLUMNS: &str = "e.entity, e.kind, i.id, e.name, e.status, e.terminal, e.success, e.version, \
     e.reason_code, e.reason_summary, e.reason_evidence, c.name, c.version, c.digest, e.fields, e.ended_at_ms, \
     e.exit_code, e.term_signal, e.cause, e.attempt, e.next_attempt_at_ms, e.leased_by, e.lease_expires_at_ms, \
     e.lease_attempts, e.unknown_since_ms, e.tags, e.unique_key, e.fence, e.root, e.generation, e.chain_parent, \
     e.notify, e.created_at_ms, e.updated_at_ms, e.queue, e.priority, e.stage";

/// The tables beside `entities e` that [`COLUMNS`] names. CROSS JOIN keeps the order: the entity is found first.
pub(super) const JOINS: &str = "CROSS JOIN entity_ids i ON i.entity = e.entity \
     CROSS JOIN components c ON c.component = e.component";

/// The scope of keys of creations; entities are numbered from 1.
const CREATIONS: i64 = 0;

/// An entity out of a row of [`COLUMNS`].
pub(super) fn decode(row: &Row<'_>) -> rusqlite::Result<Entity> {
    let mut columns = Columns::of(row, "entities");
    let mut entity = Entity {
        row: columns.take()?,
        reference: Reference {
            kind: columns.take()?,
            id: columns.take()?,
        },
        name: columns.take()?,
        status: columns.take()?,
        terminal: columns.take()?,
        success: columns.take()?,
        version: columns.take()?,
        reason: Reason {
            code: columns.take()?,
            summary: columns.take()?,
            evidence: columns.json()?,
        },
        policy: PolicyPin {
            name: columns.take()?,
            version: columns.take()?,
            digest: columns.take()?,
        },
        fields: columns.json()?,
        structural: Structural {
            ended_at: columns.maybe_moment()?,
            exit_code: columns.take()?,
            term_signal: columns.take()?,
            cause: columns.take()?,
            attempt: columns.take()?,
            next_attempt_at: columns.maybe_moment()?,
            leased_by: columns.take()?,
            lease_expires_at: columns.maybe_moment()?,
            lease_attempts: columns.take()?,
            unknown_since: columns.maybe_moment()?,
        },
        tags: columns.json()?,
        unique_key: columns.take()?,
        fence: columns.take()?,
        queued: None,
        root: columns.take()?,
        generation: columns.take()?,
        chain_parent: columns.take()?,
        notify: columns.json()?,
        created_at: columns.moment()?,
        updated_at: columns.moment()?,
    };
    if let Some(queue) = columns.take()? {
        entity.queued = Some(Queued {
            queue,
            priority: columns.take()?,
            stage: columns.take::<Option<i64>>()?.and_then(Stage::from_number),
        });
    }
    Ok(entity)
}

/// The entity of that id, when it is there.
pub(super) fn load(db: &Db, id: &str) -> rusqlite::Result<Option<Entity>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM entity_ids i CROSS JOIN entities e ON e.entity = i.entity \
         CROSS JOIN components c ON c.component = e.component WHERE i.id = ?1"
    );
    db.row(&sql, [id], decode)
}

/// The entity of that number, when it is there.
pub(super) fn load_row(db: &Db, row: i64) -> rusqlite::Result<Option<Entity>> {
    db.row(
        &format!("SELECT {COLUMNS} FROM entities e {JOINS} WHERE e.entity = ?1"),
        [row],
        decode,
    )
}

/// The number of an installed component.
pub(super) fn component(db: &Db, digest: &str) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT component FROM components WHERE digest = ?1 AND removed_at_ms IS NULL";
    db.row(sql, [digest], |row| row.get(0))
}

/// The number of the component an entity or a history row names; naming one that is not installed is refused.
fn pinned(db: &Db, digest: &str) -> Result<i64, Fault> {
    component(db, digest)?.ok_or_else(|| Fault::Refused(not_installed(digest)))
}

/// The error of naming a component that is not installed.
pub(crate) fn not_installed(digest: &str) -> StoreError {
    let source = format!("the component {digest} is not installed").into();
    StoreError::Failed {
        doing: "pinning to a policy",
        source,
    }
}

/// Counts an entity in or out at its component: the only place that writes `in_use`.
pub(super) fn count_pin(db: &Db, component: i64, change: i64) -> rusqlite::Result<()> {
    db.write(
        "UPDATE components SET in_use = in_use + ?2 WHERE component = ?1",
        params![component, change],
    )?;
    Ok(())
}

/// Whether an id is or was in use.
pub(super) fn id_is_taken(db: &Db, id: &str) -> rusqlite::Result<bool> {
    let known = db.row("SELECT 1 FROM entity_ids WHERE id = ?1", [id], |_| Ok(()))?;
    Ok(known.is_some())
}

/// Makes an entity; see [`crate::store::Store::create`].
pub(super) fn create(db: &Db, new: &NewEntity, run: Option<&NewRun>) -> Result<Created, Fault> {
    if let Some(key) = &new.key {
        let sql = "SELECT entity, command_digest FROM keys WHERE scope = ?1 AND key = ?2";
        let used = db.row(sql, params![CREATIONS, key.key], |row| {
            Ok((row.get::<_, i64>(0)?, row.get(1)?))
        })?;
        if let Some((row, command_digest)) = used
            && let Some(entity) = load_row(db, row)?
        {
            return Ok(Created::KeyUsed {
                entity: Box::new(entity),
                command_digest,
            });
        }
    }
    if id_is_taken(db, &new.entity.reference.id)? {
        return Ok(Created::IdTaken);
    }
    if let Some(answer) = queue::refusal(db, new, run)? {
        return Ok(answer);
    }
    let mut parents = Vec::with_capacity(new.parents.len());
    for parent in &new.parents {
        match open_parent(db, parent)? {
            Parent::Open(row) => parents.push(row),
            Parent::Missing => return Ok(Created::ParentMissing(parent.clone())),
            Parent::Closed => return Ok(Created::ParentClosed(parent.clone())),
        }
    }
    let row = add(
        db,
        &Addition {
            entity: &new.entity,
            row: &new.row,
            event: new.event.as_ref(),
            destination: None,
        },
    )?;
    for parent in parents {
        db.write(
            "INSERT OR IGNORE INTO links (parent, child) VALUES (?1, ?2)",
            [parent, row],
        )?;
    }
    outbox::plan(db, row, new.row.version, &new.planned)?;
    for event in &new.admin {
        history::record(db, event)?;
    }
    if let Some(key) = &new.key {
        let sql =
            "INSERT OR REPLACE INTO keys (scope, key, entity, version, command_digest) VALUES (?1, ?2, ?3, ?4, ?5)";
        db.write(
            sql,
            params![CREATIONS, key.key, row, new.row.version, key.command_digest],
        )?;
    }
    if let Some(run) = run
        && let Some(missing) = queue::await_all(db, row, &run.after)?
    {
        return Ok(Created::AwaitedMissing(missing));
    }
    let runtime_id = run.map(|run| add_run(db, row, run)).transpose()?.flatten();
    let entity = load_row(db, row)?.expect("the row was inserted in this transaction");
    Ok(Created::New {
        entity: Box::new(entity),
        runtime_id,
    })
}

/// An entity that is added with its first history row.
pub(super) struct Addition<'a> {
    pub(super) entity: &'a Entity,
    pub(super) row: &'a HistoryRow,
    pub(super) event: Option<&'a Event>,
    /// The number of the destination that it delivers to, if it delivers.
    pub(super) destination: Option<i64>,
}

/// Adds an entity whose id was found to be free, with its tags and its first history row; its number.
pub(super) fn add(db: &Db, addition: &Addition<'_>) -> Result<i64, Fault> {
    let entity = addition.entity;
    db.write(
        "INSERT INTO entity_ids (id, kind) VALUES (?1, ?2)",
        [&entity.reference.id, &entity.reference.kind],
    )?;
    let row = db.inserted();
    let pin = pinned(db, &entity.policy.digest)?;
    insert(db, row, pin, addition)?;
    count_pin(db, pin, 1)?;
    if let Some(before) = &entity.chain_parent {
        schedules::take_over(db, before, row)?;
    }
    for (key, value) in &entity.tags {
        db.write(
            "INSERT INTO tags (key, value, entity) VALUES (?1, ?2, ?3)",
            params![key, value, row],
        )?;
    }
    history::append(
        db,
        &Outline {
            entity: row,
            component: admitted(db, pin, entity, addition.row)?,
            row: addition.row,
            event: addition.event,
        },
    )?;
    Ok(row)
}

/// The number of the component that admitted a history row of an entity pinned to `pin`.
fn admitted(db: &Db, pin: i64, entity: &Entity, row: &HistoryRow) -> Result<i64, Fault> {
    if row.policy_digest == entity.policy.digest {
        Ok(pin)
    } else {
        pinned(db, &row.policy_digest)
    }
}

/// Adds what an entity brings along; the number of its runtime row.
fn add_run(db: &Db, row: i64, run: &NewRun) -> rusqlite::Result<Option<i64>> {
    db.write(
        "INSERT INTO works (entity, work) VALUES (?1, ?2)",
        params![row, json(&run.work.0)],
    )?;
    let Some(new) = &run.runtime else { return Ok(None) };
    for directory in &run.directories {
        removal::register(db, row, directory, new.created_at)?;
    }
    runtime::insert(db, row, new).map(Some)
}

enum Parent {
    Open(i64),
    Missing,
    Closed,
}

/// Whether something may be started below an entity: not when it ended, not when it is being stopped.
fn open_parent(db: &Db, parent: &Reference) -> rusqlite::Result<Parent> {
    let sql = "SELECT e.entity, e.terminal OR EXISTS \
                   (SELECT 1 FROM runtimes r WHERE r.owner = e.entity AND r.stop_at_ms IS NOT NULL) \
               FROM entity_ids i CROSS JOIN entities e ON e.entity = i.entity WHERE i.id = ?1 AND i.kind = ?2";
    let found = db.row(sql, [&parent.id, &parent.kind], |row| {
        Ok((row.get(0)?, row.get::<_, bool>(1)?))
    })?;
    Ok(match found {
        None => Parent::Missing,
        Some((_, true)) => Parent::Closed,
        Some((row, false)) => Parent::Open(row),
    })
}

fn insert(db: &Db, row: i64, component: i64, addition: &Addition<'_>) -> rusqlite::Result<()> {
    let sql = "INSERT INTO entities (entity, kind, name, status, terminal, success, version, reason_code, \
                   reason_summary, reason_evidence, component, fields, tags, ended_at_ms, exit_code, term_signal, cause, \
                   attempt, next_attempt_at_ms, leased_by, lease_expires_at_ms, lease_attempts, unknown_since_ms, \
                   unique_key, fence, root, generation, chain_parent, notify, created_at_ms, updated_at_ms, due_at_ms, \
                   destination, queue, priority, stage) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
                   ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36)";
    let entity = addition.entity;
    let structural = &entity.structural;
    db.write(
        sql,
        params![
            row,
            entity.reference.kind,
            entity.name,
            entity.status,
            entity.terminal,
            entity.success,
            entity.version,
            entity.reason.code,
            entity.reason.summary,
            evidence(&entity.reason),
            component,
            (!entity.fields.is_empty()).then(|| json(&entity.fields)),
            (!entity.tags.is_empty()).then(|| json(&entity.tags)),
            structural.ended_at.map(|at| at.as_ms()),
            structural.exit_code,
            structural.term_signal,
            structural.cause,
            structural.attempt,
            structural.next_attempt_at.map(|at| at.as_ms()),
            structural.leased_by,
            structural.lease_expires_at.map(|at| at.as_ms()),
            structural.lease_attempts,
            structural.unknown_since.map(|at| at.as_ms()),
            entity.unique_key,
            entity.fence,
            entity.root,
            entity.generation,
            entity.chain_parent,
            (!entity.notify.is_null()).then(|| json(&entity.notify)),
            entity.created_at.as_ms(),
            entity.updated_at.as_ms(),
            entity.due_at().map(|at| at.as_ms()),
            addition.destination,
            entity.queued.as_ref().map(|queued| &queued.queue),
            entity.queued.as_ref().map(|queued| queued.priority),
            stage(entity),
        ],
    )?;
    Ok(())
}

/// The stage of an entity as a column keeps it.
fn stage(entity: &Entity) -> Option<i64> {
    entity.queued.as_ref()?.stage.map(Stage::number)
}

/// The evidence of a reason as a column keeps it.
pub(super) fn evidence(reason: &Reason) -> Option<String> {
    (!reason.evidence.is_empty()).then(|| json(&reason.evidence))
}

/// Applies a change; see [`crate::store::Store::apply`].
pub(super) fn apply(db: &Db, effects: &EffectSet) -> Result<Applied, Fault> {
    let change = &effects.change;
    let row = change.after.row;
    let lost = || Ok(Applied::Lost(load(db, &change.after.reference.id)?.map(Box::new)));
    let sql = "SELECT e.component, c.component, d.held, e.terminal, e.stage FROM entities e \
               LEFT JOIN components c ON c.digest = ?3 AND c.removed_at_ms IS NULL \
               LEFT JOIN dispatches d ON d.entity = e.entity WHERE e.entity = ?1 AND e.version = ?2";
    let digest = &change.after.policy.digest;
    let found = db.row(sql, params![row, change.expected_version, digest], |found| {
        Ok(Before {
            component: found.get(0)?,
            pin: found.get(1)?,
            held: found.get(2)?,
            terminal: found.get(3)?,
            stage: found.get::<_, Option<i64>>(4)?.and_then(Stage::from_number),
        })
    })?;
    let Some(before) = found else {
        return lost();
    };
    if let Some(why) = queue::refused(db, &change.after, before.stage)? {
        return Ok(Applied::NoRoom(why));
    }
    if let Some(key) = &change.key {
        // The version still fits, so whoever used the key did so before the entity was read: read again and see it.
        let sql = "SELECT 1 FROM keys WHERE scope = ?1 AND key = ?2";
        if db.row(sql, params![row, key.key], |_| Ok(()))?.is_some() {
            return lost();
        }
    }
    let pin = before.pin.ok_or_else(|| Fault::Refused(not_installed(digest)))?;
    if update(db, pin, change)? == 0 {
        return lost();
    }
    if pin != before.component {
        count_pin(db, before.component, -1)?;
        count_pin(db, pin, 1)?;
    }
    if let Some(held) = before.held {
        outbox::hold_or_release(db, &change.after, held)?;
    }
    history::append(
        db,
        &Outline {
            entity: row,
            component: admitted(db, pin, &change.after, &change.row)?,
            row: &change.row,
            event: change.event.as_ref(),
        },
    )?;
    outbox::plan(db, row, change.row.version, &change.planned)?;
    if let Some(health) = &effects.destination {
        outbox::note_health(db, health)?;
    }
    for event in &change.admin {
        history::record(db, event)?;
    }
    if let Some(key) = &change.key {
        let sql = "INSERT INTO keys (scope, key, entity, version, command_digest) VALUES (?1, ?2, ?1, ?3, ?4)";
        db.write(sql, params![row, key.key, change.row.version, key.command_digest])?;
    }
    runtime::update(db, &effects.runtimes)?;
    if change.after.terminal && !before.terminal {
        let successor = effects
            .successor
            .as_ref()
            .map(|new| queue::succeed(db, row, new))
            .transpose()?;
        queue::note_end(db, row, change.after.success, successor)?;
    }
    Ok(Applied::Written)
}

/// What a change finds.
struct Before {
    /// The component the entity is pinned to.
    component: i64,
    /// The component it is to be pinned to, if it is installed.
    pin: Option<i64>,
    /// Whether it holds a deduplication key, when it is a dispatch.
    held: Option<bool>,
    terminal: bool,
    stage: Option<Stage>,
}

/// The compare-and-set. What is fixed at creation (kind, id, name, tags, lineage, notify settings) is not written.
fn update(db: &Db, component: i64, change: &Change) -> rusqlite::Result<usize> {
    let sql = "UPDATE entities SET status = ?3, terminal = ?4, success = ?5, version = ?6, reason_code = ?7, \
                   reason_summary = ?8, reason_evidence = ?9, component = ?10, fields = ?11, ended_at_ms = ?12, \
                   exit_code = ?13, term_signal = ?14, cause = ?15, attempt = ?16, next_attempt_at_ms = ?17, \
                   leased_by = ?18, lease_expires_at_ms = ?19, lease_attempts = ?20, unknown_since_ms = ?21, \
                   unique_key = ?22, fence = ?23, updated_at_ms = ?24, due_at_ms = ?25, stage = ?26 \
               WHERE entity = ?1 AND version = ?2";
    let after = &change.after;
    let structural = &after.structural;
    db.write(
        sql,
        params![
            after.row,
            change.expected_version,
            after.status,
            after.terminal,
            after.success,
            after.version,
            after.reason.code,
            after.reason.summary,
            evidence(&after.reason),
            component,
            (!after.fields.is_empty()).then(|| json(&after.fields)),
            structural.ended_at.map(|at| at.as_ms()),
            structural.exit_code,
            structural.term_signal,
            structural.cause,
            structural.attempt,
            structural.next_attempt_at.map(|at| at.as_ms()),
            structural.leased_by,
            structural.lease_expires_at.map(|at| at.as_ms()),
            structural.lease_attempts,
            structural.unknown_since.map(|at| at.as_ms()),
            after.unique_key,
            after.fence,
            after.updated_at.as_ms(),
            after.due_at().map(|at| at.as_ms()),
            stage(after),
        ],
    )
}

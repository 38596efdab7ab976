//! Entities as they are made.

use rusqlite::params;

use super::columns::json;
use super::connection::Db;
use super::failure::Fault;
use super::history::{self, Outline};
use super::{entity, outbox, queue, removal, runtime, schedules, waiting};
use crate::model::{Entity, Event, HistoryRow, NewEntity, Reference};
use crate::store::{Created, NewRun};

/// The scope of keys of creations; entities are numbered from 1.
const CREATIONS: i64 = 0;

/// Makes an entity; see [`crate::store::Store::create`].
pub(super) fn create(db: &Db, new: &NewEntity, run: Option<&NewRun>) -> Result<Created, Fault> {
    if let Some(used) = key_used(db, new)? {
        return Ok(used);
    }
    if entity::id_is_taken(db, &new.entity.reference.id)? {
        return Ok(Created::IdTaken);
    }
    if let Some(answer) = refusal(db, new, run)? {
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
    // Before the entity is there: nothing waits for itself.
    let awaited = match waiting::awaited(db, run.map_or(&[], |run| &run.after))? {
        Ok(awaited) => awaited,
        Err(missing) => return Ok(Created::AwaitedMissing(missing)),
    };
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
    if let Some(before) = &new.entity.chain_parent
        && let Some(before) = entity::number(db, before)?
    {
        waiting::take_over(db, before, row)?;
    }
    waiting::await_all(db, row, &awaited)?;
    let runtime_id = run.map(|run| add_run(db, row, run)).transpose()?.flatten();
    let made = entity::load_row(db, row)?.expect("the row was inserted in this transaction");
    Ok(Created::New {
        entity: Box::new(made),
        runtime_id,
    })
}

/// What its idempotency key stands for already.
fn key_used(db: &Db, new: &NewEntity) -> rusqlite::Result<Option<Created>> {
    let Some(key) = &new.key else { return Ok(None) };
    let sql = "SELECT entity, command_digest FROM keys WHERE scope = ?1 AND key = ?2";
    let used = db.row(sql, params![CREATIONS, key.key], |row| {
        Ok((row.get::<_, i64>(0)?, row.get(1)?))
    })?;
    let Some((row, command_digest)) = used else {
        return Ok(None);
    };
    let made = entity::load_row(db, row)?;
    Ok(made.map(|entity| Created::KeyUsed {
        entity: Box::new(entity),
        command_digest,
    }))
}

/// Why nothing is made: its key or its place in a chain is taken, or the lease it is to be run for is lost.
fn refusal(db: &Db, new: &NewEntity, run: Option<&NewRun>) -> rusqlite::Result<Option<Created>> {
    if let Some(lease) = run.and_then(|run| run.lease.as_ref())
        && !queue::is_held(db, lease)?
    {
        return Ok(Some(Created::LeaseLost));
    }
    if let Some(before) = &new.entity.chain_parent
        && let Some(successor) = waiting::successor(db, before)?
    {
        return Ok(Some(Created::SucceededBy(Box::new(successor))));
    }
    let Some(key) = &new.entity.unique_key else {
        return Ok(None);
    };
    let holder = queue::key_holder(db, key)?;
    Ok(holder.map(|holder| Created::UniqueKeyHeld(Box::new(holder))))
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
    let pin = entity::pinned(db, &entity.policy.digest)?;
    insert(db, row, pin, addition)?;
    entity::count_pin(db, pin, 1)?;
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
            component: entity::admitted(db, pin, entity, addition.row)?,
            row: addition.row,
            event: addition.event,
        },
    )?;
    Ok(row)
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
                   destination, queue, priority, stage, parameters) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
                   ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37)";
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
            entity::evidence(&entity.reason),
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
            entity::stage(entity),
            entity::parameters(entity),
        ],
    )?;
    Ok(())
}

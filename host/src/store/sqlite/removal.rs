//! What is taken out of the store: inventory rows, resources, entities, and what retention lets go.

use rusqlite::types::Value as Parameter;
use rusqlite::{params, params_from_iter};

use super::columns::Columns;
use super::connection::Db;
use super::consumers::IS_OWED;
use super::failure::Fault;
use super::{entity, history, waiting};
use crate::model::{AdminEvent, Entity, Reference, Resource, Timestamp};
use crate::store::{Journal, JournalPage, OldRows, Removed, Rows};

/// Registers a directory for the entity of number `owner`.
pub(super) fn register(db: &Db, owner: i64, directory: &[u8], at: Timestamp) -> rusqlite::Result<()> {
    let sql = "INSERT INTO resources (owner, directory, created_at_ms) VALUES (?1, ?2, ?3)";
    db.write(sql, params![owner, directory, at.as_ms()]).map(drop)
}

/// Resources of these entities, by number.
pub(super) fn resources(db: &Db, owners: &[Reference]) -> rusqlite::Result<Vec<Resource>> {
    let sql = "SELECT r.resource, i.kind, i.id, r.directory, r.created_at_ms FROM entity_ids i \
               CROSS JOIN resources r ON r.owner = i.entity WHERE i.id = ?1 AND i.kind = ?2";
    let mut found = Vec::new();
    for owner in owners {
        found.extend(db.rows(sql, [&owner.id, &owner.kind], |row| {
            let mut columns = Columns::of(row, "resources");
            Ok(Resource {
                id: columns.take()?,
                owner: Reference {
                    kind: columns.take()?,
                    id: columns.take()?,
                },
                directory: columns.take()?,
                created_at: columns.moment()?,
            })
        })?);
    }
    found.sort_by_key(|resource| resource.id);
    found.dedup_by_key(|resource| resource.id);
    Ok(found)
}

/// Takes an entity's rows out of the inventory; see [`crate::store::Store::drop_runtimes`].
pub(super) fn drop_runtimes(db: &Db, owner: &Entity, rows: Rows, events: &[AdminEvent]) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM runtimes WHERE owner = ?1 AND state <> 'stopped'";
    if db.row(sql, [owner.row], |_| Ok(()))?.is_some() {
        return Ok(false);
    }
    let sql = match rows {
        Rows::All => "DELETE FROM runtimes WHERE owner = ?1",
        Rows::WithoutToken => "DELETE FROM runtimes WHERE owner = ?1 AND resume_token IS NULL",
    };
    db.write(sql, [owner.row])?;
    events.iter().try_for_each(|event| history::record(db, event))?;
    Ok(true)
}

/// Takes a resource out of the inventory.
pub(super) fn drop_resource(db: &Db, id: i64) -> rusqlite::Result<()> {
    db.write("DELETE FROM resources WHERE resource = ?1", [id]).map(drop)
}

/// Takes an entity away, with all but its history; see [`crate::store::Store::remove`].
pub(super) fn remove(db: &Db, entity: &Entity, event: &AdminEvent) -> Result<Removed, Fault> {
    let sql = "SELECT e.component, \
                   EXISTS (SELECT 1 FROM runtimes WHERE owner = ?1) OR EXISTS (SELECT 1 FROM resources WHERE owner = ?1) \
               FROM entities e WHERE e.entity = ?1 AND e.version = ?2";
    let found = db.row(sql, params![entity.row, entity.version], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?))
    })?;
    let component = match found {
        None => {
            let now = entity::load(db, &entity.reference.id)?;
            return Ok(Removed::Changed(now.map(Box::new)));
        }
        Some((_, true)) => return Ok(Removed::Holding),
        Some((component, false)) => component,
    };
    for (key, value) in &entity.tags {
        let sql = "DELETE FROM tags WHERE key = ?1 AND value = ?2 AND entity = ?3";
        db.write(sql, params![key, value, entity.row])?;
    }
    db.write("DELETE FROM keys WHERE scope = ?1", [entity.row])?;
    waiting::note_end(db, entity.row, false)?; // whoever still waits for it would wait for ever
    // Its links, its work and what it waits for go with it.
    db.write("DELETE FROM entities WHERE entity = ?1", [entity.row])?;
    entity::count_pin(db, component, -1)?;
    history::record(db, event)?;
    Ok(Removed::Gone)
}

/// Entities in order of creation.
pub(super) fn oldest(db: &Db, after_row: i64, limit: usize) -> rusqlite::Result<Vec<Entity>> {
    let (columns, joins) = (entity::COLUMNS, entity::JOINS);
    let sql = format!("SELECT {columns} FROM entities e {joins} WHERE e.entity > ?1 ORDER BY e.entity LIMIT ?2");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    db.rows(&sql, params![after_row, limit], entity::decode)
}

/// That history row `t` may go once it is old: its entity is gone, no plan is owed for its event, and no consumer is owed
/// it.
fn history_may_go() -> String {
    format!(
        "NOT EXISTS (SELECT 1 FROM entities e WHERE e.entity = t.entity) \
         AND NOT EXISTS (SELECT 1 FROM owed_plans o WHERE o.event_entity = t.entity AND o.event_version = t.version) \
         AND NOT EXISTS (SELECT 1 FROM consumers c WHERE {IS_OWED})"
    )
}

/// A page of a journal; see [`crate::store::Store::journal_page`].
pub(super) fn journal_page(db: &Db, page: &JournalPage) -> rusqlite::Result<OldRows> {
    let sql = match page.journal {
        Journal::History => {
            let may_go = history_may_go();
            &format!(
                "SELECT t.transition, t.at_ms < ?2, {may_go} \
                 FROM transitions t WHERE t.transition > ?1 ORDER BY t.transition LIMIT ?3"
            )
        }
        Journal::Audit => {
            "SELECT a.admin_event, a.at_ms < ?2, 1 FROM admin_events a WHERE a.admin_event > ?1 \
             ORDER BY a.admin_event LIMIT ?3"
        }
    };
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
    let seen = db.rows(sql, params![page.after, page.before.as_ms(), limit], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?, row.get::<_, bool>(2)?))
    })?;
    Ok(OldRows::of(&seen))
}

/// Takes old rows out of a journal, through the gate that stands open inside this transaction alone.
pub(super) fn prune_journal(db: &Db, page: &JournalPage, rows: &[i64], event: &AdminEvent) -> rusqlite::Result<usize> {
    // First, so that its number comes after those that go.
    history::record(db, event)?;
    db.write("INSERT INTO retention_gate (open) VALUES (1)", [])?;
    let sql = match page.journal {
        Journal::History => {
            // The acknowledgements of its event go with it.
            let may_go = history_may_go();
            &format!("DELETE FROM transitions AS t WHERE transition = ?1 AND at_ms < ?2 AND {may_go}")
        }
        Journal::Audit => "DELETE FROM admin_events WHERE admin_event = ?1 AND at_ms < ?2",
    };
    let mut pruned = 0;
    for row in rows {
        let values: [Parameter; 2] = [(*row).into(), page.before.as_ms().into()];
        pruned += db.write(sql, params_from_iter(values))?;
    }
    db.write("DELETE FROM retention_gate", [])?;
    Ok(pruned)
}

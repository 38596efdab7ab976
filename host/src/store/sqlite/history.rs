//! What is only ever added: history rows with their events, and audit rows.

use rusqlite::types::Value as Parameter;
use rusqlite::{Row, params, params_from_iter};
use serde_json::Value;

use super::columns::{Columns, json};
use super::connection::Db;
use super::entity::evidence;
use crate::model::{Actor, AdminEvent, Entity, Event, EventId, HistoryRow, Reason, Reference, Timestamp};
use crate::store::{AdminQuery, HistoryQuery, PageBack};

/// A history row with the numbers its names stand for.
pub(super) struct Outline<'a> {
    pub(super) entity: i64,
    pub(super) component: i64,
    pub(super) row: &'a HistoryRow,
    pub(super) event: Option<&'a Event>,
}

/// Adds a history row, with the envelope of its event.
pub(super) fn append(db: &Db, outline: &Outline<'_>) -> rusqlite::Result<()> {
    let sql = "INSERT INTO transitions (entity, version, previous_status, status, reason_code, reason_summary, \
                   reason_evidence, actor_kind, actor_id, at_ms, component, metadata, envelope, \
                   guarded) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    let row = outline.row;
    db.write(
        sql,
        params![
            outline.entity,
            row.version,
            row.previous_status,
            row.status,
            row.reason.code,
            row.reason.summary,
            evidence(&row.reason),
            row.actor.kind,
            row.actor.id,
            row.at.as_ms(),
            outline.component,
            (!row.metadata.is_null()).then(|| json(&row.metadata)),
            outline.event.map(|event| json(&event.envelope)),
            (!row.guarded.is_null()).then(|| json(&row.guarded)),
        ],
    )?;
    Ok(())
}

/// Adds an audit row.
pub(super) fn record(db: &Db, event: &AdminEvent) -> rusqlite::Result<()> {
    let sql = "INSERT INTO admin_events (at_ms, action, target, actor, details) VALUES (?1, ?2, ?3, ?4, ?5)";
    let details = (!event.details.is_null()).then(|| json(&event.details));
    db.write(
        sql,
        params![event.at.as_ms(), event.action, event.target, event.actor, details],
    )?;
    Ok(())
}

const COLUMNS: &str = "t.transition, i.kind, i.id, t.version, t.previous_status, t.status, t.reason_code, \
     t.reason_summary, t.reason_evidence, t.actor_kind, t.actor_id, t.at_ms, c.digest, t.metadata, t.guarded";

const JOINS: &str =
    "CROSS JOIN entity_ids i ON i.entity = t.entity CROSS JOIN components c ON c.component = t.component";

fn decode(row: &Row<'_>, store: &str) -> rusqlite::Result<HistoryRow> {
    let mut columns = Columns::of(row, "transitions");
    let _order: i64 = columns.take()?;
    let reference = Reference {
        kind: columns.take()?,
        id: columns.take()?,
    };
    let version = columns.take()?;
    Ok(HistoryRow {
        id: EventId::new(store, &reference.id, version),
        reference,
        version,
        previous_status: columns.take()?,
        status: columns.take()?,
        reason: Reason {
            code: columns.take()?,
            summary: columns.take()?,
            evidence: columns.json()?,
        },
        actor: Actor {
            kind: columns.take()?,
            id: columns.take()?,
        },
        at: columns.moment()?,
        policy_digest: columns.take()?,
        metadata: columns.json()?,
        guarded: columns.json()?,
    })
}

/// History rows, oldest first.
pub(super) fn history(db: &Db, query: &HistoryQuery, store: &str) -> rusqlite::Result<Vec<HistoryRow>> {
    let mut parameters: Vec<Parameter> = Vec::new();
    let mut conditions = String::from("1");
    let order = match &query.id {
        Some(id) => {
            parameters.push(id.clone().into());
            conditions.push_str(" AND t.entity = (SELECT entity FROM entity_ids WHERE id = ?)");
            "t.version"
        }
        None => {
            // Bounded below, so that the count of scan steps tells of nothing but scans.
            conditions.push_str(" AND t.transition > 0");
            "t.transition"
        }
    };
    if let Some(since) = query.since {
        parameters.push(since.as_ms().into());
        conditions.push_str(" AND t.at_ms >= ?");
    }
    let direction = if query.newest.is_some() { "DESC" } else { "ASC" };
    parameters.push(
        query
            .newest
            .map_or(-1, |most| i64::try_from(most).unwrap_or(i64::MAX))
            .into(),
    );
    let sql =
        format!("SELECT {COLUMNS} FROM transitions t {JOINS} WHERE {conditions} ORDER BY {order} {direction} LIMIT ?");
    let mut rows = db.rows(&sql, params_from_iter(parameters), |row| decode(row, store))?;
    if query.newest.is_some() {
        rows.reverse();
    }
    Ok(rows)
}

/// History rows of a kind with their numbers, newest first.
pub(super) fn back(db: &Db, page: &PageBack, store: &str) -> rusqlite::Result<Vec<(i64, HistoryRow)>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM transitions t {JOINS} \
         WHERE t.transition < ?1 AND i.kind = ?2 AND t.at_ms >= ?3 ORDER BY t.transition DESC LIMIT ?4"
    );
    db.rows(&sql, back_from(page), |row| Ok((row.get(0)?, decode(row, store)?)))
}

/// What the statements of pages that go back are given: before, of, since, limit.
fn back_from(page: &PageBack) -> impl rusqlite::Params {
    (
        page.before.unwrap_or(i64::MAX),
        page.of.clone(),
        page.since.map_or(i64::MIN, Timestamp::as_ms),
        i64::try_from(page.limit).unwrap_or(i64::MAX),
    )
}

/// The history row a key of an entity stands for, with its command's digest.
pub(super) fn key_use(
    db: &Db,
    entity: &Entity,
    key: &str,
    store: &str,
) -> rusqlite::Result<Option<(String, HistoryRow)>> {
    let sql = format!(
        "SELECT {COLUMNS}, k.command_digest FROM keys k \
         CROSS JOIN transitions t ON t.entity = k.entity AND t.version = k.version {JOINS} \
         WHERE k.scope = ?1 AND k.key = ?2"
    );
    db.row(&sql, params![entity.row, key], |row| {
        Ok((row.get("command_digest")?, decode(row, store)?))
    })
}

/// The entity's number and the version that an event id of this store names; none when no entity had that id.
pub(super) fn event_key(db: &Db, event_id: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    let parts = event_id.split_once(':').and_then(|(store, rest)| {
        let (id, version) = rest.rsplit_once(':')?;
        Some((store, id, version.parse::<i64>().ok()?))
    });
    let Some((store, id, version)) = parts else {
        return Ok(None);
    };
    let sql = "SELECT i.entity FROM store_info s CROSS JOIN entity_ids i ON i.id = ?2 WHERE s.one = 1 AND s.name = ?1";
    let entity = db.row(sql, [store, id], |row| row.get(0))?;
    Ok(entity.map(|entity| (entity, version)))
}

/// The envelope a history row stored.
pub(super) fn envelope(db: &Db, event_id: &str) -> rusqlite::Result<Option<Value>> {
    let Some((entity, version)) = event_key(db, event_id)? else {
        return Ok(None);
    };
    let sql = "SELECT transition, envelope FROM transitions \
               WHERE entity = ?1 AND version = ?2 AND envelope IS NOT NULL";
    db.row(sql, [entity, version], |row| {
        let mut columns = Columns::of(row, "transitions");
        let _order: i64 = columns.take()?;
        columns.json()
    })
}

/// Audit rows, oldest first.
pub(super) fn admin_events(db: &Db, query: &AdminQuery) -> rusqlite::Result<Vec<AdminEvent>> {
    let mut parameters: Vec<Parameter> = Vec::new();
    let mut conditions = String::from("1");
    if let Some(target) = &query.target {
        parameters.push(target.clone().into());
        conditions.push_str(" AND target = ?");
    }
    if let Some(since) = query.since {
        parameters.push(since.as_ms().into());
        conditions.push_str(" AND at_ms >= ?");
    }
    let sql = format!(
        "SELECT admin_event, at_ms, action, target, actor, details FROM admin_events \
         WHERE {conditions} ORDER BY admin_event"
    );
    db.rows(&sql, params_from_iter(parameters), decode_audit)
}

/// Audit rows of an action, newest first.
pub(super) fn audit_back(db: &Db, page: &PageBack) -> rusqlite::Result<Vec<AdminEvent>> {
    let sql = "SELECT admin_event, at_ms, action, target, actor, details FROM admin_events \
               WHERE admin_event < ?1 AND action = ?2 AND at_ms >= ?3 ORDER BY admin_event DESC LIMIT ?4";
    db.rows(sql, back_from(page), decode_audit)
}

fn decode_audit(row: &Row<'_>) -> rusqlite::Result<AdminEvent> {
    let mut columns = Columns::of(row, "admin_events");
    Ok(AdminEvent {
        id: columns.take()?,
        at: columns.moment()?,
        action: columns.take()?,
        target: columns.take()?,
        actor: columns.take()?,
        details: columns.json()?,
    })
}

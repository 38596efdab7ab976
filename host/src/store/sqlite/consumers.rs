//! Who is told: the bindings of the store, and consumers with what they acknowledged.

use rusqlite::{Row, params};
use serde_json::Value;

use super::columns::{Columns, json};
use super::connection::Db;
use super::history;
use crate::model::{AdminEvent, EventId, Timestamp};
use crate::store::{Acknowledged, Binding, Consumer};

/// The bindings, in order of their names.
pub(super) fn bindings(db: &Db) -> rusqlite::Result<Vec<Binding>> {
    let sql = "SELECT binding, name, settings, created_at_ms, actor FROM bindings ORDER BY name";
    db.rows(sql, [], |row| {
        let mut columns = Columns::of(row, "bindings");
        let _number: i64 = columns.take()?;
        Ok(Binding {
            name: columns.take()?,
            settings: columns.json()?,
            created_at: columns.moment()?,
            actor: columns.take()?,
        })
    })
}

/// Adds or replaces a binding.
pub(super) fn put_binding(db: &Db, binding: &Binding, event: &AdminEvent) -> rusqlite::Result<()> {
    let sql = "INSERT INTO bindings (name, settings, created_at_ms, actor) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (name) DO UPDATE SET settings = excluded.settings, created_at_ms = excluded.created_at_ms, \
                   actor = excluded.actor";
    let values = params![
        binding.name,
        json(&binding.settings),
        binding.created_at.as_ms(),
        binding.actor
    ];
    db.write(sql, values)?;
    history::record(db, event)
}

/// Takes a binding away; false when there is none of that name.
pub(super) fn drop_binding(db: &Db, name: &str, event: &AdminEvent) -> rusqlite::Result<bool> {
    if db.write("DELETE FROM bindings WHERE name = ?1", [name])? == 0 {
        return Ok(false);
    }
    history::record(db, event)?;
    Ok(true)
}

/// Adds a consumer; false when there is or was one of that name.
pub(super) fn add(db: &Db, consumer: &Consumer, event: &AdminEvent) -> rusqlite::Result<bool> {
    let sql = "INSERT INTO consumers (name, since_at_ms, created_at_ms, retired_at_ms) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (name) DO NOTHING";
    let values = params![
        consumer.name,
        consumer.since.map(|at| at.as_ms()),
        consumer.created_at.as_ms(),
        consumer.retired_at.map(|at| at.as_ms()),
    ];
    if db.write(sql, values)? == 0 {
        return Ok(false);
    }
    history::record(db, event)?;
    Ok(true)
}

/// Retires a consumer; false when there is no active one of that name.
pub(super) fn retire(db: &Db, name: &str, at: Timestamp, event: &AdminEvent) -> rusqlite::Result<bool> {
    let sql = "UPDATE consumers SET retired_at_ms = ?2 WHERE name = ?1 AND retired_at_ms IS NULL";
    if db.write(sql, params![name, at.as_ms()])? == 0 {
        return Ok(false);
    }
    history::record(db, event)?;
    Ok(true)
}

/// That consumer `c` is owed the event of history row `t`: what it is to be told, whether or not others were before.
pub(super) const IS_OWED: &str = "t.envelope IS NOT NULL AND c.retired_at_ms IS NULL \
     AND (c.since_at_ms IS NULL OR t.at_ms >= c.since_at_ms) \
     AND NOT EXISTS (SELECT 1 FROM acknowledgements a \
         WHERE a.event_entity = t.entity AND a.event_version = t.version AND a.consumer = c.consumer)";

const COLUMNS: &str = "c.consumer, c.name, c.since_at_ms, c.created_at_ms, c.retired_at_ms";

fn decode(row: &Row<'_>) -> rusqlite::Result<Consumer> {
    let mut columns = Columns::of(row, "consumers");
    let _number: i64 = columns.take()?;
    Ok(Consumer {
        name: columns.take()?,
        since: columns.maybe_moment()?,
        created_at: columns.moment()?,
        retired_at: columns.maybe_moment()?,
    })
}

/// All consumers, in order of their names, with how many events each is owed.
pub(super) fn consumers(db: &Db) -> rusqlite::Result<Vec<(Consumer, u64)>> {
    let sql = format!(
        "SELECT {COLUMNS}, iif(c.retired_at_ms IS NULL, \
             (SELECT count(*) FROM transitions t INDEXED BY transitions_events WHERE {IS_OWED}), 0) AS owed \
         FROM consumers c ORDER BY c.name"
    );
    db.rows(&sql, [], |row| {
        let owed: i64 = row.get("owed")?;
        Ok((decode(row)?, u64::try_from(owed).unwrap_or(0)))
    })
}

/// The number of an active consumer.
fn active(db: &Db, name: &str) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT consumer FROM consumers WHERE name = ?1 AND retired_at_ms IS NULL";
    db.row(sql, [name], |row| row.get(0))
}

/// Events that a consumer is owed; see [`crate::store::Outbox::pending`].
pub(super) fn pending(
    db: &Db,
    name: &str,
    limit: usize,
    store: &str,
) -> rusqlite::Result<Option<Vec<(EventId, Value)>>> {
    let Some(consumer) = active(db, name)? else {
        return Ok(None);
    };
    let sql = format!(
        "SELECT t.transition, i.id, t.version, t.envelope FROM consumers c \
         CROSS JOIN transitions t INDEXED BY transitions_events CROSS JOIN entity_ids i ON i.entity = t.entity \
         WHERE c.consumer = ?1 AND {IS_OWED} ORDER BY t.transition LIMIT ?2"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = db.rows(&sql, params![consumer, limit], |row| {
        let mut columns = Columns::of(row, "transitions");
        let _order: i64 = columns.take()?;
        let id: String = columns.take()?;
        Ok((EventId::new(store, &id, columns.take()?), columns.json()?))
    })?;
    Ok(Some(found))
}

/// Acknowledges an event for a consumer.
pub(super) fn acknowledge(db: &Db, name: &str, event_id: &str, at: Timestamp) -> rusqlite::Result<Acknowledged> {
    let Some(consumer) = active(db, name)? else {
        return Ok(Acknowledged::NoConsumer);
    };
    let Some((entity, version)) = history::event_key(db, event_id)? else {
        return Ok(Acknowledged::NoEvent);
    };
    let sql = "SELECT 1 FROM transitions WHERE entity = ?1 AND version = ?2 AND envelope IS NOT NULL";
    if db.row(sql, [entity, version], |_| Ok(()))?.is_none() {
        return Ok(Acknowledged::NoEvent);
    }
    let sql = "SELECT 1 FROM acknowledgements WHERE event_entity = ?1 AND event_version = ?2 AND consumer = ?3";
    if db.row(sql, [entity, version, consumer], |_| Ok(()))?.is_some() {
        return Ok(Acknowledged::Again);
    }
    let sql = "INSERT INTO acknowledgements (event_entity, event_version, consumer, at_ms) VALUES (?1, ?2, ?3, ?4)";
    db.write(sql, params![entity, version, consumer, at.as_ms()])?;
    Ok(Acknowledged::New)
}

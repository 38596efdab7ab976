//! Dispatches and plans that are owed: added in the commit of what they tell, found when they are due.

use std::collections::HashMap;

use rusqlite::params;

use super::columns::{Columns, json};
use super::connection::Db;
use super::creation::{self, Addition};
use super::entity;
use super::failure::Fault;
use super::history;
use crate::model::{
    AdminEvent, DestinationHealth, Dispatch, Entity, EventId, NewDispatch, OwedPlan, Planned, Reference, Timestamp,
    sha256_hex,
};
use crate::store::{Backlog, DueQuery, Enqueued, Outline, Owed, StoreError};

/// What became of a dispatch that was to be added; the numbers are of entities.
enum Placed {
    New(i64),
    Held(i64),
    Different(i64),
    IdTaken,
}

/// Adds a dispatch; see [`crate::store::Outbox::enqueue`].
pub(super) fn enqueue(db: &Db, new: &NewDispatch) -> Result<Enqueued, Fault> {
    let load = |row| -> Result<Box<Entity>, Fault> {
        let found = entity::load_row(db, row)?;
        Ok(Box::new(found.expect("the row was seen in this transaction")))
    };
    Ok(match place(db, new)? {
        Placed::New(row) => Enqueued::New(load(row)?),
        Placed::Held(row) => Enqueued::Held(load(row)?),
        Placed::Different(row) => Enqueued::Different(load(row)?),
        Placed::IdTaken => Enqueued::IdTaken,
    })
}

/// Adds what the event of that entity and version is to tell, and to whom it is owed still.
pub(super) fn plan(db: &Db, entity: i64, version: i64, planned: &Planned) -> Result<(), Fault> {
    add_dispatches(db, &planned.dispatches)?;
    for owed in &planned.owed {
        let sql = "INSERT INTO owed_plans (event_entity, event_version, handler, settings, tries, due_at_ms, error) \
                   SELECT ?1, ?2, ?3, notify, ?4, ?5, ?6 FROM entities WHERE entity = ?1";
        db.write(
            sql,
            params![
                entity,
                version,
                owed.handler,
                owed.tries,
                owed.due_at.as_ms(),
                owed.error
            ],
        )?;
    }
    Ok(())
}

/// Adds planned dispatches; one whose key is held is there already.
fn add_dispatches(db: &Db, dispatches: &[NewDispatch]) -> Result<(), Fault> {
    for new in dispatches {
        match place(db, new)? {
            Placed::New(_) | Placed::Held(_) | Placed::Different(_) => {}
            Placed::IdTaken => {
                let what = format!("the id {} is or was in use", new.entity.reference.id);
                return Err(refused("adding a dispatch", what));
            }
        }
    }
    Ok(())
}

fn refused(doing: &'static str, what: String) -> Fault {
    Fault::Refused(StoreError::Failed {
        doing,
        source: what.into(),
    })
}

/// Writes a dispatch, unless its key is held or its id was used.
fn place(db: &Db, new: &NewDispatch) -> Result<Placed, Fault> {
    let dispatch = &new.dispatch;
    let body_digest = sha256_hex(&dispatch.body);
    let sql = "SELECT d.entity, d.body_digest = ?2 AND t.digest = ?3 FROM dispatches d \
               CROSS JOIN entities e ON e.entity = d.entity CROSS JOIN destinations t ON t.destination = e.destination \
               WHERE d.dedup_key = ?1 AND d.held = 1";
    let holder = db.row(
        sql,
        [&dispatch.dedup_key, &body_digest, &dispatch.target_digest],
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?)),
    )?;
    match holder {
        Some((row, true)) => return Ok(Placed::Held(row)),
        Some((row, false)) => return Ok(Placed::Different(row)),
        None => {}
    }
    if entity::id_is_taken(db, &new.entity.reference.id)? {
        return Ok(Placed::IdTaken);
    }
    let event = event_of(db, dispatch)?;
    let row = creation::add(
        db,
        &Addition {
            entity: &new.entity,
            row: &new.row,
            event: None,
            destination: Some(destination(db, dispatch)?),
        },
    )?;
    let details = Details {
        new,
        event,
        body_digest: &body_digest,
    };
    insert(db, row, &details)?;
    Ok(Placed::New(row))
}

/// The number of a dispatch's destination, which the first dispatch to it writes down.
fn destination(db: &Db, dispatch: &Dispatch) -> rusqlite::Result<i64> {
    let known = || {
        let sql = "SELECT destination FROM destinations WHERE digest = ?1";
        db.row(sql, [&dispatch.target_digest], |row| row.get(0))
    };
    if let Some(number) = known()? {
        return Ok(number);
    }
    let sql = "INSERT INTO destinations (digest, target) VALUES (?1, ?2)";
    db.write(sql, params![dispatch.target_digest, json(&dispatch.target)])?;
    Ok(db.inserted())
}

/// The event a dispatch tells, by its entity's number and its version.
fn event_of(db: &Db, dispatch: &Dispatch) -> Result<Option<(i64, i64)>, Fault> {
    let Some(id) = &dispatch.event_id else {
        return Ok(None);
    };
    match history::event_key(db, id.as_str())? {
        Some(event) => Ok(Some(event)),
        None => Err(refused("adding a dispatch", format!("this store has no event {id}"))),
    }
}

/// What a dispatch has beside its entity, as far as it was worked out.
struct Details<'a> {
    new: &'a NewDispatch,
    event: Option<(i64, i64)>,
    body_digest: &'a str,
}

fn insert(db: &Db, row: i64, details: &Details<'_>) -> rusqlite::Result<()> {
    let Details {
        new,
        event,
        body_digest,
    } = details;
    let dispatch = &new.dispatch;
    let sql = "INSERT INTO dispatches (entity, event_entity, event_version, handler, name, dedup_key, held, \
                   deadline_at_ms, wants_acknowledgement, body_bytes, body_digest) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    db.write(
        sql,
        params![
            row,
            event.map(|(entity, _)| entity),
            event.map(|(_, version)| version),
            dispatch.handler,
            dispatch.destination,
            dispatch.dedup_key,
            holds(&new.entity),
            dispatch.deadline.map(|at| at.as_ms()),
            dispatch.wants_acknowledgement,
            i64::try_from(dispatch.body.len()).unwrap_or(i64::MAX),
            body_digest,
        ],
    )?;
    let sql = "INSERT INTO dispatch_bodies (entity, body) VALUES (?1, ?2)";
    db.write(sql, params![row, dispatch.body])?;
    Ok(())
}

/// Whether a dispatch holds its deduplication key: what ended without success gave it back.
const fn holds(entity: &Entity) -> bool {
    !entity.terminal || entity.success
}

/// Gives a dispatch's deduplication key back, or takes it again, as its new status says; `held` is what it was.
pub(super) fn hold_or_release(db: &Db, after: &Entity, held: bool) -> Result<(), Fault> {
    if holds(after) == held {
        return Ok(());
    }
    if !held {
        let sql = "SELECT i.kind, i.id FROM dispatches d \
                   CROSS JOIN dispatches h ON h.dedup_key = d.dedup_key AND h.held = 1 \
                   CROSS JOIN entity_ids i ON i.entity = h.entity WHERE d.entity = ?1";
        let holder = db.row(sql, [after.row], |row| {
            let (kind, id) = (row.get(0)?, row.get(1)?);
            Ok(Reference { kind, id })
        })?;
        if let Some(holder) = holder {
            return Err(Fault::Refused(StoreError::KeyHeld { holder }));
        }
    }
    let sql = "UPDATE dispatches SET held = ?2 WHERE entity = ?1";
    db.write(sql, params![after.row, !held])?;
    Ok(())
}

/// Writes how a destination has been doing, if that changed.
pub(super) fn note_health(db: &Db, health: &DestinationHealth) -> rusqlite::Result<()> {
    let sql = "UPDATE destinations SET label = ?2, failures = ?3, paused_until_at_ms = ?4, last_error = ?5 \
               WHERE digest = ?1 AND (label, failures, paused_until_at_ms, last_error) IS NOT (?2, ?3, ?4, ?5)";
    db.write(
        sql,
        params![
            health.target_digest,
            health.label,
            health.failures,
            health.paused_until.map(|at| at.as_ms()),
            health.last_error,
        ],
    )?;
    Ok(())
}

/// The columns [`decode`] takes.
const COLUMNS: &str = "d.entity, i.id, d.event_version, d.handler, d.name, t.target, t.digest, d.dedup_key, \
     d.deadline_at_ms, d.wants_acknowledgement, d.body_bytes, d.body_digest";

/// The tables beside `dispatches d` that [`COLUMNS`] names.
const JOINS: &str = "CROSS JOIN entities e ON e.entity = d.entity \
     CROSS JOIN destinations t ON t.destination = e.destination LEFT JOIN entity_ids i ON i.entity = d.event_entity";

fn decode(columns: &mut Columns<'_, '_>, store: &str) -> rusqlite::Result<(i64, Outline)> {
    let entity = columns.take()?;
    let event = (columns.take::<Option<String>>()?, columns.take::<Option<i64>>()?);
    let event_id = match event {
        (Some(id), Some(version)) => Some(EventId::new(store, &id, version)),
        _ => None,
    };
    let dispatch = Dispatch {
        event_id,
        handler: columns.take()?,
        destination: columns.take()?,
        target: columns.given_json()?,
        target_digest: columns.take()?,
        body: Vec::new(),
        dedup_key: columns.take()?,
        deadline: columns.maybe_moment()?,
        wants_acknowledgement: columns.take()?,
    };
    let outline = Outline {
        dispatch,
        body_bytes: u64::try_from(columns.take::<i64>()?).unwrap_or(0),
        body_digest: columns.take()?,
    };
    Ok((entity, outline))
}

/// What a dispatch delivers.
pub(super) fn dispatch(db: &Db, id: &str, store: &str) -> rusqlite::Result<Option<Dispatch>> {
    let sql = format!(
        "SELECT {COLUMNS}, b.body FROM entity_ids n CROSS JOIN dispatches d ON d.entity = n.entity {JOINS} \
         LEFT JOIN dispatch_bodies b ON b.entity = d.entity WHERE n.id = ?1"
    );
    db.row(&sql, [id], |row| {
        let mut columns = Columns::of(row, "dispatches");
        let (_, outline) = decode(&mut columns, store)?;
        Ok(Dispatch {
            body: columns.take()?,
            ..outline.dispatch
        })
    })
}

/// What dispatches deliver, without bodies, in their order.
pub(super) fn outlines(db: &Db, dispatches: &[Entity], store: &str) -> rusqlite::Result<Vec<Option<Outline>>> {
    let numbers: Vec<i64> = dispatches.iter().map(|entity| entity.row).collect();
    let sql = format!("SELECT {COLUMNS} FROM json_each(?1) n CROSS JOIN dispatches d ON d.entity = n.value {JOINS}");
    let found = db.rows(&sql, [json(&numbers)], |row| {
        decode(&mut Columns::of(row, "dispatches"), store)
    })?;
    let found: HashMap<i64, Outline> = found.into_iter().collect();
    Ok(numbers.iter().map(|number| found.get(number).cloned()).collect())
}

/// Dispatches that tell the events of an entity; see [`crate::store::Outbox::notices_of`].
pub(super) fn notices_of(db: &Db, entity: &Entity, limit: usize) -> rusqlite::Result<Vec<Entity>> {
    let sql = format!(
        "SELECT {} FROM dispatches d CROSS JOIN entities e ON e.entity = d.entity {} \
         WHERE d.event_entity = ?1 ORDER BY d.entity DESC LIMIT ?2",
        entity::COLUMNS,
        entity::JOINS
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    db.rows(&sql, [entity.row, limit], entity::decode)
}

/// A destination for which something is due at some time.
struct Waiting {
    destination: i64,
    first_due: Timestamp,
    digest: String,
    paused_until: Option<Timestamp>,
}

/// Destinations that something waits for: each found by one step to the next along the index of what is due, however
/// much waits for it.
fn waiting(db: &Db) -> rusqlite::Result<Vec<Waiting>> {
    let sql = "WITH RECURSIVE next (destination) AS ( \
                   SELECT min(destination) FROM entities WHERE due_at_ms IS NOT NULL AND destination > 0 \
                   UNION ALL \
                   SELECT (SELECT min(e.destination) FROM entities e \
                           WHERE e.due_at_ms IS NOT NULL AND e.destination > next.destination) \
                   FROM next WHERE next.destination IS NOT NULL) \
               SELECT t.destination, (SELECT min(e.due_at_ms) FROM entities e \
                   WHERE e.destination = next.destination AND e.due_at_ms IS NOT NULL), t.digest, t.paused_until_at_ms \
               FROM next CROSS JOIN destinations t ON t.destination = next.destination";
    db.rows(sql, [], |row| {
        let mut columns = Columns::of(row, "destinations");
        Ok(Waiting {
            destination: columns.take()?,
            first_due: columns.moment()?,
            digest: columns.take()?,
            paused_until: columns.maybe_moment()?,
        })
    })
}

/// Dispatches for which something is due; see [`crate::store::Outbox::due`].
pub(super) fn due(db: &Db, query: &DueQuery) -> rusqlite::Result<Vec<Entity>> {
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let sql = "SELECT due_at_ms, entity FROM entities WHERE destination = ?1 AND due_at_ms <= ?2 \
               ORDER BY due_at_ms LIMIT ?3";
    let mut found: Vec<(i64, i64)> = Vec::new();
    for target in waiting(db)? {
        let is_paused = target.paused_until.is_some_and(|until| until > query.before);
        if is_paused || target.first_due > query.before || query.except_targets.contains(&target.digest) {
            continue;
        }
        let values = params![target.destination, query.before.as_ms(), limit];
        found.extend(db.rows(sql, values, |row| Ok((row.get(0)?, row.get(1)?)))?);
    }
    found.sort_unstable();
    found.truncate(query.limit);
    let loaded = found.into_iter().map(|(_, row)| entity::load_row(db, row));
    loaded.filter_map(Result::transpose).collect()
}

/// When the next dispatch or owed plan is due; see [`crate::store::Outbox::next_due`].
pub(super) fn next_due(db: &Db) -> rusqlite::Result<Option<Timestamp>> {
    let targets = waiting(db)?.into_iter();
    let dispatch = targets.map(|target| target.first_due.max(target.paused_until.unwrap_or(target.first_due)));
    let plan = db.row("SELECT min(due_at_ms) FROM owed_plans", [], |row| {
        row.get::<_, Option<i64>>(0)
    })?;
    Ok(dispatch.chain(plan.flatten().map(Timestamp::from_ms)).min())
}

/// Plans that are owed and due.
pub(super) fn owed(db: &Db, before: Timestamp, limit: usize, store: &str) -> rusqlite::Result<Vec<Owed>> {
    let sql = "SELECT o.owed_plan, i.kind, i.id, o.event_version, t.envelope, o.settings, o.handler, o.tries, \
                   o.due_at_ms, o.error \
               FROM owed_plans o INDEXED BY owed_plans_due \
               CROSS JOIN transitions t ON t.entity = o.event_entity AND t.version = o.event_version \
               CROSS JOIN entity_ids i ON i.entity = o.event_entity \
               WHERE o.due_at_ms <= ?1 ORDER BY o.due_at_ms, o.owed_plan LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    db.rows(sql, params![before.as_ms(), limit], |row| {
        let mut columns = Columns::of(row, "owed_plans");
        let _number: i64 = columns.take()?;
        let reference = Reference {
            kind: columns.take()?,
            id: columns.take()?,
        };
        Ok(Owed {
            event_id: EventId::new(store, &reference.id, columns.take()?),
            reference,
            envelope: columns.json()?,
            settings: columns.json()?,
            plan: OwedPlan {
                handler: columns.take()?,
                tries: columns.take()?,
                due_at: columns.moment()?,
                error: columns.take()?,
            },
        })
    })
}

/// Settles an owed plan; see [`crate::store::Outbox::settle_owed`].
pub(super) fn settle(db: &Db, owed: &Owed, planned: &Planned, events: &[AdminEvent]) -> Result<bool, Fault> {
    let Some((entity, version)) = history::event_key(db, owed.event_id.as_str())? else {
        return Ok(false);
    };
    let plan = &owed.plan;
    let again = planned.owed.iter().find(|again| again.handler == plan.handler);
    let changed = match again {
        Some(again) => {
            let sql = "UPDATE owed_plans SET tries = ?5, due_at_ms = ?6, error = ?7 \
                       WHERE event_entity = ?1 AND event_version = ?2 AND handler = ?3 AND tries = ?4";
            let due = again.due_at.as_ms();
            let values = params![entity, version, plan.handler, plan.tries, again.tries, due, again.error];
            db.write(sql, values)?
        }
        None => {
            let sql = "DELETE FROM owed_plans \
                       WHERE event_entity = ?1 AND event_version = ?2 AND handler = ?3 AND tries = ?4";
            db.write(sql, params![entity, version, plan.handler, plan.tries])?
        }
    };
    if changed == 0 {
        return Ok(false);
    }
    add_dispatches(db, &planned.dispatches)?;
    events.iter().try_for_each(|event| history::record(db, event))?;
    Ok(true)
}

/// Destinations with a failure since their last success.
pub(super) fn destinations(db: &Db) -> rusqlite::Result<Vec<DestinationHealth>> {
    let sql = "SELECT destination, digest, label, failures, paused_until_at_ms, last_error FROM destinations \
               WHERE failures > 0 ORDER BY destination";
    db.rows(sql, [], |row| {
        let mut columns = Columns::of(row, "destinations");
        let _number: i64 = columns.take()?;
        Ok(DestinationHealth {
            target_digest: columns.take()?,
            label: columns.take()?,
            failures: columns.take()?,
            paused_until: columns.maybe_moment()?,
            last_error: columns.take()?,
        })
    })
}

/// How much there is; see [`crate::store::Outbox::backlog`].
pub(super) fn backlog(db: &Db) -> rusqlite::Result<Backlog> {
    let count = |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(|count| u64::try_from(count).unwrap_or(0));
    let sql = "SELECT e.status, count(*) FROM dispatches d CROSS JOIN entities e ON e.entity = d.entity \
               GROUP BY e.status ORDER BY e.status";
    let dispatches = db.rows(sql, [], |row| Ok((row.get(0)?, count(row, 1)?)))?;
    let owed_plans = db.row("SELECT count(*) FROM owed_plans", [], |row| count(row, 0))?;
    Ok(Backlog {
        dispatches,
        owed_plans: owed_plans.unwrap_or(0),
    })
}

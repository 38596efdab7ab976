//! Schedules, and what became of their fire times.

use rusqlite::{Row, params};

use super::columns::{Columns, json};
use super::connection::Db;
use super::failure::Fault;
use super::{creation, entity, history, waiting};
use crate::model::schedule::{Missed, Overlap, Schedule};
use crate::model::{AdminEvent, Entity, Timestamp};
use crate::store::{Created, Fire, Fired, KeptSchedule, Occurrence, Steering};

const COLUMNS: &str = "s.schedule, s.name, s.cadence, s.overlap, s.missed, s.paused, s.created_at_ms, \
     s.next_fire_at_ms, s.submission, s.actor";

fn decode(row: &Row<'_>) -> rusqlite::Result<KeptSchedule> {
    let mut columns = Columns::of(row, "schedules");
    let _number: i64 = columns.take()?;
    Ok(KeptSchedule {
        schedule: Schedule {
            name: columns.take()?,
            cadence: columns.given_json()?,
            overlap: columns.word(Overlap::parse)?,
            missed: columns.word(Missed::parse)?,
            paused: columns.take()?,
            created_at: columns.moment()?,
            next_fire_at: columns.maybe_moment()?,
        },
        submission: columns.given_json()?,
        actor: columns.take()?,
    })
}

/// Adds a schedule; see [`crate::store::Schedules::add_schedule`].
pub(super) fn add(db: &Db, new: &KeptSchedule, event: &AdminEvent) -> rusqlite::Result<bool> {
    let schedule = &new.schedule;
    let sql = "INSERT INTO schedules (name, cadence, overlap, missed, paused, next_fire_at_ms, submission, \
                   created_at_ms, actor) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (name) DO NOTHING";
    let values = params![
        schedule.name,
        json(&schedule.cadence),
        schedule.overlap.word(),
        schedule.missed.word(),
        schedule.paused,
        schedule.next_fire_at.map(Timestamp::as_ms),
        json(&new.submission),
        schedule.created_at.as_ms(),
        new.actor,
    ];
    audited(db, sql, values, event)
}

/// All schedules, or the one of a name.
pub(super) fn schedules(db: &Db, name: Option<&str>) -> rusqlite::Result<Vec<KeptSchedule>> {
    match name {
        Some(name) => db.rows(
            &format!("SELECT {COLUMNS} FROM schedules s WHERE s.name = ?1"),
            [name],
            decode,
        ),
        None => db.rows(
            &format!("SELECT {COLUMNS} FROM schedules s ORDER BY s.name"),
            [],
            decode,
        ),
    }
}

/// Schedules of which a fire time is over.
pub(super) fn due(db: &Db, now: Timestamp) -> rusqlite::Result<Vec<KeptSchedule>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM schedules s INDEXED BY schedules_due \
         WHERE s.paused = 0 AND s.next_fire_at_ms <= ?1 ORDER BY s.next_fire_at_ms, s.schedule"
    );
    db.rows(&sql, [now.as_ms()], decode)
}

/// The next fire time of any.
pub(super) fn next_fire(db: &Db) -> rusqlite::Result<Option<Timestamp>> {
    let sql = "SELECT min(next_fire_at_ms) FROM schedules INDEXED BY schedules_due \
               WHERE paused = 0 AND next_fire_at_ms IS NOT NULL";
    let found: Option<Option<i64>> = db.row(sql, [], |row| row.get(0))?;
    Ok(found.flatten().map(Timestamp::from_ms))
}

/// Pauses one, or lets it go on.
pub(super) fn steer(db: &Db, name: &str, steering: Steering, event: &AdminEvent) -> rusqlite::Result<bool> {
    match steering {
        Steering::Pause => {
            let sql = "UPDATE schedules SET paused = 1 WHERE name = ?1 AND paused = 0";
            audited(db, sql, [name], event)
        }
        Steering::Resume(next) => {
            let sql = "UPDATE schedules SET paused = 0, next_fire_at_ms = ?2 WHERE name = ?1 AND paused = 1";
            audited(db, sql, params![name, next.map(Timestamp::as_ms)], event)
        }
    }
}

/// Takes one away.
pub(super) fn remove(db: &Db, name: &str, event: &AdminEvent) -> rusqlite::Result<bool> {
    audited(db, "DELETE FROM schedules WHERE name = ?1", [name], event)
}

/// Writes one row with its audit row, or nothing.
fn audited(db: &Db, sql: &str, values: impl rusqlite::Params, event: &AdminEvent) -> rusqlite::Result<bool> {
    if db.write(sql, values)? == 0 {
        return Ok(false);
    }
    history::record(db, event)?;
    Ok(true)
}

/// What became of fire times, newest first.
pub(super) fn occurrences(db: &Db, name: &str, limit: usize) -> rusqlite::Result<Vec<Occurrence>> {
    let (columns, joins) = (entity::COLUMNS, entity::JOINS);
    let sql = format!(
        "SELECT {columns}, o.nominal_at_ms, o.fired_at_ms FROM schedules s \
         CROSS JOIN occurrences o ON o.schedule = s.schedule CROSS JOIN entities e ON e.entity = o.entity {joins} \
         WHERE s.name = ?1 ORDER BY o.nominal_at_ms DESC LIMIT ?2"
    );
    db.rows(&sql, params![name, at_most(limit)], |row| {
        Ok(Occurrence {
            entity: entity::decode(row)?,
            nominal: Timestamp::from_ms(row.get("nominal_at_ms")?),
            fired_at: Timestamp::from_ms(row.get("fired_at_ms")?),
        })
    })
}

/// What they started that has not ended, oldest first.
pub(super) fn running(db: &Db, name: &str, limit: usize) -> rusqlite::Result<Vec<Entity>> {
    let (columns, joins) = (entity::COLUMNS, entity::JOINS);
    let sql = format!(
        "SELECT {columns} FROM schedules s \
         CROSS JOIN occurrences o INDEXED BY occurrences_open ON o.schedule = s.schedule AND o.open = 1 \
         CROSS JOIN entities e ON e.entity = o.entity AND e.terminal = 0 {joins} \
         WHERE s.name = ?1 ORDER BY o.nominal_at_ms LIMIT ?2"
    );
    db.rows(&sql, params![name, at_most(limit)], entity::decode)
}

fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Deals with a fire time; see [`crate::store::Schedules::fire`].
pub(super) fn fire(db: &Db, fire: &Fire) -> Result<Fired, Fault> {
    let sql = "UPDATE schedules SET next_fire_at_ms = ?3 \
               WHERE name = ?1 AND next_fire_at_ms = ?2 AND paused = 0 RETURNING schedule";
    let values = params![fire.name, fire.expected.as_ms(), fire.next.map(Timestamp::as_ms)];
    let moved: Option<i64> = db.row(sql, values, |row| row.get(0))?;
    let Some(schedule) = moved else {
        return Ok(Fired::Changed);
    };
    let nominal = fire.nominal.as_ms();
    let sql = "SELECT 1 FROM occurrences WHERE schedule = ?1 AND nominal_at_ms = ?2";
    if db.row(sql, [schedule, nominal], |_| Ok(()))?.is_some() {
        return Ok(Fired::AlreadyFired);
    }
    let entity = match creation::create(db, &fire.new, fire.work.as_ref())? {
        Created::New { entity, .. } => entity,
        refused => return Ok(Fired::Refused(refused)),
    };
    if let Err(missing) = waiting::await_ends(db, entity.row, &fire.behind)? {
        return Ok(Fired::Refused(Created::AwaitedMissing(missing)));
    }
    // What has ended is not looked at again: a look costs what is at work, however long the schedule has been.
    let sql = "UPDATE occurrences INDEXED BY occurrences_open SET open = 0 WHERE schedule = ?1 AND open = 1 \
               AND EXISTS (SELECT 1 FROM entities e WHERE e.entity = occurrences.entity AND e.terminal = 1)";
    db.write(sql, [schedule])?;
    let sql =
        "INSERT INTO occurrences (schedule, nominal_at_ms, entity, fired_at_ms, open) VALUES (?1, ?2, ?3, ?4, ?5)";
    let fired_at = entity.created_at.as_ms();
    db.write(sql, params![schedule, nominal, entity.row, fired_at, !entity.terminal])?;
    Ok(Fired::Made(entity))
}

/// An attempt goes on where another one was given up: it stands for the same fire time, if that one did.
pub(super) fn take_over(db: &Db, before: &str, row: i64) -> rusqlite::Result<()> {
    let sql =
        "UPDATE occurrences SET entity = ?2, open = 1 WHERE entity = (SELECT entity FROM entity_ids WHERE id = ?1)";
    db.write(sql, params![before, row]).map(drop)
}

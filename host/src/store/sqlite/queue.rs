//! Leased work: what may be taken, what is due, who holds it, what it waits for.

use std::collections::BTreeMap;

use rusqlite::{Row, params};

use super::columns::Columns;
use super::connection::Db;
use super::entity::{self, COLUMNS, JOINS};
use super::history;
use crate::model::{AdminEvent, Entity, Stage, Timestamp};
use crate::store::{
    HeldLease, NoRoom, QueueSetup, QueueState, RENEWAL_DELAY_LIMITS, ReadyQuery, Renewal, RenewalDelays, Renewed,
    StagedQuery,
};

/// How a refused write is told of in the audit rows; the index that counts them repeats it.
const COUNT_LATE_WRITES: &str = "SELECT count(*) FROM admin_events WHERE action = 'lease_write_refused'";

/// Rows that may be taken; see [`crate::store::Queue::ready`].
pub(super) fn ready(db: &Db, query: &ReadyQuery) -> rusqlite::Result<Vec<Entity>> {
    let mut queues = if query.queues.is_empty() {
        with_ready(db)?
    } else {
        query.queues.clone()
    };
    queues.sort_unstable();
    queues.dedup();
    let mut found: Vec<Entity> = Vec::new();
    for queue in queues {
        let room = match room(db, &queue)? {
            Room::None(_) => continue,
            Room::Some(room) => room.min(i64::try_from(query.limit).unwrap_or(i64::MAX)),
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM entities e {JOINS} WHERE e.queue = ?1 AND e.stage = 3 \
             ORDER BY e.priority DESC, e.entity LIMIT ?2"
        );
        found.extend(db.rows(&sql, params![queue, room], entity::decode)?);
    }
    let priority = |entity: &Entity| entity.queued.as_ref().map(|queued| queued.priority);
    found.sort_by_key(|entity| (std::cmp::Reverse(priority(entity)), entity.row));
    found.truncate(query.limit);
    Ok(found)
}

/// Queues in which something is ready: each found by one step to the next along the index, however much waits in it.
fn with_ready(db: &Db) -> rusqlite::Result<Vec<String>> {
    let sql = "WITH RECURSIVE next (queue) AS ( \
                   SELECT min(queue) FROM entities WHERE stage = 3 \
                   UNION ALL \
                   SELECT (SELECT min(e.queue) FROM entities e WHERE e.stage = 3 AND e.queue > next.queue) \
                   FROM next WHERE next.queue IS NOT NULL) \
               SELECT queue FROM next WHERE queue IS NOT NULL";
    db.rows(sql, [], |row| row.get(0))
}

enum Room {
    Some(i64),
    None(NoRoom),
}

/// How many rows of a queue may be taken beside those that are held.
fn room(db: &Db, queue: &str) -> rusqlite::Result<Room> {
    let sql = "SELECT paused_at_ms IS NOT NULL, held_most FROM queues WHERE name = ?1";
    let setup: Option<(bool, Option<i64>)> = db.row(sql, [queue], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match setup {
        Some((true, _)) => Room::None(NoRoom::Paused),
        Some((false, Some(most))) => {
            let held = held(db, queue)?;
            if held < most {
                Room::Some(most - held)
            } else {
                Room::None(NoRoom::Full)
            }
        }
        Some((false, None)) | None => Room::Some(i64::MAX),
    })
}

fn held(db: &Db, queue: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT count(*) FROM entities WHERE queue = ?1 AND stage >= 4";
    Ok(db.row(sql, [queue], |row| row.get(0))?.unwrap_or(0))
}

/// Why a row of a queue that is not held yet cannot be taken now.
pub(super) fn refused(db: &Db, queue: &str) -> rusqlite::Result<Option<NoRoom>> {
    Ok(match room(db, queue)? {
        Room::Some(_) => None,
        Room::None(why) => Some(why),
    })
}

/// Rows for which something is due; see [`crate::store::Queue::staged_due`].
pub(super) fn staged_due(db: &Db, query: &StagedQuery) -> rusqlite::Result<Vec<Entity>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM entities e {JOINS} WHERE e.stage = ?1 AND e.due_at_ms <= ?2 \
             AND (e.due_at_ms, e.entity) > (?3, ?4) ORDER BY e.due_at_ms, e.entity LIMIT ?5"
    );
    let (after, row) = query.after.map_or((i64::MIN, 0), |(at, row)| (at.as_ms(), row));
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let values = params![query.stage.number(), query.before.as_ms(), after, row, limit];
    db.rows(&sql, values, entity::decode)
}

/// When the next row of a stage is due.
pub(super) fn next_staged_due(db: &Db, stage: Stage) -> rusqlite::Result<Option<Timestamp>> {
    let sql = "SELECT min(due_at_ms) FROM entities WHERE stage = ?1 AND due_at_ms IS NOT NULL";
    let found = db.row(sql, [stage.number()], |row| row.get::<_, Option<i64>>(0))?;
    Ok(found.flatten().map(Timestamp::from_ms))
}

/// Extends leases; see [`crate::store::Queue::renew`].
pub(super) fn renew(db: &Db, renewals: &[Renewal]) -> rusqlite::Result<Vec<Renewed>> {
    let mut answers = Vec::with_capacity(renewals.len());
    for renewal in renewals {
        if let Some(late) = renewal.late {
            count_delay(db, late.as_ms())?;
        }
        answers.push(renew_one(db, renewal)?);
    }
    Ok(answers)
}

fn renew_one(db: &Db, renewal: &Renewal) -> rusqlite::Result<Renewed> {
    let extend = "UPDATE entities SET lease_expires_at_ms = max(lease_expires_at_ms, ?4), \
                      due_at_ms = ifnull(next_attempt_at_ms, max(lease_expires_at_ms, ?4)), version = version + 1 \
                  WHERE entity = ?1 AND fence = ?2 AND leased_by = ?3 AND stage = 4 AND lease_expires_at_ms >= ?5";
    let values = params![
        renewal.row,
        renewal.fence,
        renewal.holder,
        renewal.until.as_ms(),
        renewal.at.as_ms()
    ];
    if db.write(extend, values)? == 1 {
        return Ok(Renewed::Extended);
    }
    let sql = "SELECT 1 FROM entities WHERE entity = ?1 AND fence = ?2 AND leased_by = ?3 AND stage >= 4";
    let held = db.row(sql, params![renewal.row, renewal.fence, renewal.holder], |_| Ok(()))?;
    Ok(if held.is_some() { Renewed::RanOut } else { Renewed::Lost })
}

fn count_delay(db: &Db, late_ms: i64) -> rusqlite::Result<()> {
    let limit = RENEWAL_DELAY_LIMITS
        .into_iter()
        .find(|limit| late_ms <= *limit)
        .unwrap_or(-1);
    let sql = "INSERT INTO renewal_delays (limit_ms, renewals, late_ms) VALUES (?1, 1, ?2) \
               ON CONFLICT (limit_ms) DO UPDATE SET renewals = renewals + 1, late_ms = late_ms + excluded.late_ms";
    db.write(sql, [limit, late_ms]).map(drop)
}

/// The histogram of renewals' delays.
pub(super) fn renewal_delays(db: &Db) -> rusqlite::Result<RenewalDelays> {
    let sql = "SELECT limit_ms, renewals, late_ms FROM renewal_delays";
    let counted = db.rows(sql, [], |row| {
        Ok((row.get::<_, i64>(0)?, (count(row, 1)?, count(row, 2)?)))
    })?;
    let counted: BTreeMap<i64, (u64, u64)> = counted.into_iter().collect();
    let counted_at = |limit: i64| counted.get(&limit).map_or(0, |(renewals, _)| *renewals);
    let limits = RENEWAL_DELAY_LIMITS
        .into_iter()
        .map(|limit| (Some(limit), counted_at(limit)));
    Ok(RenewalDelays {
        counts: limits.chain([(None, counted_at(-1))]).collect(),
        total_ms: counted.values().map(|(_, late)| late).sum(),
    })
}

/// The live entity that holds a unique key.
pub(super) fn key_holder(db: &Db, key: &str) -> rusqlite::Result<Option<Entity>> {
    let sql = format!("SELECT {COLUMNS} FROM entities e {JOINS} WHERE e.unique_key = ?1");
    db.row(&sql, [key], entity::decode)
}

/// Whether a lease is current: its row has not ended, is not doubted, and has this fence and holder.
pub(super) fn is_held(db: &Db, lease: &HeldLease) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM entity_ids i CROSS JOIN entities e ON e.entity = i.entity \
               WHERE i.id = ?1 AND i.kind = ?2 AND e.fence = ?3 AND e.leased_by = ?4 AND e.stage = 4";
    let values = params![lease.reference.id, lease.reference.kind, lease.fence, lease.holder];
    Ok(db.row(sql, values, |_| Ok(()))?.is_some())
}

/// Every queue; see [`crate::store::Queue::queues`].
pub(super) fn queues(db: &Db) -> rusqlite::Result<Vec<QueueState>> {
    let mut queues: BTreeMap<String, QueueState> = BTreeMap::new();
    for setup in setups(db)? {
        let state = QueueState {
            setup: setup.clone(),
            ..QueueState::default()
        };
        queues.insert(setup.name, state);
    }
    let sql = "SELECT queue, stage, count(*), min(updated_at_ms), min(unknown_since_ms), min(lease_expires_at_ms) \
               FROM entities WHERE terminal = 0 AND stage IS NOT NULL GROUP BY queue, stage ORDER BY queue, stage";
    type Counted = (String, i64, u64, Option<i64>, Option<i64>, Option<i64>);
    let counted: Vec<Counted> = db.rows(sql, [], |row| {
        Ok((
            row.get(0)?,
            row.get(1)?,
            count(row, 2)?,
            row.get(3)?,
            row.get(4)?,
            row.get(5)?,
        ))
    })?;
    for (queue, stage, count, written, unknown, ends) in counted {
        let Some(stage) = Stage::from_number(stage) else {
            continue;
        };
        let state = queues.entry(queue.clone()).or_insert_with(|| QueueState {
            setup: QueueSetup {
                name: queue,
                ..QueueSetup::default()
            },
            ..QueueState::default()
        });
        state.counts.push((stage, count));
        match stage {
            Stage::Ready => state.ready_since = written.map(Timestamp::from_ms),
            Stage::Active => state.lease_ends_first = ends.map(Timestamp::from_ms),
            Stage::Doubted => state.doubted_since = unknown.map(Timestamp::from_ms),
            Stage::Waiting | Stage::Later => {}
        }
    }
    Ok(queues.into_values().collect())
}

fn setups(db: &Db) -> rusqlite::Result<Vec<QueueSetup>> {
    let sql = "SELECT queue, name, paused_at_ms, note, held_most FROM queues ORDER BY name";
    db.rows(sql, [], |row| {
        let mut columns = Columns::of(row, "queues");
        let _number: i64 = columns.take()?;
        Ok(QueueSetup {
            name: columns.take()?,
            paused_at: columns.maybe_moment()?,
            note: columns.take()?,
            limit: columns.take()?,
        })
    })
}

/// Sets a queue up.
pub(super) fn put(db: &Db, queue: &QueueSetup, event: &AdminEvent) -> rusqlite::Result<()> {
    let sql = "INSERT INTO queues (name, paused_at_ms, note, held_most) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (name) DO UPDATE SET paused_at_ms = excluded.paused_at_ms, note = excluded.note, \
                   held_most = excluded.held_most";
    let paused = queue.paused_at.map(|at| at.as_ms());
    db.write(sql, params![queue.name, paused, queue.note, queue.limit])?;
    history::record(db, event)
}

/// How many late writes were refused.
pub(super) fn late_writes(db: &Db) -> rusqlite::Result<u64> {
    Ok(db.row(COUNT_LATE_WRITES, [], |row| count(row, 0))?.unwrap_or(0))
}

/// A column that counts rows.
fn count(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0))
}

//! Leased work: what may be taken, what is due, who holds it, what it waits for.

use std::collections::BTreeMap;

use rusqlite::{Row, params};

use super::columns::{Columns, json};
use super::connection::Db;
use super::entity::{self, COLUMNS, JOINS};
use super::failure::Fault;
use super::history;
use crate::model::{AdminEvent, Entity, NewEntity, Reference, Stage, Timestamp};
use crate::store::{
    Created, Dependency, NewRun, NoRoom, QueueSetup, QueueState, RENEWAL_DELAY_LIMITS, ReadyQuery, Renewal, Renewed,
    StagedQuery, Successor, Worker,
};

/// How a refused write is told of in the audit rows; the index that counts them repeats it.
const COUNT_LATE_WRITES: &str = "SELECT count(*) FROM admin_events WHERE action = 'lease_write_refused'";

/// Rows that may be taken; see [`crate::store::Queue::ready`].
pub(super) fn ready(db: &Db, query: &ReadyQuery) -> rusqlite::Result<Vec<Entity>> {
    let queues = if query.queues.is_empty() {
        with_ready(db)?
    } else {
        query.queues.clone()
    };
    let mut found: Vec<(i64, i64)> = Vec::new();
    for queue in queues {
        let room = match room(db, &queue)? {
            Room::None(_) => continue,
            Room::Some(room) => room.min(i64::try_from(query.limit).unwrap_or(i64::MAX)),
        };
        let sql = "SELECT priority, entity FROM entities WHERE queue = ?1 AND stage = 3 \
                   ORDER BY priority DESC, entity LIMIT ?2";
        found.extend(db.rows(sql, params![queue, room], |row| Ok((row.get(0)?, row.get(1)?)))?);
    }
    found.sort_unstable_by_key(|(priority, row)| (std::cmp::Reverse(*priority), *row));
    found.truncate(query.limit);
    load_all(db, found.into_iter().map(|(_, row)| row))
}

fn load_all(db: &Db, rows: impl Iterator<Item = i64>) -> rusqlite::Result<Vec<Entity>> {
    let loaded = rows.map(|row| entity::load_row(db, row));
    loaded.filter_map(Result::transpose).collect()
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

/// Why a row that is ready cannot be taken now.
pub(super) fn refused(db: &Db, after: &Entity, before: Option<Stage>) -> rusqlite::Result<Option<NoRoom>> {
    let Some(queued) = &after.queued else { return Ok(None) };
    let takes = queued.stage.is_some_and(Stage::is_held) && !before.is_some_and(Stage::is_held);
    if !takes {
        return Ok(None);
    }
    Ok(match room(db, &queued.queue)? {
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
    let extend = "UPDATE entities SET lease_expires_at_ms = ?4, due_at_ms = ?4, version = version + 1 \
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
    let sql = "INSERT INTO renewal_delays (limit_ms, renewals) VALUES (?1, 1) \
               ON CONFLICT (limit_ms) DO UPDATE SET renewals = renewals + 1";
    db.write(sql, [limit]).map(drop)
}

/// The histogram of renewals' delays.
pub(super) fn renewal_delays(db: &Db) -> rusqlite::Result<Vec<(Option<i64>, u64)>> {
    let sql = "SELECT limit_ms, renewals FROM renewal_delays";
    let counted = db.rows(sql, [], |row| Ok((row.get::<_, i64>(0)?, count(row, 1)?)))?;
    let counted: BTreeMap<i64, u64> = counted.into_iter().collect();
    let counted_at = |limit: i64| counted.get(&limit).copied().unwrap_or(0);
    let limits = RENEWAL_DELAY_LIMITS
        .into_iter()
        .map(|limit| (Some(limit), counted_at(limit)));
    Ok(limits.chain([(None, counted_at(-1))]).collect())
}

/// Adds what a new row waits for: what has ended already is noted as it ended. The first that does not exist is answered
/// instead.
pub(super) fn await_all(db: &Db, row: i64, after: &[Reference]) -> rusqlite::Result<Option<Reference>> {
    for awaited in after {
        // What has a successor is waited for in its last one.
        let sql = "WITH RECURSIVE chain (entity, id) AS ( \
                       SELECT e.entity, i.id FROM entity_ids i CROSS JOIN entities e ON e.entity = i.entity \
                           WHERE i.id = ?1 AND i.kind = ?2 \
                       UNION ALL \
                       SELECT e.entity, i.id FROM chain CROSS JOIN entities e ON e.chain_parent = chain.id \
                           CROSS JOIN entity_ids i ON i.entity = e.entity) \
                   SELECT e.entity, CASE WHEN e.terminal THEN e.success END FROM chain \
                   CROSS JOIN entities e ON e.entity = chain.entity ORDER BY e.generation DESC LIMIT 1";
        let found: Option<(i64, Option<bool>)> = db.row(sql, [&awaited.id, &awaited.kind], |found| {
            Ok((found.get(0)?, found.get(1)?))
        })?;
        let Some((number, success)) = found else {
            return Ok(Some(awaited.clone()));
        };
        let insert = "INSERT OR IGNORE INTO dependencies (entity, awaited, success, is_news) VALUES (?1, ?2, ?3, ?4)";
        db.write(insert, params![row, number, success, success.is_some()])?;
    }
    Ok(None)
}

/// The same, for a row that waits for nothing else: any end will do.
pub(super) fn await_ends(db: &Db, row: i64, behind: &[Reference]) -> rusqlite::Result<Option<Reference>> {
    let missing = await_all(db, row, behind)?;
    if missing.is_none() && !behind.is_empty() {
        let sql = "UPDATE dependencies SET any_end = 1, success = max(success, 1) WHERE entity = ?1";
        db.write(sql, [row])?;
    }
    Ok(missing)
}

/// Tells whoever waits for an entity that it ended; a successor takes its place instead.
pub(super) fn note_end(db: &Db, row: i64, success: bool, successor: Option<i64>) -> rusqlite::Result<()> {
    match successor {
        Some(successor) => {
            let sql = "UPDATE OR IGNORE dependencies SET awaited = ?2 WHERE awaited = ?1 AND success IS NULL";
            db.write(sql, [row, successor])?;
        }
        None => {
            let sql = "UPDATE dependencies SET success = max(?2, any_end), is_news = 1 WHERE awaited = ?1 AND success IS NULL";
            db.write(sql, params![row, success])?;
        }
    }
    Ok(())
}

/// What a row waits for.
pub(super) fn dependencies(db: &Db, row: &Entity) -> rusqlite::Result<Vec<Dependency>> {
    let sql = "SELECT d.entity, i.kind, i.id, d.success FROM dependencies d CROSS JOIN entity_ids i ON i.entity = d.awaited \
               WHERE d.entity = ?1 ORDER BY d.awaited";
    db.rows(sql, [row.row], |found| {
        let mut columns = Columns::of(found, "dependencies");
        let _waiting: i64 = columns.take()?;
        Ok(Dependency {
            on: Reference {
                kind: columns.take()?,
                id: columns.take()?,
            },
            ended: columns.take()?,
        })
    })
}

/// Rows that wait for something that has ended since.
pub(super) fn awaiting_ended(db: &Db, limit: usize) -> rusqlite::Result<Vec<Entity>> {
    let sql = "SELECT DISTINCT entity FROM dependencies WHERE is_news = 1 ORDER BY entity LIMIT ?1";
    let rows = db.rows(sql, [i64::try_from(limit).unwrap_or(i64::MAX)], |row| row.get(0))?;
    load_all(db, rows.into_iter())
}

/// What has ended so far is no news for a row.
pub(super) fn looked_at(db: &Db, row: i64) -> rusqlite::Result<bool> {
    let sql = "UPDATE dependencies SET is_news = 0 WHERE entity = ?1 AND is_news = 1";
    Ok(db.write(sql, [row])? > 0)
}

/// Adds the attempt that follows a row, in the transaction that ends the row; its number.
pub(super) fn succeed(db: &Db, before: i64, successor: &Successor) -> Result<i64, Fault> {
    let NewEntity { entity, row, .. } = &*successor.new;
    let number = entity::add(
        db,
        &entity::Addition {
            entity,
            row,
            event: None,
            destination: None,
        },
    )?;
    let copied = [
        "INSERT INTO works (entity, work) SELECT ?2, work FROM works WHERE entity = ?1",
        "INSERT INTO links (parent, child) SELECT parent, ?2 FROM links WHERE child = ?1",
    ];
    for sql in copied {
        db.write(sql, [before, number])?;
    }
    Ok(number)
}

/// Why nothing is made: its key or its place in a chain is taken, or the lease it is to be run for is lost.
pub(super) fn refusal(db: &Db, new: &NewEntity, run: Option<&NewRun>) -> rusqlite::Result<Option<Created>> {
    if let Some(lease) = run.and_then(|run| run.lease.as_ref())
        && !is_held(db, &lease.reference, lease.fence)?
    {
        return Ok(Some(Created::LeaseLost));
    }
    if let Some(before) = &new.entity.chain_parent
        && let Some(successor) = successor(db, before)?
    {
        return Ok(Some(Created::SucceededBy(Box::new(successor))));
    }
    let Some(key) = &new.entity.unique_key else {
        return Ok(None);
    };
    let holder = key_holder(db, key)?;
    Ok(holder.map(|holder| Created::UniqueKeyHeld(Box::new(holder))))
}

/// The entity that goes on where this one ended.
pub(super) fn successor(db: &Db, id: &str) -> rusqlite::Result<Option<Entity>> {
    let sql = format!("SELECT {COLUMNS} FROM entities e {JOINS} WHERE e.chain_parent = ?1");
    db.row(&sql, [id], entity::decode)
}

/// The live entity that holds a unique key.
pub(super) fn key_holder(db: &Db, key: &str) -> rusqlite::Result<Option<Entity>> {
    let sql = format!("SELECT {COLUMNS} FROM entities e {JOINS} WHERE e.unique_key = ?1");
    db.row(&sql, [key], entity::decode)
}

/// Whether a lease is current: its row has not ended and has this fence.
pub(super) fn is_held(db: &Db, reference: &Reference, fence: i64) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM entity_ids i CROSS JOIN entities e ON e.entity = i.entity \
               WHERE i.id = ?1 AND e.fence = ?2 AND e.stage >= 4";
    Ok(db.row(sql, params![reference.id, fence], |_| Ok(()))?.is_some())
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

/// Adds a worker, or notes its heartbeat.
pub(super) fn put_worker(db: &Db, worker: &Worker) -> rusqlite::Result<()> {
    let sql = "INSERT INTO workers (holder, particulars, heartbeat_at_ms, stopped_at_ms) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (holder) DO UPDATE SET particulars = excluded.particulars, \
                   heartbeat_at_ms = excluded.heartbeat_at_ms, stopped_at_ms = excluded.stopped_at_ms";
    let stopped = worker.stopped_at.map(|at| at.as_ms());
    db.write(
        sql,
        params![worker.holder, json(worker), worker.heartbeat_at.as_ms(), stopped],
    )?;
    Ok(())
}

/// Takes a worker away.
pub(super) fn drop_worker(db: &Db, holder: &str) -> rusqlite::Result<()> {
    db.write("DELETE FROM workers WHERE holder = ?1", [holder]).map(drop)
}

fn decode_worker(row: &Row<'_>) -> rusqlite::Result<Worker> {
    let mut columns = Columns::of(row, "workers");
    let _number: i64 = columns.take()?;
    let worker: Worker = columns.given_json()?;
    Ok(Worker {
        heartbeat_at: columns.moment()?,
        stopped_at: columns.maybe_moment()?,
        ..worker
    })
}

/// Workers that are at work.
pub(super) fn workers(db: &Db) -> rusqlite::Result<Vec<Worker>> {
    let sql = "SELECT worker, particulars, heartbeat_at_ms, stopped_at_ms FROM workers \
               WHERE stopped_at_ms IS NULL ORDER BY worker";
    db.rows(sql, [], decode_worker)
}

/// The worker of that name for itself.
pub(super) fn worker(db: &Db, holder: &str) -> rusqlite::Result<Option<Worker>> {
    let sql = "SELECT worker, particulars, heartbeat_at_ms, stopped_at_ms FROM workers WHERE holder = ?1";
    db.row(sql, [holder], decode_worker)
}

/// The offset that is kept for a boot.
pub(super) fn steady_offset(db: &Db, boot: &crate::store::Boot) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT offset_ms FROM boots WHERE boot_id = ?1 AND time_namespace = ?2";
    db.row(sql, params![boot.boot_id, boot.time_namespace], |row| row.get(0))
}

/// Keeps an offset unless there is one.
pub(super) fn keep_steady_offset(db: &Db, boot: &crate::store::Boot, offset_ms: i64) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO boots (boot_id, time_namespace, offset_ms) VALUES (?1, ?2, ?3) \
               ON CONFLICT (boot_id, time_namespace) DO NOTHING";
    db.write(sql, params![boot.boot_id, boot.time_namespace, offset_ms])?;
    Ok(steady_offset(db, boot)?.unwrap_or(offset_ms))
}

/// How many late writes were refused.
pub(super) fn late_writes(db: &Db) -> rusqlite::Result<u64> {
    Ok(db.row(COUNT_LATE_WRITES, [], |row| count(row, 0))?.unwrap_or(0))
}

/// A column that counts rows.
fn count(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0))
}

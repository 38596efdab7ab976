//! What waits for what, and what goes on where something ended.

use rusqlite::params;

use super::columns::Columns;
use super::connection::Db;
use super::creation;
use super::entity::{self, COLUMNS, JOINS};
use super::failure::Fault;
use crate::model::{Entity, NewEntity, Reference};
use crate::store::{Dependency, Successor};

/// What a row is to wait for: its number, and whether it ended, then whether with success.
type Awaited = (i64, Option<bool>);

/// What these references stand for; the first that does not exist instead. What has a successor is waited for in its
/// last one.
pub(super) fn awaited(db: &Db, after: &[Reference]) -> rusqlite::Result<Result<Vec<Awaited>, Reference>> {
    // A successor is younger than the one before it, so that a chain has an end.
    let sql = "WITH RECURSIVE chain (entity, id) AS ( \
                   SELECT e.entity, i.id FROM entity_ids i CROSS JOIN entities e ON e.entity = i.entity \
                       WHERE i.id = ?1 AND i.kind = ?2 \
                   UNION ALL \
                   SELECT e.entity, i.id FROM chain CROSS JOIN entities e ON e.chain_parent = chain.id \
                       AND e.entity > chain.entity CROSS JOIN entity_ids i ON i.entity = e.entity) \
               SELECT e.entity, CASE WHEN e.terminal THEN e.success END FROM entities e \
               WHERE e.entity = (SELECT max(entity) FROM chain)";
    let mut found = Vec::with_capacity(after.len());
    for reference in after {
        let last = db.row(sql, [&reference.id, &reference.kind], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        match last {
            Some(last) => found.push(last),
            None => return Ok(Err(reference.clone())),
        }
    }
    Ok(Ok(found))
}

/// Adds what a new row waits for: what has ended already is noted as it ended, and is news.
pub(super) fn await_all(db: &Db, row: i64, awaited: &[Awaited]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO dependencies (entity, awaited, success, is_news) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (entity, awaited) DO NOTHING";
    for (number, success) in awaited {
        db.write(sql, params![row, number, success, success.is_some()])?;
    }
    Ok(())
}

/// The same, for a row that waits for nothing else: any end will do. The first that does not exist is answered.
pub(super) fn await_ends(db: &Db, row: i64, behind: &[Reference]) -> rusqlite::Result<Result<(), Reference>> {
    let awaited = match awaited(db, behind)? {
        Ok(awaited) => awaited,
        Err(missing) => return Ok(Err(missing)),
    };
    await_all(db, row, &awaited)?;
    if !awaited.is_empty() {
        let sql = "UPDATE dependencies SET any_end = 1, success = max(success, 1) WHERE entity = ?1";
        db.write(sql, [row])?;
    }
    Ok(Ok(()))
}

/// Tells whoever waits for an entity that it ended; it is news for those that have not ended themselves.
pub(super) fn note_end(db: &Db, row: i64, success: bool) -> rusqlite::Result<()> {
    let sql = "UPDATE dependencies SET success = max(?2, any_end), is_news = EXISTS \
                   (SELECT 1 FROM entities e WHERE e.entity = dependencies.entity AND e.terminal = 0) \
               WHERE awaited = ?1 AND success IS NULL";
    db.write(sql, params![row, success]).map(drop)
}

/// Nothing is news for a row that ended.
pub(super) fn wait_no_more(db: &Db, row: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE dependencies SET is_news = 0 WHERE entity = ?1 AND is_news = 1";
    db.write(sql, [row]).map(drop)
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
pub(super) fn awaiting_ended(db: &Db, after_row: i64, limit: usize) -> rusqlite::Result<Vec<Entity>> {
    let sql = "SELECT DISTINCT entity FROM dependencies WHERE is_news = 1 AND entity > ?1 ORDER BY entity LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows: Vec<i64> = db.rows(sql, [after_row, limit], |row| row.get(0))?;
    entity::load_rows(db, rows)
}

/// What was seen to have ended is no news for a row any more; whether it was.
pub(super) fn looked_at(db: &Db, (row, version): (i64, i64), seen: &[Dependency]) -> rusqlite::Result<bool> {
    let sql = "UPDATE dependencies SET is_news = 0 WHERE entity = ?1 AND is_news = 1 \
               AND awaited = (SELECT entity FROM entity_ids WHERE id = ?2) \
               AND EXISTS (SELECT 1 FROM entities e WHERE e.entity = ?1 AND e.version = ?3)";
    let mut was_news = false;
    for dependency in seen.iter().filter(|dependency| dependency.ended.is_some()) {
        was_news |= db.write(sql, params![row, dependency.on.id, version])? > 0;
    }
    Ok(was_news)
}

/// Adds the attempt that follows a row, in the transaction that ends the row. It takes over its work, what it is linked
/// below, and whoever waits for it.
pub(super) fn succeed(db: &Db, before: i64, successor: &Successor) -> Result<(), Fault> {
    let NewEntity { entity, row, .. } = &*successor.new;
    let addition = creation::Addition {
        entity,
        row,
        event: None,
        destination: None,
    };
    let number = creation::add(db, &addition)?;
    let sql = "INSERT INTO works (entity, work) SELECT ?2, work FROM works WHERE entity = ?1";
    db.write(sql, [before, number])?;
    take_over(db, before, number)?;
    Ok(())
}

/// Puts an attempt where the one before it is: below the same entities, and before whoever still waits for it.
pub(super) fn take_over(db: &Db, before: i64, number: i64) -> rusqlite::Result<()> {
    let taken_over = [
        "INSERT OR IGNORE INTO links (parent, child) SELECT parent, ?2 FROM links WHERE child = ?1",
        "UPDATE dependencies SET awaited = ?2 WHERE awaited = ?1 AND success IS NULL",
    ];
    for sql in taken_over {
        db.write(sql, [before, number])?;
    }
    Ok(())
}

/// The entity that goes on where this one ended.
pub(super) fn successor(db: &Db, id: &str) -> rusqlite::Result<Option<Entity>> {
    let sql = format!("SELECT {COLUMNS} FROM entities e {JOINS} WHERE e.chain_parent = ?1");
    db.row(&sql, [id], entity::decode)
}

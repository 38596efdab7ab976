//! What happened, from the newest back, and the policies that judge beside others.

use rusqlite::{Row, params};

use super::columns::{Columns, json};
use super::connection::Db;
use super::entity::component;
use super::failure::Fault;
use super::history;
use crate::model::AdminEvent;
use crate::store::{Judged, JudgedCounts, Shadow};

const COLUMNS: &str = "s.kind, c.digest, s.parameters, s.at_ms, s.actor, s.reason, s.same, s.different, s.unjudged";

fn decode(row: &Row<'_>) -> rusqlite::Result<Shadow> {
    let mut columns = Columns::of(row, "shadows");
    Ok(Shadow {
        kind: columns.take()?,
        digest: columns.take()?,
        parameters: columns.json()?,
        at: columns.moment()?,
        actor: columns.take()?,
        reason: columns.take()?,
        counts: JudgedCounts {
            same: columns.take()?,
            different: columns.take()?,
            unjudged: columns.take()?,
        },
    })
}

/// The shadow of a kind.
pub(super) fn shadow(db: &Db, kind: &str) -> rusqlite::Result<Option<Shadow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM shadows s CROSS JOIN components c ON c.component = s.component WHERE s.kind = ?1"
    );
    db.row(&sql, [kind], decode)
}

/// All of them, by kind.
pub(super) fn shadows(db: &Db) -> rusqlite::Result<Vec<Shadow>> {
    let sql =
        format!("SELECT {COLUMNS} FROM shadows s CROSS JOIN components c ON c.component = s.component ORDER BY s.kind");
    db.rows(&sql, [], decode)
}

/// Adds a shadow or puts it in another one's place; false when its component is not installed.
pub(super) fn put(db: &Db, shadow: &Shadow, event: &AdminEvent) -> Result<bool, Fault> {
    let Some(number) = component(db, &shadow.digest)? else {
        return Ok(false);
    };
    let sql = "INSERT OR REPLACE INTO shadows (kind, component, parameters, at_ms, actor, reason) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let parameters = (!shadow.parameters.is_empty()).then(|| json(&shadow.parameters));
    let values = params![
        shadow.kind,
        number,
        parameters,
        shadow.at.as_ms(),
        shadow.actor,
        shadow.reason
    ];
    db.write(sql, values)?;
    history::record(db, event)?;
    Ok(true)
}

/// Ends the shadow of a kind; false when it has none.
pub(super) fn remove(db: &Db, kind: &str, event: &AdminEvent) -> rusqlite::Result<bool> {
    let is_there = db.write("DELETE FROM shadows WHERE kind = ?1", [kind])? > 0;
    if is_there {
        history::record(db, event)?;
    }
    Ok(is_there)
}

/// A component that is put in force judges beside no other any more.
pub(super) fn in_force(db: &Db, kind: &str, component: i64) -> rusqlite::Result<()> {
    let sql = "DELETE FROM shadows WHERE kind = ?1 AND component = ?2";
    db.write(sql, params![kind, component])?;
    Ok(())
}

/// Counts what a shadow said; one that is gone meanwhile is not counted for.
pub(super) fn count(db: &Db, judged: &Judged) -> rusqlite::Result<()> {
    let sql = "UPDATE shadows SET same = same + ?3, different = different + ?4, unjudged = unjudged + ?5 \
               WHERE kind = ?1 AND component = (SELECT component FROM components WHERE digest = ?2)";
    let counts = judged.counts;
    let values = params![
        judged.kind,
        judged.digest,
        counts.same,
        counts.different,
        counts.unjudged
    ];
    db.write(sql, values)?;
    Ok(())
}

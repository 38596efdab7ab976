//! Finding entities: by word, by selector, along links.

use std::collections::{BTreeMap, HashSet};

use rusqlite::params_from_iter;
use rusqlite::types::Value as Parameter;

use super::connection::Db;
use super::entity::{COLUMNS, JOINS, decode};
use crate::model::Entity;
use crate::store::{EntityQuery, Lookup, Scope};

/// Entities that a word may mean; several by id.
pub(super) fn look_up(db: &Db, lookup: &Lookup, limit: usize) -> rusqlite::Result<Vec<Entity>> {
    match lookup {
        Lookup::IdPrefix { kind, prefix } => by_prefix(db, kind.as_deref(), prefix, limit),
        Lookup::Name(name) => {
            let query = EntityQuery {
                name: Some(name.clone()),
                limit: Some(limit.min(1)),
                ..EntityQuery::default()
            };
            list(db, &query)
        }
        Lookup::NewestRun => newest(
            db,
            limit,
            "(SELECT owner AS entity FROM runtimes ORDER BY owner DESC LIMIT 1) r \
             CROSS JOIN entities e ON e.entity = r.entity",
        ),
        Lookup::NewestFailedRun => newest(
            db,
            limit,
            "(SELECT f.entity FROM entities f INDEXED BY entities_failed \
              WHERE f.terminal = 1 AND f.success = 0 AND EXISTS (SELECT 1 FROM runtimes r WHERE r.owner = f.entity) \
              ORDER BY f.entity DESC LIMIT 1) r \
             CROSS JOIN entities e ON e.entity = r.entity",
        ),
    }
}

fn newest(db: &Db, limit: usize, from: &str) -> rusqlite::Result<Vec<Entity>> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    db.rows(&format!("SELECT {COLUMNS} FROM {from} {JOINS}"), [], decode)
}

/// A range of the index of ids: `%` and `_` are letters like others, and so are upper case and lower case.
fn by_prefix(db: &Db, kind: Option<&str>, prefix: &str, limit: usize) -> rusqlite::Result<Vec<Entity>> {
    let exact = super::entity::load(db, prefix)?;
    if let Some(exact) = exact.filter(|entity| kind.is_none_or(|kind| kind == entity.reference.kind)) {
        return Ok(vec![exact].into_iter().take(limit).collect());
    }
    let end = format!("{prefix}{}", char::MAX);
    let mut parameters: Vec<Parameter> = vec![prefix.to_owned().into(), end.into()];
    let mut of_kind = "";
    if let Some(kind) = kind {
        parameters.push(kind.to_owned().into());
        of_kind = "AND i.kind = ?";
    }
    parameters.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
    let sql = format!(
        "SELECT {COLUMNS} FROM entity_ids i CROSS JOIN entities e ON e.entity = i.entity \
         CROSS JOIN components c ON c.component = e.component \
         WHERE i.id >= ? AND i.id < ? {of_kind} ORDER BY i.id LIMIT ?"
    );
    db.rows(&sql, params_from_iter(parameters), decode)
}

/// Where a listing begins: the narrowest index that has its rows in order of creation.
struct Walk {
    from: &'static str,
    /// The walked index's own column for the entity's number: SQLite does not carry the order over a join.
    row: &'static str,
    conditions: String,
    parameters: Vec<Parameter>,
}

impl Walk {
    fn and(&mut self, condition: &str, parameter: impl Into<Parameter>) {
        self.conditions.push_str(condition);
        self.parameters.push(parameter.into());
    }
}

/// Entities, newest first.
pub(super) fn list(db: &Db, query: &EntityQuery) -> rusqlite::Result<Vec<Entity>> {
    let mut found = BTreeMap::new();
    for walk in walks(query) {
        let limit = query.limit.map_or(-1, |most| i64::try_from(most).unwrap_or(i64::MAX));
        let sql = format!(
            "SELECT {COLUMNS} FROM {} {JOINS} WHERE {} ORDER BY {} DESC LIMIT ?",
            walk.from, walk.conditions, walk.row
        );
        let parameters = walk.parameters.into_iter().chain([limit.into()]);
        let rows = db.rows(&sql, params_from_iter(parameters), decode)?;
        found.extend(rows.into_iter().map(|entity| (entity.row, entity)));
    }
    Ok(found
        .into_values()
        .rev()
        .take(query.limit.unwrap_or(usize::MAX))
        .collect())
}

/// One walk, or one for every status when nothing narrower than the status is asked for.
fn walks(query: &EntityQuery) -> Vec<Walk> {
    let walk = |from, conditions: &str| Walk {
        from,
        row: if query.tags.is_empty() { "e.entity" } else { "t.entity" },
        conditions: conditions.to_owned(),
        parameters: Vec::new(),
    };
    let mut statuses_left = query.statuses.as_slice();
    let mut walks = if !query.tags.is_empty() {
        // The first tag is walked (`tagged` adds its condition), the others are looked up for each of its entities.
        vec![walk("tags t CROSS JOIN entities e ON e.entity = t.entity", "1")]
    } else if query.name.is_some() {
        vec![walk("entities e INDEXED BY entities_by_name", "e.name IS NOT NULL")]
    } else if query.terminal == Some(false) {
        vec![walk("entities e INDEXED BY entities_live", "1")]
    } else if query.terminal == Some(true) && query.success == Some(false) {
        vec![walk("entities e INDEXED BY entities_failed", "1")]
    } else if !query.statuses.is_empty() {
        statuses_left = &[];
        let distinct: HashSet<&String> = query.statuses.iter().collect();
        let of_status = |status: &String| {
            let mut walk = walk("entities e INDEXED BY entities_by_status", "1");
            walk.and(" AND e.status = ?", status.clone());
            walk
        };
        distinct.into_iter().map(of_status).collect()
    } else if query.kind.is_some() {
        vec![walk("entities e INDEXED BY entities_by_kind", "1")]
    } else {
        vec![walk("entities e", "1")]
    };
    for walk in &mut walks {
        narrow(walk, query, statuses_left);
    }
    walks
}

fn narrow(walk: &mut Walk, query: &EntityQuery, statuses: &[String]) {
    for (index, (key, value)) in query.tags.iter().enumerate() {
        if index == 0 {
            walk.and(" AND t.key = ?", key.clone());
            walk.and(" AND t.value = ?", value.clone());
        } else {
            let other = " AND EXISTS (SELECT 1 FROM tags o WHERE o.entity = e.entity AND o.key = ?";
            walk.and(other, key.clone());
            walk.and(" AND o.value = ?)", value.clone());
        }
    }
    if let Some(kind) = &query.except_kind {
        walk.and(" AND e.kind <> ?", kind.clone());
    }
    if let Some(name) = &query.name {
        walk.and(" AND e.name = ?", name.clone());
    }
    // Literals, not parameters: a partial index is used only when the statement itself implies its condition.
    match query.terminal {
        Some(true) => walk.conditions.push_str(" AND e.terminal = 1"),
        Some(false) => walk.conditions.push_str(" AND e.terminal = 0"),
        None => {}
    }
    match query.success {
        Some(true) => walk.conditions.push_str(" AND e.success = 1"),
        Some(false) => walk.conditions.push_str(" AND e.success = 0"),
        None => {}
    }
    if let Some(kind) = &query.kind {
        walk.and(" AND e.kind = ?", kind.clone());
    }
    if !statuses.is_empty() {
        let places = vec!["?"; statuses.len()].join(", ");
        walk.conditions.push_str(&format!(" AND e.status IN ({places})"));
        walk.parameters.extend(statuses.iter().cloned().map(Parameter::from));
    }
    if let Some(since) = query.since {
        // The index of creation times tells the first number in question, so that older rows are not walked; a clock
        // that was set back only makes that number smaller.
        let first = " >= (SELECT coalesce(min(s.entity), 9223372036854775807) \
                      FROM entities s INDEXED BY entities_by_creation WHERE s.created_at_ms >= ?)";
        let first = format!(" AND {}{first}", walk.row);
        walk.and(&first, since.as_ms());
        walk.and(" AND e.created_at_ms >= ?", since.as_ms());
    } else {
        // Bounded below, so that the count of scan steps tells of nothing but scans.
        walk.conditions.push_str(&format!(" AND {} > 0", walk.row));
    }
    if let Some(before) = query.before_row {
        let older = format!(" AND {} < ?", walk.row);
        walk.and(&older, before);
    }
}

/// What an entity is linked to, nearest first, then by number.
pub(super) fn linked(db: &Db, entity: &Entity, scope: Scope) -> rusqlite::Result<Vec<Entity>> {
    match scope {
        Scope::Parents => {
            let sql = format!(
                "SELECT {COLUMNS} FROM links l INDEXED BY links_by_child CROSS JOIN entities e ON e.entity = l.parent \
                 {JOINS} WHERE l.child = ?1 ORDER BY l.parent"
            );
            db.rows(&sql, [entity.row], decode)
        }
        Scope::Children => children(db, entity.row),
        Scope::Descendants => {
            let mut seen = HashSet::from([entity.row]);
            let mut found: Vec<Entity> = Vec::new();
            let mut level = vec![entity.row];
            while !level.is_empty() {
                let mut below = BTreeMap::new();
                for row in level {
                    let fresh = children(db, row)?.into_iter().filter(|child| seen.insert(child.row));
                    below.extend(fresh.map(|child| (child.row, child)));
                }
                level = below.keys().copied().collect();
                found.extend(below.into_values());
            }
            Ok(found)
        }
    }
}

fn children(db: &Db, row: i64) -> rusqlite::Result<Vec<Entity>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM links l CROSS JOIN entities e ON e.entity = l.child {JOINS} \
         WHERE l.parent = ?1 ORDER BY l.child"
    );
    db.rows(&sql, [row], decode)
}

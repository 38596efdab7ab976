//! What belongs to entities beside their own rows: four statements, however many the entities are.

use std::collections::{BTreeSet, HashMap};

use super::columns::Columns;
use super::connection::Db;
use super::runtime;
use crate::model::{Entity, Reference};
use crate::store::Belongings;

const PARENTS: &str = "SELECT l.child, i.kind, i.id \
     FROM json_each(?1) n CROSS JOIN links l INDEXED BY links_by_child ON l.child = n.value \
     CROSS JOIN entity_ids i ON i.entity = l.parent";

const CHILDREN: &str = "SELECT l.parent, i.kind, i.id \
     FROM json_each(?1) n CROSS JOIN links l ON l.parent = n.value \
     CROSS JOIN entity_ids i ON i.entity = l.child";

/// What belongs to each of these entities, in their order.
pub(super) fn belongings(db: &Db, entities: &[Entity]) -> rusqlite::Result<Vec<Belongings>> {
    let distinct: BTreeSet<i64> = entities.iter().map(|entity| entity.row).collect();
    let numbers = serde_json::json!(distinct).to_string();
    let parents = linked(db, PARENTS, &numbers)?;
    let children = linked(db, CHILDREN, &numbers)?;
    let runtimes = runtime::newest(db, &numbers)?;
    let works = runtime::works(db, &numbers)?;
    let of = |entity: &Entity| Belongings {
        parents: parents.get(&entity.row).cloned().unwrap_or_default(),
        children: children.get(&entity.row).cloned().unwrap_or_default(),
        runtime: runtimes.get(&entity.reference.id).cloned(),
        work: works.get(&entity.row).cloned(),
    };
    Ok(entities.iter().map(of).collect())
}

/// References by the entity that they are linked to. Both walks go along a key that ends in the other's number, which is
/// the order of creation.
fn linked(db: &Db, sql: &str, numbers: &str) -> rusqlite::Result<HashMap<i64, Vec<Reference>>> {
    let rows = db.rows(sql, [numbers], |row| {
        let mut columns = Columns::of(row, "links");
        let entity: i64 = columns.take()?;
        let (kind, id) = (columns.take()?, columns.take()?);
        Ok((entity, Reference { kind, id }))
    })?;
    let mut linked: HashMap<i64, Vec<Reference>> = HashMap::new();
    for (entity, reference) in rows {
        linked.entry(entity).or_default().push(reference);
    }
    Ok(linked)
}

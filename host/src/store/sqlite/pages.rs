//! What a call costs does not grow with the store: no scan, no sort, and hardly more pages in a large one.
//!
//! The stores are filled with SQL in one transaction. The large one has 100,000 entities; with `--ignored` a million,
//! which takes some half a minute.
#![expect(clippy::unwrap_used, reason = "tests")]

use rusqlite::Connection;

use super::tests::place;
use super::{Counts, OpenMode, SqliteStore};
use crate::model::Entity;
use crate::store::samples;
use crate::store::{Applied, EntityQuery, HistoryQuery, Lookup, Scope, Store};

/// A tree of pages grows by a level for every hundredfold of rows or so: each look-up may ask for two pages more.
const PAGES_MORE_PER_LOOKUP: u64 = 2;

/// Statements with which the writer looks at the length of the log.
const LOOKS_AT_LOG: u64 = 2;

const FILL: [&str; 4] = [
    "INSERT INTO entity_ids (entity, id, kind) \
     WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) \
     SELECT n, printf('%08x%07d', (n * 2654435761) % 4294967296, n), 'run' FROM n",
    "INSERT INTO entities (entity, kind, status, terminal, success, version, reason_code, component, fence, generation, \
         created_at_ms, updated_at_ms) \
     SELECT i.entity, 'run', 'completed', 1, 1, 2, 'run.completed.ok', c.component, 0, 0, i.entity, i.entity \
     FROM (SELECT entity FROM entity_ids LIMIT ?1) i CROSS JOIN components c",
    "INSERT INTO transitions (entity, version, status, reason_code, actor_kind, actor_id, at_ms, component) \
     SELECT e.entity, v.version, iif(v.version = 1, 'running', 'completed'), e.reason_code, 'operator', 'tests', \
         e.entity, e.component \
     FROM (SELECT * FROM entities LIMIT ?1) e CROSS JOIN (SELECT 1 AS version UNION ALL SELECT 2) v",
    "UPDATE components SET in_use = ?1",
];

#[test]
fn a_hundredfold_store_costs_no_scan_no_sort_and_hardly_more_pages() {
    check(1_000, 100_000);
}

#[test]
#[ignore = "fills a million entities: half a minute"]
fn a_million_entities_cost_no_scan_no_sort_and_hardly_more_pages() {
    check(10_000, 1_000_000);
}

fn check(small: i64, large: i64) {
    let (few, many) = (costs(small), costs(large));
    for ((call, lookups, few), (_, _, many)) in few.into_iter().zip(many) {
        for cost in [few, many] {
            // A listing of the newest walks the table from its end and stops at its limit; nothing else walks.
            let walked = if call.ends_with("--limit 20") { 20 } else { 0 };
            assert!(cost.scan_steps <= walked, "{call} scans: {} steps", cost.scan_steps);
            assert_eq!(cost.sorts, 0, "{call} sorts");
        }
        // The writer may look at the log's length after its reply, and so in the time of any call after a write.
        let more = few.statements.abs_diff(many.statements);
        assert!(
            more <= LOOKS_AT_LOG,
            "{call} asks {more} times more or less in a larger store"
        );
        let most = few.pages + PAGES_MORE_PER_LOOKUP * lookups;
        assert!(many.pages <= most, "{call}: {} pages, then {}", few.pages, many.pages);
    }
}

/// Calls with how many rows or index entries each looks up, and what it cost.
fn costs(entities: i64) -> Vec<(&'static str, u64, Counts)> {
    let (_directory, store) = filled(entities);
    let id = |number: i64| format!("{:08x}{number:07}", (number * 2_654_435_761) % (1 << 32));
    let entity: Entity = store.load(&id(entities / 2)).unwrap().unwrap();
    let list = |query: &EntityQuery| assert_eq!(store.list(query).unwrap().len(), 20);
    let twenty = EntityQuery {
        limit: Some(20),
        ..EntityQuery::default()
    };
    let of_kind = EntityQuery {
        kind: Some("run".to_owned()),
        ..twenty.clone()
    };
    let of_status = EntityQuery {
        statuses: vec!["completed".to_owned()],
        ..twenty.clone()
    };
    let history = HistoryQuery {
        id: Some(entity.reference.id.clone()),
        ..HistoryQuery::default()
    };
    let newest = HistoryQuery {
        newest: Some(20),
        ..HistoryQuery::default()
    };
    let by_prefix = Lookup::IdPrefix {
        kind: None,
        prefix: entity.reference.id[..14].to_owned(),
    };
    let mut transition = {
        let mut entity = entity.clone();
        let store = &store;
        move || {
            let mut effects = samples::change(store, &entity, "completed");
            effects.change.after.terminal = true;
            assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
            entity = effects.change.after;
        }
    };
    let calls: [(&'static str, u64, &mut dyn FnMut()); 9] = [
        ("transition", 12, &mut transition),
        ("load", 3, &mut || {
            assert!(store.load(&entity.reference.id).unwrap().is_some())
        }),
        ("parents", 1, &mut || {
            assert!(store.linked(&entity, Scope::Parents).unwrap().is_empty())
        }),
        ("children", 1, &mut || {
            assert!(store.linked(&entity, Scope::Children).unwrap().is_empty())
        }),
        ("look-up", 5, &mut || {
            assert!(!store.look_up(&by_prefix, 5).unwrap().is_empty())
        }),
        ("ls --limit 20", 41, &mut || list(&twenty)),
        ("ls run --limit 20", 61, &mut || list(&of_kind)),
        ("ls --status completed --limit 20", 61, &mut || list(&of_status)),
        ("history of one", 10, &mut || {
            assert!(!store.history(&history).unwrap().is_empty())
        }),
    ];
    let mut costs: Vec<_> = calls
        .into_iter()
        .map(|(what, lookups, call)| (what, lookups, cost(&store, call)))
        .collect();
    costs.push((
        "history --limit 20",
        41,
        cost(&store, &mut || drop(store.history(&newest).unwrap())),
    ));
    costs
}

/// What a call costs when its statements are prepared.
fn cost(store: &SqliteStore, call: &mut dyn FnMut()) -> Counts {
    call();
    let before = store.counts();
    call();
    let after = store.counts();
    Counts {
        statements: after.statements - before.statements,
        scan_steps: after.scan_steps - before.scan_steps,
        sorts: after.sorts - before.sorts,
        pages: after.pages - before.pages,
        ..Counts::default()
    }
}

fn filled(entities: i64) -> (tempfile::TempDir, SqliteStore) {
    let (directory, path) = place();
    samples::install(&SqliteStore::open(&path, OpenMode::Create).unwrap()).unwrap();
    let mut connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000")
        .unwrap();
    let write = connection.transaction().unwrap();
    for sql in FILL {
        write.execute(sql, [entities]).unwrap();
    }
    write.commit().unwrap();
    // A long log would be worked in by the first commit, which is no cost of the call.
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    assert_eq!(emptied.unwrap(), 0, "nobody else is at the store");
    drop(connection);
    let store = SqliteStore::open(&path, OpenMode::Existing).unwrap();
    (directory, store)
}

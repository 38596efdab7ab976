//! Stores of older formats: brought to the newest with all that they hold, in one transaction.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;

use super::schema::MIGRATIONS;
use super::tests::place;
use super::{OpenMode, SqliteStore, schema};
use crate::store::samples::{self, Success};
use crate::store::{Applied, Created, HistoryQuery, Outbox, Queue, ReadyQuery, Store, StoreError};

/// A row and more in every table that a run writes.
const ROWS: &str = "
    INSERT INTO store_info (one, name, created_at_ms) VALUES (1, 'oldstore', 1);
    INSERT INTO components (component, digest, kind, name, version, source, exports, size_bytes, installed_at_ms, in_use)
        VALUES (1, '7a3f000000000000000000000000000000000000000000000000000000000001', 'run', 'run-policy', '1.0.0',
            'bundled', '[]', 4, 1, 2);
    INSERT INTO component_contents (component, descriptor, bytes) VALUES (1, '{}', X'00');
    INSERT INTO activations (kind, component, at_ms, actor, reason) VALUES ('run', 1, 1, 'tests', 'wanted');
    INSERT INTO entity_ids (entity, id, kind) VALUES (1, 'ended', 'run'), (2, 'alive', 'run'), (3, 'gone', 'run');
    INSERT INTO entities (entity, kind, status, terminal, success, version, reason_code, component, fence, generation,
            tags, notify, created_at_ms, updated_at_ms, due_at_ms)
        VALUES (1, 'run', 'completed', 1, 1, 2, 'a.b.c', 1, 0, 0, '{\"t\":\"v\"}', '{\"handlers\":[]}', 1, 2, NULL),
            (2, 'run', 'running', 0, 0, 1, 'a.b.c', 1, 0, 0, NULL, NULL, 1, 1, 9);
    INSERT INTO tags (key, value, entity) VALUES ('t', 'v', 1);
    INSERT INTO links (parent, child) VALUES (1, 2);
    INSERT INTO transitions (entity, version, status, reason_code, actor_kind, actor_id, at_ms, component, envelope)
        VALUES (1, 1, 'running', 'a.b.c', 'system', 'x', 1, 1, NULL),
            (1, 2, 'completed', 'a.b.c', 'system', 'x', 2, 1, '{\"n\":1}'),
            (2, 1, 'running', 'a.b.c', 'system', 'x', 1, 1, NULL),
            (3, 1, 'running', 'a.b.c', 'system', 'x', 1, 1, NULL);
    INSERT INTO admin_events (at_ms, action, actor) VALUES (1, 'noted', 'tests'), (1, 'lease_write_refused', 'tests');
    INSERT INTO keys (scope, key, entity, version, command_digest) VALUES (0, 'k', 1, 1, 'd');
    INSERT INTO runtimes (owner, kind, state, stop_unconfirmed, host, boot_id, attempt_token, containment,
            created_at_ms, updated_at_ms)
        VALUES (2, 'local', 'running', 0, 'h', 'b', 't', 'none', 1, 1);
    INSERT INTO works (entity, work) VALUES (2, '{}');";

/// A store as the binary of that format left it.
fn old(path: &Path, format: usize) -> Connection {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON")
        .unwrap();
    for (index, sql) in MIGRATIONS.iter().take(format).enumerate() {
        connection.execute_batch(sql).unwrap();
        let applied = format!(
            "INSERT INTO schema_version (version, applied_at_ms) VALUES ({}, 1)",
            index + 1
        );
        connection.execute_batch(&applied).unwrap();
    }
    connection.execute_batch(ROWS).unwrap();
    if format >= 2 {
        let resource = "INSERT INTO resources (owner, directory, created_at_ms) VALUES (2, X'2F61', 1)";
        connection.execute_batch(resource).unwrap();
    }
    connection
        .pragma_update(None, "user_version", i64::try_from(format).unwrap())
        .unwrap();
    connection.pragma_update(None, "application_id", 0x5257_444E).unwrap();
    connection
}

/// Every row of every table, in the columns that the table has in `like`.
fn contents(connection: &Connection, like: &[(String, Vec<String>)]) -> Vec<(String, Vec<Vec<Value>>)> {
    let mut all = Vec::new();
    for (table, columns) in like {
        let sql = format!("SELECT {} FROM {table} ORDER BY 1, 2", columns.join(", "));
        let mut statement = connection.prepare(&sql).unwrap();
        let row = |row: &rusqlite::Row<'_>| (0..columns.len()).map(|at| row.get(at)).collect();
        let rows = statement.query_map([], row).unwrap().map(Result::unwrap).collect();
        all.push((table.clone(), rows));
    }
    all
}

fn tables(connection: &Connection) -> Vec<(String, Vec<String>)> {
    let words = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let tables = words(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('schema_version', 'sqlite_sequence')",
    );
    let with_columns = |table: String| {
        let columns = words(&format!("SELECT name FROM pragma_table_info('{table}')"));
        (table, columns)
    };
    tables.into_iter().map(with_columns).collect()
}

#[test]
fn a_store_of_an_older_format_is_brought_up_to_date_with_all_it_holds() {
    for format in 1..schema::newest() {
        let (_directory, path) = place();
        let connection = old(&path, format);
        let like = tables(&connection);
        let before = contents(&connection, &like);
        drop(connection);
        let store = SqliteStore::open(&path, OpenMode::Existing).unwrap();
        assert_eq!(store.history(&HistoryQuery::default()).unwrap().len(), 4);
        assert_eq!(
            store.envelope("oldstore:ended:2").unwrap(),
            Some(serde_json::json!({"n": 1}))
        );
        assert_eq!(store.next_due().unwrap(), None, "what is due for a run is no dispatch");
        let after = Connection::open(&path).unwrap();
        assert_eq!(contents(&after, &like), before, "from format {format}");
        let newest: u32 = after.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(usize::try_from(newest).unwrap(), schema::newest());
        let alive = store.load("alive").unwrap().unwrap();
        let mut end = samples::ending(&store, &alive, Success::No);
        end.change.planned.dispatches = vec![samples::new_dispatch(&store, "notice", Some(&end.change.row.id))];
        assert_eq!(store.apply(&end).unwrap(), Applied::Written);
        assert!(store.dispatch("notice").unwrap().is_some());
        check_queue(&store);
        drop((store, after));
        assert_eq!(super::examine(&path).unwrap().problems, Vec::<String>::new());
    }
}

/// Old rows are in no queue, and leased work goes its way beside them.
fn check_queue(store: &SqliteStore) {
    assert_eq!(store.queues().unwrap(), []);
    assert!(store.load("ended").unwrap().unwrap().queued.is_none());
    let new = samples::new_queued(store, "job");
    let ended = store.load("ended").unwrap().unwrap();
    let run = samples::new_work(&new.entity.reference, &[&ended]);
    assert!(matches!(store.create(&new, Some(&run)).unwrap(), Created::New { .. }));
    let ready = store
        .ready(&ReadyQuery {
            queues: Vec::new(),
            limit: 9,
        })
        .unwrap();
    assert_eq!(store.awaiting_ended(0, 9).unwrap(), ready);
    let claim = samples::taking(store, &ready[0], "w", samples::moment(9));
    assert_eq!(store.apply(&claim).unwrap(), Applied::Written);
    assert_eq!(store.late_writes().unwrap(), 1, "also those that came before");
}

#[test]
fn entities_of_an_older_format_keep_the_parameters_that_they_were_judged_by_last() {
    let (_directory, path) = place();
    let connection = old(&path, 4);
    let set = "INSERT INTO activations (kind, component, parameters, at_ms, actor, reason)
        VALUES ('run', 1, '{\"limit\":1}', 1, 'tests', 'a'), ('run', 1, '{\"limit\":2}', 2, 'tests', 'b')";
    connection.execute_batch(set).unwrap();
    drop(connection);
    let store = SqliteStore::open(&path, OpenMode::Existing).unwrap();
    let kept = store.load("alive").unwrap().unwrap().policy.parameters;
    assert_eq!(serde_json::Value::Object(kept), serde_json::json!({"limit": 2}));
}

#[test]
fn a_store_that_cannot_be_brought_up_to_date_stays_as_it_was() {
    let (_directory, path) = place();
    let connection = old(&path, 2);
    connection.execute_batch("CREATE TABLE owed_plans (a)").unwrap();
    let like = tables(&connection);
    assert!(matches!(
        SqliteStore::open(&path, OpenMode::Existing),
        Err(StoreError::Failed { .. })
    ));
    assert_eq!(tables(&connection), like);
    let format: u32 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(format, 2);
}

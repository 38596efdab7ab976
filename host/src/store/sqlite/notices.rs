//! The outbox as only a file has it: two handles at once, rules that hold against any program, other hands in the file.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use rusqlite::Connection;
use tempfile::TempDir;

use super::tests::place;
use super::{OpenMode, SqliteStore, examine};
use crate::model::{EventId, NewDispatch};
use crate::store::samples::{self, Success, admin_event, moment};
use crate::store::{
    Acknowledged, Applied, Consumer, Created, DueQuery, Enqueued, HistoryQuery, Outbox, Store, StoreError,
};

fn handles() -> (TempDir, PathBuf, [SqliteStore; 2]) {
    let (directory, path) = place();
    let one = SqliteStore::open(&path, OpenMode::Create).unwrap();
    samples::install(&one).unwrap();
    let two = SqliteStore::open(&path, OpenMode::Existing).unwrap();
    (directory, path, [one, two])
}

fn dispatch(store: &dyn Store, id: &str, key: &str) -> NewDispatch {
    let mut new = samples::new_dispatch(store, id, None);
    key.clone_into(&mut new.dispatch.dedup_key);
    new.dispatch.body = b"same".to_vec();
    new
}

/// An entity that ended, and its event.
fn ended(store: &SqliteStore, id: &str) -> EventId {
    let Created::New { entity, .. } = store.create(&samples::new_entity(store, "run", id), None).unwrap() else {
        panic!("it is new")
    };
    let effects = samples::ending(store, &entity, Success::Yes);
    assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
    effects.change.row.id
}

fn add_consumer(store: &SqliteStore, name: &str) {
    let consumer = Consumer {
        name: name.to_owned(),
        since: None,
        created_at: moment(1),
        retired_at: None,
    };
    assert!(
        store
            .add_consumer(&consumer, &admin_event("consumer_added", name))
            .unwrap()
    );
}

#[test]
fn of_two_handles_that_enqueue_one_key_one_makes_it() {
    const KEYS: usize = 40;
    let (_directory, _path, handles) = handles();
    let barrier = Barrier::new(2);
    let made: usize = thread::scope(|scope| {
        let at_work: Vec<_> = handles
            .iter()
            .enumerate()
            .map(|(handle, store)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let made = (0..KEYS).filter(|number| {
                        let new = dispatch(store, &format!("d{number}-{handle}"), &format!("k{number}"));
                        barrier.wait();
                        match store.enqueue(&new).unwrap() {
                            Enqueued::New(_) => true,
                            Enqueued::Held(_) => false,
                            other => panic!("{other:?}"),
                        }
                    });
                    made.count()
                })
            })
            .collect();
        at_work.into_iter().map(|handle| handle.join().unwrap()).sum()
    });
    assert_eq!(made, KEYS);
    let all = DueQuery {
        before: moment(99),
        except_targets: Vec::new(),
        limit: usize::MAX,
    };
    assert_eq!(handles[0].due(&all).unwrap().len(), KEYS);
}

#[test]
fn an_event_acknowledged_through_two_handles_is_acknowledged_once() {
    let (_directory, path, handles) = handles();
    let event = ended(&handles[0], "told");
    add_consumer(&handles[1], "reader");
    let mut answers = thread::scope(|scope| {
        let asked: Vec<_> = handles
            .iter()
            .map(|store| scope.spawn(|| store.acknowledge("reader", event.as_str(), moment(9)).unwrap()))
            .collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect::<Vec<_>>()
    });
    answers.sort_by_key(|answer| *answer != Acknowledged::New);
    assert_eq!(answers, [Acknowledged::New, Acknowledged::Again]);
    let count = "SELECT count(*) FROM acknowledgements";
    let rows: i64 = Connection::open(&path)
        .unwrap()
        .query_row(count, [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 1);
}

fn refused(path: &Path, sql: &str, why: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = ON").unwrap();
    let error = connection.execute_batch(sql).expect_err(sql);
    assert!(error.to_string().contains(why), "{sql}: {error}");
}

#[test]
fn an_acknowledgement_goes_with_its_history_row_and_not_otherwise() {
    let (_directory, path, [store, _]) = handles();
    let event = ended(&store, "told");
    add_consumer(&store, "reader");
    store.acknowledge("reader", event.as_str(), moment(9)).unwrap();
    let replace = "INSERT OR REPLACE INTO acknowledgements SELECT event_entity, event_version, consumer, 0 \
                   FROM acknowledgements";
    for sql in [
        "DELETE FROM acknowledgements",
        "UPDATE acknowledgements SET at_ms = 0",
        replace,
    ] {
        refused(&path, sql, "append-only");
    }
    let connection = Connection::open(&path).unwrap();
    let pruned = "PRAGMA foreign_keys = ON; BEGIN; INSERT INTO retention_gate (open) VALUES (1);
                  DELETE FROM transitions; DELETE FROM retention_gate; COMMIT";
    connection.execute_batch(pruned).unwrap();
    let count = "SELECT count(*) FROM acknowledgements";
    assert_eq!(connection.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn a_history_row_for_which_a_plan_is_owed_cannot_be_deleted_by_anybody() {
    let (_directory, path, [store, _]) = handles();
    ended(&store, "told");
    let owed =
        "INSERT INTO owed_plans (event_entity, event_version, handler, tries, due_at_ms) VALUES (1, 2, 'h', 0, 0)";
    Connection::open(&path).unwrap().execute_batch(owed).unwrap();
    let pruned = "BEGIN; INSERT INTO retention_gate (open) VALUES (1); DELETE FROM transitions WHERE version = 2";
    refused(&path, pruned, "FOREIGN KEY");
    assert_eq!(store.history(&HistoryQuery::default()).unwrap().len(), 2);
}

#[test]
fn two_holders_of_one_key_cannot_be_written() {
    let (_directory, path, [store, _]) = handles();
    store.enqueue(&dispatch(&store, "one", "k1")).unwrap();
    store.enqueue(&dispatch(&store, "two", "k2")).unwrap();
    refused(&path, "UPDATE dispatches SET dedup_key = 'k'", "UNIQUE");
}

#[test]
fn what_is_damaged_of_a_dispatch_is_named() {
    let (_directory, path, [store, _]) = handles();
    store.enqueue(&dispatch(&store, "one", "k1")).unwrap();
    let harm = |sql: &str| Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let named = |column: &str| match store.dispatch("one") {
        Err(StoreError::Corrupt { what, .. }) => {
            assert!(
                what.starts_with(&format!("table dispatches, row 1, column {column}: ")),
                "{what}"
            );
        }
        other => panic!("{other:?}"),
    };
    harm("DELETE FROM dispatch_bodies");
    named("body");
    harm("UPDATE destinations SET target = '{}'");
    named("target");
    harm("INSERT INTO owed_plans (event_entity, event_version, handler, tries, due_at_ms) VALUES (1, 1, 'h', 0, 0)");
    let found = ["dispatches 1 has no body", "owed_plans 1 is for what made no event"];
    assert_eq!(examine(&path).unwrap().problems, found);
    harm("PRAGMA foreign_keys = OFF; DELETE FROM destinations; DELETE FROM dispatches; DELETE FROM owed_plans");
    let found = [
        "entities 1 names a row of destinations that is not there",
        "entities 1 names a destination and is no dispatch",
    ];
    assert_eq!(examine(&path).unwrap().problems, found);
}

//! What only a file has: modes of opening, damage, other processes, full disks, the work of statements.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempDir;

use super::{OpenMode, SqliteStore};
use crate::store::contract;
use crate::store::samples::{self, Success};
use crate::store::{Applied, Created, EntityQuery, HistoryQuery, Store, StoreError};

/// A directory that is removed at the end, and the path of a store in it.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home").join("state.db");
    (directory, path)
}

fn made() -> (TempDir, PathBuf, SqliteStore) {
    let (directory, path) = place();
    let store = SqliteStore::open(&path, OpenMode::Create).unwrap();
    samples::install(&store).unwrap();
    (directory, path, store)
}

#[test]
fn what_was_answered_is_there_when_the_store_is_opened_again() {
    let (_directory, path, store) = made();
    let new = samples::new_entity(&store, "run", "build-1");
    let Created::New { entity, .. } = store.create(&new, None).unwrap() else {
        panic!("it is new")
    };
    let end = samples::ending(&store, &entity, Success::Yes);
    assert_eq!(store.apply(&end).unwrap(), Applied::Written);
    let name = store.name().to_owned();
    drop(store);
    for mode in [OpenMode::Existing, OpenMode::ReadOnly, OpenMode::Create] {
        let store = SqliteStore::open(&path, mode).unwrap();
        assert_eq!(store.name(), name);
        assert_eq!(store.load("build-1").unwrap().unwrap(), end.change.after);
        assert_eq!(
            store.history(&HistoryQuery::default()).unwrap(),
            [new.row.clone(), end.change.row.clone()]
        );
        assert_eq!(store.list(&EntityQuery::default()).unwrap().len(), 1);
    }
}

#[test]
fn a_store_that_is_missing_is_made_only_when_asked() {
    let (_directory, path) = place();
    for mode in [OpenMode::Existing, OpenMode::ReadOnly] {
        assert!(matches!(
            SqliteStore::open(&path, mode),
            Err(StoreError::Missing { .. })
        ));
        assert!(!path.parent().unwrap().exists());
    }
    SqliteStore::open(&path, OpenMode::Create).unwrap();
    SqliteStore::open(&path, OpenMode::Existing).unwrap();
}

/// Removes an entity by hand, as `rm` will.
pub(crate) fn forget(path: &Path, id: &str) {
    let mut connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection.pragma_update(None, "foreign_keys", true).unwrap();
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    let entity: i64 = transaction
        .query_row("SELECT entity FROM entity_ids WHERE id = ?1", [id], |row| row.get(0))
        .unwrap();
    for sql in [
        "UPDATE components SET in_use = in_use - 1 WHERE component = (SELECT component FROM entities WHERE entity = ?1)",
        "DELETE FROM runtimes WHERE owner = ?1",
        "DELETE FROM tags WHERE entity = ?1",
        "DELETE FROM keys WHERE entity = ?1",
        "DELETE FROM entities WHERE entity = ?1",
    ] {
        transaction.execute(sql, [entity]).unwrap();
    }
    transaction.commit().unwrap();
}

#[test]
fn the_store_in_a_file_keeps_every_promise() {
    contract::suite(&|| {
        let (directory, path) = place();
        let store = Arc::new(SqliteStore::open(&path, OpenMode::Create).unwrap());
        contract::ready(store, move |id| forget(&path, id), directory)
    });
}

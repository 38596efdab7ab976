//! What only a file has: modes of opening, damage, other processes, full disks, the work of statements.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;

use tempfile::TempDir;

use super::{OpenMode, SqliteStore};
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

//! What only a file has: modes of opening, damage, other processes, full disks, the work of statements.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;

use super::{OpenMode, SqliteStore, Tuning};
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

#[test]
fn the_store_in_a_file_keeps_every_promise() {
    contract::suite(&|| {
        let (directory, path) = place();
        let store = Arc::new(SqliteStore::open(&path, OpenMode::Create).unwrap());
        contract::ready(store, directory)
    });
}

fn opened(path: &Path, mode: OpenMode, busy_ms: u64) -> Result<SqliteStore, StoreError> {
    SqliteStore::open_tuned(
        path,
        mode,
        Tuning {
            busy_wait: Duration::from_millis(busy_ms),
            ..Tuning::default()
        },
    )
}

fn by_hand(path: &Path, sql: &str) -> rusqlite::Result<()> {
    Connection::open(path)?.execute_batch(sql)
}

#[test]
fn the_store_and_what_lies_beside_it_are_private() {
    let (_directory, path, store) = made();
    store.create(&samples::new_entity(&store, "run", "a"), None).unwrap();
    drop(store);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let files: Vec<PathBuf> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 4, "database, log, its index and the reserve: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_command_that_reads_opens_one_connection_and_one_that_writes_makes_one_commit() {
    let (_directory, path, store) = made();
    let name = store.name().to_owned();
    drop(store);
    let store = SqliteStore::open(&path, OpenMode::Existing).unwrap();
    assert_eq!(store.load("nobody").unwrap(), None);
    assert_eq!(
        (store.name(), store.counts().connections, store.counts().commits),
        (name.as_str(), 1, 0)
    );
    store.create(&samples::new_entity(&store, "run", "a"), None).unwrap();
    assert_eq!((store.counts().connections, store.counts().commits), (1, 1));
    assert_eq!(
        store.create(&samples::new_entity(&store, "run", "a"), None).unwrap(),
        Created::IdTaken
    );
    assert_eq!(store.counts().commits, 1, "what writes nothing commits nothing");
}

#[test]
fn processes_that_make_a_store_at_once_make_one() {
    for _ in 0..5 {
        let (_directory, path) = place();
        let names: Vec<String> = thread::scope(|scope| {
            let open = || SqliteStore::open(&path, OpenMode::Create).unwrap().name().to_owned();
            let openers: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            openers.into_iter().map(|opener| opener.join().unwrap()).collect()
        });
        assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
    }
}

#[test]
fn a_log_that_outlived_its_store_is_not_taken_for_that_of_the_next() {
    let (_directory, path, store) = made();
    store.create(&samples::new_entity(&store, "run", "old"), None).unwrap();
    drop(store);
    fs::remove_file(&path).unwrap();
    let store = SqliteStore::open(&path, OpenMode::Create).unwrap();
    assert_eq!(store.load("old").unwrap(), None);
    samples::install(&store).unwrap();
    store.create(&samples::new_entity(&store, "run", "new"), None).unwrap();
}

#[test]
fn a_store_is_made_with_its_contents_by_one_file_that_needs_no_log() {
    let (_directory, path) = place();
    SqliteStore::make(&path, || Ok(samples::installation())).unwrap();
    let beside: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(beside.len(), 1, "{beside:?}");
    SqliteStore::make(&path, || panic!("there is one")).unwrap();
    let store = SqliteStore::open(&path, OpenMode::Existing).unwrap();
    assert!(store.components().unwrap().iter().any(|component| component.active));
    let mode: String = Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn a_handle_sees_what_another_one_commits() {
    let (_directory, path, store) = made();
    let other = SqliteStore::open(&path, OpenMode::Existing).unwrap();
    let before = other.data_version().unwrap();
    assert_eq!(other.data_version().unwrap(), before);
    store.create(&samples::new_entity(&store, "run", "a"), None).unwrap();
    assert_ne!(other.data_version().unwrap(), before);
    assert!(other.load("a").unwrap().is_some());
}

#[test]
fn a_lock_held_elsewhere_is_busy_after_the_wait_and_readers_do_not_mind() {
    let (_directory, path, _store) = made();
    let store = opened(&path, OpenMode::Existing, 60).unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    match store.create(&samples::new_entity(&store, "run", "a"), None) {
        Err(StoreError::Busy { waited_ms }) => assert!((50..5_000).contains(&waited_ms), "{waited_ms}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.load("a").unwrap(), None);
    holder.execute_batch("ROLLBACK").unwrap();
    assert!(matches!(
        store.create(&samples::new_entity(&store, "run", "a"), None),
        Ok(Created::New { .. })
    ));
}

/// Between two commits of such a writer is a moment of some microseconds.
#[test]
fn a_process_that_writes_without_a_pause_keeps_nobody_else_from_writing() {
    let (_directory, path, _store) = made();
    let store = opened(&path, OpenMode::Existing, 5_000).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let greedy = Connection::open(&path).unwrap();
            greedy.busy_timeout(Duration::from_secs(20)).unwrap();
            while !over.load(Ordering::Relaxed) {
                greedy.execute_batch("BEGIN IMMEDIATE").unwrap();
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(4) {
                    std::hint::spin_loop();
                }
                greedy.execute_batch("COMMIT").unwrap();
            }
        });
        let made: Vec<_> = (0..8)
            .map(|number| store.create(&samples::new_entity(&store, "run", &format!("r{number}")), None))
            .collect();
        over.store(true, Ordering::Relaxed);
        assert!(made.iter().all(Result::is_ok), "{made:?}");
    });
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let (_directory, path, store) = made();
    drop(store);
    by_hand(&path, "PRAGMA user_version = 99").unwrap();
    for mode in [OpenMode::Create, OpenMode::Existing, OpenMode::ReadOnly] {
        let refused = SqliteStore::open(&path, mode);
        assert!(matches!(
            refused,
            Err(StoreError::TooNew {
                found: 99,
                known: 5,
                ..
            })
        ));
    }
}

#[test]
fn what_is_no_store_is_told_and_left_alone() {
    let (_directory, path) = place();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = "this is a text and no database, long enough to be taken for a header of one. ".repeat(20);
    fs::write(&path, &text).unwrap();
    for mode in [OpenMode::Create, OpenMode::Existing, OpenMode::ReadOnly] {
        assert!(
            matches!(SqliteStore::open(&path, mode), Err(StoreError::Corrupt { .. })),
            "{mode:?}"
        );
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    fs::remove_file(&path).unwrap();
    by_hand(&path, "CREATE TABLE other (x)").unwrap();
    assert!(matches!(
        SqliteStore::open(&path, OpenMode::Create),
        Err(StoreError::Corrupt { .. })
    ));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    assert!(matches!(
        SqliteStore::open(&path, OpenMode::Existing),
        Err(StoreError::Missing { .. })
    ));
    SqliteStore::open(&path, OpenMode::Create).unwrap(); // what was cut off while it was made is made
}

#[test]
fn damage_is_told_with_table_and_row() {
    let (_directory, path, store) = made();
    store.create(&samples::new_entity(&store, "run", "a"), None).unwrap();
    let broken = "PRAGMA ignore_check_constraints = ON; UPDATE entities SET fields = '{'";
    by_hand(&path, broken).unwrap();
    match store.load("a") {
        Err(StoreError::Corrupt { what, .. }) => {
            assert!(what.starts_with("table entities, row 1, column fields: "), "{what}");
        }
        other => panic!("{other:?}"),
    }
    drop(store);
    by_hand(&path, "PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    for page in 1..length / 4096 {
        file.write_all_at(&[0xAA; 4096], page * 4096).unwrap();
    }
    drop(file);
    let found = SqliteStore::open(&path, OpenMode::Existing).and_then(|store| store.load("a"));
    assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{found:?}");
}

#[test]
fn what_is_append_only_is_neither_changed_nor_deleted_nor_replaced() {
    let (_directory, path, store) = made();
    store.create(&samples::new_entity(&store, "run", "a"), None).unwrap();
    store.record(&[samples::admin_event("one", "run/a")], &[]).unwrap();
    let copies = [
        ("transitions", "transition", "entity, version + 9"),
        ("transitions", "transition + 9", "entity, version"),
        ("admin_events", "admin_event", ""),
        ("activations", "activation", ""),
    ];
    for (table, number, rest) in copies {
        let others = match table {
            "transitions" => {
                "(transition, entity, version, status, reason_code, actor_kind, actor_id, at_ms, component) SELECT \
                 {}, status, reason_code, actor_kind, actor_id, at_ms, component"
            }
            "admin_events" => "(admin_event, at_ms, action, actor) SELECT {} at_ms, action, actor",
            _ => "(activation, kind, component, at_ms, actor, reason) SELECT {} kind, component, at_ms, actor, reason",
        };
        let chosen = format!("{number}, {rest}");
        let replace = format!(
            "INSERT OR REPLACE INTO {table} {} FROM {table}",
            others.replace("{}", &chosen)
        );
        let key = number.trim_end_matches(" + 9");
        for sql in [
            replace,
            format!("DELETE FROM {table}"),
            format!("UPDATE {table} SET {key} = {key}"),
        ] {
            let error = by_hand(&path, &sql).expect_err(&sql);
            assert!(error.to_string().contains("append-only"), "{sql}: {error}");
        }
    }
    assert_eq!(store.history(&HistoryQuery::default()).unwrap().len(), 1);
}

#[test]
fn retention_passes_through_its_gate_which_cannot_be_left_open() {
    let (_directory, path, store) = made();
    store.create(&samples::new_entity(&store, "run", "a"), None).unwrap();
    let open = "PRAGMA foreign_keys = ON; BEGIN IMMEDIATE; INSERT INTO retention_gate (open) VALUES (1);";
    assert!(by_hand(&path, &format!("{open} COMMIT")).is_err());
    assert!(by_hand(&path, &format!("{open} DELETE FROM transitions; COMMIT")).is_err());
    assert_eq!(store.history(&HistoryQuery::default()).unwrap().len(), 1);
    by_hand(
        &path,
        &format!("{open} DELETE FROM transitions; DELETE FROM retention_gate; COMMIT"),
    )
    .unwrap();
    assert_eq!(store.history(&HistoryQuery::default()).unwrap(), []);
}

#[test]
fn many_callers_share_commits() {
    const CALLERS: usize = 64;
    let (_directory, _path, store) = made();
    let before = store.counts();
    let barrier = Barrier::new(CALLERS);
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (store, barrier) = (&store, &barrier);
            scope.spawn(move || {
                let new = samples::new_entity(store, "run", &format!("c{caller}"));
                barrier.wait();
                assert!(matches!(store.create(&new, None), Ok(Created::New { .. })));
            });
        }
    });
    let after = store.counts();
    assert_eq!(after.commands - before.commands, 64);
    assert!(
        after.commits - before.commits < 40,
        "{} commits",
        after.commits - before.commits
    );
}

/// Creates until the store is full, by many callers at once; what was answered, by id.
fn fill(store: &SqliteStore) -> Vec<(String, bool)> {
    let answers = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for caller in 0..16 {
            let answers = &answers;
            scope.spawn(move || {
                for number in 0..500 {
                    let id = format!("f{caller}-{number}");
                    let mut new = samples::new_entity(store, "run", &id);
                    new.entity.fields.insert("bulk".to_owned(), "x".repeat(3_000).into());
                    let answer = store.create(&new, None);
                    let done = matches!(answer, Ok(Created::New { .. }));
                    assert!(done || matches!(answer, Err(StoreError::Full { .. })), "{answer:?}");
                    answers.lock().unwrap().push((id, done));
                    if !done {
                        break;
                    }
                }
            });
        }
    });
    answers.into_inner().unwrap()
}

fn check_fill(store: &SqliteStore, answers: &[(String, bool)]) {
    assert!(answers.iter().any(|(_, done)| *done) && answers.iter().any(|(_, done)| !done));
    for (id, done) in answers {
        assert_eq!(store.load(id).unwrap().is_some(), *done, "{id}");
        let history = HistoryQuery {
            id: Some(id.clone()),
            ..HistoryQuery::default()
        };
        assert_eq!(store.history(&history).unwrap().len(), usize::from(*done), "{id}");
    }
}

#[test]
fn when_the_store_is_full_only_what_is_there_was_answered_so() {
    let (_directory, path, store) = made();
    drop(store);
    let tuning = Tuning {
        pages_max: Some(150),
        ..Tuning::default()
    };
    let store = SqliteStore::open_tuned(&path, OpenMode::Existing, tuning).unwrap();
    let answers = fill(&store);
    check_fill(&store, &answers);
    drop(store);
    check_fill(&SqliteStore::open(&path, OpenMode::Existing).unwrap(), &answers);
}

/// A small file system of its own; none where the tests may not mount one.
struct Mounted(TempDir);

impl Mounted {
    fn new(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(directory.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then(|| Self(directory))
    }

    fn remount(&self, option: &str) {
        let mut mount = Command::new("mount");
        assert!(
            mount
                .args(["-o", &format!("remount,{option}")])
                .arg(self.0.path())
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn on_a_full_disk_starts_are_refused_and_ends_fit_into_the_reserve() {
    let Some(disk) = Mounted::new("4m") else { return };
    let path = disk.0.path().join("state.db");
    let store = SqliteStore::open(&path, OpenMode::Create).unwrap();
    samples::install(&store).unwrap();
    let Created::New { entity, .. } = store
        .create(&samples::new_entity(&store, "run", "first"), None)
        .unwrap()
    else {
        panic!("it is new")
    };
    let answers = fill(&store);
    check_fill(&store, &answers);
    let bulk = fs::File::create(disk.0.path().join("bulk")).unwrap();
    while (&bulk).write(&[0; 4096]).is_ok_and(|written| written > 0) {}
    // The log has some room left in its own file; then there is none.
    let start = |number| store.create(&samples::new_entity(&store, "run", &format!("no-{number}")), None);
    let refused = (0..2_000).map(start).find(Result::is_err);
    assert!(matches!(refused, Some(Err(StoreError::Full { .. }))), "{refused:?}");
    let reserve = path.with_file_name("state.db-reserve");
    assert!(reserve.exists(), "a start does not spend the reserve");
    let mut entity = *entity;
    for _ in 0..10 {
        let effects = samples::change(&store, &entity, "running");
        assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
        entity = effects.change.after;
    }
    assert!(!reserve.exists());
    assert_eq!(
        store.apply(&samples::ending(&store, &entity, Success::Yes)).unwrap(),
        Applied::Written
    );
    drop(store);
    let store = SqliteStore::open(&path, OpenMode::Existing).unwrap();
    assert!(store.load("first").unwrap().unwrap().terminal);
    check_fill(&store, &answers);
}

#[test]
fn a_store_on_a_read_only_mount_is_read_and_not_written() {
    let Some(disk) = Mounted::new("16m") else { return };
    let path = disk.0.path().join("state.db");
    let store = SqliteStore::open(&path, OpenMode::Create).unwrap();
    samples::install(&store).unwrap();
    store.create(&samples::new_entity(&store, "run", "a"), None).unwrap();
    drop(store);
    for log in ["left as it was", "emptied"] {
        disk.remount("ro");
        for mode in [OpenMode::ReadOnly, OpenMode::Existing] {
            let store = SqliteStore::open(&path, mode).unwrap();
            assert!(store.load("a").unwrap().is_some(), "{mode:?}");
            let answer = store.create(&samples::new_entity(&store, "run", "b"), None);
            assert!(
                matches!(answer, Err(StoreError::ReadOnly { .. })),
                "{mode:?}, log {log}: {answer:?}"
            );
        }
        disk.remount("rw");
        let kept = SqliteStore::open(&path, OpenMode::Existing).unwrap(); // whose closing keeps the log
        by_hand(&path, "PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        drop(kept);
    }
    disk.remount("ro");
    let beside = SqliteStore::open(&disk.0.path().join("other").join("state.db"), OpenMode::Create);
    assert!(matches!(beside, Err(StoreError::ReadOnly { .. })));
}

#[test]
fn the_log_is_worked_in_when_it_has_grown() {
    let (_directory, _path, store) = made();
    for number in 0..400 {
        let mut new = samples::new_entity(&store, "run", &format!("w{number}"));
        new.entity.fields.insert("bulk".to_owned(), "x".repeat(12_000).into());
        store.create(&new, None).unwrap();
    }
    assert!(store.counts().checkpoints > 0);
}

#[test]
fn a_chain_of_short_processes_keeps_the_log_short() {
    let (_directory, path, store) = made();
    drop(store);
    let log = path.with_file_name("state.db-wal");
    let mut lengths = vec![0];
    for number in 0..120 {
        let store = SqliteStore::open(&path, OpenMode::Existing).unwrap();
        let mut new = samples::new_entity(&store, "run", &format!("p{number}"));
        new.entity.fields.insert("bulk".to_owned(), "x".repeat(100_000).into());
        store.create(&new, None).unwrap();
        drop(store);
        lengths.push(fs::metadata(&log).unwrap().len());
    }
    let emptied = lengths.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!((8..=16).contains(&emptied), "emptied {emptied} times");
    assert!(lengths.iter().all(|length| *length < 2 << 20), "{lengths:?}");
}

//! Whether the store is sound.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Check, size};
use crate::process::lock_holders;
use crate::store::{StoreError, StoreHealth};

/// A log this long is not being taken into the database: a reader that stays keeps it.
const LOG_PAGES_LONG: u64 = 16_384;
/// The bytes of the log's index that a reader locks for as long as it keeps its snapshot; fixed by SQLite's file format.
const READER_MARKS: std::ops::Range<u64> = 123..128;

/// Processes, this one excepted, that keep a snapshot of the store.
pub(super) fn readers(database: &Path) -> Vec<i32> {
    let mut index: OsString = database.as_os_str().to_owned();
    index.push("-shm");
    lock_holders(&PathBuf::from(index), READER_MARKS)
}

/// Judges a store.
pub(super) fn checks(health: &StoreHealth, readers: &[i32]) -> Vec<Check> {
    vec![
        integrity(health),
        format(health),
        log(health, readers),
        sqlite(health),
        reserve(health),
    ]
}

/// A store that cannot be looked at.
pub(super) fn unusable(error: &StoreError) -> Check {
    let mut said = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        said.push_str(&format!(": {source}"));
    }
    let check = Check::bad("store", said);
    match error {
        StoreError::Corrupt { .. } => check.hint("put back a copy, or move it away to begin a new one"),
        StoreError::TooNew { .. } => check.hint("use the newer runwarden that wrote it"),
        StoreError::Unsuitable { .. } => check.hint("choose a local disk: export RUNWARDEN_HOME=/var/tmp/runwarden"),
        StoreError::Busy { .. }
        | StoreError::Full { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::Missing { .. }
        | StoreError::KeyHeld { .. }
        | StoreError::Failed { .. } => check,
    }
}

fn integrity(health: &StoreHealth) -> Check {
    let bytes = size(health.bytes);
    if let Some(first) = health.problems.first() {
        let count = health.problems.len();
        return Check::bad("store", format!("{bytes}, damaged in {count} places: {first}"))
            .hint("put back a copy, or move it away to begin a new one");
    }
    let how = if health.indexes_compared {
        "sound"
    } else {
        "sound as far as a quick look tells: it is large"
    };
    Check::ok("store", format!("{bytes}, {how}"))
}

fn format(health: &StoreHealth) -> Check {
    let (format, known) = (health.format, health.format_known);
    Check::ok(
        "schema",
        if format < known {
            format!("format {format}; the next command that writes brings it to {known}")
        } else {
            format!("format {format}, the newest")
        },
    )
}

fn log(health: &StoreHealth, readers: &[i32]) -> Check {
    let waiting = health.log.waiting_pages;
    let waits = waiting.map_or_else(
        || "how much of it waits is not known".to_owned(),
        |pages| format!("{pages} pages wait to be taken into the database"),
    );
    let numbers: Vec<String> = readers.iter().map(ToString::to_string).collect();
    let read = match numbers.as_slice() {
        [] => "nobody reads now".to_owned(),
        [one] => format!("pid {one} reads now"),
        many => format!("pids {} read now", many.join(", ")),
    };
    let said = format!("{}, {waits}; {read}", size(health.log.bytes));
    if waiting.is_none_or(|pages| pages < LOG_PAGES_LONG) {
        return Check::ok("log", said);
    }
    let check = Check::warn("log", format!("it grows: {said}"));
    match numbers.as_slice() {
        [] => check,
        _ => check.hint(format!("ps -fp {}", numbers.join(","))),
    }
}

fn sqlite(health: &StoreHealth) -> Check {
    // An older one is refused before anything else is looked at.
    Check::ok("sqlite", format!("{}, no older than 3.51.3", health.sqlite))
}

fn reserve(health: &StoreHealth) -> Check {
    match health.reserve_bytes {
        Some(bytes) => Check::ok("reserve", format!("{} kept for ends on a full disk", size(bytes))),
        None => Check::warn("reserve", "none: on a full disk an end may have to wait to be recorded")
            .hint("make room; the next command that writes makes it again"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckResult::{Bad, Ok, Warn};
    use super::*;
    use crate::store::Log;

    fn health() -> StoreHealth {
        StoreHealth {
            format: 1,
            format_known: 1,
            sqlite: "3.53.0",
            problems: Vec::new(),
            indexes_compared: true,
            bytes: 1 << 20,
            log: Log {
                bytes: 1 << 20,
                waiting_pages: Some(3),
            },
            reserve_bytes: Some(1 << 20),
        }
    }

    #[test]
    fn a_sound_store_is_ok_throughout() {
        let all = checks(&health(), &[]);
        assert!(
            all.iter().all(|check| check.result == Ok && check.hint.is_none()),
            "{all:?}"
        );
    }

    #[test]
    fn each_fault_is_told() {
        let mut damaged = health();
        damaged.problems = vec!["row 7 missing from index x".to_owned()];
        assert_eq!(integrity(&damaged).result, Bad);
        assert!(integrity(&damaged).message.contains("row 7"));
        let mut bare = health();
        bare.reserve_bytes = None;
        assert_eq!(reserve(&bare).result, Warn);
        let mut long = health();
        long.log.waiting_pages = Some(LOG_PAGES_LONG);
        assert_eq!(log(&long, &[]).result, Warn);
        assert_eq!(log(&long, &[5, 6]).hint.as_deref(), Some("ps -fp 5,6"));
        let mut old = health();
        old.format_known = 2;
        assert!(format(&old).message.contains("brings it to 2"));
    }

    #[test]
    fn a_store_that_cannot_be_used_is_bad_with_its_reason() {
        let path = || "/h/state.db".to_owned();
        let corrupt = unusable(&StoreError::Corrupt {
            path: path(),
            what: "malformed".to_owned(),
        });
        assert_eq!(corrupt.result, Bad);
        assert!(
            corrupt.hint.is_some() && corrupt.message.contains("malformed"),
            "{corrupt:?}"
        );
        let network = unusable(&StoreError::Unsuitable {
            path: path(),
            why: "NFS is a network file system".to_owned(),
        });
        assert!(network.hint.is_some_and(|hint| hint.contains("RUNWARDEN_HOME")));
    }
}

//! Real files, several writers.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::time::{Duration, Instant};

use super::*;
use crate::process::lock_waits;

#[test]
fn lines_of_writers_at_once_never_mix() {
    const WRITERS: usize = 8;
    const LINES: usize = 25;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("lines");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let path = &path;
            scope.spawn(move || {
                let line = format!("{writer}").repeat(20_000);
                for _ in 0..LINES {
                    append_line(path, line.as_bytes(), &|| true).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), WRITERS * LINES);
    let is_whole = |line: &str| line.len() == 20_000 && line.bytes().all(|byte| byte == line.as_bytes()[0]);
    assert!(text.lines().all(is_whole));
}

/// Until this process waits for the lock of a file.
fn until_waited_for(path: &Path) {
    let own = std::process::id().cast_signed();
    let since = Instant::now();
    while !lock_waits(&[own]).iter().any(|wait| wait.file.as_deref() == Some(path)) {
        assert!(since.elapsed() < Duration::from_secs(60), "nobody waits for the lock");
    }
}

#[test]
fn a_file_renamed_away_while_its_lock_was_waited_for_gets_no_line() {
    let home = tempfile::tempdir().unwrap();
    let (path, moved) = (home.path().join("log"), home.path().join("log.1"));
    let held = File::create(&path).unwrap();
    held.lock().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| append_line(&path, b"new", &|| true).unwrap());
        until_waited_for(&path);
        fs::rename(&path, &moved).unwrap();
        drop(held);
        assert!(matches!(waiting.join().unwrap(), Appended::Written));
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(&moved).unwrap(), "");
}

/// The longest file that the file system of `file` holds.
fn longest(file: &File) -> u64 {
    let (mut fits, mut fails) = (0, i64::MAX.cast_unsigned());
    while fits + 1 < fails {
        let middle = fits + (fails - fits) / 2;
        match file.set_len(middle) {
            Ok(()) => fits = middle,
            Err(_) => fails = middle,
        }
    }
    fits
}

#[test]
fn a_line_of_which_only_a_part_fits_is_a_failure_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("full");
    let file = File::create(&path).unwrap();
    // Room for three bytes, all before them a hole.
    let length = longest(&file) - 3;
    file.set_len(length).unwrap();
    let told = append_line(&path, b"a line", &|| true).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::StorageFull, "{told}");
    assert_eq!(file.metadata().unwrap().len(), length);
}

#[test]
fn what_is_too_long_or_no_file_is_not_read() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("secret");
    fs::write(&path, "12345").unwrap();
    assert_eq!(read_regular(&path, 5).unwrap(), b"12345");
    assert!(read_regular(&path, 4).is_err());
    assert!(read_regular(home.path(), 5).is_err());
    assert!(read_regular(Path::new("/dev/zero"), 5).is_err());
}

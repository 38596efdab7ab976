//! A file that is given up when the disk is full, so that ends and stops still fit.
//!
//! It lies beside the database, holds nothing, and is no part of it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate}; // reserving space is asked of the kernel; std has no call for it

/// Room for some hundreds of terminal commits in the log.
const RESERVE_BYTES: u64 = 1 << 20;

/// Makes the reserve where it is missing; that there is no room for it is no fault.
pub(super) fn keep(database: &Path) {
    let path = path_of(database);
    if fs::metadata(&path).is_ok_and(|found| found.len() >= RESERVE_BYTES) {
        return;
    }
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path);
    let kept = opened.is_ok_and(|file| fallocate(file, FallocateFlags::empty(), 0, RESERVE_BYTES).is_ok());
    if !kept {
        let _ = fs::remove_file(&path); // half a reserve would look like none and keep its room
    }
}

/// Gives the reserve up. False when there was none.
pub(super) fn free(database: &Path) -> bool {
    fs::remove_file(path_of(database)).is_ok()
}

/// How large the reserve is; none when there is none.
pub(super) fn kept_bytes(database: &Path) -> Option<u64> {
    Some(fs::metadata(path_of(database)).ok()?.len())
}

fn path_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-reserve");
    PathBuf::from(name)
}

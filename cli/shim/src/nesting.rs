//! Runs inside runs: how a shim tells the shims it was started below that it is not of their sets.
//!
//! Nothing but the chain of parents is believed: variables are handed on by servers that belong to another run, and
//! scrubbed by programs. Who cannot register (its chain is hidden, the enclosing run is another user's, a disk is full)
//! stays a member of the enclosing run and is stopped with it: too much is stopped then, never too little.

use std::fs::{File, OpenOptions};

use runwarden_shim::files;
use runwarden_shim::spared::Record;
use runwarden_shim::stat;

use crate::sys;

/// The name every shim goes by, whatever its file is called.
pub(crate) const NAME: &std::ffi::CStr = c"runwarden-shim";
/// A chain of parents longer than this is taken for a broken reading.
const DEPTH_MAX: usize = 4096;
/// Climbs, while ancestors end under us: each has another parent afterwards.
const CLIMBS_MAX: usize = 64;

/// Adds this process to the list of every run it was started inside of.
pub(crate) fn register(reference: &[u8]) {
    let reference = String::from_utf8_lossy(reference);
    let lists = enclosing_lists();
    if lists.is_empty() {
        return;
    }
    let Ok(record) = Record::of(own_pid(), &reference) else {
        return;
    };
    for list in &lists {
        let _ = record.append(list);
    }
}

pub(crate) fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

fn enclosing_lists() -> Vec<File> {
    let mut found = Vec::new();
    for _ in 0..CLIMBS_MAX {
        found.clear();
        if climb(&mut found).is_some() {
            break;
        }
    }
    found
}

/// Collects the lists of all shims above us; none when an ancestor ended meanwhile, or is hidden.
fn climb(found: &mut Vec<File>) -> Option<()> {
    let mut pid = own_pid();
    let mut parent = stat::read(pid).ok()?.parent;
    for _ in 0..DEPTH_MAX {
        if parent == 0 {
            break;
        }
        let stat = stat::read(parent).ok()?;
        // The number was the parent's all along if it is the parent's still.
        if stat::read(pid).ok()?.parent != parent {
            return None;
        }
        if stat.name() == NAME.to_bytes() {
            found.extend(list_of(parent));
        }
        (pid, parent) = (parent, stat.parent);
    }
    Some(())
}

/// The list of the run that a shim serves: its working directory is the run directory, whose lock it holds.
fn list_of(shim: i32) -> Option<File> {
    let directory = format!("/proc/{shim}/cwd");
    let lock = File::open(format!("{directory}/{}", files::LOCK)).ok()?;
    if !sys::is_locked(&lock) {
        return None;
    }
    OpenOptions::new()
        .append(true)
        .open(format!("{directory}/{}", files::SPARED))
        .ok()
}

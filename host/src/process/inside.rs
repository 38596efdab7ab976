//! Whether the caller belongs to a run, and who else does.

use std::fs;

use runwarden_shim::spared::Spared;
use runwarden_shim::{files, stat};

use super::ProcessError;
use super::exit::Survivor;
use super::identity::{Identity, Liveness, Place, classify};

/// A chain of parents longer than this is taken for a broken reading.
const DEPTH_MAX: usize = 4096;

/// Whether this process belongs to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// It descends from the run's shim.
    Yes,
    /// It does not, or the shim is gone.
    No,
    /// It cannot be known.
    Unknown,
}

/// Whether this process descends from the shim of a run. What the environment says proves nothing.
#[must_use]
pub fn is_inside(shim: &Identity, place: &Place) -> Inside {
    let alive = match classify(shim, place) {
        Liveness::Alive(process) => process,
        Liveness::Gone { .. } => return Inside::No,
        Liveness::Unknown { .. } => return Inside::Unknown,
    };
    let mut pid = std::process::id().cast_signed();
    for _ in 0..DEPTH_MAX {
        if pid == shim.pid {
            // The number was the shim's all along if the shim still runs.
            return if alive.has_exited().unwrap_or(true) {
                Inside::Unknown
            } else {
                Inside::Yes
            };
        }
        match stat::read(pid) {
            Ok(_) if pid == 1 => return Inside::No,
            Ok(stat) if stat.parent == 0 => return Inside::No,
            Ok(stat) => pid = stat.parent,
            // An ancestor ended while we climbed: its children have another parent now.
            Err(_) => return Inside::Unknown,
        }
    }
    Inside::Unknown
}

/// Who lives below a shim and is of its run, as far as one look sees: for naming survivors, never as proof that there
/// are none. Runs that were started inside the run are left out, with everything below them.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn members_below(shim: i32) -> Result<Vec<Survivor>, ProcessError> {
    // A shim works in its run directory.
    let mut spared = Spared::at(format!("/proc/{shim}/cwd/{}", files::SPARED).as_ref());
    spared.refresh();
    let directory = fs::read_dir("/proc").map_err(ProcessError::file("read", "/proc"))?;
    let pids = directory.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let mut rest: Vec<_> = pids.filter_map(|pid| Some((pid, stat::read(pid).ok()?))).collect();
    let mut members = Vec::new();
    let mut parents = vec![shim];
    while let Some(parent) = parents.pop() {
        for (pid, stat) in rest.extract_if(.., |(_, stat)| stat.parent == parent) {
            if spared.holds(pid) {
                continue;
            }
            parents.push(pid);
            if !stat.is_dead() {
                let comm = String::from_utf8_lossy(stat.name()).into_owned();
                members.push(Survivor {
                    pid,
                    comm,
                    state: char::from(stat.state).to_string(),
                    uid: user_of(pid),
                });
            }
        }
    }
    Ok(members)
}

/// The real user id of a process.
pub(super) fn user_of(pid: i32) -> Option<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line)
        .ok()?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}

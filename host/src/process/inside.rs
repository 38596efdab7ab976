//! Whether the caller belongs to a run.

use runwarden_shim::stat;

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

//! Asking a run to stop.

use super::identity::{Gone, Identity, Liveness, Place, Unknown, classify};
use super::pidfd::{Sent, signal};
use super::{ProcessError, RunDir, Signal, Slot};

/// What was done and seen when a stop was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopAsked {
    /// The slot that holds the request.
    pub slot: usize,
    /// Whether somebody was there to read it.
    pub wake: Wake,
}

/// Whether the shim heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// It was woken and will act.
    Woken,
    /// It is gone: the caller has to stop what is left.
    ShimGone(Gone),
    /// Whether it lives is unknown, so nothing was signalled.
    ShimUnknown(Unknown),
    /// The kernel refused: the run is another user's.
    Denied,
}

/// Writes a request to stop into the run directory, then wakes the shim through a checked descriptor. A shim that is
/// still starting finds the request before it opens the gate. Does not wait for the stop.
///
/// # Errors
/// When the request cannot be written; nobody was woken then.
pub fn ask_stop(run: &RunDir, slot: &Slot, shim: &Identity, place: &Place) -> Result<StopAsked, ProcessError> {
    let index = run.append_stop(slot)?;
    let wake = match classify(shim, place) {
        Liveness::Gone { why } => Wake::ShimGone(why),
        Liveness::Unknown { why } => Wake::ShimUnknown(why),
        Liveness::Alive(process) => match signal(&process, Signal::USR1)? {
            Sent::Sent => Wake::Woken,
            Sent::AlreadyDead => Wake::ShimGone(Gone::Vanished),
            Sent::Denied => Wake::Denied,
        },
    };
    Ok(StopAsked { slot: index, wake })
}

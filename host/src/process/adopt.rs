//! Taking over a set whose shim was killed: another shim gets the lock of the run directory and the worker's descriptor.
//!
//! ```text
//! adopt ──▶ Adopting ──confirm──▶ it does what the first one would have done
//!              └──drop, or our death──▶ it leaves, and nothing has changed
//! ```

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use runwarden_shim::message::{FromShim, Passed, Present, ToShim};
use runwarden_shim::spec::{Adopt, Group, Need};

use super::control::{Control, refused};
use super::identity::{Identity, Place, capture_held};
use super::pidfd::PidFd;
use super::spawn::{ANSWER_WITHIN, absolute, memory_file, socket_pair, specification, start_shim};
use super::{Command, HeldBy, ProcessError, RunDir};

/// What is known of a set without a shim.
#[derive(Debug)]
pub struct Orphaned {
    /// The worker, if it can still be told how it ends or ended.
    pub worker: Option<PidFd>,
    /// Its recorded number and start; none when it was never recorded.
    pub identity: Option<Identity>,
    /// When the run was recorded, UTC.
    pub recorded_at_ms: u64,
    /// The set's cgroup.
    pub cgroup: Option<PathBuf>,
}

/// A shim that is ready to take over and waits to be told that it is recorded.
#[derive(Debug)]
pub struct Adopting {
    /// Who takes over.
    pub shim: Identity,
    /// What holds the set from now on.
    pub held_by: HeldBy,
    control: Control,
}

/// Starts a shim that takes the lock of the run directory. Blocks until it has it, 30 s at most. Of the command, what
/// concerns a start is not used.
///
/// # Errors
/// `StartRefused` at the stage `Lock` when another shim has it; nothing was changed whatever the error.
pub fn adopt(command: &Command, orphaned: Orphaned, run: &RunDir, place: &Place) -> Result<Adopting, ProcessError> {
    let mut spec = specification(command, &absolute(run.path())?);
    let identity = orphaned.identity.as_ref();
    spec.adopt = Some(Adopt {
        worker: identity.map_or(0, |worker| worker.pid),
        worker_ticks: identity.and_then(|worker| worker.start_ticks).unwrap_or(0),
        recorded_at_ms: orphaned.recorded_at_ms,
    });
    spec.cgroup = orphaned.cgroup.as_ref().map(|path| Group {
        path: path.as_os_str().as_bytes().to_vec(),
        need: Need::Wanted,
    });
    let memory = memory_file(&spec.encode())?;
    let (ours, theirs) = socket_pair()?;
    start_shim(command, &theirs)?;
    drop(theirs);
    let mut control = Control::new(ours)?;
    let image = command.finish.as_ref().and_then(|finish| finish.image.as_ref());
    let present = |there: bool| if there { Present::Yes } else { Present::No };
    let passed = Passed {
        image: present(image.is_some()),
        worker: present(orphaned.worker.is_some()),
        ..Passed::default()
    };
    let mut descriptors = vec![memory.as_raw_fd()];
    descriptors.extend(image.map(|image| image.as_raw_fd()));
    descriptors.extend(orphaned.worker.as_ref().map(|worker| worker.as_fd().as_raw_fd()));
    control.send(&ToShim::Start(passed), &descriptors)?;
    let unexpected = || ProcessError::Protocol {
        source: runwarden_shim::Malformed("answer to an adoption"),
    };
    match control.wait_packet(ANSWER_WITHIN)? {
        (FromShim::Held { shim, containment, .. }, descriptors) => {
            let descriptor = descriptors.into_iter().next().ok_or_else(unexpected)?;
            let process = PidFd::from_descriptor(descriptor, shim);
            Ok(Adopting {
                shim: capture_held(&process, place, &command.attempt_token)?,
                held_by: containment,
                control,
            })
        }
        (FromShim::StartFailed { stage, errno }, _) => Err(refused(stage, errno)),
        _ => Err(unexpected()),
    }
}

impl Adopting {
    /// Lets it begin; call it only when it is recorded.
    ///
    /// # Errors
    /// When it is gone: then the set is as it was.
    pub fn confirm(self) -> Result<(), ProcessError> {
        self.control.send(&ToShim::Go, &[])
    }
}

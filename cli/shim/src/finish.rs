//! The finishing command: started to record an end, never a member of the set.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};

use runwarden_shim::clock;
use runwarden_shim::executable::{c_strings, pointers};
use runwarden_shim::files;
use runwarden_shim::spec::Spec;

use crate::nesting;
use crate::sys;

/// The shim waits no longer for it.
pub(crate) const WAIT_MAX_MS: u64 = 30_000;

/// What a finishing command is started from. The specification is read again when it is needed: its environment may
/// be large, and the shim is to be small.
pub(crate) struct Finish {
    specification: File,
    image: Option<OwnedFd>,
    state: State,
    again: Again,
}

enum State {
    Idle,
    Running { pidfd: OwnedFd, since_ms: u64 },
}

/// Whether another start was asked for while one is running.
#[derive(PartialEq, Eq)]
enum Again {
    No,
    Yes,
}

impl Finish {
    pub(crate) fn new(specification: File, image: Option<OwnedFd>) -> Self {
        Self {
            specification,
            image,
            state: State::Idle,
            again: Again::No,
        }
    }

    /// Starts the command, or once more when the one that is running has ended.
    pub(crate) fn start(&mut self) {
        if matches!(self.state, State::Running { .. }) {
            self.again = Again::Yes;
            return;
        }
        match sys::fork_sibling() {
            Ok(None) => {
                become_command(&self.specification, self.image.as_ref());
                sys::exit_now(127);
            }
            Ok(Some(pidfd)) => {
                self.state = State::Running {
                    pidfd,
                    since_ms: clock::boottime_ms(),
                }
            }
            // Nothing to start it with: the next command that reads the run finds the exit file.
            Err(_) => {}
        }
    }

    /// Notes an end.
    pub(crate) fn advance(&mut self) {
        let ended = match &self.state {
            State::Idle => return,
            State::Running { pidfd, since_ms } => {
                sys::is_exited(pidfd) || clock::boottime_ms().saturating_sub(*since_ms) >= WAIT_MAX_MS
            }
        };
        if ended {
            self.state = State::Idle;
            if self.again == Again::Yes {
                self.again = Again::No;
                self.start();
            }
        }
    }

    /// The descriptor to watch and how long at most.
    pub(crate) fn pending(&self) -> Option<(i32, u64)> {
        match &self.state {
            State::Idle => None,
            State::Running { pidfd, since_ms } => Some((pidfd.as_raw_fd(), since_ms + WAIT_MAX_MS)),
        }
    }
}

/// Reads the whole specification from its memory file.
pub(crate) fn read_specification(file: &File) -> Option<Spec> {
    let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Spec::decode(&bytes).ok()
}

/// Runs in the copy; returns only if there is no command or it cannot be executed.
fn become_command(specification: &File, image: Option<&OwnedFd>) -> Option<()> {
    let spec = read_specification(specification)?;
    let argv = c_strings(&spec.finish)?;
    let environment = c_strings(&spec.environment)?;
    let path = argv.first()?;
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(files::FINISH_LOG)
        .ok()?;
    let null = File::open("/dev/null").ok()?;
    nesting::register(&spec.reference);
    sys::new_session();
    for (from, to) in [(&null, 0), (&log, 1), (&log, 2)] {
        sys::put_at(from.as_raw_fd(), to).ok()?;
    }
    sys::change_to(c"/").ok()?;
    for signal in 1..=64 {
        sys::default_signal(signal);
    }
    sys::release_signals();
    sys::close_on_exec_from(3);
    let (argv, environment) = (pointers(&argv), pointers(&environment));
    sys::execute(path, &argv, &environment);
    sys::execute_image(image?.as_raw_fd(), &argv, &environment);
    None
}

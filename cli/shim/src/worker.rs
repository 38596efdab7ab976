//! The worker: a copy of the shim that waits at the gate, then becomes the program.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;

use libc::{c_int, pid_t};
use runwarden_shim::executable::Executable;
use runwarden_shim::message::Stage;
use runwarden_shim::notes::{Began, Notes};
use runwarden_shim::spec::{IoMode, Spec};

use crate::holding::Holding;
use crate::sys::{self, Errno};

/// A failed step of a start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    pub(crate) errno: Errno,
}

impl Failure {
    pub(crate) fn at(stage: Stage) -> impl Fn(Errno) -> Self {
        move |errno| Self { stage, errno }
    }

    fn to_bytes(self) -> [u8; 5] {
        let [a, b, c, d] = self.errno.to_le_bytes();
        [self.stage.code(), a, b, c, d]
    }

    /// What the worker wrote before it ended, if it wrote anything.
    pub(crate) fn read(mut errors: &File) -> Option<Self> {
        let mut bytes = [0; 5];
        let length = errors.read(&mut bytes).ok()?;
        let [stage, errno @ ..] = bytes;
        (length == 5).then(|| Self {
            stage: Stage::from_code(stage).unwrap_or(Stage::Exec),
            errno: i32::from_le_bytes(errno),
        })
    }
}

/// The three standard streams of the worker.
pub(crate) struct Streams {
    pub(crate) stdin: RawFd,
    pub(crate) stdout: RawFd,
    pub(crate) stderr: RawFd,
}

/// A worker waiting at the gate.
pub(crate) struct Held {
    pub(crate) pid: pid_t,
    pub(crate) pidfd: OwnedFd,
    /// A byte opens the gate; closing it ends the worker.
    pub(crate) gate: OwnedFd,
    /// Ends without a byte when the program executes, else carries a [`Failure`].
    pub(crate) errors: File,
}

/// Everything the worker needs, allocated before the fork.
struct Program {
    executable: Executable,
    /// Where the starter is: what a relative directory is relative to.
    start: Option<File>,
    directory: CString,
    notes: Notes,
}

/// Copies this process, into what is to hold the set, and holds the copy at the gate.
pub(crate) fn fork_held(
    spec: &Spec,
    streams: &Streams,
    (start, notes): (Option<File>, Notes),
    holding: &mut Holding,
) -> Result<Held, Failure> {
    let fork = Failure::at(Stage::Fork);
    let program = Program::from(spec, start, notes).ok_or(Failure {
        stage: Stage::Specification,
        errno: libc::EINVAL,
    })?;
    let (gate_reader, gate) = sys::pipe().map_err(&fork)?;
    let (errors, errors_writer) = sys::pipe().map_err(&fork)?;
    let pid = holding.fork_inside(spec)?;
    if pid == 0 {
        // Our copy of the writing end would keep the gate from ever reporting its end.
        drop(gate);
        let failure = live(spec.io, streams, File::from(gate_reader), &program);
        let _ = program.notes.failed(failure.stage, failure.errno);
        let _ = std::io::Write::write_all(&mut File::from(errors_writer), &failure.to_bytes());
        sys::exit_now(127);
    }
    // The child is not reaped before the main loop runs, so its number is its own.
    let pidfd = sys::open_pidfd(pid).map_err(&fork)?;
    sys::set_nonblocking(errors.as_fd());
    Ok(Held {
        pid,
        pidfd,
        gate,
        errors: File::from(errors),
    })
}

/// The worker's life until exec; returns only in failure.
fn live(io: IoMode, streams: &Streams, mut gate: File, program: &Program) -> Failure {
    if io != IoMode::InheritStdin {
        sys::new_session();
    }
    if io == IoMode::Pty
        && let Err(errno) = sys::take_terminal(streams.stdin)
    {
        return Failure {
            stage: Stage::Terminal,
            errno,
        };
    }
    for (from, to) in [(streams.stdin, 0), (streams.stdout, 1), (streams.stderr, 2)] {
        if let Err(errno) = sys::put_at(from, to) {
            return Failure {
                stage: Stage::Fork,
                errno,
            };
        }
    }
    let mut byte = [0];
    if gate.read_exact(&mut byte).is_err() {
        sys::exit_now(0);
    }
    // Without the note a shim that takes over would say that nothing was executed.
    if let Err(error) = program.notes.began(Began::now()) {
        return Failure {
            stage: Stage::Reserve,
            errno: sys::number(&error),
        };
    }
    sys::close_on_exec_from(3);
    if let Some(start) = &program.start {
        sys::change_back(start);
    }
    if let Err(errno) = sys::change_to(&program.directory) {
        return Failure {
            stage: Stage::Directory,
            errno,
        };
    }
    reset_signals(io);
    Failure {
        stage: Stage::Exec,
        errno: program.executable.execute(),
    }
}

/// Every signal as a fresh login has it. In the caller's session what job control and `nohup` chose to ignore stays
/// ignored.
fn reset_signals(io: IoMode) {
    for signal in 1..=64 {
        let kept = io == IoMode::InheritStdin && matches!(signal, libc::SIGHUP | libc::SIGINT | libc::SIGQUIT);
        if !(kept && sys::is_ignored(signal)) {
            sys::default_signal(signal);
        }
    }
    sys::release_signals();
}

impl Program {
    fn from(spec: &Spec, start: Option<File>, notes: Notes) -> Option<Self> {
        Some(Self {
            start,
            notes,
            executable: Executable::new(&spec.argv, &spec.environment)?,
            directory: CString::new(spec.directory.as_slice()).ok()?,
        })
    }
}

pub(crate) fn path(bytes: &[u8]) -> &std::path::Path {
    std::path::Path::new(OsStr::from_bytes(bytes))
}

/// How the worker's process ended.
#[derive(Clone, Copy)]
pub(crate) struct End {
    /// None when nobody could see it.
    pub(crate) status: Option<c_int>,
    /// Known to a parent alone.
    pub(crate) usage: Option<libc::rusage>,
}

/// The worker as the main loop knows it.
pub(crate) struct Worker {
    pub(crate) pid: pid_t,
    /// None when it could not be told from others any more: then its end was not seen.
    pub(crate) pidfd: Option<OwnedFd>,
    pub(crate) group: Group,
    pub(crate) end: Option<End>,
}

/// Whose process group the worker is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// It leads one of its own.
    Own,
    /// The caller's: never to be signalled as a group.
    Callers,
}

impl Worker {
    /// Signals the group the worker leads, whatever has become of the worker itself; the group that was reached.
    pub(crate) fn signal_group(&self, signal: c_int) -> Option<pid_t> {
        if self.group == Group::Callers {
            return None;
        }
        // ESRCH: the group is empty. EINVAL before Linux 6.9: the walk over the tree reaches the members.
        let leader = self.pidfd.as_ref()?;
        sys::send_signal(leader.as_fd(), signal, sys::Reach::Group)
            .ok()
            .map(|()| self.pid)
    }
}

/// The descriptor's number, or that of `/dev/null`.
pub(crate) fn raw_or(fd: Option<&OwnedFd>, null: &File) -> RawFd {
    fd.map_or(null.as_raw_fd(), |fd| fd.as_raw_fd())
}

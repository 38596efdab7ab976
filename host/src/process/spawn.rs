//! Starting a run: the shim, the worker at its gate, the gate.
//!
//! ```text
//! prepare ──▶ Held ──open_gate──▶ Opened::Started | Opened::Failed
//!              └──abandon, or drop, or our death──▶ nothing was executed
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::time::Duration;

use runwarden_shim::message::{CONTROL_FD, FromShim, Passed, Present, Stage, ToShim};
use runwarden_shim::spec::{IoMode, Spec, Window};
use rustix::fs::MemfdFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Signal;

use super::containment::Containing;
use super::control::{Control, refused};
use super::identity::{Identity, Place, capture_held};
use super::pidfd::PidFd;
use super::{HeldBy, ProcessError, RunDir};

/// A shim that has not answered by then never will.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The longest single string Linux takes (`MAX_ARG_STRLEN`), its NUL included.
const STRING_BYTES_MAX: usize = 131_072;
/// A shim's file just written by another thread's copy of us may be busy for a moment.
const BUSY_TRIES: usize = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Where the program's streams go.
#[derive(Debug)]
pub enum Io {
    /// A pseudo-terminal of this size.
    Pty(Window),
    /// This standard input, and the caller's session and process group.
    Inherit(OwnedFd),
    /// No input, a session of its own.
    Null,
}

/// What is tried before SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopBy {
    /// This signal.
    Signal(Signal),
    /// The end of standard input, then SIGTERM after half of the grace period.
    Stdin,
}

pub use runwarden_shim::spec::ParentTie;

/// The command that records the end.
#[derive(Debug)]
pub struct Finish {
    /// Its recorded path, and its arguments.
    pub argv: Vec<OsString>,
    /// Its image, in case the path leads nowhere by then.
    pub image: Option<OwnedFd>,
}

/// Everything a run is started from.
#[derive(Debug)]
pub struct Command {
    /// The shim's file.
    pub shim: PathBuf,
    /// The run's reference, for people who look at the process list.
    pub reference: String,
    /// Unique to this attempt.
    pub attempt_token: String,
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// The complete environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory; a relative program with a slash is relative to it.
    pub directory: PathBuf,
    /// Where the streams go.
    pub io: Io,
    /// Between the polite request and SIGKILL, for stops the shim decides on.
    pub grace: Duration,
    /// Time awake after which the set is stopped.
    pub timeout: Option<Duration>,
    /// What is tried before SIGKILL.
    pub stop_by: StopBy,
    /// What the end of this process means.
    pub parent: ParentTie,
    /// How much of its output is kept, all logs together.
    pub log_limit_bytes: u64,
    /// What is to hold the set together.
    pub containing: Containing,
    /// The command that records the end.
    pub finish: Option<Finish>,
}

/// A worker at its gate. Dropped, it leaves without having executed anything.
#[derive(Debug)]
pub struct Held {
    /// Who will be the program.
    pub worker: Identity,
    /// Who watches it.
    pub shim: Identity,
    /// The master of the pseudo-terminal: keyboard input is written here. Output comes through the log.
    pub terminal: Option<OwnedFd>,
    /// The writing end of standard input, with [`StopBy::Stdin`] and [`Io::Inherit`].
    pub stdin: Option<OwnedFd>,
    /// What holds the set.
    pub held_by: HeldBy,
    /// The set's cgroup, where that holds it.
    pub cgroup: Option<PathBuf>,
    shim_process: PidFd,
    control: Control,
}

/// What opening the gate led to.
#[derive(Debug)]
pub enum Opened {
    /// The program executes.
    Started(Control),
    /// Nothing was executed.
    Failed {
        /// The step that failed.
        stage: Stage,
        /// Why, 0 if there is no error number.
        errno: i32,
    },
}

/// Starts a shim in the run directory and has it hold a worker. Blocks until the worker is held, 30 s at most.
///
/// # Errors
/// `InvalidCommand` before anything was created; `StartRefused` when the shim could not do a step; in every case
/// nothing was executed.
pub fn prepare(command: Command, run: &RunDir, place: &Place) -> Result<Held, ProcessError> {
    validate(&command)?;
    let token = command.attempt_token.clone();
    let run_directory = absolute(run.path())?;
    let spec = specification(&command, &run_directory);
    let memory = memory_file(&spec.encode())?;
    let (ours, theirs) = socket_pair()?;
    start_shim(&command, &theirs)?;
    drop(theirs);
    let wires = Wires::for_command(command.io, command.stop_by, command.finish)?;
    let mut control = Control::new(ours)?;
    let (passed, mut descriptors) = wires.passed();
    descriptors.insert(0, memory.as_raw_fd());
    control.send(&ToShim::Start(passed), &descriptors)?;
    let (message, descriptors) = control.wait_packet(ANSWER_WITHIN)?;
    let (worker, shim, held_by) = match message {
        FromShim::Held {
            worker,
            shim,
            containment,
        } => (worker, shim, containment),
        FromShim::StartFailed { stage, errno } => return Err(refused(stage, errno)),
        _ => {
            return Err(ProcessError::Protocol {
                source: runwarden_shim::Malformed("first answer"),
            });
        }
    };
    let mut descriptors = descriptors.into_iter();
    let mut process = |pid| {
        let descriptor = descriptors.next().ok_or(ProcessError::Protocol {
            source: runwarden_shim::Malformed("first answer"),
        })?;
        Ok::<_, ProcessError>(PidFd::from_descriptor(descriptor, pid))
    };
    let (worker, shim_process) = (process(worker)?, process(shim)?);
    Ok(Held {
        worker: capture_held(&worker, place, &token)?,
        shim: capture_held(&shim_process, place, &token)?,
        terminal: descriptors.next(),
        stdin: wires.starter_stdin,
        held_by,
        cgroup: spec
            .cgroup
            .filter(|_| held_by == HeldBy::Cgroup)
            .map(|group| PathBuf::from(OsString::from_vec(group.path))),
        shim_process,
        control,
    })
}

impl Held {
    /// Opens the gate; call it only when the identities are recorded. Blocks until the program executes or cannot.
    ///
    /// # Errors
    /// When the shim is gone or silent: whether the program executed is then unknown, and the exit record or the
    /// identities have to tell.
    pub fn open_gate(mut self) -> Result<Opened, ProcessError> {
        self.control.send(&ToShim::Go, &[])?;
        loop {
            match self.control.wait_packet(ANSWER_WITHIN)?.0 {
                FromShim::Started => return Ok(Opened::Started(self.control)),
                FromShim::StartFailed { stage, errno } => {
                    return Ok(Opened::Failed { stage, errno });
                }
                FromShim::Output | FromShim::CloseStdin => {}
                FromShim::Held { .. } | FromShim::Ended => {
                    return Err(ProcessError::Protocol {
                        source: runwarden_shim::Malformed("answer at the gate"),
                    });
                }
            }
        }
    }

    /// Keeps the gate closed: nothing was executed, and nothing will be. Blocks until the shim is gone, 30 s at most.
    ///
    /// # Errors
    /// When the shim does not end.
    pub fn abandon(self) -> Result<(), ProcessError> {
        let Self {
            control, shim_process, ..
        } = self;
        drop(control);
        if shim_process.wait_for_exit(ANSWER_WITHIN)? {
            return Ok(());
        }
        let waited_ms = u64::try_from(ANSWER_WITHIN.as_millis()).unwrap_or(u64::MAX);
        Err(ProcessError::ShimSilent { waited_ms })
    }
}

/// Finds what no process can be given, before anything is created.
fn validate(command: &Command) -> Result<(), ProcessError> {
    let invalid = |what: String, why| Err(ProcessError::InvalidCommand { what, why });
    if command.argv.first().is_none_or(|program| program.is_empty()) {
        return invalid("the program".to_owned(), "is empty");
    }
    let finish = command.finish.iter().flat_map(|finish| &finish.argv);
    let strings = command
        .argv
        .iter()
        .chain(finish)
        .map(|word| ("an argument", word.as_os_str()));
    let paths = [
        ("the working directory", command.directory.as_os_str()),
        ("the reference", OsStr::new(&command.reference)),
    ];
    for (what, text) in strings.chain(paths) {
        check_string(what, text.as_bytes(), text.len())?;
    }
    for (name, value) in &command.environment {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return invalid(format!("the variable name {name:?}"), "is empty or contains `=`");
        }
        check_string("a variable name", name.as_bytes(), 0)?;
        check_string(
            "the value of a variable",
            value.as_bytes(),
            name.len() + 1 + value.len(),
        )?;
    }
    Ok(())
}

fn check_string(what: &str, text: &[u8], length: usize) -> Result<(), ProcessError> {
    let why = match text.contains(&0) {
        true => "contains a NUL byte",
        false if length >= STRING_BYTES_MAX => "is longer than 131071 bytes",
        false => return Ok(()),
    };
    let start = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
    Err(ProcessError::InvalidCommand {
        what: format!("{what} ({start:?})"),
        why,
    })
}

fn absolute(path: &Path) -> Result<PathBuf, ProcessError> {
    std::path::absolute(path).map_err(ProcessError::file("find", path))
}

fn specification(command: &Command, run_directory: &Path) -> Spec {
    let bytes = |words: &[OsString]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let variable = |(name, value): &(OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
    let (io, window) = match &command.io {
        Io::Pty(window) => (IoMode::Pty, *window),
        Io::Inherit(_) => (IoMode::InheritStdin, Window::default()),
        Io::Null => (IoMode::NullStdin, Window::default()),
    };
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Spec {
        reference: command.reference.clone().into_bytes(),
        token: command.attempt_token.clone().into_bytes(),
        argv: bytes(&command.argv),
        environment: command.environment.iter().map(variable).collect(),
        directory: command.directory.clone().into_os_string().into_vec(),
        run_directory: run_directory.as_os_str().as_bytes().to_vec(),
        io,
        grace_ms: milliseconds(command.grace),
        // 0 is "never" on the wire; a limit of nothing is the shortest there is.
        timeout_ms: command.timeout.map_or(0, |time| milliseconds(time).max(1)),
        stop_by: match command.stop_by {
            StopBy::Signal(signal) => runwarden_shim::spec::StopBy::Signal(signal.as_raw()),
            StopBy::Stdin => runwarden_shim::spec::StopBy::Stdin,
        },
        parent: command.parent,
        finish: command
            .finish
            .as_ref()
            .map_or_else(Vec::new, |finish| bytes(&finish.argv)),
        window,
        cgroup: command.containing.group.clone(),
        namespace: command.containing.namespace,
        log_limit_bytes: command.log_limit_bytes,
    }
}

/// The descriptors that go to the shim, and the one that stays.
struct Wires {
    stdin: Option<OwnedFd>,
    image: Option<OwnedFd>,
    stdin_writer: Option<OwnedFd>,
    starter_stdin: Option<OwnedFd>,
}

impl Wires {
    fn for_command(io: Io, stop_by: StopBy, finish: Option<Finish>) -> Result<Self, ProcessError> {
        let image = finish.and_then(|finish| finish.image);
        let mut wires = Self {
            stdin: None,
            image,
            stdin_writer: None,
            starter_stdin: None,
        };
        match (io, stop_by) {
            (Io::Inherit(stdin), StopBy::Signal(_)) => wires.stdin = Some(stdin),
            (Io::Null, StopBy::Signal(_)) | (Io::Pty(_), _) => {}
            (io @ (Io::Inherit(_) | Io::Null), StopBy::Stdin) => {
                let (reader, writer) = std::io::pipe().map_err(ProcessError::system("make a pipe"))?;
                if matches!(io, Io::Inherit(_)) {
                    let copy = writer.try_clone().map_err(ProcessError::system("copy a pipe"))?;
                    wires.starter_stdin = Some(copy.into());
                }
                (wires.stdin, wires.stdin_writer) = (Some(reader.into()), Some(writer.into()));
            }
        }
        Ok(wires)
    }

    fn passed(&self) -> (Passed, Vec<RawFd>) {
        let present = |fd: &Option<OwnedFd>| {
            if fd.is_some() { Present::Yes } else { Present::No }
        };
        let passed = Passed {
            stdin: present(&self.stdin),
            image: present(&self.image),
            stdin_writer: present(&self.stdin_writer),
        };
        let all = [&self.stdin, &self.image, &self.stdin_writer];
        (passed, all.into_iter().flatten().map(|fd| fd.as_raw_fd()).collect())
    }
}

/// A file in memory that holds these bytes, its place behind them.
pub(super) fn memory_file(bytes: &[u8]) -> Result<File, ProcessError> {
    let memory = rustix::fs::memfd_create("runwarden-spec", MemfdFlags::CLOEXEC);
    let mut file = File::from(memory.map_err(ProcessError::system("make a memory file"))?);
    file.write_all(bytes)
        .map_err(ProcessError::system("fill a memory file"))?;
    Ok(file)
}

fn socket_pair() -> Result<(OwnedFd, OwnedFd), ProcessError> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)
        .map_err(ProcessError::system("make a socket pair"))
}

/// Starts the shim, which copies itself and ends, so that nobody has to reap it later.
#[expect(clippy::disallowed_methods, reason = "nothing tells when a busy file is free")]
fn start_shim(run: &Command, socket: &OwnedFd) -> Result<(), ProcessError> {
    let number = socket.as_raw_fd();
    let mut command = process::Command::new(&run.shim);
    command.arg0("runwarden-shim").arg(&run.reference).env_clear();
    command.args(&run.containing.base);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let pass_socket = move || {
        // SAFETY: both calls are async-signal-safe. A descriptor that is 3 already keeps its close-on-exec flag
        // through dup2, so the flag is cleared by hand.
        let passed = unsafe { libc::dup2(number, CONTROL_FD) != -1 && libc::fcntl(CONTROL_FD, libc::F_SETFD, 0) != -1 };
        if passed {
            Ok(())
        } else {
            Err(std::io::Error::last_os_error())
        }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(pass_socket) };
    let mut tries = 0;
    let status = loop {
        match command.status() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                tries += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            other => break other.map_err(ProcessError::file("start", &run.shim))?,
        }
    };
    if status.success() {
        Ok(())
    } else {
        Err(ProcessError::ShimGone)
    }
}

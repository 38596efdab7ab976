//! Everything before the main loop: the specification, the reserves, the worker at the gate.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use libc::c_int;
use runwarden_shim::message::{CONTROL_FD, FromShim, PACKET_BYTES, Passed, Present, Stage, Stream, ToShim};
use runwarden_shim::spared::Spared;
use runwarden_shim::spec::{Containment, IoMode, Spec};
use runwarden_shim::{files, packet, slot};

use crate::ending::ExitFile;
use crate::finish::{self, Finish};
use crate::holding::Holding;
use crate::members::Set;
use crate::memory::Kills;
use crate::nesting::{self, own_pid};
use crate::output::Output;
use crate::shim::{Plan, Shim};
use crate::stopping::Stopping;
use crate::sys::{self, Errno};
use crate::worker::{self, Failure, Group, Streams, Worker};

/// Half a second in all: far longer than a look takes, far shorter than another run's shim lives.
const LOCK_TRIES: usize = 50;
const LOCK_PAUSE_MS: c_int = 10;

/// What the starter handed over.
struct Handed {
    spec: Spec,
    memory: File,
    stdin: Option<OwnedFd>,
    image: Option<OwnedFd>,
    stdin_writer: Option<OwnedFd>,
}

/// The files of the run directory that are needed for as long as the shim lives.
struct RunFiles {
    lock: File,
    stop: File,
    exit: ExitFile,
    output: Output,
}

/// The streams on both sides. The worker's ends are closed once it has its copies.
struct Wires {
    worker: Vec<OwnedFd>,
    /// The master of the pseudo-terminal.
    master: Option<OwnedFd>,
    /// Kept open: a terminal without any user reports its end again and again.
    slave: Option<OwnedFd>,
}

/// Runs the shim; the process's exit code.
pub(crate) fn start() -> c_int {
    let Ok(control) = sys::inherited(CONTROL_FD) else {
        return 64;
    };
    match prepare(&control) {
        Ok(mut shim) => {
            sys::set_nonblocking(control.as_fd());
            shim.control = Some(control);
            shim.run()
        }
        Err(Failure { stage, errno }) => {
            let failed = FromShim::StartFailed { stage, errno };
            let _ = packet::send(control.as_fd(), &failed.encode(), &[]);
            1
        }
    }
}

fn prepare(control: &OwnedFd) -> Result<Shim, Failure> {
    let mut handed = receive(control).map_err(Failure::at(Stage::Specification))?;
    let wanted = [libc::SIGCHLD, libc::SIGUSR1, libc::SIGTERM];
    let signals = sys::hold_signals(&wanted).map_err(Failure::at(Stage::Fork))?;
    let start_directory = File::open(".").ok();
    std::env::set_current_dir(worker::path(&handed.spec.run_directory)).map_err(|error| Failure {
        stage: Stage::Lock,
        errno: sys::number(&error),
    })?;
    let mut files = open_files(&handed.spec)?;
    sys::become_subreaper();
    // Before anything of ours exists that a stop of the enclosing run could reach.
    nesting::register(&handed.spec.reference);
    let (held, wires, holding) = fork_contained(&mut handed, &mut files, start_directory)?;
    // Only now: the worker was to be born into the caller's session.
    sys::new_session();
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGPIPE] {
        sys::ignore_signal(signal);
    }
    announce(control, &held, holding.containment(), wires.master.as_ref())?;
    drop(wires.worker);
    drop(handed.stdin);
    files.exit.worker = held.pid;
    let group = if handed.spec.io == IoMode::InheritStdin {
        Group::Callers
    } else {
        Group::Own
    };
    let shim = Shim {
        control: None,
        signals,
        lock: files.lock,
        slave: wires.slave,
        master: wires.master,
        worker: Worker {
            pid: held.pid,
            pidfd: held.pidfd,
            group,
            end: None,
        },
        gate: Some(held.gate),
        errors: Some(held.errors),
        output: files.output,
        kills: Kills::around(held.pid),
        stopping: Stopping::new(files.stop, handed.spec.stop_by),
        set: Set::below(own_pid(), Spared::at(files::SPARED.as_ref()), holding),
        exit: files.exit,
        finish: (!handed.spec.finish.is_empty()).then(|| Finish::new(handed.memory, handed.image)),
        stdin_writer: handed.stdin_writer,
        plan: Plan {
            grace_ms: handed.spec.grace_ms,
            timeout_ms: handed.spec.timeout_ms,
            stop_by: handed.spec.stop_by,
            parent: handed.spec.parent,
        },
        progress: Default::default(),
    };
    drop(handed.spec);
    sys::release_memory();
    Ok(shim)
}

/// The first packet: the specification and its descriptors.
fn receive(control: &OwnedFd) -> Result<Handed, Errno> {
    let mut bytes = [0; PACKET_BYTES];
    let (length, descriptors) = packet::receive(control.as_fd(), &mut bytes).map_err(|error| sys::number(&error))?;
    let Ok(ToShim::Start(Passed {
        stdin,
        image,
        stdin_writer,
    })) = ToShim::decode(&bytes[..length])
    else {
        return Err(libc::EPROTO);
    };
    let mut descriptors = descriptors.into_iter();
    let memory = File::from(descriptors.next().ok_or(libc::EPROTO)?);
    let mut next = |present| {
        if present == Present::Yes {
            descriptors.next()
        } else {
            None
        }
    };
    let (stdin, image, stdin_writer) = (next(stdin), next(image), next(stdin_writer));
    let spec = finish::read_specification(&memory).ok_or(libc::EBADMSG)?;
    Ok(Handed {
        spec,
        memory,
        stdin,
        image,
        stdin_writer,
    })
}

fn open_files(spec: &Spec) -> Result<RunFiles, Failure> {
    let failed = |stage| {
        move |error: io::Error| Failure {
            stage,
            errno: sys::number(&error),
        }
    };
    let lock = open(files::LOCK).map_err(failed(Stage::Lock))?;
    take_lock(&lock).map_err(Failure::at(Stage::Lock))?;
    let output = Output::new(
        open_log(files::ORDER_LOG).map_err(failed(Stage::Logs))?,
        spec.log_limit_bytes,
    );
    // Made now: those who are to be spared only add to it.
    open(files::SPARED).map_err(failed(Stage::Reserve))?;
    let reserve = Failure::at(Stage::Reserve);
    let stop = open(files::STOP).map_err(failed(Stage::Reserve))?;
    sys::reserve(&stop, slot::BYTES * slot::COUNT).map_err(&reserve)?;
    let token = String::from_utf8_lossy(&spec.token).into_owned();
    let exit = ExitFile::reserve(token).map_err(&reserve)?;
    Ok(RunFiles {
        lock,
        stop,
        exit,
        output,
    })
}

/// Takes the lock that says that a shim lives. Somebody who looks whether one does holds it for a moment.
fn take_lock(lock: &File) -> Result<(), Errno> {
    let mut answer = sys::lock(lock);
    for _ in 0..LOCK_TRIES {
        match answer {
            Err(libc::EWOULDBLOCK) => sys::poll(&mut [], LOCK_PAUSE_MS),
            other => return other,
        }
        answer = sys::lock(lock);
    }
    answer
}

/// Opens for reading and writing; keeps what is there: a request to stop may have come first.
fn open(name: &str) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(name)
}

fn open_log(name: &str) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(name)
}

/// Makes what is to hold the set and, in it, the worker. After a failure nothing of either is left.
fn fork_contained(
    handed: &mut Handed,
    files: &mut RunFiles,
    start_directory: Option<File>,
) -> Result<(worker::Held, Wires, Holding), Failure> {
    let forked = Holding::make(&handed.spec).and_then(|mut holding| {
        let (held, wires) = fork_worker(handed, files, start_directory, &mut holding)?;
        Ok((held, wires, holding))
    });
    if forked.is_err() {
        files.exit.release();
    }
    forked
}

/// Makes the streams and the worker.
fn fork_worker(
    handed: &mut Handed,
    files: &mut RunFiles,
    start_directory: Option<File>,
    holding: &mut Holding,
) -> Result<(worker::Held, Wires), Failure> {
    let null = File::open("/dev/null").map_err(|error| Failure {
        stage: Stage::Fork,
        errno: sys::number(&error),
    })?;
    let mut wires = Wires {
        worker: Vec::new(),
        master: None,
        slave: None,
    };
    let streams = if handed.spec.io == IoMode::Pty {
        wire_terminal(&handed.spec, &mut files.output, &mut wires)?
    } else {
        let stdout = wire_pipe(Stream::Stdout, files::STDOUT_LOG, &mut files.output, &mut wires)?;
        let stderr = wire_pipe(Stream::Stderr, files::STDERR_LOG, &mut files.output, &mut wires)?;
        Streams {
            stdin: worker::raw_or(handed.stdin.as_ref(), &null),
            stdout,
            stderr,
        }
    };
    let held = worker::fork_held(&handed.spec, &streams, start_directory, holding)?;
    Ok((held, wires))
}

fn wire_pipe(stream: Stream, log: &str, output: &mut Output, wires: &mut Wires) -> Result<c_int, Failure> {
    let log = open_log(log).map_err(|error| Failure {
        stage: Stage::Logs,
        errno: sys::number(&error),
    })?;
    let (reader, writer) = sys::pipe().map_err(Failure::at(Stage::Fork))?;
    let number = writer.as_raw_fd();
    output.add(stream, reader, log);
    wires.worker.push(writer);
    Ok(number)
}

fn wire_terminal(spec: &Spec, output: &mut Output, wires: &mut Wires) -> Result<Streams, Failure> {
    let log = open_log(files::OUTPUT_LOG).map_err(|error| Failure {
        stage: Stage::Logs,
        errno: sys::number(&error),
    })?;
    let terminal = Failure::at(Stage::Terminal);
    let (master, slave) = sys::open_terminal(spec.window).map_err(&terminal)?;
    let reader = master.try_clone().map_err(|error| terminal(sys::number(&error)))?;
    let number = slave.as_raw_fd();
    output.add(Stream::Output, reader, log);
    wires.master = Some(master);
    wires.slave = Some(slave);
    Ok(Streams {
        stdin: number,
        stdout: number,
        stderr: number,
    })
}

/// Tells the starter who waits at the gate. Descriptors, not numbers, say who is meant.
fn announce(
    control: &OwnedFd,
    held: &worker::Held,
    containment: Containment,
    master: Option<&OwnedFd>,
) -> Result<(), Failure> {
    let own = sys::open_pidfd(own_pid()).map_err(Failure::at(Stage::Fork))?;
    let mut descriptors = vec![held.pidfd.as_raw_fd(), own.as_raw_fd()];
    descriptors.extend(master.map(|master| master.as_raw_fd()));
    let message = FromShim::Held {
        worker: held.pid,
        shim: own_pid(),
        containment,
    };
    // A starter that is gone closes the gate a moment later; the loop sees that.
    let _ = packet::send(control.as_fd(), &message.encode(), &descriptors);
    Ok(())
}

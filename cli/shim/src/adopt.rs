//! Adoption: a set whose shim was killed gets another shim, which takes the lock of the run directory, watches the worker
//! through a descriptor and does all that the first one would have done.
//!
//! What only a parent has is lost: processor time and memory of the worker, and the word of the kernel that nobody is
//! left. The logs go on where the program's pipes can be opened again. If we die half-way nothing has changed: the next
//! shim takes the lock.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

use runwarden_shim::message::{FromShim, PACKET_BYTES, Stage, Stream, ToShim};
use runwarden_shim::notes::{self, Began, Noted};
use runwarden_shim::spared::Spared;
use runwarden_shim::spec::{Adopt, Containment, Spec};
use runwarden_shim::{clock, files, packet};

use crate::cgroup::Cgroup;
use crate::ending::{ExitFile, Parent};
use crate::finish::Finish;
use crate::holding::Holding;
use crate::members::Set;
use crate::nesting::{self, own_pid};
use crate::output::Output;
use crate::shim::{Plan, Progress, Shim};
use crate::start::{self, Handed};
use crate::stopping::Stopping;
use crate::strangers::Strangers;
use crate::sys;
use crate::witness::Witness;
use crate::worker::{self, Failure, Group, Worker};

/// Takes the set over, once the starter has recorded who does. Fails with [`Stage::Lock`] when somebody else has.
pub(crate) fn prepare(control: &OwnedFd, handed: Handed, adopt: Adopt) -> Result<Shim, Failure> {
    let signals = start::hold_signals()?;
    start::enter(&handed.spec)?;
    let failed = |stage| {
        move |error: io::Error| Failure {
            stage,
            errno: sys::number(&error),
        }
    };
    let lock = start::open(files::LOCK).map_err(failed(Stage::Lock))?;
    start::take_lock(&lock).map_err(Failure::at(Stage::Lock))?;
    let noted = notes::read(&lock);
    let stop = start::open(files::STOP).map_err(failed(Stage::Reserve))?;
    let mut exit = ExitFile::reserve(String::from_utf8_lossy(&handed.spec.token).into_owned())
        .map_err(Failure::at(Stage::Reserve))?;
    (exit.worker, exit.parent) = (adopt.worker, Parent::Another);
    exit.keep();
    nesting::register(&handed.spec.reference);
    start::leave_session();
    let copy = handed.worker.as_ref().and_then(|worker| worker.try_clone().ok());
    let strangers = Strangers::new(copy, adopt, &handed.spec.token);
    let mut set = Set::adopted(Spared::at(files::SPARED.as_ref()), holding(&handed.spec), strangers);
    let output = reopen(&handed.spec, noted, &mut set).map_err(failed(Stage::Logs))?;
    announce(control, &set)?;
    let mut stopping = Stopping::new(stop, handed.spec.stop_by);
    stopping.reread();
    let shim = Shim {
        control: None,
        signals,
        lock,
        slave: None,
        master: None,
        worker: Worker {
            pid: adopt.worker,
            pidfd: handed.worker,
            group: Group::Own,
            end: None,
        },
        gate: None,
        errors: None,
        output,
        kills: None,
        stopping,
        set,
        exit,
        finish: (!handed.spec.finish.is_empty()).then(|| Finish::new(handed.memory, handed.image)),
        stdin_writer: None,
        adoption: Some(Witness::default()),
        plan: Plan {
            grace_ms: handed.spec.grace_ms,
            timeout_ms: handed.spec.timeout_ms,
            stop_by: handed.spec.stop_by,
            parent: handed.spec.parent,
        },
        progress: progress(noted, adopt),
    };
    sys::release_memory();
    Ok(shim)
}

/// What the first shim and the worker noted: a worker that never got through its gate executed nothing.
fn progress(noted: Option<Noted>, adopt: Adopt) -> Progress {
    let failure = noted.and_then(|noted| match (noted.began, noted.failed) {
        (_, Some((stage, errno))) => Some(Failure { stage, errno }),
        (None, None) => Some(Failure {
            stage: Stage::Gate,
            errno: 0,
        }),
        (Some(_), None) => None,
    });
    let started = noted.and_then(|noted| noted.began).unwrap_or_else(|| {
        let now = Began::now();
        let age_ms = clock::epoch_ms().saturating_sub(adopt.recorded_at_ms);
        Began {
            epoch_ms: adopt.recorded_at_ms,
            boottime_ms: now.boottime_ms.saturating_sub(age_ms),
            monotonic_ms: now.monotonic_ms.saturating_sub(age_ms),
        }
    });
    Progress::adopted(started, failure)
}

/// The set's cgroup, if it has one still.
fn holding(spec: &Spec) -> Holding {
    let group = spec
        .cgroup
        .as_ref()
        .map(|group| Cgroup::adopt(worker::path(&group.path)));
    match group {
        Some(Ok(group)) => Holding::Cgroup(group),
        Some(Err(_)) | None => Holding::Nothing,
    }
}

/// The logs, with the program's pipes as far as a member still holds their other ends. A terminal went with its shim.
fn reopen(spec: &Spec, noted: Option<Noted>, set: &mut Set) -> io::Result<Output> {
    let mut output = Output::new(start::open_log(files::ORDER_LOG)?, spec.log_limit_bytes);
    let pipes = noted.map_or([0; 2], |noted| noted.pipes);
    let members = set.members();
    for (stream, inode) in [Stream::Stdout, Stream::Stderr].into_iter().zip(pipes) {
        let mut sources = members.iter().filter_map(|member| pipe_of(member.pid, inode));
        if let Some(source) = sources.next() {
            output.add(stream, source.into(), start::open_log(start::log_of(stream))?);
        }
    }
    output.forget_reader();
    Ok(output)
}

/// The reading end of a pipe that a process holds.
fn pipe_of(pid: i32, inode: u64) -> Option<File> {
    let name = format!("pipe:[{inode}]");
    let mut entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let held =
        entries.find(|entry| fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == name.as_str()))?;
    let source = File::open(held.path()).ok()?;
    // The descriptor may have changed hands since its name was read.
    (source.metadata().ok()?.ino() == inode).then_some(source)
}

/// Says who takes over, and waits until that is recorded.
fn announce(control: &OwnedFd, set: &Set) -> Result<(), Failure> {
    let own = sys::open_pidfd(own_pid()).map_err(Failure::at(Stage::Fork))?;
    let message = FromShim::Held {
        worker: 0,
        shim: own_pid(),
        containment: if set.has_cgroup() {
            Containment::Cgroup
        } else {
            Containment::Subreaper
        },
    };
    let closed = Failure {
        stage: Stage::Gate,
        errno: 0,
    };
    packet::send(control.as_fd(), &message.encode(), &[own.as_raw_fd()]).map_err(|_| closed)?;
    let mut bytes = [0; PACKET_BYTES];
    loop {
        match packet::receive(control.as_fd(), &mut bytes) {
            Ok((length @ 1.., _)) if ToShim::decode(&bytes[..length]) == Ok(ToShim::Go) => return Ok(()),
            Ok((1.., _)) => {}
            Ok((0, _)) | Err(_) => return Err(closed),
        }
    }
}

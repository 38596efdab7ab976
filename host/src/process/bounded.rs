//! A piece of work done by a program of ours that the system ends when it takes too much.
//!
//! Threads cannot be ended and memory cannot be taken back from them, so work whose cost a stranger decides is done by
//! a process. It bounds itself before it looks at its input ([`bound_self`]); whoever started it bounds the time on the
//! clock. If we die meanwhile the program ends with us, at the latest at its bound: it writes nothing but its answer.

use std::ffi::OsString;
use std::io::{Read as _, Seek as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

use super::spawn::memory_file;
use super::{PidFd, ProcessError};

/// How bounded work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundedEnd {
    /// By itself, with this code and this answer.
    Exited {
        /// Its exit code.
        code: i32,
        /// What it wrote to its standard output.
        answer: Vec<u8>,
    },
    /// At its bound of processor time, or at the bound on the clock.
    OutOfTime,
    /// It could get no more memory, of its heap or of its stack: a program of ours aborts then.
    OutOfMemory,
    /// By another signal.
    Died(i32),
}

/// Runs `program` with `arguments` on `input` and gives what it answered; blocks, at most for `wall` on the clock.
///
/// Input and answer are files in memory: neither side ever waits for the other to read. The program's environment is
/// empty but for `variables`, its standard error is dropped.
///
/// # Errors
/// The program cannot be started or watched.
pub fn run_bounded(
    (program, arguments): (&Path, &[OsString]),
    variables: &[(&str, &str)],
    input: &[u8],
    wall: Duration,
) -> Result<BoundedEnd, ProcessError> {
    let (mut input, mut answer) = (memory_file(input)?, memory_file(&[])?);
    input.rewind().map_err(ProcessError::system("fill a memory file"))?;
    let written = answer
        .try_clone()
        .map_err(ProcessError::system("share a memory file"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(variables.iter().copied());
    command.stdin(input).stdout(written).stderr(Stdio::null());
    let mut child = command.spawn().map_err(ProcessError::file("start", program))?;
    let status = match ended_within(&mut child, wall) {
        Ok(Some(status)) => status,
        unfinished => {
            end(&mut child);
            return unfinished.map(|_| BoundedEnd::OutOfTime);
        }
    };
    if let Some(code) = status.code() {
        let mut bytes = Vec::new();
        answer.rewind().map_err(ProcessError::system("read a memory file"))?;
        answer
            .read_to_end(&mut bytes)
            .map_err(ProcessError::system("read a memory file"))?;
        return Ok(BoundedEnd::Exited { code, answer: bytes });
    }
    let signal = status.signal().unwrap_or_default();
    Ok(match Signal::from_named_raw(signal) {
        Some(Signal::XCPU) => BoundedEnd::OutOfTime,
        Some(Signal::ABORT) => BoundedEnd::OutOfMemory,
        _ => BoundedEnd::Died(signal),
    })
}

/// Bounds this process for good: so much processor time, rounded up to seconds, so much memory of its own, no core file,
/// and its end with the thread that started it.
///
/// Memory is what it may write to, not the addresses it reserves: those grow with the number of processors.
///
/// # Errors
/// The system admits no such bound.
pub fn bound_self(processor: Duration, memory_bytes: u64) -> Result<(), ProcessError> {
    let bound = |resource, value| {
        let limit = Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        setrlimit(resource, limit).map_err(ProcessError::system("bound this process"))
    };
    let seconds = processor.as_millis().div_ceil(1_000);
    let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(ProcessError::system("end with the starter"))?;
    bound(Resource::Core, 0)?;
    bound(Resource::Data, memory_bytes)?;
    // The signal that says why comes at the first number, the one that cannot be caught at the second.
    let limit = Rlimit {
        current: Some(seconds),
        maximum: Some(seconds.saturating_add(1)),
    };
    setrlimit(Resource::Cpu, limit).map_err(ProcessError::system("bound this process"))
}

/// How a child ended, if it did within this time.
fn ended_within(child: &mut Child, wall: Duration) -> Result<Option<ExitStatus>, ProcessError> {
    let watched = PidFd::open(child.id().cast_signed()).map_err(ProcessError::system("watch a process"))?;
    if !watched.wait_for_exit(wall)? {
        return Ok(None);
    }
    child
        .wait()
        .map(Some)
        .map_err(ProcessError::system("wait for a process"))
}

/// Ends a child that is not waited for yet. What fails here has failed because it has ended.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

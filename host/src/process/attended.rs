//! A program that is attended until it ends or its time is over; in the second case nothing it started is left.
//!
//! The program is made the reaper of what it starts: whoever loses its parent becomes the program's own child, and so all
//! of it is found by descent as long as the program lives, whatever session, group or environment it moved to. It lives
//! when the time is over: it is stopped first, what is below it is killed until a look finds nobody, then it is killed
//! itself. What a program that ended by itself leaves running is its own affair. If we die the program is
//! killed with us.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Signal, getpid, set_child_subreaper, set_parent_process_death_signal, setsid};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio::time::{Instant, timeout, timeout_at};

use super::exit::Survivor;
use super::spawn::memory_file;
use super::unheld::{TOKEN_VARIABLE, UnheldSet};
use super::{PidFd, ProcessError};

/// How much of what a program writes is kept: the end of it.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// How long the killing of a set may take, after the time of its program.
const KILL_WITHIN: Duration = Duration::from_secs(2);
/// How long a program that was killed may take to be reaped.
const REAP_WITHIN: Duration = Duration::from_millis(500);

/// What is started, without a shell.
#[derive(Clone)]
pub struct Program {
    /// The program, looked up in the `PATH` of its environment unless it has a slash, and its arguments.
    pub argv: Vec<OsString>,
    /// The complete environment; the token by which its processes are found is added.
    pub environment: Vec<(OsString, OsString)>,
    /// What it can read from its standard input; none: nothing.
    pub input: Option<Vec<u8>>,
}

/// How an attended program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttendedEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that was not ours.
    Died(i32),
    /// Its time was over, and everything it had started was killed, but for those that could not be.
    OutOfTime(Vec<Survivor>),
}

/// What came of an attended program.
#[derive(Debug)]
pub struct Attended {
    /// How it ended.
    pub end: AttendedEnd,
    /// The end of what it wrote to its standard output and error, at most [`OUTPUT_BYTES_MAX`].
    pub output: Vec<u8>,
}

/// Starts a program in `/` and in a session of its own, and waits for it, at most for `limit` and then 2.5 s more for the
/// killing. Whoever holds its streams is not waited for. Dropped, it kills what it started; so does the end of the thread
/// that polled it first.
///
/// # Errors
/// The program cannot be started or watched; nothing of it runs then.
pub async fn attend(program: &Program, limit: Duration) -> Result<Attended, ProcessError> {
    let until = Instant::now() + limit;
    let (reader, writer) = io::pipe().map_err(ProcessError::system("make a pipe"))?;
    let mut output = Output::new(reader)?;
    let token = random_token()?;
    let mut child = start(program, &token, &writer)?;
    drop(writer);
    let number = child.id().map_or(0, u32::cast_signed);
    let worker = PidFd::open(number).map_err(ProcessError::system("watch a process"))?;
    let mut set = Unattended(Some(UnheldSet::led_by(worker, &token)));
    let end = match timeout_at(until, output.until_end(&mut child)).await {
        Ok(status) => {
            set.0 = None;
            let status = status.map_err(ProcessError::system("wait for a process"))?;
            ended(status)
        }
        Err(_) => {
            let killing = tokio::task::spawn_blocking(move || set.end()).await;
            let survivors = killing.map_err(ProcessError::system("kill what a program started"))?;
            // A process that the kernel does not let go of is reaped later, by the runtime.
            let _ = timeout(REAP_WITHIN, child.wait()).await;
            AttendedEnd::OutOfTime(survivors)
        }
    };
    Ok(Attended {
        end,
        output: output.rest(),
    })
}

fn ended(status: ExitStatus) -> AttendedEnd {
    match status.code() {
        Some(code) => AttendedEnd::Exited(code),
        None => AttendedEnd::Died(status.signal().unwrap_or_default()),
    }
}

fn start(program: &Program, token: &str, writer: &PipeWriter) -> Result<Child, ProcessError> {
    let share = || writer.try_clone().map_err(ProcessError::system("copy a pipe"));
    let (name, arguments) = program.argv.split_first().ok_or_else(|| ProcessError::InvalidCommand {
        what: "the program".to_owned(),
        why: "is empty",
    })?;
    let mut command = std::process::Command::new(name);
    command.args(arguments).current_dir("/").env_clear();
    command.envs(program.environment.iter().map(|(name, value)| (name, value)));
    command.env(TOKEN_VARIABLE, token);
    command.stdin(input(program.input.as_deref())?);
    command.stdout(share()?).stderr(share()?);
    let prepare = || {
        setsid()?;
        set_child_subreaper(Some(getpid()))?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    };
    // SAFETY: four system calls, which are async-signal-safe; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(prepare) };
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    command.spawn().map_err(ProcessError::file("start", name))
}

/// A file in memory, so that nobody waits for a program that does not read.
fn input(bytes: Option<&[u8]>) -> Result<Stdio, ProcessError> {
    let Some(bytes) = bytes else { return Ok(Stdio::null()) };
    let mut memory = memory_file(bytes)?;
    memory.rewind().map_err(ProcessError::system("fill a memory file"))?;
    Ok(Stdio::from(memory))
}

/// What no other program's environment has.
fn random_token() -> Result<String, ProcessError> {
    let mut bytes = [0; 16];
    let filled = getrandom::fill(&mut bytes).map_err(io::Error::other);
    filled.map_err(ProcessError::system("read entropy"))?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

/// A set that nobody attends any more once this is dropped: it is killed then.
struct Unattended(Option<UnheldSet>);

impl Unattended {
    /// Kills everything; who is left after [`KILL_WITHIN`]. Blocks.
    fn end(mut self) -> Vec<Survivor> {
        let set = self.0.take();
        set.map_or_else(Vec::new, |mut set| set.end_within(KILL_WITHIN))
    }
}

impl Drop for Unattended {
    fn drop(&mut self) {
        if let Some(set) = &mut self.0 {
            set.end_within(KILL_WITHIN);
        }
    }
}

/// What a program writes, its end kept.
struct Output {
    receiver: Receiver,
    /// The same pipe, read when the program has ended and nothing is waited for.
    remainder: File,
    state: Stream,
    kept: Vec<u8>,
}

/// Whether more may come.
#[derive(PartialEq, Eq)]
enum Stream {
    Open,
    Closed,
}

impl Output {
    fn new(reader: PipeReader) -> Result<Self, ProcessError> {
        let share = ProcessError::system("share a pipe");
        let descriptor = OwnedFd::from(reader);
        let remainder = File::from(descriptor.try_clone().map_err(share)?);
        Ok(Self {
            receiver: Receiver::from_owned_fd(descriptor).map_err(ProcessError::system("watch a pipe"))?,
            remainder,
            state: Stream::Open,
            kept: Vec::new(),
        })
    }

    /// Reads until the program has ended, whoever else holds the pipe.
    async fn until_end(&mut self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut part = vec![0; OUTPUT_BYTES_MAX];
        loop {
            tokio::select! {
                biased;
                status = child.wait() => return status,
                read = self.receiver.read(&mut part), if self.state == Stream::Open => match read {
                    Ok(length) if length > 0 => self.keep(&part[..length]),
                    Ok(_) | Err(_) => self.state = Stream::Closed,
                },
            }
        }
    }

    /// With what is in the pipe and was not read.
    fn rest(mut self) -> Vec<u8> {
        let mut part = vec![0; OUTPUT_BYTES_MAX];
        let mut left = OUTPUT_BYTES_MAX;
        while left > 0 {
            match self.remainder.read(&mut part[..left]) {
                Ok(0) => break,
                Ok(length) => {
                    self.keep(&part[..length]);
                    left -= length;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.kept
    }

    fn keep(&mut self, part: &[u8]) {
        self.kept.extend_from_slice(part);
        let surplus = self.kept.len().saturating_sub(OUTPUT_BYTES_MAX);
        self.kept.drain(..surplus);
    }
}

#[cfg(test)]
mod tests;

//! A program that is attended until it ends or its time is over; in the second case nothing it started is left.
//!
//! The program is made the reaper of what it starts ([`super::leader`]): whoever loses its parent becomes the program's own child, and so all
//! of it is found by descent as long as the program lives, whatever session, group or environment it moved to. It lives
//! when the time is over: it is stopped first, what is below it is killed until a look finds nobody, then it is killed
//! itself. What a program that ended by itself leaves running is its own affair. If we die the program is
//! killed with us.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::thread;
use std::time::Duration;

use runwarden_shim::executable::Executable;
use rustix::process::WaitIdStatus;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, timeout_at};

use super::exit::Survivor;
use super::leader::start_leader;
use super::spawn::memory_file;
use super::unheld::{TOKEN_VARIABLE, UnheldSet};
use super::{PidFd, ProcessError, Signal, signal};

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
    let mut leader = Leader::start(program, &writer)?;
    drop(writer);
    let watch = watch(&leader.process).map_err(ProcessError::system("watch a process"))?;
    let end = match timeout_at(until, output.until_end(&watch)).await {
        Ok(ended) => {
            let status = ended.and_then(|()| leader.take_end());
            ended_by(&status.map_err(ProcessError::system("wait for a process"))?)
        }
        Err(_) => {
            let killing = tokio::task::spawn_blocking(move || leader.end()).await;
            AttendedEnd::OutOfTime(killing.map_err(ProcessError::system("kill what a program started"))?)
        }
    };
    Ok(Attended {
        end,
        output: output.rest(),
    })
}

fn watch(process: &PidFd) -> io::Result<AsyncFd<PidFd>> {
    let process = process.try_clone()?;
    // SAFETY: `PidFd` owns its descriptor, and neither closes nor replaces it while `AsyncFd` has it.
    Ok(unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) }?)
}

fn ended_by(status: &WaitIdStatus) -> AttendedEnd {
    match status.exit_status() {
        Some(code) => AttendedEnd::Exited(code),
        None => AttendedEnd::Died(status.terminating_signal().unwrap_or_default()),
    }
}

/// What is executed; none when no process can be given it.
fn executable(program: &Program, token: &str) -> Option<Executable> {
    let mut variables: BTreeMap<&OsStr, &OsStr> = BTreeMap::new();
    variables.extend(program.environment.iter().map(|(name, value)| (&**name, &**value)));
    variables.insert(TOKEN_VARIABLE.as_ref(), token.as_ref());
    let variable = |(name, value): (&OsStr, &OsStr)| [name.as_bytes(), b"=", value.as_bytes()].concat();
    let environment: Vec<_> = variables.into_iter().map(variable).collect();
    let argv: Vec<_> = program.argv.iter().map(|word| word.as_bytes().to_vec()).collect();
    Executable::new(&argv, &environment)
}

/// A file in memory, so that nobody waits for a program that does not read.
fn input(bytes: Option<&[u8]>) -> Result<File, ProcessError> {
    let Some(bytes) = bytes else {
        return File::open("/dev/null").map_err(ProcessError::file("open", "/dev/null"));
    };
    let mut memory = memory_file(bytes)?;
    memory.rewind().map_err(ProcessError::system("fill a memory file"))?;
    Ok(memory)
}

/// What no other program's environment has.
fn random_token() -> Result<String, ProcessError> {
    let mut bytes = [0; 16];
    let filled = getrandom::fill(&mut bytes).map_err(io::Error::other);
    filled.map_err(ProcessError::system("read entropy"))?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

/// A program whose end is not taken yet, and what it started. Dropped, all of it is killed.
struct Leader {
    process: PidFd,
    /// None when there is nothing to kill any more.
    set: Option<UnheldSet>,
}

impl Leader {
    fn start(program: &Program, writer: &PipeWriter) -> Result<Self, ProcessError> {
        let token = random_token()?;
        let executable = executable(program, &token).ok_or_else(|| ProcessError::InvalidCommand {
            what: "the program".to_owned(),
            why: "is empty, or a string has a NUL byte",
        })?;
        let input = input(program.input.as_deref())?;
        let name = program.argv.first().map(OsString::as_os_str).unwrap_or_default();
        let process = start_leader(&executable, input, writer).map_err(ProcessError::file("start", name))?;
        match process.try_clone() {
            Ok(worker) => Ok(Self {
                process,
                set: Some(UnheldSet::led_by(worker, &token)),
            }),
            Err(error) => {
                let _ = signal(&process, Signal::KILL).map(|_| process.reap());
                Err(ProcessError::system("watch a process")(error))
            }
        }
    }

    /// What the program ended with, once it has.
    fn take_end(&mut self) -> io::Result<WaitIdStatus> {
        self.set = None;
        self.process.reap()
    }

    /// Kills everything; who is left after [`KILL_WITHIN`]. Blocks.
    fn end(mut self) -> Vec<Survivor> {
        self.kill()
    }

    fn kill(&mut self) -> Vec<Survivor> {
        let Some(mut set) = self.set.take() else {
            return Vec::new();
        };
        let survivors = set.end_within(KILL_WITHIN);
        if self.process.wait_for_exit(REAP_WITHIN).unwrap_or(false) {
            let _ = self.process.reap(); // nobody asks how it ended
        } else if let Ok(process) = self.process.try_clone() {
            // The kernel does not let go of it: whoever waits for that does nothing else.
            let _ = thread::Builder::new().spawn(move || process.reap());
        }
        survivors
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a program writes, its end kept.
struct Output {
    receiver: Receiver,
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
        let receiver = Receiver::from_owned_fd(OwnedFd::from(reader));
        Ok(Self {
            receiver: receiver.map_err(ProcessError::system("watch a pipe"))?,
            state: Stream::Open,
            kept: Vec::new(),
        })
    }

    /// Reads until the program has ended, whoever else holds the pipe.
    async fn until_end(&mut self, program: &AsyncFd<PidFd>) -> io::Result<()> {
        loop {
            tokio::select! {
                biased;
                ended = program.readable() => return ended.map(drop),
                read = self.receiver.read_buf(&mut self.kept), if self.state == Stream::Open => match read {
                    // Not each time: what is kept moves.
                    Ok(length) if length > 0 => if self.kept.len() > 2 * OUTPUT_BYTES_MAX {
                        drop_beginning(&mut self.kept);
                    },
                    Ok(_) | Err(_) => self.state = Stream::Closed,
                },
            }
        }
    }

    /// With what is in the pipe and was not read.
    fn rest(mut self) -> Vec<u8> {
        // Nothing is waited for: whoever else holds the pipe may write more.
        if let Ok(descriptor) = self.receiver.into_nonblocking_fd() {
            let _ = File::from(descriptor)
                .take(OUTPUT_BYTES_MAX as u64)
                .read_to_end(&mut self.kept);
        }
        drop_beginning(&mut self.kept);
        self.kept
    }
}

fn drop_beginning(kept: &mut Vec<u8>) {
    let surplus = kept.len().saturating_sub(OUTPUT_BYTES_MAX);
    kept.drain(..surplus);
}

#[cfg(test)]
mod tests;

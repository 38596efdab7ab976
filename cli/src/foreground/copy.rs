//! Copies a run's logs to this process's own streams.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result};
use runwarden_host::process::{Control, ProcessError, RunDir, Stream};

/// Read and written at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Copies what is new in the logs.
#[derive(Debug)]
pub(crate) struct Copier {
    sources: Vec<Source>,
}

#[derive(Debug)]
struct Source {
    stream: Stream,
    path: std::path::PathBuf,
    log: Option<File>,
    offset: u64,
    /// What of it the shim was told.
    told: u64,
    /// Whoever read our stream is gone.
    closed: bool,
}

/// Far less than the least that a run keeps.
const TELL_EVERY_BYTES: u64 = 256 << 10;

/// Copied of a stream before signals and keys get their turn: a program may write faster than a terminal takes it.
const CHUNKS_A_TURN: usize = 16;

/// Whether all that is there was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    All,
    Part,
}

/// Whether whoever reads a stream of ours does so still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

impl Copier {
    pub(crate) fn new(directory: &RunDir) -> Self {
        let source = |stream| Source {
            stream,
            path: directory.log(stream),
            log: None,
            offset: 0,
            told: 0,
            closed: false,
        };
        Self {
            sources: [Stream::Output, Stream::Stdout, Stream::Stderr].map(source).into(),
        }
    }

    /// Copies all that is there now, however much it is; what descendants write meanwhile is not waited for.
    pub(crate) fn copy_rest(&mut self) -> Result<()> {
        for source in &mut self.sources {
            let end = match source.log()? {
                Some(log) => log.metadata().context("cannot read a log")?.len(),
                None => 0,
            };
            while !source.closed && source.offset < end {
                source.copy_new()?;
            }
        }
        Ok(())
    }

    /// Copies what is new, for one turn. A stream whose reader is gone is closed at the program too, so that it learns
    /// of it.
    pub(crate) fn copy_new(&mut self, control: Option<&Control>) -> Result<Copied> {
        let mut copied = Copied::All;
        for source in self.sources.iter_mut().filter(|source| !source.closed) {
            let (reader, part) = source.copy_new()?;
            if part == Copied::Part {
                copied = Copied::Part;
            }
            let Some(control) = control else { continue };
            // A shim that is gone has closed it, and drops nothing.
            let _ = match reader {
                Reader::Gone => control.close_stream(source.stream),
                Reader::There => source.tell(control),
            };
        }
        Ok(copied)
    }
}

impl Source {
    /// Tells the shim, now and then, what it may drop; of a stream that nobody looks at any more, everything.
    fn tell(&mut self, control: &Control) -> Result<(), ProcessError> {
        let seen = if self.closed { u64::MAX } else { self.offset };
        if seen - self.told < TELL_EVERY_BYTES {
            return Ok(());
        }
        control.seen(self.stream, seen)?;
        self.told = seen;
        Ok(())
    }

    fn copy_new(&mut self) -> Result<(Reader, Copied)> {
        let mut chunk = vec![0; CHUNK_BYTES];
        for _ in 0..CHUNKS_A_TURN {
            let offset = self.offset;
            let read = match self.log()? {
                Some(log) => log.read_at(&mut chunk, offset),
                None => return Ok((Reader::There, Copied::All)),
            };
            let length = read.with_context(|| format!("cannot read {}", self.path.display()))?;
            if length == 0 {
                return Ok((Reader::There, Copied::All));
            }
            let written = match self.stream {
                Stream::Output | Stream::Stdout => write(&mut std::io::stdout().lock(), &chunk[..length]),
                Stream::Stderr => write(&mut std::io::stderr().lock(), &chunk[..length]),
            };
            match written {
                Ok(()) => self.offset += u64::try_from(length).unwrap_or(0),
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    self.closed = true;
                    return Ok((Reader::Gone, Copied::All));
                }
                // The terminal went away: the hangup that is on its way decides what that means for the program.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                    self.closed = true;
                    return Ok((Reader::There, Copied::All));
                }
                Err(error) => return Err(error).context("cannot write the program's output"),
            }
        }
        Ok((Reader::There, Copied::Part))
    }

    fn log(&mut self) -> Result<Option<&File>> {
        if self.log.is_none() {
            match File::open(&self.path) {
                Ok(log) => self.log = Some(log),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("cannot open {}", self.path.display())),
            }
        }
        Ok(self.log.as_ref())
    }
}

fn write(to: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

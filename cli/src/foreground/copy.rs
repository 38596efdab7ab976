//! Copies a run's logs to this process's own streams.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result};
use runwarden_host::process::{Control, RunDir, Stream};

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
    /// Whoever read our stream is gone.
    closed: bool,
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
            closed: false,
        };
        Self {
            sources: [Stream::Output, Stream::Stdout, Stream::Stderr].map(source).into(),
        }
    }

    /// Copies all that is new. A stream whose reader is gone is closed at the program too, so that it learns of it.
    pub(crate) fn copy_new(&mut self, control: Option<&Control>) -> Result<()> {
        for source in self.sources.iter_mut().filter(|source| !source.closed) {
            let reader = source.copy_new()?;
            if let (Some(control), Reader::Gone) = (control, reader) {
                // A shim that is gone has closed it.
                let _ = control.close_stream(source.stream);
            }
        }
        Ok(())
    }
}

impl Source {
    fn copy_new(&mut self) -> Result<Reader> {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let offset = self.offset;
            let read = match self.log()? {
                Some(log) => log.read_at(&mut chunk, offset),
                None => return Ok(Reader::There),
            };
            let length = read.with_context(|| format!("cannot read {}", self.path.display()))?;
            if length == 0 {
                return Ok(Reader::There);
            }
            let written = match self.stream {
                Stream::Output | Stream::Stdout => write(&mut std::io::stdout().lock(), &chunk[..length]),
                Stream::Stderr => write(&mut std::io::stderr().lock(), &chunk[..length]),
            };
            match written {
                Ok(()) => self.offset += u64::try_from(length).unwrap_or(0),
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    self.closed = true;
                    return Ok(Reader::Gone);
                }
                // The terminal went away: the hangup that is on its way decides what that means for the program.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                    self.closed = true;
                    return Ok(Reader::There);
                }
                Err(error) => return Err(error).context("cannot write the program's output"),
            }
        }
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

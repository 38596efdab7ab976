//! A run directory: the files a run leaves, and the requests made of it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use runwarden_shim::message::Stream;
use runwarden_shim::notes::{self, Noted};
use runwarden_shim::{files, slot};
use rustix::fs::{FlockOperation, flock};

use super::exit::{ExitFile, ExitRecord};
use super::logs::{self, Segment};
use super::{ProcessError, Slot, tree};

/// A killer that was itself stopped may hold the stop file's lock; nobody waits longer for it.
const LOCK_WAIT: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// A run's directory, 0700, with files that are 0600.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

/// Whether a shim holds its lock on a run directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShimLock {
    /// There has never been a shim here.
    Absent,
    /// A shim lives.
    Held,
    /// No shim lives: positive evidence, on a local file system and in the same boot, across namespaces.
    Free,
}

impl RunDir {
    /// Creates the directory and its `artifacts/`; one that exists is kept.
    ///
    /// # Errors
    /// When a directory cannot be made.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, ProcessError> {
        let run = Self::at(path);
        for directory in [run.path.clone(), run.artifacts()] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
            made.map_err(ProcessError::file("create", directory))?;
        }
        Ok(run)
    }

    /// Names a directory that may or may not exist.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the program may leave evidence.
    #[must_use]
    pub fn artifacts(&self) -> PathBuf {
        self.path.join(files::ARTIFACTS)
    }

    /// The log of a stream.
    #[must_use]
    pub fn log(&self, stream: Stream) -> PathBuf {
        self.path.join(match stream {
            Stream::Output => files::OUTPUT_LOG,
            Stream::Stdout => files::STDOUT_LOG,
            Stream::Stderr => files::STDERR_LOG,
        })
    }

    /// The output of the finishing command.
    #[must_use]
    pub fn finish_log(&self) -> PathBuf {
        self.path.join(files::FINISH_LOG)
    }

    /// Writes `run.json`, whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_run(&self, content: &[u8]) -> Result<(), ProcessError> {
        write_whole(&self.path, files::RUN, content, 0o600).map(drop)
    }

    /// Reads how the run ended. A record of another attempt is never this run's.
    ///
    /// # Errors
    /// When the file cannot be read or is not a record.
    pub fn read_exit(&self, attempt_token: &str) -> Result<ExitFile, ProcessError> {
        let path = self.path.join(files::EXIT);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ExitFile::Absent),
            Err(error) => return Err(ProcessError::file("read", path)(error)),
        };
        let record: ExitRecord =
            serde_json::from_slice(&text).map_err(|source| ProcessError::NotARecord { path, source })?;
        Ok(if record.token == attempt_token {
            ExitFile::Recorded(Box::new(record))
        } else {
            ExitFile::OtherAttempt
        })
    }

    /// Writes how the run ended, in place of a shim that is gone; whole or not at all, durable when it returns.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_exit(&self, record: &ExitRecord) -> Result<(), ProcessError> {
        let text = serde_json::to_vec(record).expect("a record is plain data");
        write_whole(&self.path, files::EXIT, &text, 0o600).map(drop)
    }

    /// Looks whether a shim lives. Takes the lock for a moment; a shim that starts meanwhile tries again.
    ///
    /// # Errors
    /// When the lock file exists and cannot be tried.
    pub fn shim_lock(&self) -> Result<ShimLock, ProcessError> {
        let path = self.path.join(files::LOCK);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ShimLock::Absent),
            Err(error) => return Err(ProcessError::file("open", path)(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(ShimLock::Free),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(ShimLock::Held),
            Err(errno) => Err(ProcessError::file("lock", path)(errno.into())),
        }
    }

    /// What shim and worker noted of the attempt; none where nobody noted anything.
    #[must_use]
    pub fn noted(&self) -> Option<Noted> {
        notes::read(&File::open(self.path.join(files::LOCK)).ok()?)
    }

    /// The same, waiting while a shim that saw its set end writes its last: at most so long.
    ///
    /// # Errors
    /// As [`RunDir::shim_lock`].
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing tells when a lock with a bound is free"
    )]
    pub fn shim_lock_within(&self, at_most: Duration) -> Result<ShimLock, ProcessError> {
        let until = Instant::now() + at_most;
        loop {
            match self.shim_lock()? {
                ShimLock::Held if Instant::now() < until => std::thread::sleep(LOCK_PAUSE),
                seen => return Ok(seen),
            }
        }
    }

    /// What the logs take on disk, in bytes: a log with a hole takes less than it is long.
    #[must_use]
    pub fn logs_bytes(&self) -> u64 {
        let found = self
            .log_paths()
            .into_iter()
            .filter_map(|path| fs::symlink_metadata(path).ok());
        found.map(|found| found.blocks() * tree::BLOCK_BYTES).sum()
    }

    /// Removes the logs; what else the run left stays.
    ///
    /// # Errors
    /// When one exists and cannot be removed.
    pub fn remove_logs(&self) -> Result<(), ProcessError> {
        for path in self.log_paths() {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(ProcessError::file("remove", path)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// The logs of the program, and last the one that puts them in order.
    fn log_paths(&self) -> Vec<PathBuf> {
        let streams = [Stream::Output, Stream::Stdout, Stream::Stderr].map(|stream| self.log(stream));
        streams.into_iter().chain([self.path.join(files::ORDER_LOG)]).collect()
    }

    /// Writes a request to stop into the first free slot, durably; which slot. With all slots taken the last of them
    /// is replaced: the first request stays, and an earlier SIGKILL is never lost because the shim keeps the earliest.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append_stop(&self, slot: &Slot) -> Result<usize, ProcessError> {
        let path = self.path.join(files::STOP);
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let file = options.map_err(ProcessError::file("open", &path))?;
        let lock = lock_within(&file, LOCK_WAIT);
        let write = || -> io::Result<usize> {
            let content = fs::read(&path)?;
            let free = (0..slot::SHIM_FIRST).find(|index| slot::at(&content, *index).is_none());
            let index = free.unwrap_or(slot::SHIM_FIRST - 1);
            file.write_all_at(&slot.padded(), (index * slot::BYTES) as u64)?;
            file.sync_data()?;
            Ok(index)
        };
        let index = write().map_err(ProcessError::file("write", &path));
        // The lock goes with the file. Without it two killers may share a slot; a kill matters more than its note.
        let (Ok(()) | Err(_)) = lock;
        index
    }

    /// The requests to stop that were made, with their slots.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn stop_requests(&self) -> Result<Vec<(usize, Slot)>, ProcessError> {
        let path = self.path.join(files::STOP);
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ProcessError::file("read", path)(error)),
        };
        Ok((0..slot::COUNT)
            .filter_map(|index| Some((index, slot::at(&content, index)?)))
            .collect())
    }

    /// Removes what an earlier attempt left that would speak for the next one: its requests and its end. The logs
    /// stay. Only while no shim lives and nobody can have asked for the next attempt's stop yet.
    ///
    /// # Errors
    /// When a file exists and cannot be removed.
    pub fn begin_attempt(&self) -> Result<(), ProcessError> {
        for name in [files::STOP, files::EXIT] {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(ProcessError::file("remove", path)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// The logs in order of arrival. Every byte that is or was there is in exactly one segment.
    ///
    /// # Errors
    /// When the order log exists and cannot be read.
    pub fn segments(&self) -> Result<Vec<Segment>, ProcessError> {
        let path = self.path.join(files::ORDER_LOG);
        // Lengths after the order: a byte that arrives in between belongs to the last segment of its stream.
        let order = match logs::read_order(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            other => other.map_err(ProcessError::file("read", path))?,
        };
        let segments = logs::segments(&order, |stream| {
            fs::metadata(self.log(stream)).map_or(0, |log| log.len())
        });
        Ok(logs::mark(segments, |stream| {
            logs::dropped(&File::open(self.log(stream)).ok()?)
        }))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "nothing tells when a lock with a bound is free"
)]
fn lock_within(file: &File, at_most: Duration) -> Result<(), rustix::io::Errno> {
    let until = Instant::now() + at_most;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(LOCK_PAUSE),
            other => return other,
        }
    }
}

/// Writes a file under another name, makes it durable, and gives it its name.
pub(super) fn write_whole(directory: &Path, name: &str, content: &[u8], mode: u32) -> Result<PathBuf, ProcessError> {
    let path = directory.join(name);
    // Two threads may write the same file at once.
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let temporary = directory.join(format!(".{name}.{}.{number}.tmp", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode)
            .open(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&temporary, &path)?;
        File::open(directory)?.sync_all()
    };
    match write() {
        Ok(()) => Ok(path),
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            Err(ProcessError::file("write", path)(error))
        }
    }
}

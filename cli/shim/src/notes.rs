//! What a shim leaves for whoever has to take its place: three lines of [`LINE_BYTES`] bytes in the lock file.
//!
//! ```text
//! pipes 4711 4712              by the shim, before the worker is made
//! begun 1764450000000 81 81    by the worker, when it is through the gate and before the program is executed
//! failed 9 2                   by the worker, when the program could not be executed
//! ```
//!
//! The second line is what tells a program that exited with 0 from a worker that found its gate closed. Times are in
//! milliseconds: UTC, since boot, and since boot without suspension. A line appears whole: it is one write.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::clock;
use crate::message::Stage;

/// Length of a line, its newline included.
pub const LINE_BYTES: usize = 80;
/// Length of all of them: what is reserved for them.
pub const BYTES: usize = 3 * LINE_BYTES;

/// The lock file, to write notes into.
#[derive(Debug)]
pub struct Notes(File);

/// When the program began, on three clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Began {
    /// UTC.
    pub epoch_ms: u64,
    /// Since boot.
    pub boottime_ms: u64,
    /// Since boot, while the machine was awake.
    pub monotonic_ms: u64,
}

impl Began {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self {
            epoch_ms: clock::epoch_ms(),
            boottime_ms: clock::boottime_ms(),
            monotonic_ms: clock::monotonic_ms(),
        }
    }
}

/// The notes of an attempt, as they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// Inodes of the pipes the program writes to: standard output, standard error. 0 is none.
    pub pipes: [u64; 2],
    /// When the program began; none when its gate never opened.
    pub began: Option<Began>,
    /// The step at which it could not be executed, and why.
    pub failed: Option<(Stage, i32)>,
}

impl Notes {
    /// Begins with the file of a lock that is held: what an earlier attempt noted is gone.
    ///
    /// # Errors
    /// When the file cannot be cut.
    pub fn begin(lock: &File) -> io::Result<Self> {
        lock.set_len(0)?;
        lock.try_clone().map(Self)
    }

    /// The same notes, for the worker.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Notes the inodes of the pipes the program writes to: standard output, standard error; 0 is none.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn pipes(&self, [stdout, stderr]: [u64; 2]) -> io::Result<()> {
        self.write(0, &format!("pipes {stdout} {stderr}"))
    }

    /// Notes that the program begins now.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn began(&self, now: Began) -> io::Result<()> {
        let Began {
            epoch_ms,
            boottime_ms,
            monotonic_ms,
        } = now;
        self.write(1, &format!("begun {epoch_ms} {boottime_ms} {monotonic_ms}"))
    }

    /// Notes that the program could not be executed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn failed(&self, stage: Stage, errno: i32) -> io::Result<()> {
        self.write(2, &format!("failed {} {errno}", stage.code()))
    }

    fn write(&self, place: usize, text: &str) -> io::Result<()> {
        let line = format!("{text:<width$}\n", width = LINE_BYTES - 1);
        self.0.write_all_at(line.as_bytes(), (place * LINE_BYTES) as u64)
    }
}

/// Reads the notes in a lock file; none where nobody left any.
#[must_use]
pub fn read(lock: &File) -> Option<Noted> {
    let mut bytes = [0; BYTES];
    let mut length = 0;
    while let Ok(more @ 1..) = lock.read_at(&mut bytes[length..], length as u64) {
        length += more;
    }
    parse(&bytes[..length])
}

fn parse(bytes: &[u8]) -> Option<Noted> {
    let pipes = numbers::<2>(bytes, 0, "pipes")?;
    let began = numbers::<3>(bytes, 1, "begun").map(|[epoch_ms, boottime_ms, monotonic_ms]| Began {
        epoch_ms,
        boottime_ms,
        monotonic_ms,
    });
    let failed = numbers::<2>(bytes, 2, "failed").and_then(|[stage, errno]| {
        let stage = Stage::from_code(u8::try_from(stage).ok()?)?;
        Some((stage, i32::try_from(errno).ok()?))
    });
    Some(Noted { pipes, began, failed })
}

/// The numbers of a whole line.
fn numbers<const COUNT: usize>(bytes: &[u8], place: usize, word: &str) -> Option<[u64; COUNT]> {
    let line = bytes.get(place * LINE_BYTES..(place + 1) * LINE_BYTES)?;
    let mut words = std::str::from_utf8(line.strip_suffix(b"\n")?)
        .ok()?
        .split_ascii_whitespace();
    if words.next()? != word {
        return None;
    }
    let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

    use super::*;

    #[test]
    fn notes_read_as_they_were_written_and_a_new_attempt_begins_without_any() {
        let path = std::env::temp_dir().join(format!("runwarden-notes-{}", std::process::id()));
        let lock = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&lock), None, "an empty file holds no notes");
        let notes = Notes::begin(&lock).unwrap();
        notes.pipes([u64::MAX, 0]).unwrap();
        let mut expected = Noted {
            pipes: [u64::MAX, 0],
            began: None,
            failed: None,
        };
        assert_eq!(read(&lock), Some(expected));
        let began = Began {
            epoch_ms: u64::MAX,
            boottime_ms: u64::MAX,
            monotonic_ms: u64::MAX,
        };
        notes.began(began).unwrap();
        notes.failed(Stage::Exec, 2).unwrap();
        (expected.began, expected.failed) = (Some(began), Some((Stage::Exec, 2)));
        assert_eq!(read(&lock), Some(expected));
        Notes::begin(&lock).unwrap();
        assert_eq!(read(&lock), None);
    }

    #[test]
    fn half_a_line_is_no_note() {
        let line = format!("{:<width$}\n", "pipes 1 2", width = LINE_BYTES - 1);
        assert!(parse(line.as_bytes()).is_some());
        assert!(parse(&line.as_bytes()[..LINE_BYTES - 1]).is_none());
        assert!(parse(line.replace("pipes", "fifos").as_bytes()).is_none());
    }
}

//! Regular files that somebody else named: never waited for to be opened, never taken for what they are not.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// How often a file that was renamed away or removed while its lock was waited for is opened anew.
const REOPENS_MAX: usize = 8;

/// What became of a line.
#[derive(Debug)]
pub enum Appended {
    /// It is in the file, on the disk.
    Written,
    /// Nobody wanted it any more when its turn came; nothing was written.
    Unwanted,
    /// There is something else than a regular file.
    NotAFile,
}

/// Reads a regular file of at most this many bytes; blocks for the disk alone.
///
/// # Errors
/// It cannot be read, is longer, or is no regular file.
pub fn read_regular(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(bits(flags)).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(io::Error::other(format!("longer than {bytes_max} bytes"))),
        false => Ok(bytes),
    }
}

/// Appends one line, `line` without its end, to a file that is made if it is missing, for its owner alone. The lines of
/// all who append this way are whole: each is written under a lock of the file, what a writer that died left of its line
/// is ended first, and a line of which only a part fits is taken back. Blocks for the lock and for the disk.
///
/// `wanted` is asked once the lock is held.
///
/// # Errors
/// The file cannot be opened, locked, written or flushed; then the line may be asked for again.
pub fn append_line(path: &Path, line: &[u8], wanted: &dyn Fn() -> bool) -> io::Result<Appended> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    options.custom_flags(bits(flags));
    for _ in 0..REOPENS_MAX {
        let mut file = match options.open(path) {
            // A directory; a socket, or a pipe that nobody reads.
            Err(error) if error.kind() == ErrorKind::IsADirectory || is_no_device(&error) => {
                return Ok(Appended::NotAFile);
            }
            other => other?,
        };
        if !file.metadata()?.is_file() {
            return Ok(Appended::NotAFile);
        }
        file.lock()?;
        if !wanted() {
            return Ok(Appended::Unwanted);
        }
        if is_there(&file, path)? {
            append_locked(&mut file, path, line)?;
            return Ok(Appended::Written);
        }
    }
    Err(io::Error::other("the file is replaced again and again"))
}

/// Whether the path still leads to this very file.
fn is_there(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn append_locked(file: &mut File, path: &Path, line: &[u8]) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(line.len() + 2);
    if length > 0 && !ends_a_line(file, length)? {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(line);
    bytes.push(b'\n');
    let written = write_once(file, &bytes)?;
    if written < bytes.len() {
        // Taken back, unless somebody without the lock wrote behind it: whoever comes next ends what is left of it.
        if file.metadata()?.len() == length + written as u64 {
            file.set_len(length)?;
        }
        return Err(io::Error::new(ErrorKind::StorageFull, "only a part of the line fits"));
    }
    file.sync_all()?;
    // The first line makes the file's name durable, too, whoever made the file, and wherever a link leads.
    if length == 0
        && let Some(directory) = std::fs::canonicalize(path)?.parent()
    {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

fn write_once(file: &mut File, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match file.write(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn ends_a_line(file: &File, length: u64) -> io::Result<bool> {
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    Ok(last == *b"\n")
}

fn is_no_device(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV))
}

fn bits(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

#[cfg(test)]
mod tests;

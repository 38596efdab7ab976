//! Holes in logs: what was dropped from the middle of a file that may not grow for ever.
//!
//! The file system keeps the book: dropped bytes are a hole, every other byte stays at its offset, and a reader asks the
//! file itself what is missing. A log has no other holes, because it only ever grew at its end.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;

/// Holes begin and end at multiples of this: of every block size there is.
pub const ALIGN: u64 = 64 << 10;

/// Which bytes of a file were dropped; none where the file system does not tell.
#[must_use]
pub fn dropped(file: &File) -> Option<Range<u64>> {
    let start = seek(file, 0, libc::SEEK_HOLE)?;
    // The end of a file counts as a hole without an end.
    let end = seek(file, start, libc::SEEK_DATA)?;
    (start < end).then_some(start..end)
}

fn seek(file: &File, from: u64, what: i32) -> Option<u64> {
    let from = i64::try_from(from).ok()?;
    // SAFETY: no memory involved. The position is nobody's: logs are read at offsets and written at their end.
    u64::try_from(unsafe { libc::lseek(file.as_raw_fd(), from, what) }).ok()
}

/// Drops bytes of a file: their space is free, and the file is as long as before. Both ends must be aligned.
///
/// # Errors
/// `EOPNOTSUPP` where files cannot have holes.
pub fn punch(file: &File, bytes: &Range<u64>) -> io::Result<()> {
    let number = |bytes: u64| i64::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    let (start, length) = (number(bytes.start)?, number(bytes.end - bytes.start)?);
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: no memory involved.
    match unsafe { libc::fallocate(file.as_raw_fd(), mode, start, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

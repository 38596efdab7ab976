//! What a run left behind: files that are evidence of its work, and the end of its output.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runwarden_shim::message::Stream;

use super::{Fate, ProcessError, RunDir};

/// How many files of `artifacts/` are looked at; a run that left more has left evidence anyway.
const FILES_MAX: usize = 1_000;

/// Kind and location of the files in a run directory's `artifacts/`, sorted. What cannot be read is left out.
pub fn artifacts(run_directory: &[u8]) -> Vec<(String, String)> {
    let mut files = artifact_files(run_directory, FILES_MAX);
    files.sort();
    files
        .into_iter()
        .map(|path| ("file".to_owned(), path.to_string_lossy().into_owned()))
        .collect()
}

/// Whether there is a file in a run directory's `artifacts/`, as far as it can be read.
pub fn has_artifacts(run_directory: &[u8]) -> bool {
    !artifact_files(run_directory, 1).is_empty()
}

/// At most so many of the files below `artifacts/`.
fn artifact_files(run_directory: &[u8], at_most: usize) -> Vec<PathBuf> {
    let run = RunDir::at(Path::new(std::ffi::OsStr::from_bytes(run_directory)));
    let mut pending = vec![run.artifacts()];
    let mut found: Vec<PathBuf> = Vec::new();
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                Ok(_) => found.push(entry.path()),
                Err(_) => {}
            }
            if found.len() >= at_most {
                return found;
            }
        }
    }
    found
}

/// What the logs of a run tell without being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSigns {
    /// When one of them was last written, in milliseconds since the epoch; none where there is none.
    pub written_at_ms: Option<i64>,
    /// Something was written.
    pub has_output: bool,
}

/// Looks at the logs of a run. What cannot be looked at tells nothing.
pub fn log_signs(run: &RunDir) -> LogSigns {
    let logs = [Stream::Output, Stream::Stdout, Stream::Stderr].map(|stream| fs::metadata(run.log(stream)));
    let mut signs = LogSigns::default();
    for log in logs.into_iter().flatten() {
        let written_at_ms = log
            .mtime()
            .saturating_mul(1_000)
            .saturating_add(log.mtime_nsec() / 1_000_000);
        signs.written_at_ms = signs.written_at_ms.max(Some(written_at_ms));
        signs.has_output |= log.len() > 0;
    }
    signs
}

/// The last bytes of a run's output, both streams in order of arrival; what was dropped from a log is left out.
///
/// # Errors
/// A log that is there cannot be read.
pub fn last_output(run: &RunDir, bytes: u64) -> Result<Vec<u8>, ProcessError> {
    let mut missing = bytes;
    let mut pieces = Vec::new();
    for segment in run.segments()?.into_iter().rev() {
        if missing == 0 {
            break;
        }
        if segment.fate == Fate::Kept {
            let end = segment.bytes.end;
            let start = segment.bytes.start.max(end.saturating_sub(missing));
            missing -= end - start;
            let path = run.log(segment.stream);
            pieces.push(stretch(&path, start..end).map_err(ProcessError::file("read", path))?);
        }
    }
    pieces.reverse();
    Ok(pieces.concat())
}

fn stretch(path: &Path, bytes: Range<u64>) -> std::io::Result<Vec<u8>> {
    let mut log = File::open(path)?;
    log.seek(SeekFrom::Start(bytes.start))?;
    let mut read = Vec::new();
    log.take(bytes.end - bytes.start).read_to_end(&mut read)?;
    Ok(read)
}

/// The machine's own name: its machine id, else its host name.
pub fn machine_name() -> String {
    let id = fs::read_to_string("/etc/machine-id")
        .ok()
        .map(|id| id.trim().to_owned())
        .filter(|id| !id.is_empty());
    id.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

/// Milliseconds on the clock that counts from boot, suspension included.
pub fn boottime_ms() -> u64 {
    runwarden_shim::clock::boottime_ms()
}

/// How far this process's boot clock is ahead of the machine's, in milliseconds: what its time namespace adds. None where
/// that cannot be read, or where its children would have another.
pub fn boot_offset_ms() -> Option<i64> {
    let inode = |name: &str| Some(rustix::fs::stat(format!("/proc/self/ns/{name}")).ok()?.st_ino);
    // What can be read is what children get.
    if inode("time")? != inode("time_for_children")? {
        return None;
    }
    boot_offset(&fs::read_to_string("/proc/self/timens_offsets").ok()?)
}

fn boot_offset(offsets: &str) -> Option<i64> {
    let line = offsets.lines().find_map(|line| line.strip_prefix("boottime"))?;
    let mut words = line.split_whitespace().map(str::parse::<i64>);
    let (seconds, nanoseconds) = (words.next()?.ok()?, words.next()?.ok()?);
    seconds.checked_mul(1_000)?.checked_add(nanoseconds / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::boot_offset;

    #[test]
    fn the_offset_of_the_boot_clock_is_read_from_what_the_kernel_tells() {
        let told = "monotonic           0         0\nboottime       864000  5000000\n";
        assert_eq!(boot_offset(told), Some(864_000_005));
        assert_eq!(boot_offset("monotonic 1 0\nboottime -7 0\n"), Some(-7_000));
        for nonsense in [
            "",
            "boottime",
            "boottime 1",
            "boottime x 0",
            "boottime 9223372036854775807 0",
        ] {
            assert_eq!(boot_offset(nonsense), None, "{nonsense}");
        }
    }
}

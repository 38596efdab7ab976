//! Who waits for whom: locks on files, and where in the kernel a process waits. For people; nothing is decided by it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// That a process waits for a lock on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockWait {
    /// Who waits.
    pub waiter: i32,
    /// Who holds it; a number of another pid namespace is 0.
    pub holder: i32,
    /// The file, where one of the waiter's descriptors is of it.
    pub file: Option<PathBuf>,
}

/// Which of these processes wait for a lock on a file.
#[must_use]
pub fn lock_waits(pids: &[i32]) -> Vec<LockWait> {
    let table = fs::read_to_string("/proc/locks").unwrap_or_default();
    waits(&table)
        .into_iter()
        .filter(|(waiter, ..)| pids.contains(waiter))
        .map(|(waiter, holder, inode)| LockWait {
            waiter,
            holder,
            file: file_of(waiter, inode),
        })
        .collect()
}

/// Waiter, holder and inode of each wait in the text of `/proc/locks`: the holder's line, then one with an arrow for each
/// who waits.
fn waits(table: &str) -> Vec<(i32, i32, u64)> {
    let mut found = Vec::new();
    let mut holder = 0;
    for line in table.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_wait = words.get(1) == Some(&"->");
        let Some(lock) = Lock::read(words.get(if is_wait { 2.. } else { 1.. }).unwrap_or_default()) else {
            continue;
        };
        if is_wait {
            found.push((lock.pid, holder, lock.inode));
        } else {
            holder = lock.pid;
        }
    }
    found
}

/// A lock as a line of the table tells it.
struct Lock {
    pid: i32,
    inode: u64,
    first_byte: u64,
}

impl Lock {
    /// Reads class, mode, type, pid, file and range.
    fn read(words: &[&str]) -> Option<Self> {
        Some(Self {
            // A lock of an open file, not of a process, has -1.
            pid: words.get(3)?.parse().unwrap_or(0),
            inode: words.get(4)?.rsplit(':').next()?.parse().ok()?,
            first_byte: words.get(5)?.parse().ok()?,
        })
    }
}

/// Processes, this one excepted, that hold a lock on these bytes of the file.
#[must_use]
pub fn lock_holders(file: &Path, bytes: std::ops::Range<u64>) -> Vec<i32> {
    let Ok(inode) = fs::metadata(file).map(|found| found.ino()) else {
        return Vec::new();
    };
    let table = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut found = holders(&table, inode, &bytes);
    found.retain(|pid| *pid != std::process::id().cast_signed());
    found
}

fn holders(table: &str, inode: u64, bytes: &std::ops::Range<u64>) -> Vec<i32> {
    let locks = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        Lock::read(words.get(1..)?)
    });
    let mut found: Vec<i32> = locks
        .filter(|lock| lock.inode == inode && bytes.contains(&lock.first_byte))
        .map(|lock| lock.pid)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The path of the descriptor of a process that is of this inode.
fn file_of(pid: i32, inode: u64) -> Option<PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let descriptor = descriptors
        .flatten()
        .map(|entry| entry.path())
        .find(|path| fs::metadata(path).is_ok_and(|found| found.ino() == inode))?;
    fs::read_link(descriptor).ok()
}

/// Where in the kernel a process waits; none when it does not, or that may not be seen.
#[must_use]
pub fn waits_in(pid: i32) -> Option<String> {
    let place = fs::read_to_string(format!("/proc/{pid}/wchan")).ok()?;
    (!matches!(place.as_str(), "" | "0")).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "1: POSIX  ADVISORY  READ  2163 00:15:770 123 123\n\
                         2: FLOCK  ADVISORY  WRITE 800 fe:00:42 0 EOF\n\
                         2: -> FLOCK  ADVISORY  WRITE 900 fe:00:42 0 EOF\n\
                         2: -> FLOCK  ADVISORY  READ  901 fe:00:42 0 EOF\n\
                         3: OFDLCK ADVISORY  WRITE -1 fe:00:43 0 0\n\
                         3: -> POSIX  ADVISORY  WRITE 902 fe:00:43 0 0\n\
                         nonsense\n";

    #[test]
    fn whoever_waits_is_told_with_the_holder_above_it() {
        assert_eq!(waits(TABLE), [(900, 800, 42), (901, 800, 42), (902, -1, 43)]);
    }

    #[test]
    fn holders_are_those_of_the_file_and_the_bytes() {
        assert_eq!(holders(TABLE, 770, &(123..128)), [2163]);
        assert_eq!(holders(TABLE, 770, &(0..100)), [] as [i32; 0]);
        assert_eq!(holders(TABLE, 42, &(0..1)), [800]);
    }
}

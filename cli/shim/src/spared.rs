//! The list of processes below a shim that are not of its run: shims and finishing commands of runs that were started
//! from inside it (`spared` in the run directory).
//!
//! Whoever is to be spared appends a line about itself before it does anything: pid, start ticks, pidfs inode (`-`
//! without one) and reference, separated by tabs. A line names a process by its identity, so a line about somebody who
//! has ended spares nobody, whoever has the number now.

use std::fs::File;
use std::io::{self, Write as _};
use std::mem::zeroed;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::stat;

/// `PID_FS_MAGIC`: before Linux 6.9 pidfds share one inode that says nothing.
const PIDFS_MAGIC: u64 = 0x5049_4446;
/// A line is shorter: three numbers, and a reference of two words with at most 128 bytes each.
const LINE_BYTES_MAX: usize = 512;

/// One process that is spared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub pid: i32,
    /// Its start in clock ticks since boot.
    pub start_ticks: u64,
    /// Its inode in the pid file system, where the kernel has one (Linux 6.9).
    pub inode: Option<u64>,
    /// The run it belongs to.
    pub reference: String,
}

impl Record {
    /// What is known of a process that lives.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn of(pid: i32, reference: &str) -> io::Result<Self> {
        let inode = inode_of(pid)?;
        Ok(Self {
            pid,
            start_ticks: stat::read(pid)?.start_ticks,
            inode,
            reference: reference.to_owned(),
        })
    }

    /// Appends the line to a list, which was opened for appending: one write, so that lines never mix.
    ///
    /// # Errors
    /// When the list cannot be written, or only in part.
    pub fn append(&self, mut list: &File) -> io::Result<()> {
        let line = self.encode();
        match list.write(&line)? {
            length if length == line.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let inode = self.inode.map_or("-".to_owned(), |inode| inode.to_string());
        let reference: String = self.reference.chars().filter(|letter| !letter.is_control()).collect();
        format!("{}\t{}\t{inode}\t{reference}\n", self.pid, self.start_ticks).into_bytes()
    }

    fn decode(line: &[u8]) -> Option<Self> {
        let mut fields = std::str::from_utf8(line).ok()?.split('\t');
        Some(Self {
            pid: fields.next()?.parse().ok().filter(|pid| *pid > 1)?,
            start_ticks: fields.next()?.parse().ok()?,
            inode: match fields.next()? {
                "-" => None,
                inode => Some(inode.parse().ok()?),
            },
            reference: fields.next()?.to_owned(),
        })
    }

    /// Whether the process of this number is the recorded one, by the strongest layer both sides have.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let Ok(inode) = inode_of(self.pid) else { return false };
        match (self.inode, inode) {
            (Some(recorded), Some(found)) => recorded == found,
            _ => stat::read(self.pid).is_ok_and(|stat| stat.start_ticks == self.start_ticks),
        }
    }
}

fn inode_of(pid: i32) -> io::Result<Option<u64>> {
    // SAFETY: no memory involved.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let Some(number) = i32::try_from(opened).ok().filter(|number| *number >= 0) else {
        return match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(None),
            error => Err(error),
        };
    };
    // SAFETY: the kernel just made this descriptor for us; nobody else owns it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(number) };
    // SAFETY: both structures are plain data that the calls fill.
    unsafe {
        let mut system: libc::statfs = zeroed();
        let mut found: libc::stat = zeroed();
        let told = libc::fstatfs(pidfd.as_raw_fd(), &raw mut system) == 0
            && system.f_type as u64 == PIDFS_MAGIC
            && libc::fstat(pidfd.as_raw_fd(), &raw mut found) == 0;
        Ok(told.then_some(found.st_ino))
    }
}

/// A list as its reader knows it: only those who live are kept, so it stays as small as what runs.
#[derive(Debug, Default)]
pub struct Spared {
    list: Option<File>,
    /// Up to here the list has been read.
    offset: u64,
    alive: Vec<Record>,
}

impl Spared {
    /// The list at a path; one that does not exist spares nobody.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            list: File::open(path).ok(),
            ..Self::default()
        }
    }

    /// Reads what was added since, and forgets who has ended.
    pub fn refresh(&mut self) {
        let Some(list) = &self.list else { return };
        self.alive.retain(Record::is_alive);
        let mut bytes = [0; 2 * LINE_BYTES_MAX];
        while let Ok(length @ 1..) = list.read_at(&mut bytes, self.offset) {
            let Some(end) = bytes[..length].iter().rposition(|byte| *byte == b'\n') else {
                // A line that is being written, or one that is none: nothing behind it is taken for more than it is.
                self.offset += if length == bytes.len() { length as u64 } else { 0 };
                return;
            };
            self.offset += end as u64 + 1;
            let lines = bytes[..end].split(|byte| *byte == b'\n');
            self.alive
                .extend(lines.filter_map(Record::decode).filter(Record::is_alive));
        }
    }

    /// Whether this process is spared. Who registered since [`Spared::refresh`] is not known yet.
    #[must_use]
    pub fn holds(&self, pid: i32) -> bool {
        self.alive.iter().any(|record| record.pid == pid && record.is_alive())
    }

    /// Who is spared, as far as the last look told.
    #[must_use]
    pub fn alive(&self) -> &[Record] {
        &self.alive
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

    use super::*;

    fn own() -> i32 {
        std::process::id().cast_signed()
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        for inode in [None, Some(u64::MAX)] {
            let record = Record {
                pid: 42,
                start_ticks: 7,
                inode,
                reference: "run/a.b".to_owned(),
            };
            let line = record.encode();
            assert_eq!(Record::decode(line.strip_suffix(b"\n").unwrap()), Some(record));
        }
        for line in ["", "1\t2\t3\trun/a", "x\t2\t-\trun/a", "5\t2\t3", "-7\t2\t-\trun/a"] {
            assert_eq!(Record::decode(line.as_bytes()), None, "{line:?}");
        }
    }

    #[test]
    fn a_number_that_changed_hands_spares_nobody() {
        let record = Record::of(own(), "run/a").unwrap();
        assert!(record.is_alive());
        let reused = Record {
            inode: record.inode.map(|inode| inode + 1),
            start_ticks: record.start_ticks + 1,
            ..record.clone()
        };
        assert!(!reused.is_alive());
        // Without inodes the ticks decide.
        assert!(
            Record {
                inode: None,
                ..record.clone()
            }
            .is_alive()
        );
        assert!(!Record { inode: None, ..reused }.is_alive());
    }

    #[test]
    fn a_line_counts_once_it_is_whole() {
        let path = std::env::temp_dir().join(format!("runwarden-spared-{}", own()));
        let list = File::options().append(true).create(true).open(&path).unwrap();
        let mut spared = Spared::at(&path);
        let line = Record::of(own(), "run/a").unwrap().encode();
        (&list).write_all(&line[..5]).unwrap();
        spared.refresh();
        assert!(spared.alive().is_empty());
        (&list).write_all(&line[5..]).unwrap();
        spared.refresh();
        assert!(spared.holds(own()) && !spared.holds(own() + 1));
        // Far more than one reading, and of processes that never were.
        for _ in 0..100 {
            (&list).write_all(b"4000000\t1\t1\trun/gone\n").unwrap();
        }
        spared.refresh();
        assert_eq!(spared.alive().len(), 1);
        std::fs::remove_file(&path).unwrap();
    }
}

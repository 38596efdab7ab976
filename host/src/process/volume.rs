//! Where files lie, how much room there is, and who may read them.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

/// The file system that a directory is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its type, as the mount table names it; `unknown` where it does not.
    pub kind: String,
    /// Whether it is mounted read-only.
    pub read_only: bool,
    /// Room for this user, in bytes.
    pub free_bytes: u64,
    /// Files that can still be made; none where the file system does not count them.
    pub free_files: Option<u64>,
}

impl Volume {
    /// The file system below `path`, or below the nearest directory above it that is there; none when it cannot be asked.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let there = path.ancestors().find(|place| place.exists())?;
        let found = statvfs(there).ok()?;
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let device = fs::metadata(there).ok()?.dev();
        let device = (rustix::fs::major(device), rustix::fs::minor(device));
        Some(Self {
            kind: kind(&table, device).unwrap_or("unknown").to_owned(),
            read_only: found.f_flag.contains(StatVfsMountFlags::RDONLY),
            free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
            free_files: (found.f_files > 0).then_some(found.f_favail),
        })
    }
}

/// The type of the file system of a device, from the text of a mount table.
fn kind(table: &str, (major, minor): (u32, u32)) -> Option<&str> {
    let device = format!("{major}:{minor}");
    let line = table
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(device.as_str()))?;
    line.split_once(" - ")?.1.split(' ').next()
}

/// Why a file of ours is not as private as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exposure {
    /// It belongs to this other user.
    Owner(PathBuf, u32),
    /// Others may read, write or enter it; its permissions.
    Mode(PathBuf, u32),
}

/// Which of these files are not this user's alone. What is not there is not exposed.
#[must_use]
pub fn exposed(paths: &[PathBuf]) -> Vec<Exposure> {
    let own = rustix::process::geteuid().as_raw();
    let look = |path: &PathBuf| {
        let found = fs::symlink_metadata(path).ok()?;
        let mode = found.mode() & 0o7777;
        if found.uid() != own {
            Some(Exposure::Owner(path.clone(), found.uid()))
        } else if !found.file_type().is_symlink() && mode & 0o077 != 0 {
            Some(Exposure::Mode(path.clone(), mode))
        } else {
            None
        }
    };
    paths.iter().filter_map(look).collect()
}

/// What files take on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Room taken, in bytes.
    pub bytes: u64,
    /// How many files, directories not counted.
    pub files: u64,
}

/// What everything below `directory` takes, of the files that `counts` admits. Links are not followed; what vanishes
/// meanwhile is not counted.
#[must_use]
pub fn usage(directory: &Path, counts: impl Fn(&Path) -> bool) -> Usage {
    const BLOCK_BYTES: u64 = 512;
    let mut total = Usage::default();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push(entry.path()),
                Ok(found) if counts(&entry.path()) => {
                    total.bytes += found.blocks() * BLOCK_BYTES;
                    total.files += 1;
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_directory_is_on_a_file_system_with_room() {
        let place = tempfile::tempdir().unwrap();
        let found = Volume::of(&place.path().join("not/made/yet")).unwrap();
        assert!(found.free_bytes > 0 && !found.read_only, "{found:?}");
        let table = "36 35 8:1 / / rw - ext4 /dev/sda1 rw\n37 36 0:50 / /mnt rw - fuse.sshfs me@host:/ rw\n";
        assert_eq!(kind(table, (8, 1)), Some("ext4"));
        assert_eq!(kind(table, (0, 50)), Some("fuse.sshfs"));
        assert_eq!(kind(table, (9, 9)), None);
    }

    #[test]
    fn what_others_may_read_is_exposed_and_what_is_missing_is_not() {
        let place = tempfile::tempdir().unwrap();
        let (open, closed) = (place.path().join("open"), place.path().join("closed"));
        for (path, mode) in [(&open, 0o640), (&closed, 0o600)] {
            fs::write(path, "x").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let missing = place.path().join("missing");
        assert_eq!(exposed(&[open.clone(), closed, missing]), [Exposure::Mode(open, 0o640)]);
    }

    #[test]
    fn room_is_counted_below_a_directory() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("below")).unwrap();
        fs::write(place.path().join("below/x.log"), vec![1; 10_000]).unwrap();
        fs::write(place.path().join("y"), "y").unwrap();
        let all = usage(place.path(), |_| true);
        let logs = usage(place.path(), |path| path.extension().is_some_and(|end| end == "log"));
        assert_eq!((all.files, logs.files), (2, 1));
        assert!(all.bytes >= logs.bytes && logs.bytes >= 8_192, "{all:?} {logs:?}");
        assert_eq!(usage(&place.path().join("missing"), |_| true), Usage::default());
    }
}

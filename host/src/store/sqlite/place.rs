//! Where a store may be: on a local file system, in a directory of its own user's.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{StatVfsMountFlags, statfs, statvfs}; // the only system calls here; what else asks the kernel is in `process`

use crate::store::StoreError;

/// File systems on which locks and shared memory of several machines do not meet, by the magic number of statfs.
const NETWORK: [(u32, &str); 14] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB"),
    (0x0102_1997, "9P"),
    (0x00C3_6400, "Ceph"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x786F_4256, "a shared folder of VirtualBox"),
    (0x564C, "NCP"),
];

/// The magic number of every file system served by a program; which one, only the mount table tells.
const FUSE: u32 = 0x6573_5546;

/// Names by which network file systems served by a program are mounted.
const NETWORK_FUSE: [&str; 9] = [
    "sshfs",
    "rclone",
    "s3fs",
    "gcsfuse",
    "goofys",
    "glusterfs",
    "ceph-fuse",
    "davfs",
    "smbnetfs",
];

/// Refuses the place when `directory` is on a network file system.
pub(super) fn refuse_network(path: &Path, directory: &Path) -> Result<(), StoreError> {
    let Ok(found) = statfs(directory) else {
        return Ok(()); // what cannot be asked fails with a better word when it is opened
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "magic numbers have 32 bits"
    )]
    let magic = found.f_type as u32;
    let network = match NETWORK.iter().find(|(known, _)| *known == magic) {
        Some((_, name)) => Some((*name).to_owned()),
        None if magic == FUSE => network_fuse(directory),
        None => None,
    };
    match network {
        Some(name) => Err(StoreError::Unsuitable {
            path: path.display().to_string(),
            why: format!("{name} is a network file system, where locks and shared memory cannot be trusted"),
        }),
        None => Ok(()),
    }
}

/// The name of the network file system that a program serves at `directory`; none when it is a local one.
fn network_fuse(directory: &Path) -> Option<String> {
    let device = fs::metadata(directory).ok()?.dev();
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    fuse_name(&table, (rustix::fs::major(device), rustix::fs::minor(device)))
}

/// The same, from the text of a mount table and the device's numbers.
fn fuse_name(table: &str, (major, minor): (u32, u32)) -> Option<String> {
    let device = format!("{major}:{minor}");
    let line = table
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(device.as_str()))?;
    let kind = line.split_once(" - ")?.1.split(' ').next()?;
    let name = kind.strip_prefix("fuse.").unwrap_or(kind);
    NETWORK_FUSE.contains(&name).then(|| name.to_owned())
}

/// Makes the directory of a store (0700); leaves one that is there.
pub(super) fn make_directory(path: &Path, directory: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| explain(error, path, "making the store's directory"))
}

/// Makes the empty file of a store (0600); leaves one that is there.
pub(super) fn make_file(path: &Path) -> Result<(), StoreError> {
    // `create_new` never opens a file that is there: closing a descriptor of it would drop this process's locks.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(explain(error, path, "making the store's file")),
    }
}

/// That the store at `path` cannot be written, and why not.
pub(super) fn unwritable(path: &Path) -> StoreError {
    let nearest = path.ancestors().find_map(|place| statvfs(place).ok());
    let read_only = nearest.is_some_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY));
    StoreError::ReadOnly {
        path: path.display().to_string(),
        why: if read_only {
            "its file system is mounted read-only"
        } else {
            "its permissions forbid it"
        },
    }
}

/// Whether there is a file at `path`, with something in it.
pub(super) fn holds_a_file(path: &Path) -> Result<bool, StoreError> {
    match fs::metadata(path) {
        Ok(found) => Ok(found.len() > 0),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(StoreError::Failed {
            doing: "looking for its file",
            source: Box::new(error),
        }),
    }
}

/// The directory in which `path` is.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

fn explain(error: io::Error, path: &Path, doing: &'static str) -> StoreError {
    let at = path.display().to_string();
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => unwritable(path),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full { path: at },
        _ => StoreError::Failed {
            doing,
            source: Box::new(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_serves_a_network_file_system_is_known_by_its_mount() {
        let table = "36 35 0:50 / /mnt rw,relatime shared:1 - fuse.sshfs me@host:/ rw,user_id=0\n\
                     37 35 8:1 / /data rw - fuseblk /dev/sda1 rw\n";
        assert_eq!(fuse_name(table, (0, 50)), Some("sshfs".to_owned()));
        assert_eq!(fuse_name(table, (8, 1)), None);
        assert_eq!(fuse_name(table, (9, 9)), None);
    }

    #[test]
    fn a_bare_file_name_is_in_the_working_directory() {
        assert_eq!(directory_of(Path::new("state.db")), Path::new("."));
        assert_eq!(directory_of(Path::new("/a/state.db")), Path::new("/a"));
    }
}

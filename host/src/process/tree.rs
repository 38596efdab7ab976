//! Deleting a directory with all that is in it, and nothing else.
//!
//! Every step is relative to a descriptor that is open already, so whatever is renamed or replaced meanwhile cannot lead
//! elsewhere: no symbolic link is followed, and no mount is entered (a bind mount has the device number of its origin, so
//! `std::fs::remove_dir_all`, which is safe from the first on Linux, is not from the second). If we die half-way, part of
//! the tree is there, and the next removal goes on.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat2, statat, unlinkat};
use rustix::io::Errno;

use super::ProcessError;

/// A tree that is deeper than this is left alone: every level holds a descriptor.
const DEPTH_MAX: usize = 512;

/// How often a directory that others write into is emptied again.
const ROUNDS_MAX: usize = 8;

/// What removing a tree came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emptied {
    /// It was there, and is gone.
    Removed {
        /// What its files took, in bytes.
        bytes: u64,
    },
    /// Nothing was there.
    Absent,
}

/// Removes a directory that is known by its parent's path: links on the way to the parent are followed, the directory
/// itself must not be one.
///
/// # Errors
/// Something of it cannot be removed, or it is no directory; part of it may be gone.
pub fn remove_tree(path: &Path) -> Result<Emptied, ProcessError> {
    removed(path, ResolveFlags::empty()).map_err(ProcessError::file("remove", path))
}

/// Removes a directory by a path that holds no link at all.
///
/// # Errors
/// A link is in its path, something of it cannot be removed, or it is no directory; part of it may be gone.
pub fn remove_tree_without_links(path: &Path) -> Result<Emptied, ProcessError> {
    removed(path, ResolveFlags::NO_SYMLINKS).map_err(ProcessError::file("remove", path))
}

fn removed(path: &Path, way: ResolveFlags) -> io::Result<Emptied> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("it has no parent directory"));
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = match openat2(CWD, parent, flags, Mode::empty(), way) {
        Err(Errno::NOENT) => return Ok(Emptied::Absent),
        other => other.map_err(told)?,
    };
    let directory = match open_inside(&parent, name) {
        Err(Errno::NOENT) => return Ok(Emptied::Absent),
        other => other.map_err(told)?,
    };
    let mut bytes = 0;
    for _ in 0..ROUNDS_MAX {
        empty(&directory, DEPTH_MAX, &mut bytes)?;
        match unlinkat(&parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY) => {}
            Ok(()) | Err(Errno::NOENT) => return Ok(Emptied::Removed { bytes }),
            Err(error) => return Err(told(error)),
        }
    }
    Err(io::Error::other("something goes on writing into it"))
}

/// Opens a directory below another without following a link or entering a mount.
fn open_inside(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let within = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV | ResolveFlags::BENEATH;
    openat2(parent, name, flags, Mode::empty(), within)
}

/// Removes what is in a directory.
fn empty(directory: &OwnedFd, depth_left: usize, bytes: &mut u64) -> io::Result<()> {
    if depth_left == 0 {
        return Err(io::Error::other("it is too deep"));
    }
    for entry in Dir::read_from(directory).map_err(told)? {
        let entry = match entry {
            Err(Errno::NOENT) => break, // somebody else has removed the directory itself
            other => other.map_err(told)?,
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let found = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            other => other.map_err(told)?,
        };
        let flags = if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            empty_below(directory, name, depth_left, bytes)?;
            AtFlags::REMOVEDIR
        } else {
            *bytes += u64::try_from(found.st_blocks).unwrap_or(0) * BLOCK_BYTES;
            AtFlags::empty()
        };
        match unlinkat(directory, name, flags) {
            // What others put in meanwhile is met in the next round.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => {}
            Err(error) => return Err(in_words(error, name)),
        }
    }
    Ok(())
}

/// The unit of `st_blocks`.
pub(super) const BLOCK_BYTES: u64 = 512;

fn empty_below(directory: &OwnedFd, name: &CStr, depth_left: usize, bytes: &mut u64) -> io::Result<()> {
    match open_inside(directory, name) {
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(in_words(error, name)),
        Ok(below) => empty(&below, depth_left - 1, bytes),
    }
}

fn in_words(error: Errno, name: &CStr) -> io::Error {
    let told = told(error);
    io::Error::new(told.kind(), format!("{}: {told}", name.to_string_lossy()))
}

/// The kernel's answer, where its own words say something else than they mean here.
fn told(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other("a symbolic link is in the way"),
        Errno::XDEV | Errno::BUSY => io::Error::other("something is mounted there"),
        other => other.into(),
    }
}

/// A directory of the runs' directory, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name: the id of a run.
    pub name: Vec<u8>,
    /// Where it is.
    pub path: PathBuf,
    /// The newest change of it or of what is directly in it, UTC in milliseconds.
    pub changed_at_ms: i64,
}

/// The directories directly below `runs`, by name; none when it is not there. Links and files are left out.
///
/// # Errors
/// When it cannot be read: nothing may be concluded from what is missing.
pub fn directories_below(runs: &Path) -> Result<Vec<Found>, ProcessError> {
    let listing = match std::fs::read_dir(runs) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(ProcessError::file("read", runs))?,
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry.map_err(ProcessError::file("read", runs))?;
        let path = entry.path();
        match looked_at(&path) {
            Ok(Some(changed_at_ms)) => found.push(Found {
                name: entry.file_name().as_bytes().to_vec(),
                path,
                changed_at_ms,
            }),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(ProcessError::file("read", path)(error)),
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// When it, or something directly in it, changed last; none for what is no directory.
fn looked_at(path: &Path) -> io::Result<Option<i64>> {
    use std::os::unix::fs::MetadataExt as _;
    let own = std::fs::symlink_metadata(path)?;
    if !own.is_dir() {
        return Ok(None);
    }
    let changed_ms = |found: &std::fs::Metadata| found.mtime() * 1_000 + found.mtime_nsec() / 1_000_000;
    let mut changed_at_ms = changed_ms(&own);
    for entry in std::fs::read_dir(path)? {
        if let Ok(found) = std::fs::symlink_metadata(entry?.path()) {
            changed_at_ms = changed_at_ms.max(changed_ms(&found));
        }
    }
    Ok(Some(changed_at_ms))
}

/// The path without links, as far as it leads: what does not exist stays as it is named.
#[must_use]
pub fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real_path(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Where a process works now; none when that cannot be seen.
#[must_use]
pub fn working_directory(pid: i64) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// A path of the inventory.
#[must_use]
pub fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    fn bench() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(top.join("tree/deep/er")).unwrap();
        fs::write(top.join("tree/deep/er/file"), "content").unwrap();
        fs::create_dir(top.join("precious")).unwrap();
        fs::write(top.join("precious/file"), "content").unwrap();
        (directory, top)
    }

    #[test]
    fn a_tree_goes_with_its_links_and_not_what_they_lead_to() {
        let (_directory, top) = bench();
        symlink(top.join("precious"), top.join("tree/deep/link")).unwrap();
        symlink("../../precious/file", top.join("tree/deep/er/file-link")).unwrap();
        let emptied = remove_tree_without_links(&top.join("tree")).unwrap();
        assert!(
            matches!(emptied, Emptied::Removed { bytes } if bytes > 0),
            "{emptied:?}"
        );
        assert!(!top.join("tree").exists());
        assert!(top.join("precious/file").exists());
        assert_eq!(remove_tree_without_links(&top.join("tree")).unwrap(), Emptied::Absent);
        assert_eq!(remove_tree(&top.join("none/tree")).unwrap(), Emptied::Absent);
    }

    #[test]
    fn a_link_in_the_place_of_a_tree_or_on_the_way_to_it_is_refused() {
        let (_directory, top) = bench();
        symlink("precious", top.join("link")).unwrap();
        for remove in [remove_tree, remove_tree_without_links] {
            assert!(remove(&top.join("link")).is_err());
        }
        symlink("tree", top.join("way")).unwrap();
        let refused = remove_tree_without_links(&top.join("way/deep")).unwrap_err();
        let said = std::error::Error::source(&refused).unwrap().to_string();
        assert_eq!(said, "a symbolic link is in the way");
        assert!(top.join("precious/file").exists() && top.join("tree/deep/er/file").exists());
        // The home itself may be reached over links.
        assert!(matches!(
            remove_tree(&top.join("way/deep")).unwrap(),
            Emptied::Removed { .. }
        ));
    }

    #[test]
    fn a_file_in_the_place_of_a_tree_is_left_alone() {
        let (_directory, top) = bench();
        assert!(remove_tree(&top.join("precious/file")).is_err());
        assert!(top.join("precious/file").exists());
    }

    #[test]
    fn what_is_mounted_in_a_tree_is_not_entered() {
        let (_directory, top) = bench();
        fs::create_dir(top.join("tree/mounted")).unwrap();
        let mut mount = Command::new("mount");
        mount
            .arg("--bind")
            .args([top.join("precious"), top.join("tree/mounted")]);
        if !mount.output().is_ok_and(|output| output.status.success()) {
            return; // only who may mount can see it
        }
        let refused = remove_tree(&top.join("tree"));
        let refused_whole = remove_tree(&top.join("tree/mounted"));
        let unmounted = Command::new("umount").arg(top.join("tree/mounted")).status().unwrap();
        assert!(unmounted.success());
        assert!(refused.is_err() && refused_whole.is_err());
        assert!(top.join("precious/file").exists());
        assert!(matches!(
            remove_tree(&top.join("tree")).unwrap(),
            Emptied::Removed { .. }
        ));
    }

    #[test]
    fn directories_are_found_by_name_and_links_and_files_are_not() {
        let (_directory, top) = bench();
        symlink("tree", top.join("link")).unwrap();
        fs::write(top.join("file"), "").unwrap();
        let found = directories_below(&top).unwrap();
        let names: Vec<&[u8]> = found.iter().map(|one| one.name.as_slice()).collect();
        assert_eq!(names, [b"precious".as_slice(), b"tree"]);
        assert_eq!(directories_below(&top.join("none")).unwrap(), []);
        assert!(directories_below(&top.join("file")).is_err(), "unreadable is not empty");
    }

    #[test]
    fn a_path_is_real_as_far_as_it_leads() {
        let (_directory, top) = bench();
        symlink("tree", top.join("link")).unwrap();
        assert_eq!(
            real_path(&top.join("link/deep/none/such")),
            top.join("tree/deep/none/such")
        );
    }
}

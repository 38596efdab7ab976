//! The cgroup of a run's set: everything the worker starts is born into it, and nobody else is.
//!
//! The group is a directory of the unified hierarchy that the shim makes and removes. The shim is never in it, so that
//! a kill of the whole group (ours, or an enclosing run's) spares whoever has to tell of it. If the shim dies, the
//! group is left with who is in it; an empty one is a directory that costs nothing.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use libc::pid_t;

use crate::sys::{self, Errno};

/// Groups below groups that are followed; a program that nests them deeper is killed all the same, by the kernel.
const DEPTH_MAX: usize = 16;

/// A group that exists; dropped, it is removed if it is empty.
pub(crate) struct Cgroup {
    path: PathBuf,
    directory: File,
    kill: File,
    events: File,
    /// As `/proc/<pid>/cgroup` names it, seen from the shim; known once somebody is in it.
    name: Vec<u8>,
}

impl Cgroup {
    /// Makes the group; fails where the kernel has no `cgroup.kill` (before Linux 5.14).
    pub(crate) fn make(path: &Path) -> Result<Self, Errno> {
        let number = |error: std::io::Error| sys::number(&error);
        fs::create_dir(path).map_err(number)?;
        Self::open(path).map_err(|error| {
            remove(path, DEPTH_MAX);
            number(error)
        })
    }

    /// Takes over a group that another shim made, with its name.
    pub(crate) fn adopt(path: &Path) -> std::io::Result<Self> {
        let mut group = Self::open(path)?;
        if let Some(member) = group.pids().first() {
            group.learn_name(*member);
        }
        Ok(group)
    }

    fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            directory: File::open(path)?,
            kill: File::options().write(true).open(path.join("cgroup.kill"))?,
            events: File::open(path.join("cgroup.events"))?,
            name: Vec::new(),
        })
    }

    /// Learns the group's name from one of its processes.
    pub(crate) fn learn_name(&mut self, member: pid_t) {
        self.name = name_of(member).unwrap_or_default();
    }

    /// Kills everybody in it at once; nobody forks out of that.
    pub(crate) fn kill(&self) {
        let _ = self.kill.write_at(b"1", 0);
    }

    /// Whether anybody lives in it or below it. Reading it also arms the next [`Cgroup::events`].
    pub(crate) fn is_populated(&self) -> bool {
        let mut text = [0; 128];
        match self.events.read_at(&mut text, 0) {
            Ok(length) => !text[..length]
                .split(|byte| *byte == b'\n')
                .any(|line| line == b"populated 0"),
            Err(_) => true,
        }
    }

    /// Reports POLLPRI when [`Cgroup::is_populated`] may have changed.
    pub(crate) fn events(&self) -> RawFd {
        self.events.as_raw_fd()
    }

    /// Who is in it, as far as one look sees; those of groups below it too.
    pub(crate) fn pids(&self) -> Vec<pid_t> {
        let mut pids = Vec::new();
        collect(&self.path, DEPTH_MAX, &mut pids);
        pids
    }

    /// Removes it, if nobody is in it; whether it is gone.
    pub(crate) fn try_remove(&self) -> bool {
        remove(&self.path, DEPTH_MAX);
        !self.path.exists()
    }

    /// Whether a process is in it, or in a group below it.
    pub(crate) fn holds(&self, pid: pid_t) -> bool {
        !self.name.is_empty()
            && name_of(pid).is_some_and(|name| {
                name.strip_prefix(self.name.as_slice())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            })
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.path, DEPTH_MAX);
    }
}

/// The group of the unified hierarchy that a process is in.
fn name_of(pid: pid_t) -> Option<Vec<u8>> {
    let text = fs::read(format!("/proc/{pid}/cgroup")).ok()?;
    let line = text
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"0::"))?;
    Some(line.to_vec())
}

fn below(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

fn collect(path: &Path, depth: usize, pids: &mut Vec<pid_t>) {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    pids.extend(text.lines().filter_map(|line| line.parse::<pid_t>().ok()));
    if depth > 0 {
        for group in below(path) {
            collect(&group, depth - 1, pids);
        }
    }
}

/// Removes a group and those that a member made below it; one with a process in it stays.
fn remove(path: &Path, depth: usize) {
    if fs::remove_dir(path).is_err() && depth > 0 {
        for group in below(path) {
            remove(&group, depth - 1);
        }
        let _ = fs::remove_dir(path);
    }
}

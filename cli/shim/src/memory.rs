//! Whether the kernel killed somebody for want of memory: the counter of the memory cgroup that the worker lives in.
//!
//! The group may be shared, so the counter alone tells of no process. Together with a worker that died by SIGKILL which
//! we did not send it is evidence, and it is recorded as such.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use libc::pid_t;

/// A counter, and what it was when the worker had not begun.
pub(crate) struct Kills {
    counter: File,
    before: u64,
}

impl Kills {
    /// The counter nearest to a process; none where memory is not counted.
    pub(crate) fn around(pid: pid_t) -> Option<Self> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let mounts = fs::read("/proc/self/mountinfo").ok()?;
        let counter = counter(&groups, &mounts)?;
        let before = count(&counter)?;
        Some(Self { counter, before })
    }

    /// Kills since then.
    pub(crate) fn since(&self) -> u64 {
        count(&self.counter).unwrap_or(0).saturating_sub(self.before)
    }
}

fn count(counter: &File) -> Option<u64> {
    let mut text = [0; 512];
    let length = counter.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?
        .parse()
        .ok()
}

/// Opens the counter of the unified hierarchy, which may be that of a group above (it counts what is below), else that
/// of the old one.
fn counter(groups: &str, mounts: &[u8]) -> Option<File> {
    let unified = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let unified = unified.and_then(|group| place(mounts, group, |kind, _| kind == "cgroup2"));
    if let Some((point, directory)) = unified {
        let above = directory.ancestors().take_while(|group| group.starts_with(&point));
        if let Some(found) = above
            .filter_map(|group| File::open(group.join("memory.events")).ok())
            .next()
        {
            return Some(found);
        }
    }
    let old = groups.lines().find_map(|line| line.split_once(":memory:"))?.1;
    let is_memory = |kind: &str, options: &str| kind == "cgroup" && options.split(',').any(|option| option == "memory");
    let (_, directory) = place(mounts, old, is_memory)?;
    File::open(directory.join("memory.oom_control")).ok()
}

/// The mount point of a hierarchy, and the directory of a group in it.
fn place(mounts: &[u8], group: &str, wanted: impl Fn(&str, &str) -> bool) -> Option<(PathBuf, PathBuf)> {
    mounts.split(|byte| *byte == b'\n').find_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1)?);
        if !wanted(kind, options) {
            return None;
        }
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, Path::new(before.next()?));
        let inner = Path::new(group).strip_prefix(root).ok()?;
        let is_inside = !inner.as_os_str().as_bytes().starts_with(b"..");
        is_inside.then(|| (point.to_owned(), point.join(inner)))
    })
}

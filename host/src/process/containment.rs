//! What holds a run's set together: chosen once, before anything is started, from what the system allows.
//!
//! Everybody's base is the caller's own cgroup, cut before the first group that is a run's: runs are siblings, also
//! when one is started inside another. A base is used only if it was delegated to whoever owns it: the group at the root
//! of what is seen from here, or one that carries the delegation mark. Other people's groups are left alone, however
//! writable they are: their manager may remove or move what it did not make.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use runwarden_shim::spec::{Group, Namespace, Need};
use rustix::fs::Access;
use serde::{Deserialize, Serialize};

/// What a run's cgroup is called begins with this.
const PREFIX: &str = "runwarden-";
/// How many digits of the attempt's token are in the name of its group: a path alone could be anybody's.
pub(super) const TOKEN_DIGITS: usize = 8;
/// The marks of a delegated group.
const MARKS: [&str; 2] = ["trusted.delegate", "user.delegate"];

/// How a set is to be held together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contain {
    /// In a cgroup where one is delegated and writable, by the shim alone otherwise.
    #[default]
    Auto,
    /// In a cgroup, or not at all.
    Cgroup,
    /// By the shim alone.
    Subreaper,
    /// In a pid namespace of its own, with a `/proc` of its own, or not at all.
    #[serde(rename = "pidns")]
    PidNamespace,
}

/// What was read of the cgroups of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// Where the unified hierarchy is mounted, and which of its groups is at that place.
    mount: Option<(PathBuf, PathBuf)>,
    /// The caller's group.
    own: Option<PathBuf>,
    /// Whether the base carries the mark of delegation.
    marked: Marked,
    /// Whether groups and processes can be put into the base.
    writable: Writable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marked {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writable {
    Yes,
    No,
}

/// What a shim is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Containing {
    /// Where the shim itself is to be, if it is to leave the caller's group.
    pub(super) base: Option<PathBuf>,
    /// The group of the set.
    pub(super) group: Option<Group>,
    /// The pid namespace of the set.
    pub(super) namespace: Namespace,
}

/// Why there can be no cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoCgroup {
    /// Only the old hierarchies, or none.
    #[error("no unified cgroup hierarchy is mounted")]
    NotMounted,
    /// The caller's group is outside of what is mounted here.
    #[error("the cgroup of this process is not to be seen from here")]
    NotSeen,
    /// The group belongs to somebody else.
    #[error("the cgroup of this process is not delegated")]
    NotDelegated,
    /// The mount or its files are not writable.
    #[error("the cgroup of this process cannot be written")]
    NotWritable,
}

/// Chooses for a run whose group would have this name. Nothing is made.
///
/// # Errors
/// When a cgroup is required and cannot be had.
pub fn choose(contain: Contain, around: &Surroundings, name: &str) -> Result<Containing, NoCgroup> {
    let base = around.base();
    if let (Contain::Cgroup, Err(why)) = (contain, &base) {
        return Err(*why);
    }
    let namespace = match contain {
        Contain::PidNamespace => Namespace::Own,
        Contain::Auto | Contain::Cgroup | Contain::Subreaper => Namespace::Callers,
    };
    let Ok(base) = base else {
        return Ok(Containing {
            namespace,
            ..Containing::default()
        });
    };
    let need = match contain {
        Contain::Subreaper | Contain::PidNamespace => None,
        Contain::Auto => Some(Need::Wanted),
        Contain::Cgroup => Some(Need::Required),
    };
    let group = need.map(|need| Group {
        path: base.join(format!("{PREFIX}{name}")).as_os_str().as_bytes().to_vec(),
        need,
    });
    // A shim that stayed in the group of the run around it would be killed with that group.
    let leaves = group.is_some() || around.is_inside_a_run();
    Ok(Containing {
        base: leaves.then_some(base),
        group,
        namespace,
    })
}

/// What the group of an attempt is called, after the prefix. Ids are unique in one store; the hierarchy may be shared by
/// several, so a part of the token is in it.
#[must_use]
pub fn group_name(id: &str, token: &str) -> String {
    format!("{id}-{}", token.get(..TOKEN_DIGITS).unwrap_or(token))
}

/// The groups of runs beside this process's own in which nobody is, each with its [name](group_name). None where groups are
/// not to be had.
#[must_use]
pub fn empty_groups(around: &Surroundings) -> Vec<(String, PathBuf)> {
    let entries = around.base().ok().and_then(|base| fs::read_dir(base).ok());
    let groups = entries.into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_str()?.strip_prefix(PREFIX)?;
        (is_unpopulated(&entry.path()) == Some(true)).then(|| (name.to_owned(), entry.path()))
    });
    groups.collect()
}

/// Whether the kernel counts nobody in a group or below it; none for what is no group.
pub(super) fn is_unpopulated(group: &Path) -> Option<bool> {
    let events = fs::read_to_string(group.join("cgroup.events")).ok()?;
    Some(events.lines().any(|line| line == "populated 0"))
}

impl Surroundings {
    /// Reads what there is. What cannot be read is not there.
    #[must_use]
    pub fn here() -> Self {
        let mount = fs::read("/proc/self/mountinfo").ok().and_then(|text| mounted(&text));
        let own = fs::read("/proc/self/cgroup").ok().and_then(|text| own_group(&text));
        let mut found = Self {
            mount,
            own,
            marked: Marked::No,
            writable: Writable::No,
        };
        if let Ok(base) = found.place() {
            let mut value = [0; 8];
            let is_marked =
                |mark: &&str| matches!(rustix::fs::getxattr(&base, *mark, &mut value), Ok(1)) && value[0] == b'1';
            if MARKS.iter().any(is_marked) {
                found.marked = Marked::Yes;
            }
            let mut writable = [base.clone(), base.join("cgroup.procs")].into_iter();
            if writable.all(|path| rustix::fs::access(path, Access::WRITE_OK).is_ok()) {
                found.writable = Writable::Yes;
            }
        }
        found
    }

    /// Whether this process is in the group at that directory, or in one below it.
    #[must_use]
    pub fn is_in(&self, group: &Path) -> bool {
        self.seen().is_ok_and(|(_, own)| own.starts_with(group))
    }

    fn is_inside_a_run(&self) -> bool {
        self.own.as_ref().is_some_and(|own| cut(own) != *own)
    }

    /// The directory of the base, whether it may be used or not.
    fn place(&self) -> Result<PathBuf, NoCgroup> {
        let (point, own) = self.seen()?;
        let inner = own.strip_prefix(point).map_err(|_| NoCgroup::NotSeen)?;
        // Without the slash that joining nothing leaves.
        Ok(point.join(cut(inner)).components().collect())
    }

    /// The place of the mount, and in it the directory of the caller's group.
    fn seen(&self) -> Result<(&Path, PathBuf), NoCgroup> {
        let (point, root) = self.mount.as_ref().ok_or(NoCgroup::NotMounted)?;
        let own = self.own.as_ref().ok_or(NoCgroup::NotMounted)?;
        let inner = own.strip_prefix(root).map_err(|_| NoCgroup::NotSeen)?;
        if inner.components().any(|part| part == Component::ParentDir) {
            return Err(NoCgroup::NotSeen);
        }
        Ok((point, point.join(inner)))
    }

    /// The directory that runs' groups are made in.
    fn base(&self) -> Result<PathBuf, NoCgroup> {
        let place = self.place()?;
        let is_root = self.mount.as_ref().is_some_and(|(point, _)| *point == place);
        match (is_root, self.marked, self.writable) {
            (false, Marked::No, _) => Err(NoCgroup::NotDelegated),
            (_, _, Writable::No) => Err(NoCgroup::NotWritable),
            (_, _, Writable::Yes) => Ok(place),
        }
    }
}

/// A group's path up to the first group of a run.
fn cut(path: &Path) -> PathBuf {
    let is_ours = |part: &Component<'_>| part.as_os_str().as_bytes().starts_with(PREFIX.as_bytes());
    path.components().take_while(|part| !is_ours(part)).collect()
}

/// The first mount of the unified hierarchy: its place, and the group that is there.
fn mounted(mountinfo: &[u8]) -> Option<(PathBuf, PathBuf)> {
    mountinfo.split(|byte| *byte == b'\n').find_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        let (before, after) = line.split_once(" - ")?;
        if after.split(' ').next()? != "cgroup2" {
            return None;
        }
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        Some((PathBuf::from(point), PathBuf::from(root)))
    })
}

/// The group of the unified hierarchy in `/proc/<pid>/cgroup`.
fn own_group(text: &[u8]) -> Option<PathBuf> {
    let line = text
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"0::"))?;
    Some(PathBuf::from(OsStr::from_bytes(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(mount: &str, root: &str, own: &str) -> Surroundings {
        Surroundings {
            mount: Some((mount.into(), root.into())),
            own: Some(own.into()),
            marked: Marked::No,
            writable: Writable::Yes,
        }
    }

    fn marked(around: Surroundings) -> Surroundings {
        Surroundings {
            marked: Marked::Yes,
            ..around
        }
    }

    #[track_caller]
    fn check(contain: Contain, around: &Surroundings, expected: &str) {
        let told = match choose(contain, around, "x") {
            Err(why) => format!("refused: {why}"),
            Ok(Containing { base, group, .. }) => {
                let shown = |path: Option<String>| path.unwrap_or_else(|| "-".to_owned());
                let group = group.map(|group| format!("{} {:?}", String::from_utf8_lossy(&group.path), group.need));
                format!(
                    "{} {}",
                    shown(base.map(|base| base.display().to_string())),
                    shown(group)
                )
            }
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn a_group_that_is_ours_to_divide_is_divided() {
        let machine = around("/c", "/", "/");
        check(Contain::Auto, &machine, "/c /c/runwarden-x Wanted");
        check(Contain::Cgroup, &machine, "/c /c/runwarden-x Required");
        check(Contain::Subreaper, &machine, "- -");
        // A container that sees its own group as the root, by a namespace or by the mount alone.
        check(
            Contain::Auto,
            &around("/c", "/docker/1", "/docker/1"),
            "/c /c/runwarden-x Wanted",
        );
        let delegated = marked(around("/c", "/", "/user.slice/a.service"));
        check(
            Contain::Auto,
            &delegated,
            "/c/user.slice/a.service /c/user.slice/a.service/runwarden-x Wanted",
        );
    }

    #[test]
    fn a_run_inside_a_run_is_its_sibling_and_leaves_its_group_in_any_case() {
        let inside = around("/c", "/", "/runwarden-a/runwarden-b/deeper");
        check(Contain::Auto, &inside, "/c /c/runwarden-x Wanted");
        check(Contain::Subreaper, &inside, "/c -");
        let inside = marked(around("/c", "/", "/a.service/runwarden-b"));
        check(Contain::Auto, &inside, "/c/a.service /c/a.service/runwarden-x Wanted");
    }

    #[test]
    fn what_is_somebody_elses_is_left_alone() {
        let foreign = around("/c", "/", "/user.slice/session-1.scope");
        check(Contain::Auto, &foreign, "- -");
        check(
            Contain::Cgroup,
            &foreign,
            "refused: the cgroup of this process is not delegated",
        );
        let read_only = Surroundings {
            writable: Writable::No,
            ..around("/c", "/", "/")
        };
        check(Contain::Auto, &read_only, "- -");
        check(
            Contain::Cgroup,
            &read_only,
            "refused: the cgroup of this process cannot be written",
        );
        let unseen = "refused: the cgroup of this process is not to be seen from here";
        check(Contain::Cgroup, &around("/c", "/", "/../other"), unseen);
        check(Contain::Cgroup, &around("/c", "/docker/1", "/docker/2"), unseen);
        let none = Surroundings {
            mount: None,
            ..around("/c", "/", "/")
        };
        check(Contain::Auto, &none, "- -");
        check(
            Contain::Cgroup,
            &none,
            "refused: no unified cgroup hierarchy is mounted",
        );
    }

    #[test]
    fn the_unified_hierarchy_is_found_beside_the_old_ones() {
        let mounts = b"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
            35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
            41 31 0:38 /a/b /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mounted(mounts), Some(("/sys/fs/cgroup/unified".into(), "/a/b".into())));
        assert_eq!(mounted(b"nonsense\n"), None);
        assert_eq!(own_group(b"9:name=systemd:/x\n0::/y\n"), Some("/y".into()));
        assert_eq!(own_group(b"9:name=systemd:/x\n"), None);
    }
}

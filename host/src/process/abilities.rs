//! What this machine's kernel lets us do, as `doctor` tells it. Nothing is made or changed to find out.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use super::containment::{Contain, NoCgroup, Surroundings, choose};
use super::identity::{Level, Place, capture};
use super::pidfd::PidFd;

/// From here on a descriptor of a process tells how it ended, also after it was reaped.
const EXIT_INFO_SINCE: (u32, u32) = (6, 15);

/// From here on a cgroup can be killed at once.
const CGROUP_KILL_SINCE: (u32, u32) = (5, 14);

/// What this machine's kernel lets us do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities {
    /// The kernel's release, as it tells it.
    pub kernel: String,
    /// Its first two numbers, where it has some.
    pub version: Option<(u32, u32)>,
    /// Whether processes can be held by descriptors.
    pub pidfd: bool,
    /// How well a process can be told from all others here.
    pub level: Level,
    /// Whether a descriptor of a process tells how it ended.
    pub exit_info: bool,
    /// Whether the kernel lists the children of a process.
    pub children_lists: bool,
    /// Whether an unprivileged user may have namespaces of his own.
    pub user_namespaces: bool,
    /// Whether a cgroup can be killed at once.
    pub cgroup_kill: bool,
    /// Why a run started here is not held by a cgroup; none when it is.
    pub no_cgroup: Option<NoCgroup>,
}

impl Abilities {
    /// Looks at this machine. What cannot be found out counts as absent.
    #[must_use]
    pub fn here() -> Self {
        let own = std::process::id().cast_signed();
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        let version = version(&kernel);
        let process = PidFd::open(own).ok();
        Self {
            version,
            pidfd: process.is_some(),
            level: capture(own, &Place::here(""), "").map_or(Level::None, |identity| identity.level()),
            exit_info: version >= Some(EXIT_INFO_SINCE) && process.as_ref().is_some_and(tells_info),
            children_lists: Path::new("/proc/thread-self/children").exists(),
            user_namespaces: user_namespaces(Path::new("/proc")),
            cgroup_kill: version >= Some(CGROUP_KILL_SINCE),
            no_cgroup: choose(Contain::Cgroup, &Surroundings::here(), "doctor").err(),
            kernel,
        }
    }
}

/// The first two numbers of a release such as `6.18.2-arch1`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// `PIDFD_GET_INFO` with the first version of its structure.
fn tells_info(process: &PidFd) -> bool {
    const PIDFD_GET_INFO: libc::c_ulong = 0xC040_FF0B;
    let mut info = [0_u64; 8];
    let descriptor = std::os::fd::AsFd::as_fd(process).as_raw_fd();
    // SAFETY: the request names a structure of 64 bytes, and that much room is ours.
    let answer = unsafe { libc::ioctl(descriptor, PIDFD_GET_INFO, info.as_mut_ptr()) };
    answer == 0
}

/// What the settings below `proc` say.
fn user_namespaces(proc: &Path) -> bool {
    let number = |path: &str| {
        let text = fs::read_to_string(proc.join(path)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let allowed = number("sys/user/max_user_namespaces").is_some_and(|most| most > 0);
    // Switches of distributions; where they are missing nobody forbids it.
    let forbidden = number("sys/kernel/unprivileged_userns_clone") == Some(0)
        || number("sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1);
    allowed && !forbidden
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn this_machine_tells_what_it_can() {
        let here = Abilities::here();
        assert!(here.version.is_some_and(|version| version >= (5, 0)), "{here:?}");
        assert_eq!(here.pidfd, here.level > Level::None, "{here:?}");
        assert!(!here.exit_info || here.level >= Level::PidfsInode, "{here:?}");
    }

    #[test]
    fn a_release_begins_with_two_numbers() {
        for (release, expected) in [
            ("6.18.2-arch1", Some((6, 18))),
            ("5.4", Some((5, 4))),
            ("6.9-rc1", Some((6, 9))),
            ("six", None),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
    }

    #[test]
    fn any_of_the_switches_forbids_namespaces() {
        let proc = tempfile::tempdir().unwrap();
        let set = |path: &str, value: &str| {
            let path = proc.path().join("sys").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value).unwrap();
        };
        assert!(!user_namespaces(proc.path()));
        set("user/max_user_namespaces", "1000\n");
        assert!(user_namespaces(proc.path()));
        set("kernel/unprivileged_userns_clone", "0\n");
        assert!(!user_namespaces(proc.path()));
        set("kernel/unprivileged_userns_clone", "1\n");
        set("kernel/apparmor_restrict_unprivileged_userns", "1\n");
        assert!(!user_namespaces(proc.path()));
    }
}

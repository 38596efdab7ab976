//! What the kernel and the login allow.

use super::Check;
use crate::process::{Abilities, AtLogout, Level};

/// From this kernel on every guarantee holds in full.
const KERNEL_FULL: (u32, u32) = (6, 9);

/// Judges the machine.
pub(super) fn checks(abilities: &Abilities, at_logout: AtLogout) -> Vec<Check> {
    vec![
        kernel(abilities),
        identity(abilities),
        list(abilities),
        containment(abilities),
        logout(at_logout),
    ]
}

fn kernel(abilities: &Abilities) -> Check {
    let release = &abilities.kernel;
    if !abilities.pidfd {
        Check::bad(
            "kernel",
            format!("{release}: it has no descriptors of processes, or a filter hides them"),
        )
        .hint("use Linux 6.9 or newer, or a container whose filter admits pidfd_open")
    } else if abilities.version >= Some(KERNEL_FULL) {
        Check::ok("kernel", format!("{release}: every guarantee holds in full"))
    } else {
        Check::warn(
            "kernel",
            format!("{release}: older than 6.9, from which on every guarantee holds in full"),
        )
    }
}

fn identity(abilities: &Abilities) -> Check {
    let word = abilities.level.text();
    match abilities.level {
        Level::PidfsHandle => Check::ok(
            "identity",
            format!("{word}: a process is found again, and never mistaken"),
        ),
        Level::PidfsInode => Check::ok("identity", format!("{word}: a process is never mistaken in this boot")),
        Level::Ticks => Check::warn(
            "identity",
            format!("{word}: a number that is used again within 10 ms could be mistaken"),
        ),
        Level::None => Check::bad(
            "identity",
            format!("{word}: a process is a bare number, and is never signalled"),
        ),
    }
}

/// What the kernel has of the things that are used where they are.
fn list(abilities: &Abilities) -> Check {
    let all = [
        ("pidfd", abilities.pidfd),
        ("pidfs inode", abilities.level >= Level::PidfsInode),
        ("pidfs handle", abilities.level >= Level::PidfsHandle),
        ("exit by pidfd", abilities.exit_info),
        ("children lists", abilities.children_lists),
        ("cgroup.kill", abilities.cgroup_kill),
        ("user namespaces", abilities.user_namespaces),
    ];
    let named = |present: bool| -> String {
        let names = all.iter().filter(|(_, has)| *has == present).map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    };
    Check::ok(
        "abilities",
        match (named(true), named(false)) {
            (has, lacks) if lacks.is_empty() => has,
            (has, lacks) if has.is_empty() => format!("none of {lacks}"),
            (has, lacks) => format!("{has}; without {lacks}"),
        },
    )
}

fn containment(abilities: &Abilities) -> Check {
    let said = match &abilities.no_cgroup {
        None if abilities.cgroup_kill => {
            "cgroup: a run has one of its own, which is killed and seen empty at once".to_owned()
        }
        None => "cgroup: a run has one of its own".to_owned(),
        Some(why) => format!("subreaper: the shim of a run adopts and reaps whatever it starts; {why}"),
    };
    Check::ok("containment", said)
}

fn logout(at_logout: AtLogout) -> Check {
    match at_logout {
        AtLogout::Survives => Check::ok("logout", "detached runs started here outlive a logout"),
        AtLogout::EndsWithSession => Check::warn(
            "logout",
            "detached runs started here end when you log out (KillUserProcesses=yes)",
        )
        .hint("loginctl enable-linger; then systemd-run --user --scope runwarden run --detach …"),
        AtLogout::EndsWithManager => Check::warn("logout", "detached runs started here end with your last session")
            .hint("loginctl enable-linger"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckResult::{self, Bad, Ok, Warn};
    use super::*;
    use crate::process::NoCgroup;

    fn machine(version: (u32, u32), level: Level) -> Abilities {
        Abilities {
            kernel: format!("{}.{}.0", version.0, version.1),
            version: Some(version),
            pidfd: level > Level::None,
            level,
            exit_info: version >= (6, 15),
            children_lists: true,
            user_namespaces: false,
            cgroup_kill: version >= (5, 14),
            no_cgroup: Some(NoCgroup::NotWritable),
        }
    }

    #[test]
    fn a_kernel_is_judged_by_what_it_can() {
        let judged = |version, level| -> Vec<CheckResult> {
            let all = checks(&machine(version, level), AtLogout::Survives);
            all.iter().map(|check| check.result).take(2).collect()
        };
        assert_eq!(judged((6, 18), Level::PidfsHandle), [Ok, Ok]);
        assert_eq!(judged((6, 9), Level::PidfsInode), [Ok, Ok]);
        assert_eq!(judged((6, 8), Level::Ticks), [Warn, Warn]);
        assert_eq!(judged((4, 19), Level::None), [Bad, Bad]);
    }

    #[test]
    fn abilities_are_listed_by_presence() {
        let said = list(&machine((6, 9), Level::PidfsInode)).message;
        assert_eq!(
            said,
            "pidfd, pidfs inode, children lists, cgroup.kill; without pidfs handle, exit by pidfd, user namespaces"
        );
    }

    #[test]
    fn what_holds_a_run_is_told_with_the_reason() {
        let mut machine = machine((6, 18), Level::PidfsHandle);
        assert!(containment(&machine).message.starts_with("subreaper: "));
        assert!(containment(&machine).message.contains("cannot be written"));
        machine.no_cgroup = None;
        assert!(containment(&machine).message.starts_with("cgroup: "));
    }

    #[test]
    fn a_logout_that_ends_runs_says_what_to_type() {
        for (at_logout, result) in [
            (AtLogout::Survives, Ok),
            (AtLogout::EndsWithSession, Warn),
            (AtLogout::EndsWithManager, Warn),
        ] {
            let check = logout(at_logout);
            assert_eq!(check.result, result);
            assert_eq!(check.hint.is_some(), result == Warn);
        }
    }
}

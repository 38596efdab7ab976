//! The members of an adopted set: they are not below us, so they are found by what marks them.
//!
//! A process is a member when it is in the set's cgroup, carries the attempt's token, belongs to the group that the worker
//! leads, or was started by a member; the shims of other runs and what is below them are not. All of that is read while a
//! descriptor holds the process, so a number that changes hands in between costs a look, never a stranger. What scrubbed
//! its environment, left the group and lost its parent before anybody looked is found by the cgroup alone: where there is
//! none, the proof that nobody is left is the weaker one, and the exit file names it.

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

use libc::pid_t;
use runwarden_shim::spared::Spared;
use runwarden_shim::spec::Adopt;
use runwarden_shim::stat::{self, Stat};

use crate::members::Member;
use crate::nesting::{self, own_pid};
use crate::sys::{self, Reach};

/// The variable in which a program finds the token of its attempt.
const TOKEN_VARIABLE: &str = "RUNWARDEN_ATTEMPT_TOKEN";
/// How often a look runs after processes that start while it looks.
const CATCH_UPS_MAX: usize = 32;
/// A chain of parents longer than this is taken for a broken reading.
const DEPTH_MAX: usize = 4096;

/// The members, as far as they were found.
pub(crate) struct Strangers {
    worker: Option<OwnedFd>,
    worker_pid: pid_t,
    /// When the worker was started, in clock ticks since boot.
    began_ticks: u64,
    variable: Vec<u8>,
    members: Vec<Stranger>,
}

struct Stranger {
    member: Member,
    pidfd: OwnedFd,
}

/// Whether a look saw every process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Whole,
    /// Processes were started faster than they were looked at.
    Behind,
}

impl Strangers {
    pub(crate) fn new(worker: Option<OwnedFd>, adopt: Adopt, token: &[u8]) -> Self {
        Self {
            worker,
            worker_pid: adopt.worker,
            began_ticks: adopt.worker_ticks,
            variable: [TOKEN_VARIABLE.as_bytes(), b"=", token].concat(),
            members: Vec::new(),
        }
    }

    /// Looks at every process, then at those that started meanwhile, until there are none. `listed` is who is in the
    /// cgroup.
    pub(crate) fn look(&mut self, spared: &Spared, listed: &[pid_t]) -> Look {
        self.members.retain(|stranger| !sys::is_exited(&stranger.pidfd));
        let mut seen_to = newest_pid();
        while self.take_in(&every_pid(), spared, listed) > 0 {}
        let mut look = Look::Behind;
        for _ in 0..CATCH_UPS_MAX {
            let newest = newest_pid();
            match (seen_to, newest) {
                (Some(seen), Some(newest)) if seen == newest => {
                    look = Look::Whole;
                    break;
                }
                (Some(seen), Some(newest)) if seen < newest => {
                    self.take_in(&(seen + 1..=newest).collect::<Vec<_>>(), spared, listed);
                }
                // The numbers began anew, or cannot be read.
                _ => drop(self.take_in(&every_pid(), spared, listed)),
            }
            seen_to = newest;
        }
        self.members.retain(|stranger| !sys::is_exited(&stranger.pidfd));
        look
    }

    /// Takes in those of these processes that are members; how many were new.
    pub(crate) fn take_in(&mut self, pids: &[pid_t], spared: &Spared, listed: &[pid_t]) -> usize {
        let before = self.members.len();
        for pid in pids.iter().copied() {
            if pid == own_pid() || pid <= 1 || self.knows(pid) {
                continue;
            }
            // Held first, then looked at, then asked whether it still runs: what was read was this process's.
            let Ok(pidfd) = sys::open_pidfd(pid) else { continue };
            let Ok(stat) = stat::read(pid) else { continue };
            let is_member = !stat.is_dead() && self.belongs(pid, &stat, listed) && !self.is_spared(pid, spared);
            if is_member && !sys::is_exited(&pidfd) {
                let member = Member { pid, stat };
                self.members.push(Stranger { member, pidfd });
            }
        }
        self.members.len() - before
    }

    /// Who lives, as far as the last look saw.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> + '_ {
        self.members
            .iter()
            .filter(|stranger| !sys::is_exited(&stranger.pidfd))
            .map(|stranger| &stranger.member)
    }

    /// Whether the process of this number is a member that was found.
    pub(crate) fn holds(&self, pid: pid_t) -> bool {
        self.members().any(|member| member.pid == pid)
    }

    /// Reports the end of one of those who live.
    pub(crate) fn watch(&self) -> Option<RawFd> {
        let living = self.members.iter().find(|stranger| !sys::is_exited(&stranger.pidfd))?;
        Some(living.pidfd.as_raw_fd())
    }

    fn knows(&self, pid: pid_t) -> bool {
        self.members.iter().any(|stranger| stranger.member.pid == pid)
    }

    fn belongs(&self, pid: pid_t, stat: &Stat, listed: &[pid_t]) -> bool {
        let is_worker = || pid == self.worker_pid && self.worker.as_ref().is_some_and(|worker| !sys::is_exited(worker));
        // The number of a group is not given to another as long as the group has a member.
        let of_group = || {
            let leader = self.worker.as_ref().filter(|_| stat.group == self.worker_pid);
            leader.is_some_and(|leader| sys::send_signal(leader.as_fd(), 0, Reach::Group) != Err(libc::ESRCH))
        };
        listed.contains(&pid) || is_worker() || self.holds(stat.parent) || of_group() || self.has_token(pid)
    }

    /// Whether a process is, or is below, the shim of a run that was started inside this one: registered with the shim that
    /// is gone, or younger than the worker. An older one is that of a run around this one.
    pub(crate) fn is_spared(&self, pid: pid_t, spared: &Spared) -> bool {
        let mut pid = pid;
        for _ in 0..DEPTH_MAX {
            if pid == own_pid() || spared.holds(pid) {
                return true;
            }
            let Ok(stat) = stat::read(pid) else { return false };
            if stat.name() == nesting::NAME.to_bytes() && stat.start_ticks >= self.began_ticks && nesting::is_shim(pid)
            {
                return true;
            }
            if stat.parent <= 1 || self.holds(pid) {
                return false;
            }
            pid = stat.parent;
        }
        false
    }

    fn has_token(&self, pid: pid_t) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == self.variable)
    }
}

fn every_pid() -> Vec<pid_t> {
    let directory = fs::read_dir("/proc").into_iter().flatten().flatten();
    directory
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The number given to a process last, in this pid namespace.
fn newest_pid() -> Option<pid_t> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.trim_end().rsplit(' ').next()?.parse().ok()
}

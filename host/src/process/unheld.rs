//! A set whose shim is gone: its members are found again and stopped by whoever notices.
//!
//! A process is a member when it is in the set's cgroup, carries the attempt's token, belongs to the process group that
//! the worker leads, or was started by a member. All of that is looked at while a descriptor holds the process, so a
//! number that changes hands in between costs a look, never a stranger. What scrubbed its environment, left the group and
//! lost its parent before anybody looked is not found without a cgroup: this is the weaker proof, and says so.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use runwarden_shim::stat::{self, Stat};
use rustix::process::Signal;

use super::containment::{TOKEN_DIGITS, is_unpopulated};
use super::exit::Survivor;
use super::identity::{Identity, Liveness, Place, classify};
use super::pidfd::{PidFd, Sent, signal, signal_group};

/// The proof that the kernel counts nobody in the set's cgroup.
pub const PROOF_CGROUP: &str = "cgroup_empty";
/// The proof that a look at every process, caught up with the newest, found no member.
pub const PROOF_SCAN: &str = "token_scan";

/// The variable in which a program finds the token of its attempt.
pub const TOKEN_VARIABLE: &str = "RUNWARDEN_ATTEMPT_TOKEN";

/// How often a look runs after processes that start while it looks, before it says that it is not caught up.
const CATCH_UPS_MAX: usize = 32;
/// After a signal, how long one member is waited for before all are looked for again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// A chain of parents longer than this is taken for a broken reading.
const DEPTH_MAX: usize = 256;
/// Groups below groups that are followed.
const CGROUP_DEPTH_MAX: usize = 16;

/// What is known of a set before it is looked for.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    /// The worker, as it was recorded.
    pub worker: Option<Identity>,
    /// The directory of its cgroup.
    pub cgroup: Option<PathBuf>,
    /// The token of its attempt.
    pub token: String,
    /// Shims of other runs: neither they nor what is below them is a member.
    pub spared: Vec<Identity>,
}

/// The set, as far as it has been found.
#[derive(Debug)]
pub struct UnheldSet {
    worker: Option<PidFd>,
    cgroup: Option<PathBuf>,
    variable: Vec<u8>,
    spared: Vec<PidFd>,
    members: BTreeMap<i32, Member>,
}

#[derive(Debug)]
struct Member {
    process: PidFd,
    stat: Stat,
    asked: bool,
}

/// What a look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Nobody is left; what proves it.
    Empty(&'static str),
    /// These live.
    Living(Vec<Survivor>),
}

/// What became of signals to the whole set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signalled {
    /// Members that got it.
    pub sent: usize,
    /// Members that the kernel kept it from.
    pub denied: usize,
}

impl UnheldSet {
    /// Begins with what was recorded; finds nobody yet.
    #[must_use]
    pub fn new(traces: &Traces, place: &Place) -> Self {
        let alive = |identity: &Identity| match classify(identity, place) {
            Liveness::Alive(process) => Some(process),
            Liveness::Gone { .. } | Liveness::Unknown { .. } => None,
        };
        Self {
            worker: traces.worker.as_ref().and_then(alive),
            cgroup: traces.cgroup.clone().filter(|path| is_own(path, &traces.token)),
            variable: format!("{TOKEN_VARIABLE}={}", traces.token).into_bytes(),
            spared: traces.spared.iter().filter_map(alive).collect(),
            members: BTreeMap::new(),
        }
    }

    /// Begins with a process that leads the set, and the token that it carries.
    pub(super) fn led_by(worker: PidFd, token: &str) -> Self {
        Self {
            worker: Some(worker),
            cgroup: None,
            variable: format!("{TOKEN_VARIABLE}={token}").into_bytes(),
            spared: Vec::new(),
            members: BTreeMap::new(),
        }
    }

    /// Kills the set, its leader last: whoever loses its parent meanwhile is still found below it, if it is the reaper of
    /// what it started. Who is left after this time; blocks for it, and for a look.
    pub(super) fn end_within(&mut self, at_most: Duration) -> Vec<Survivor> {
        let until = Instant::now() + at_most;
        if let Some(worker) = &self.worker {
            // Stopped, it starts nobody.
            let _ = signal(worker, Signal::STOP);
        }
        loop {
            let living = match self.look() {
                Look::Empty(_) => return Vec::new(),
                Look::Living(living) => living,
            };
            let leader = self.worker.as_ref().map(PidFd::pid);
            let is_late = Instant::now() >= until;
            if is_late || living.iter().all(|member| Some(member.pid) == leader) {
                self.kill();
            } else {
                self.kill_below();
            }
            let killed = self.members.values().map(|member| &member.process);
            let first = killed.min_by_key(|process| Some(process.pid()) == leader);
            let _ = first.map(|process| process.wait_for_exit(LOOK_AGAIN_AFTER));
            if is_late {
                return match self.look() {
                    Look::Empty(_) => Vec::new(),
                    Look::Living(living) => living,
                };
            }
        }
    }

    /// Kills every member that is known, but for the leader.
    fn kill_below(&self) {
        let leader = self.worker.as_ref().map(PidFd::pid);
        for member in self
            .members
            .values()
            .filter(|member| Some(member.process.pid()) != leader)
        {
            let _ = signal(&member.process, Signal::KILL);
        }
    }

    /// Looks at every process once, then at those that started meanwhile, until there are none.
    pub fn look(&mut self) -> Look {
        self.members.retain(|_, member| !is_over(&member.process));
        let mut caught_up = false;
        let mut seen_to = newest_pid();
        while self.take_in(&every_pid()) > 0 {}
        for _ in 0..CATCH_UPS_MAX {
            let newest = newest_pid();
            match (seen_to, newest) {
                (Some(seen), Some(newest)) if seen == newest => {
                    caught_up = true;
                    break;
                }
                (Some(seen), Some(newest)) if seen < newest => {
                    self.take_in(&(seen + 1..=newest).collect::<Vec<_>>());
                }
                // The numbers began anew, or cannot be read.
                _ => drop(self.take_in(&every_pid())),
            }
            seen_to = newest;
        }
        self.members.retain(|_, member| !is_over(&member.process));
        match (self.members.is_empty(), self.is_unpopulated()) {
            (true, Some(true)) => Look::Empty(PROOF_CGROUP),
            (true, None) if caught_up => Look::Empty(PROOF_SCAN),
            _ => Look::Living(self.members.values().map(survivor).collect()),
        }
    }

    /// Asks every member that was not asked before, and wakes those that are stopped.
    pub fn ask(&mut self, polite: Signal) -> Signalled {
        let mut signalled = Signalled::default();
        for member in self.members.values_mut().filter(|member| !member.asked) {
            member.asked = true;
            signalled.count(signal(&member.process, polite).ok());
            let _ = signal(&member.process, Signal::CONT);
        }
        signalled
    }

    /// Kills every member that is known.
    pub fn kill(&mut self) -> Signalled {
        // One by one first: whom a signal to all has killed would not count as having got one.
        let mut signalled = Signalled::default();
        for member in self.members.values() {
            signalled.count(signal(&member.process, Signal::KILL).ok());
        }
        // Nobody forks out of this; but it reaches everybody, those included that are to be spared.
        if let Some(cgroup) = &self.cgroup
            && !self.cgroup_members().iter().any(|pid| self.is_spared(*pid))
        {
            let _ = fs::write(cgroup.join("cgroup.kill"), "1");
        }
        if let Some(worker) = &self.worker {
            let _ = signal_group(worker, Some(Signal::KILL));
        }
        signalled
    }

    /// Removes the cgroup of a set that is empty, and those below it; the shim that made it cannot. The kernel keeps one
    /// that is not.
    pub fn remove_cgroup(&self) {
        let groups = self.cgroups();
        // The deepest come last.
        groups.iter().rev().for_each(|group| drop(fs::remove_dir(group)));
    }

    /// Takes in those of these processes that are members; how many were new.
    fn take_in(&mut self, pids: &[i32]) -> usize {
        let own = std::process::id().cast_signed();
        let listed = self.cgroup_members();
        let mut found = 0;
        for pid in pids.iter().copied() {
            if pid == own || pid <= 1 || self.members.contains_key(&pid) {
                continue;
            }
            // Held first, then looked at, then asked whether it still runs: what was read was this process's.
            let Ok(process) = PidFd::open(pid) else { continue };
            let Ok(stat) = stat::read(pid) else { continue };
            if stat.is_dead() || !self.belongs(pid, &stat, &listed) || self.is_spared(pid) || is_over(&process) {
                continue;
            }
            let asked = false;
            self.members.insert(pid, Member { process, stat, asked });
            found += 1;
        }
        found
    }

    fn belongs(&self, pid: i32, stat: &Stat, listed: &[i32]) -> bool {
        let is_worker = || self.worker.as_ref().is_some_and(|worker| worker.pid() == pid);
        let of_member = || {
            let parent = self.members.get(&stat.parent);
            parent.is_some_and(|parent| !is_over(&parent.process))
        };
        // The number of a group is not given to another as long as the group has a member.
        let of_group = || {
            let led = self.worker.as_ref().filter(|worker| worker.pid() == stat.group);
            led.is_some_and(|worker| matches!(signal_group(worker, None), Ok(Sent::Sent | Sent::Denied)))
        };
        listed.contains(&pid) || is_worker() || of_member() || of_group() || self.has_token(pid)
    }

    fn has_token(&self, pid: i32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == self.variable)
    }

    /// Whether a process is, or is below, the shim of another run.
    fn is_spared(&self, pid: i32) -> bool {
        let mut pid = pid;
        for _ in 0..DEPTH_MAX {
            if self.spared.iter().any(|shim| shim.pid() == pid && !is_over(shim)) {
                return true;
            }
            match stat::read(pid) {
                Ok(stat) if stat.parent > 1 => pid = stat.parent,
                Ok(_) | Err(_) => return false,
            }
        }
        false
    }

    /// Who is in the cgroup, and in those that the program made below it.
    fn cgroup_members(&self) -> Vec<i32> {
        let mut pids = Vec::new();
        for group in self.cgroups() {
            let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
        }
        pids
    }

    /// The cgroup and those below it, each before what is below it.
    fn cgroups(&self) -> Vec<PathBuf> {
        let mut groups: Vec<PathBuf> = self.cgroup.iter().cloned().collect();
        let mut level = groups.clone();
        for _ in 0..CGROUP_DEPTH_MAX {
            let below = level
                .iter()
                .flat_map(|group| fs::read_dir(group).into_iter().flatten().flatten());
            let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            level = below.map(|entry| entry.path()).collect();
            groups.extend(level.iter().cloned());
        }
        groups
    }

    /// What the kernel says of the cgroup; none without one.
    fn is_unpopulated(&self) -> Option<bool> {
        is_unpopulated(self.cgroup.as_ref()?)
    }
}

impl Signalled {
    fn count(&mut self, sent: Option<Sent>) {
        match sent {
            Some(Sent::Sent) => self.sent += 1,
            Some(Sent::Denied) => self.denied += 1,
            Some(Sent::AlreadyDead) | None => {}
        }
    }
}

/// Whether a cgroup was made for the attempt.
fn is_own(cgroup: &Path, token: &str) -> bool {
    let name = cgroup.file_name().unwrap_or_default().to_string_lossy();
    token.get(..TOKEN_DIGITS).is_some_and(|digits| name.contains(digits))
}

/// One that cannot be asked is taken for alive.
fn is_over(process: &PidFd) -> bool {
    process.has_exited().unwrap_or(false)
}

fn survivor(member: &Member) -> Survivor {
    let pid = member.process.pid();
    let now = stat::read(pid).unwrap_or(member.stat);
    Survivor {
        pid,
        comm: String::from_utf8_lossy(now.name()).into_owned(),
        state: char::from(now.state).to_string(),
        uid: stat::user_of(pid),
    }
}

fn every_pid() -> Vec<i32> {
    let directory = fs::read_dir("/proc").into_iter().flatten().flatten();
    directory
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The number given to a process last, in this pid namespace.
fn newest_pid() -> Option<i32> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.trim_end().rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests;

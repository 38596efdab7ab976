//! A set whose shim is gone: its members are found again and stopped by whoever notices.
//!
//! The search is the one of a shim that adopts ([`runwarden_shim::search`]). What scrubbed its environment, left the group
//! and lost its parent before anybody looked is not found without a cgroup: this is the weaker proof, and says so.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use runwarden_shim::search::TOKEN_VARIABLE;
use runwarden_shim::search::{Extent, Found, Held, Marks, Search};
use runwarden_shim::stat;
use rustix::process::Signal;

use super::containment::{TOKEN_DIGITS, is_unpopulated};
use super::exit::Survivor;
use super::identity::{Identity, Liveness, Place, classify};
use super::pidfd::{PidFd, Sent, signal, signal_group};

/// The proof that the kernel counts nobody in the set's cgroup.
pub const PROOF_CGROUP: &str = "cgroup_empty";
/// The proof that a look at every process, caught up with the newest, found no member.
pub const PROOF_SCAN: &str = "token_scan";

/// After a signal, how long one member is waited for before all are looked for again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
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
    search: Search<PidFd>,
    cgroup: Option<PathBuf>,
    spared: Vec<PidFd>,
}

impl Held for PidFd {
    fn open(pid: i32) -> io::Result<Self> {
        Self::open(pid)
    }

    /// One that cannot be asked is taken for alive.
    fn is_over(&self) -> bool {
        self.has_exited().unwrap_or(false)
    }

    fn leads_somebody(&self) -> bool {
        matches!(signal_group(self, None), Ok(Sent::Sent | Sent::Denied))
    }
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
        let worker = traces.worker.as_ref().and_then(alive);
        Self {
            search: search(worker, &traces.token),
            cgroup: traces.cgroup.clone().filter(|path| is_own(path, &traces.token)),
            spared: traces.spared.iter().filter_map(alive).collect(),
        }
    }

    /// Begins with a process that leads the set, and the token that it carries.
    pub(super) fn led_by(worker: PidFd, token: &str) -> Self {
        Self {
            search: search(Some(worker), token),
            cgroup: None,
            spared: Vec::new(),
        }
    }

    /// Kills the set, its leader last: whoever loses its parent meanwhile is still found below it, if it is the reaper of
    /// what it started. Who is left after this time; blocks for it, and for a look.
    pub(super) fn end_within(&mut self, at_most: Duration) -> Vec<Survivor> {
        let until = Instant::now() + at_most;
        if let Some(worker) = self.search.worker() {
            // Stopped, it starts nobody.
            let _ = signal(worker, Signal::STOP);
        }
        loop {
            let (extent, living) = self.find();
            let Look::Living(living) = self.told(extent, living) else {
                return Vec::new();
            };
            let leader = self.leader();
            let is_late = Instant::now() >= until;
            let is_alone = extent == Extent::Whole && living.iter().all(|member| Some(member.pid) == leader);
            if is_late || is_alone {
                self.kill();
            } else {
                self.kill_below();
            }
            self.wait_for_one(|pid| is_late || is_alone || Some(pid) != leader);
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
        let leader = self.leader();
        for (_, member) in self.search.members().filter(|(pid, _)| Some(*pid) != leader) {
            let _ = signal(&member.process, Signal::KILL);
        }
    }

    /// Waits a moment for one of those that were killed, if any was.
    fn wait_for_one(&self, was_killed: impl Fn(i32) -> bool) {
        let killed = self.search.members().find(|(pid, _)| was_killed(*pid));
        let _ = killed.map(|(_, member)| member.process.wait_for_exit(LOOK_AGAIN_AFTER));
    }

    fn leader(&self) -> Option<i32> {
        self.search.worker().map(PidFd::pid)
    }

    /// Looks at every process once, then at those that started meanwhile, until there are none.
    pub fn look(&mut self) -> Look {
        let (extent, living) = self.find();
        self.told(extent, living)
    }

    /// Who lives, and whether everybody was seen.
    fn find(&mut self) -> (Extent, Vec<Survivor>) {
        let (cgroup, spared) = (&self.cgroup, &self.spared);
        let mut extent = self.search.look(&Marks {
            listed: &|| cgroup_members(cgroup.as_deref()),
            is_other: &|pid, _| is_one_of(spared, pid),
        });
        let seen = self.search.members();
        let mut living = Vec::new();
        for (pid, member) in seen {
            match member.process.is_over() {
                true => extent = Extent::Behind,
                false => living.push(survivor((pid, member))),
            }
        }
        (extent, living)
    }

    fn told(&self, extent: Extent, living: Vec<Survivor>) -> Look {
        match (living.is_empty(), self.is_unpopulated()) {
            (true, Some(true)) => Look::Empty(PROOF_CGROUP),
            (true, None) if extent == Extent::Whole => Look::Empty(PROOF_SCAN),
            _ => Look::Living(living),
        }
    }

    /// Asks every member that was not asked before, and wakes those that are stopped.
    pub fn ask(&mut self, polite: Signal) -> Signalled {
        let mut signalled = Signalled::default();
        for member in self.search.members_mut().filter(|member| !member.was_asked) {
            member.was_asked = true;
            signalled.count(signal(&member.process, polite).ok());
            let _ = signal(&member.process, Signal::CONT);
        }
        signalled
    }

    /// Kills every member that is known.
    pub fn kill(&mut self) -> Signalled {
        // One by one first: whom a signal to all has killed would not count as having got one.
        let mut signalled = Signalled::default();
        for (_, member) in self.search.members() {
            signalled.count(signal(&member.process, Signal::KILL).ok());
        }
        // Nobody forks out of this; but it reaches everybody, those included that are to be spared.
        if let Some(cgroup) = &self.cgroup
            && !cgroup_members(Some(cgroup)).iter().any(|pid| self.is_spared(*pid))
        {
            let _ = fs::write(cgroup.join("cgroup.kill"), "1");
        }
        if let Some(worker) = self.search.worker() {
            let _ = signal_group(worker, Some(Signal::KILL));
        }
        signalled
    }

    /// Removes the cgroup of a set that is empty, and those below it; the shim that made it cannot. The kernel keeps one
    /// that is not.
    pub fn remove_cgroup(&self) {
        remove_groups(self.cgroup.as_deref());
    }

    /// Whether a process is, or is below, the shim of another run.
    fn is_spared(&self, pid: i32) -> bool {
        self.search.is_of_another(
            pid,
            &Marks {
                listed: &Vec::new,
                is_other: &|pid, _| is_one_of(&self.spared, pid),
            },
        )
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

/// Removes the cgroup that was made for an attempt, and those below it, if nobody is in them; the kernel keeps one with
/// somebody in it. A directory that was not made for the attempt is left alone.
pub fn remove_own_cgroup(cgroup: &Path, token: &str) {
    remove_groups(Some(cgroup).filter(|path| is_own(path, token)));
}

fn remove_groups(cgroup: Option<&Path>) {
    // The deepest come last.
    cgroups(cgroup)
        .iter()
        .rev()
        .for_each(|group| drop(fs::remove_dir(group)));
}

fn search(worker: Option<PidFd>, token: &str) -> Search<PidFd> {
    // No process has the number 0.
    let pid = worker.as_ref().map_or(0, PidFd::pid);
    Search::new(worker, pid, token.as_bytes())
}

fn is_one_of(spared: &[PidFd], pid: i32) -> bool {
    spared.iter().any(|shim| shim.pid() == pid && !shim.is_over())
}

/// Who is in the cgroup, and in those that the program made below it.
fn cgroup_members(cgroup: Option<&Path>) -> Vec<i32> {
    let mut pids = Vec::new();
    for group in cgroups(cgroup) {
        let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
    }
    pids
}

/// The cgroup and those below it, each before what is below it.
fn cgroups(cgroup: Option<&Path>) -> Vec<PathBuf> {
    let mut groups: Vec<PathBuf> = cgroup.into_iter().map(Path::to_path_buf).collect();
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

fn survivor((pid, member): (i32, &Found<PidFd>)) -> Survivor {
    let now = stat::read(pid).unwrap_or(member.stat);
    Survivor {
        pid,
        comm: String::from_utf8_lossy(now.name()).into_owned(),
        state: char::from(now.state).to_string(),
        uid: stat::user_of(pid),
    }
}

#[cfg(test)]
mod tests;

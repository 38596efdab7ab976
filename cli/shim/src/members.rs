//! Who belongs to the set: everything below the shim, found anew whenever it is needed.
//!
//! The shim is the subreaper of what it started, so a member that loses its parent becomes a child of the shim or of
//! another member; a walk from the shim reaches all of them, but for the shims of other runs and what is below those
//! ([`runwarden_shim::spared`]). A walk is never proof that none is left. Two things are:
//!
//! - ECHILD: the shim has no child, so nobody is below it.
//! - Every child of the shim is spared. A member's chain of parents ends in a child of the shim that is no spared one, so
//!   at the moment such a list was begun no member lived, and members come from members alone. The kernel keeps the
//!   list in order of arrival and takes a child out of it only when the shim reaps it, which it does not do meanwhile:
//!   nobody who was there at that moment is left out.
//!
//! The members of a set that was adopted are not below the shim: they are found as [`crate::strangers`] says.
//!
//! Where the set has a cgroup, it must be unpopulated as well: that also counts whom others put there.

use std::fs::{self, File};
use std::os::fd::{AsFd as _, RawFd};
use std::os::unix::fs::FileExt as _;

use libc::{c_int, pid_t};
use runwarden_shim::search::Extent;
use runwarden_shim::spared::{Record, Spared};
use runwarden_shim::stat::{self, Stat};

use crate::cgroup::Cgroup;
use crate::ending::{Proof, ProvedBy};
use crate::holding::Holding;
use crate::nesting::own_pid;
use crate::strangers::Strangers;
use crate::sys::{self, Reach};

/// A chain of parents longer than this is taken for a broken reading.
const DEPTH_MAX: usize = 4096;
/// How many of the newest pids one probe looks at.
const NEWEST: i32 = 6;

/// A process that belongs to the set.
#[derive(Clone, Copy)]
pub(crate) struct Member {
    pub(crate) pid: pid_t,
    pub(crate) stat: Stat,
}

/// Whether a set has processes of other runs in its midst.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spares {
    Nobody,
    Somebody,
}

/// Whether the shim has children.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kin {
    /// ECHILD.
    Nobody,
    Somebody,
}

/// Where a chain of parents leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kinship {
    /// To the shim.
    Below,
    /// To the shim of another run, or it is the shim itself.
    Spared,
    /// Elsewhere.
    None,
}

/// The set of one run.
pub(crate) struct Set {
    shim: pid_t,
    spared: Spared,
    holding: Holding,
    /// The members of an adopted set.
    strangers: Option<Strangers>,
    /// Its last field is the newest pid.
    load: Option<File>,
}

impl Set {
    pub(crate) fn below(shim: pid_t, spared: Spared, holding: Holding) -> Self {
        Self {
            shim,
            spared,
            holding,
            strangers: None,
            load: None,
        }
    }

    /// A set whose shim is gone.
    pub(crate) fn adopted(spared: Spared, holding: Holding, strangers: Strangers) -> Self {
        Self {
            strangers: Some(strangers),
            ..Self::below(own_pid(), spared, holding)
        }
    }

    /// Whether somebody below the shim is of another run; then no group may be signalled as a whole.
    pub(crate) fn spares(&mut self) -> Spares {
        self.spared.refresh();
        match self.spared.alive() {
            [] => Spares::Nobody,
            _ => Spares::Somebody,
        }
    }

    /// The proof that no member lives, if there is one.
    pub(crate) fn proof(&mut self, kin: Kin) -> Option<Proof> {
        let mut proof = match kin {
            _ if self.strangers.is_some() => self.no_stranger()?,
            Kin::Nobody => Proof {
                by: match self.holding {
                    Holding::Namespace(_) => ProvedBy::NamespaceEnded,
                    Holding::Nothing | Holding::Cgroup(_) => ProvedBy::NoChild,
                },
                spared: Vec::new(),
            },
            Kin::Somebody => Proof {
                by: ProvedBy::NoChildButSpared,
                spared: self.none_but_spared()?.to_vec(),
            },
        };
        match self.holding.cgroup().map(Cgroup::is_populated) {
            None => {}
            Some(false) => proof.by = ProvedBy::CgroupEmpty,
            // Whoever was put into the group from elsewhere is a member.
            Some(true) if self.group_members().is_empty() => {}
            Some(true) => return None,
        }
        Some(proof)
    }

    /// The proof that no member of an adopted set lives, but for what its cgroup says.
    fn no_stranger(&mut self) -> Option<Proof> {
        self.spared.refresh();
        let listed = self.group_members();
        let strangers = self.strangers.as_mut()?;
        let look = strangers.look(&self.spared, &listed);
        let whole = look == Extent::Whole || self.holding.cgroup().is_some();
        (whole && strangers.members().next().is_none()).then(|| Proof {
            by: ProvedBy::Scan,
            spared: Vec::new(),
        })
    }

    /// What reports that a member of an adopted set has ended.
    pub(crate) fn watch(&self) -> Option<RawFd> {
        self.strangers.as_ref()?.watch()
    }

    /// Who is spared, if they are all the children the shim has.
    fn none_but_spared(&mut self) -> Option<&[Record]> {
        if self.spares() == Spares::Nobody {
            return None;
        }
        let children = self.children_of(self.shim)?;
        let all_spared = children.iter().all(|child| self.spared.holds(*child));
        all_spared.then(|| self.spared.alive())
    }

    /// Whether a cgroup holds it.
    pub(crate) fn has_cgroup(&self) -> bool {
        self.holding.cgroup().is_some()
    }

    /// What reports that the cgroup may have become empty.
    pub(crate) fn events(&self) -> Option<RawFd> {
        self.holding.cgroup().map(Cgroup::events)
    }

    /// Takes note of such a report, so that it comes only once.
    pub(crate) fn hear_events(&self) {
        self.holding.cgroup().map(Cgroup::is_populated);
    }

    /// The worker has ended: what holds the set may end with its last member.
    pub(crate) fn release(&mut self) {
        if let Holding::Namespace(namespace) = &mut self.holding {
            namespace.release();
        }
    }

    /// Nobody is left: the cgroup goes, or later if somebody of another run is in it.
    pub(crate) fn let_go(&mut self) {
        if self.holding.cgroup().is_some_and(Cgroup::try_remove) {
            // One that is gone would report a change without end.
            self.holding = Holding::Nothing;
        }
    }

    /// Kills the whole namespace or cgroup, unless a process of another run could not be kept out of it.
    pub(crate) fn kill_group(&mut self) {
        self.spared.refresh();
        let cgroup = match &self.holding {
            Holding::Nothing => return,
            Holding::Namespace(namespace) => return namespace.kill(),
            Holding::Cgroup(cgroup) => cgroup,
        };
        let mixed =
            !self.spared.alive().is_empty() && cgroup.pids().iter().any(|pid| self.kinship(*pid) == Kinship::Spared);
        if !mixed {
            cgroup.kill();
        }
    }

    /// Who is in the cgroup and of this run.
    fn group_members(&self) -> Vec<pid_t> {
        let mut pids = self.holding.cgroup().map(Cgroup::pids).unwrap_or_default();
        pids.retain(|pid| self.kinship(*pid) != Kinship::Spared);
        pids
    }

    /// All members that live, as far as one walk sees them.
    pub(crate) fn members(&mut self) -> Vec<Member> {
        self.spared.refresh();
        let listed = self.group_members();
        let mut members = Vec::new();
        match self.children_of(self.shim) {
            _ if self.strangers.is_some() => {
                if let Some(strangers) = &mut self.strangers {
                    strangers.look(&self.spared, &listed);
                    members.extend(strangers.members());
                }
            }
            Some(children) => self.walk(children, &mut members),
            None => self.scan(&mut members),
        }
        for pid in listed {
            if !members.iter().any(|member| member.pid == pid)
                && let Ok(stat) = stat::read(pid)
                && !stat.is_dead()
            {
                members.push(Member { pid, stat });
            }
        }
        members
    }

    /// Sends the signals to every member of one walk, but for those in a group that has had them already: a program
    /// may count what it is sent.
    pub(crate) fn signal(&mut self, signals: &[c_int], reached: Option<pid_t>) {
        for member in self.members() {
            if reached != Some(member.stat.group) {
                self.signal_one(member.pid, signals);
            }
        }
    }

    /// Kills what a walk is too slow for: a process that forks and exits faster than a directory is read is among the
    /// newest pids.
    pub(crate) fn kill_newest(&mut self) {
        if self.load.is_none() {
            self.load = File::open("/proc/loadavg").ok();
        }
        let mut line = [0; 128];
        let Some(Ok(length)) = self.load.as_ref().map(|file| file.read_at(&mut line, 0)) else {
            return;
        };
        let newest = std::str::from_utf8(&line[..length])
            .ok()
            .and_then(|line| line.trim_end().rsplit(' ').next()?.parse().ok());
        let Some(newest): Option<pid_t> = newest else {
            return;
        };
        if let Some(strangers) = &mut self.strangers {
            strangers.take_in(&(newest - NEWEST + 1..=newest + 1).collect::<Vec<_>>(), &self.spared);
        }
        for pid in (newest - NEWEST + 1..=newest + 1).rev() {
            if pid > 1 && self.is_member(pid) {
                self.signal_one(pid, &[libc::SIGKILL]);
            }
        }
    }

    /// Sends through a descriptor that was opened before membership was looked up: if the number changed hands in
    /// between, the descriptor's process is dead and the signal reaches nobody.
    fn signal_one(&mut self, pid: pid_t, signals: &[c_int]) {
        let Ok(pidfd) = sys::open_pidfd(pid) else {
            return;
        };
        // Whoever registered in time is known from here on; nobody registers and begins anything in what follows.
        self.spared.refresh();
        if self.is_member(pid) {
            for signal in signals {
                let _ = sys::send_signal(pidfd.as_fd(), *signal, Reach::Process);
            }
        }
    }

    fn is_member(&self, pid: pid_t) -> bool {
        if self.holding.init() == Some(pid) {
            return false;
        }
        match self.kinship(pid) {
            Kinship::Below => true,
            Kinship::Spared => false,
            Kinship::None => self.holding.cgroup().is_some_and(|cgroup| cgroup.holds(pid)),
        }
    }

    fn kinship(&self, pid: pid_t) -> Kinship {
        if let Some(strangers) = &self.strangers {
            return match (strangers.is_spared(pid, &self.spared), strangers.holds(pid)) {
                (true, _) => Kinship::Spared,
                (false, true) => Kinship::Below,
                (false, false) => Kinship::None,
            };
        }
        let mut pid = pid;
        for _ in 0..DEPTH_MAX {
            if pid == self.shim || self.spared.holds(pid) {
                return Kinship::Spared;
            }
            match stat::read(pid) {
                Ok(stat) if stat.parent == self.shim => return Kinship::Below,
                Ok(stat) if stat.parent > 1 => pid = stat.parent,
                _ => return Kinship::None,
            }
        }
        Kinship::None
    }

    /// The children of every thread, or `None` where the kernel does not list them.
    fn children_of(&self, pid: pid_t) -> Option<Vec<pid_t>> {
        let mut children = Vec::new();
        for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
            let list = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
            children.extend(
                list.split_ascii_whitespace()
                    .filter_map(|pid| pid.parse::<pid_t>().ok()),
            );
        }
        Some(children)
    }

    fn walk(&self, children: Vec<pid_t>, members: &mut Vec<Member>) {
        let mut waiting = children;
        while let Some(pid) = waiting.pop() {
            if self.spared.holds(pid) {
                continue;
            }
            if let Ok(stat) = stat::read(pid) {
                // A dead leader may still have threads with children, so its children are looked at as well.
                waiting.extend(self.children_of(pid).unwrap_or_default());
                if !stat.is_dead() && self.holding.init() != Some(pid) {
                    members.push(Member { pid, stat });
                }
            }
        }
    }

    /// Without lists of children: reads every process and keeps those whose chain of parents leads to the shim.
    fn scan(&self, members: &mut Vec<Member>) {
        let Ok(directory) = fs::read_dir("/proc") else {
            return;
        };
        let numbers = directory.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<pid_t>().ok());
        let mut rest: Vec<Member> = numbers
            .filter_map(|pid| stat::read(pid).ok().map(|stat| Member { pid, stat }))
            .collect();
        let mut found = vec![self.shim];
        while let Some(parent) = found.pop() {
            for member in rest.extract_if(.., |member| member.stat.parent == parent) {
                if self.spared.holds(member.pid) {
                    continue;
                }
                found.push(member.pid);
                if !member.stat.is_dead() && self.holding.init() != Some(member.pid) {
                    members.push(member);
                }
            }
        }
    }
}

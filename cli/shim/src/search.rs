//! The search for the members of a set that is nobody's children: they are found by what marks them.
//!
//! A process is a member when it is in the set's cgroup, carries the attempt's token, belongs to the group that the worker
//! leads, or was started by a member; the shims of other runs and what is below them are not. All of that is read while a
//! descriptor holds the process, so a number that changes hands in between costs a look, never a stranger. What scrubbed
//! its environment, left the group and lost its parent before anybody looked is found by the cgroup alone: where there is
//! none, the proof that nobody is left is the weaker one.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use crate::stat::{self, Stat};

/// The variable in which a program finds the token of its attempt.
pub const TOKEN_VARIABLE: &str = "RUNWARDEN_ATTEMPT_TOKEN";

/// How often a look runs after processes that start while it looks.
const CATCH_UPS_MAX: usize = 32;
/// A chain of parents longer than this is taken for a broken reading.
const DEPTH_MAX: usize = 4096;

/// A process held by a descriptor, so that it is never mistaken for another.
pub trait Held: Sized {
    /// Holds whatever process has this number now.
    ///
    /// # Errors
    /// There is none, or it cannot be held.
    fn open(pid: i32) -> io::Result<Self>;

    /// Whether it is known to have ended.
    fn is_over(&self) -> bool;

    /// Whether the process group that it leads, or led, has a member.
    fn leads_somebody(&self) -> bool;
}

/// A member.
#[derive(Debug)]
pub struct Found<H> {
    /// The process.
    pub process: H,
    /// As it was when it was found.
    pub stat: Stat,
    /// Whether it was asked to end; for whoever asks each once.
    pub was_asked: bool,
}

/// What only the searcher can tell.
pub struct Marks<'a> {
    /// Who is in the set's cgroup now.
    pub listed: &'a dyn Fn() -> Vec<i32>,
    /// Whether a process is the shim of another run; without its stat line where that cannot be read.
    pub is_other: &'a dyn Fn(i32, Option<&Stat>) -> bool,
}

/// Whether a look saw every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It did, those included that started meanwhile.
    Whole,
    /// Processes were started faster than they were looked at.
    Behind,
}

/// The set, as far as it was found.
#[derive(Debug)]
pub struct Search<H> {
    worker: Option<H>,
    worker_pid: i32,
    variable: Vec<u8>,
    found: BTreeMap<i32, Found<H>>,
}

impl<H: Held> Search<H> {
    /// Begins with the worker, where it is held, its number, and the token of the attempt; finds nobody yet.
    pub fn new(worker: Option<H>, worker_pid: i32, token: &[u8]) -> Self {
        Self {
            worker,
            worker_pid,
            variable: [TOKEN_VARIABLE.as_bytes(), b"=", token].concat(),
            found: BTreeMap::new(),
        }
    }

    /// The worker, where it is held.
    pub fn worker(&self) -> Option<&H> {
        self.worker.as_ref()
    }

    /// Looks at every process, then at those that started meanwhile, until there are none.
    pub fn look(&mut self, marks: &Marks<'_>) -> Extent {
        self.found.retain(|_, member| !member.process.is_over());
        let mut seen_to = newest_pid();
        while self.take_in(&every_pid(), marks) > 0 {}
        let mut extent = Extent::Behind;
        for _ in 0..CATCH_UPS_MAX {
            let newest = newest_pid();
            match (seen_to, newest) {
                (Some(seen), Some(newest)) if seen == newest => {
                    extent = Extent::Whole;
                    break;
                }
                (Some(seen), Some(newest)) if seen < newest => {
                    self.take_in(&(seen + 1..=newest).collect::<Vec<_>>(), marks);
                }
                // The numbers began anew, or cannot be read: a child may come before its parent.
                _ => while self.take_in(&every_pid(), marks) > 0 {},
            }
            seen_to = newest;
        }
        extent
    }

    /// Takes in those of these processes that are members; how many were new.
    pub fn take_in(&mut self, pids: &[i32], marks: &Marks<'_>) -> usize {
        let own = std::process::id().cast_signed();
        let listed = (marks.listed)();
        let before = self.found.len();
        for pid in pids.iter().copied() {
            if pid == own || pid <= 1 || self.found.contains_key(&pid) {
                continue;
            }
            // Held first, then looked at, then asked whether it still runs: what was read was this process's.
            let Ok(process) = H::open(pid) else { continue };
            let Some(stat) = self.member(pid, &listed, marks) else {
                continue;
            };
            if !process.is_over() {
                let was_asked = false;
                self.found.insert(
                    pid,
                    Found {
                        process,
                        stat,
                        was_asked,
                    },
                );
            }
        }
        self.found.len() - before
    }

    /// Whom the last look saw alive, by number. One that ended since is among them, because nobody looked for what it may
    /// have started last: a number is given before there is a process to look at. The next look leaves it out.
    pub fn members(&self) -> impl Iterator<Item = (i32, &Found<H>)> + '_ {
        self.found.iter().map(|(pid, member)| (*pid, member))
    }

    /// The same, to be asked.
    pub fn members_mut(&mut self) -> impl Iterator<Item = &mut Found<H>> + '_ {
        self.found.values_mut().filter(|member| !member.process.is_over())
    }

    /// Whether the process of this number is a member that was found and lives.
    pub fn holds(&self, pid: i32) -> bool {
        self.found.get(&pid).is_some_and(|member| !member.process.is_over())
    }

    /// Whether a process is, or is below, the shim of another run.
    pub fn is_of_another(&self, pid: i32, marks: &Marks<'_>) -> bool {
        let mut pid = pid;
        for _ in 0..DEPTH_MAX {
            let stat = stat::read(pid).ok();
            if (marks.is_other)(pid, stat.as_ref()) {
                return true;
            }
            match stat {
                // Whoever is above a member was looked at when the member was found.
                Some(stat) if stat.parent > 1 && !self.holds(pid) => pid = stat.parent,
                Some(_) | None => return false,
            }
        }
        false
    }

    /// A process as it is, if it is a member.
    fn member(&self, pid: i32, listed: &[i32], marks: &Marks<'_>) -> Option<Stat> {
        let mut stat = stat::read(pid).ok()?;
        loop {
            if !stat.is_dead() && self.belongs(pid, &stat, listed) && !self.is_of_another(pid, marks) {
                return Some(stat);
            }
            // A member that ends is a parent no more: whoever has the child now was not asked about it.
            self.found.get(&stat.parent).filter(|parent| parent.process.is_over())?;
            let before = stat.parent;
            stat = stat::read(pid).ok().filter(|now| now.parent != before)?;
        }
    }

    fn belongs(&self, pid: i32, stat: &Stat, listed: &[i32]) -> bool {
        let is_worker = || pid == self.worker_pid && self.worker.as_ref().is_some_and(|worker| !worker.is_over());
        // The number of a group is not given to another as long as the group has a member.
        let of_group = || {
            let leader = self.worker.as_ref().filter(|_| stat.group == self.worker_pid);
            leader.is_some_and(Held::leads_somebody)
        };
        listed.contains(&pid) || is_worker() || self.holds(stat.parent) || of_group() || self.has_token(pid)
    }

    fn has_token(&self, pid: i32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == self.variable)
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

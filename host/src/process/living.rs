//! What a run has running now, for people and for naming survivors. Nothing is decided by it and nobody is signalled
//! through it: a look is old when it is read.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use runwarden_shim::files;
use runwarden_shim::spared::Spared;
use runwarden_shim::stat::{self, Stat, user_of};
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use super::ProcessError;
use super::exit::Survivor;

/// The name by which the kernel knows a shim.
const SHIM_NAME: &[u8] = b"runwarden-shim";

/// A live process of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Living {
    /// Its number, which alone names nothing.
    pub pid: i32,
    /// Its parent's number.
    pub parent: i32,
    /// How far below the run's shim it is; the worker is at 0.
    pub depth: usize,
    /// The kernel's name for it.
    pub name: String,
    /// Its words, as far as they can be read; empty for a kernel thread and for what has just ended.
    pub command: Vec<Vec<u8>>,
    /// The kernel's letter for its state: `R`, `S`, `D`, `T` and others of proc(5).
    pub state: char,
    /// Its real user.
    pub uid: Option<u32>,
    /// Memory in use, in bytes.
    pub memory_bytes: u64,
    /// Seconds since it was started.
    pub age_seconds: u64,
    /// The run whose shim it is, when it is one: that run, and all below it, is not part of this one.
    pub run: Option<String>,
}

/// Lists what lives below a shim, parents before children. Runs that were started inside are listed by their shims;
/// what is below those is not.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn living_below(shim: i32) -> Result<Vec<Living>, ProcessError> {
    let mut living = walk(shim)?;
    describe(&mut living);
    Ok(living)
}

/// Who lives below a shim and is of its run, as far as one look sees: for naming survivors, never as proof that there
/// are none.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn members_below(shim: i32) -> Result<Vec<Survivor>, ProcessError> {
    let members = walk(shim)?.into_iter().filter(|one| one.run.is_none());
    Ok(members.map(Survivor::from).collect())
}

impl From<Living> for Survivor {
    fn from(one: Living) -> Self {
        Self {
            pid: one.pid,
            comm: one.name,
            state: one.state.to_string(),
            uid: one.uid,
        }
    }
}

/// One look at everything below a shim.
fn walk(shim: i32) -> Result<Vec<Living>, ProcessError> {
    // A shim works in its run directory.
    let mut spared = Spared::at(format!("/proc/{shim}/cwd/{}", files::SPARED).as_ref());
    spared.refresh();
    let directory = fs::read_dir("/proc").map_err(ProcessError::file("read", "/proc"))?;
    let pids = directory.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let mut children: HashMap<i32, Vec<(i32, Stat)>> = HashMap::new();
    for (pid, stat) in pids.filter_map(|pid| Some((pid, stat::read(pid).ok()?))) {
        children.entry(stat.parent).or_default().push((pid, stat));
    }
    let mut living = Vec::new();
    let mut open = vec![(0, children.remove(&shim).unwrap_or_default())];
    while let Some((depth, mut siblings)) = open.pop() {
        siblings.sort_by_key(|(pid, _)| std::cmp::Reverse(*pid));
        let Some((pid, stat)) = siblings.pop() else { continue };
        let below = children.remove(&pid).unwrap_or_default();
        let run = spared.holds(pid).then(|| reference_of(&spared, pid));
        if stat.is_dead() {
            // A dead leader may have threads whose children live.
            siblings.extend(below);
            open.push((depth, siblings));
            continue;
        }
        open.push((depth, siblings));
        let own = described(pid, depth, &stat);
        if run.is_none() {
            living.push(own);
            open.push((depth + 1, below));
        } else if stat.name() == SHIM_NAME {
            // The other spared ones are commands that record ends: nobody's work.
            living.push(Living { run, ..own });
        }
    }
    Ok(living)
}

/// The same of processes that are known to be of a run: those that live of them, beside each other.
#[must_use]
pub fn living_among(pids: &[i32]) -> Vec<Living> {
    let read = |pid: &i32| Some((*pid, stat::read(*pid).ok().filter(|stat| !stat.is_dead())?));
    let found = pids.iter().filter_map(read);
    let mut living: Vec<Living> = found.map(|(pid, stat)| described(pid, 0, &stat)).collect();
    describe(&mut living);
    living
}

fn reference_of(spared: &Spared, pid: i32) -> String {
    let record = spared.alive().iter().find(|record| record.pid == pid);
    record.map_or_else(String::new, |record| record.reference.clone())
}

fn described(pid: i32, depth: usize, stat: &Stat) -> Living {
    Living {
        pid,
        parent: stat.parent,
        depth,
        name: String::from_utf8_lossy(stat.name()).into_owned(),
        command: Vec::new(),
        state: char::from(stat.state),
        uid: user_of(pid),
        memory_bytes: 0,
        age_seconds: 0,
        run: None,
    }
}

/// Adds what is only for display.
fn describe(living: &mut [Living]) {
    let pids: Vec<Pid> = living
        .iter()
        .map(|one| Pid::from_u32(one.pid.cast_unsigned()))
        .collect();
    // Without it the list has numbers and names alone.
    let Ok(mut system) = System::new() else { return };
    let what = ProcessRefreshKind::nothing()
        .with_cmd(UpdateKind::Always)
        .with_memory()
        .without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&pids), false, what);
    for (one, pid) in living.iter_mut().zip(pids) {
        let Some(found) = system.process(pid) else { continue };
        one.command = found.cmd().iter().map(|word| word.as_bytes().to_vec()).collect();
        one.memory_bytes = found.memory();
        one.age_seconds = found.run_time();
    }
}

//! Who a process is, so that it can be found again, and nobody else for it.
//!
//! An identity has layers, from the strongest: the file handle and the inode of the process in the pid file system
//! (never used twice in one boot), then pid and start ticks within boot, pid namespace and time namespace. Two sides
//! are compared at the strongest layer both have. There are three answers, and nothing follows from the third.

use std::fs;
use std::io;

use runwarden_shim::stat;
use serde::{Deserialize, Serialize};

use super::ProcessError;
use super::pidfd::PidFd;

/// Everything that was known of a process when it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The machine, as the caller names it.
    pub host: String,
    /// The boot it ran in.
    pub boot_id: String,
    /// Inode of the pid namespace in which `pid` means something.
    pub pid_namespace: Option<u64>,
    /// Inode of the time namespace in which `start_ticks` mean something.
    pub time_namespace: Option<u64>,
    /// The number of the process.
    pub pid: i32,
    /// Start in clock ticks since boot.
    pub start_ticks: Option<u64>,
    /// Inode in the pid file system (Linux 6.9).
    pub pidfs_inode: Option<u64>,
    /// File handle in the pid file system (Linux 6.14).
    pub pidfs_handle: Option<Vec<u8>>,
    /// Unique to the attempt the process belongs to.
    pub attempt_token: String,
}

/// How well a process can be told from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Not at all: a bare number.
    None,
    /// By pid and start ticks: told apart from everything but a reuse within 10 ms.
    Ticks,
    /// By its inode: told apart from everything in this boot.
    PidfsInode,
    /// By its file handle: as the inode, and found again without its number.
    PidfsHandle,
}

impl Level {
    /// The word used in records and reports.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ticks => "ticks",
            Self::PidfsInode => "pidfs_inode",
            Self::PidfsHandle => "pidfs_handle",
        }
    }
}

impl Identity {
    /// The strongest layer that was recorded.
    #[must_use]
    pub fn level(&self) -> Level {
        match (&self.pidfs_handle, self.pidfs_inode, self.start_ticks) {
            (Some(_), ..) => Level::PidfsHandle,
            (None, Some(_), _) => Level::PidfsInode,
            (None, None, Some(_)) => Level::Ticks,
            (None, None, None) => Level::None,
        }
    }
}

/// Where the caller is: what an identity is compared with besides the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The machine, as the caller names it.
    pub host: String,
    /// This boot.
    pub boot_id: Option<String>,
    /// Inode of the caller's pid namespace.
    pub pid_namespace: Option<u64>,
    /// Inode of the caller's time namespace.
    pub time_namespace: Option<u64>,
}

impl Place {
    /// Where this process is. What cannot be read stays unknown.
    #[must_use]
    pub fn here(host: impl Into<String>) -> Self {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Self {
            host: host.into(),
            boot_id: boot_id
                .map(|text| text.trim_end().to_owned())
                .filter(|text| !text.is_empty()),
            pid_namespace: namespace("pid"),
            time_namespace: namespace("time"),
        }
    }
}

fn namespace(kind: &str) -> Option<u64> {
    Some(rustix::fs::stat(format!("/proc/self/ns/{kind}")).ok()?.st_ino)
}

/// What is known of a recorded process now.
#[derive(Debug)]
pub enum Liveness {
    /// It runs; here it is.
    Alive(PidFd),
    /// It has positively ended.
    Gone {
        /// What says so.
        why: Gone,
    },
    /// Nothing is known, and nothing destructive may follow.
    Unknown {
        /// What is missing.
        why: Unknown,
    },
}

/// What says that a process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// It ran in an earlier boot of this machine.
    EarlierBoot,
    /// The kernel has forgotten it.
    NoSuchProcess,
    /// Another process has its number.
    Recycled,
    /// It has ended and waits to be reaped.
    Zombie,
    /// It ended while it was being looked at.
    Vanished,
}

/// Why nothing can be said of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// It was recorded on another machine.
    OtherHost,
    /// It was recorded in another pid namespace.
    OtherPidNamespace,
    /// Only its start ticks could tell, and they were recorded in another time namespace.
    OtherTimeNamespace,
    /// The record, or this place, lacks what a comparison needs.
    Incomplete,
    /// The kernel refuses to show it.
    Denied,
    /// Two layers that both sides have say different things.
    Contradiction,
    /// The kernel has no descriptors of processes.
    Unsupported,
}

/// Takes the identity of a process that the caller knows to be the right one: its own child, not yet reaped, or itself.
///
/// # Errors
/// When the process cannot be opened or has ended.
pub fn capture(pid: i32, place: &Place, attempt_token: &str) -> Result<Identity, ProcessError> {
    let process = PidFd::open(pid).map_err(ProcessError::system("open the process"))?;
    capture_held(&process, place, attempt_token)
}

/// Takes the identity of the process behind a descriptor.
pub(super) fn capture_held(process: &PidFd, place: &Place, token: &str) -> Result<Identity, ProcessError> {
    let stat = stat::read(process.pid()).ok();
    // Read, then asked: still running means that the line read was this process's.
    if process.has_exited()? {
        return Err(ProcessError::system("identify a process that has ended")(
            io::Error::from(io::ErrorKind::NotFound),
        ));
    }
    Ok(Identity {
        host: place.host.clone(),
        boot_id: place.boot_id.clone().unwrap_or_default(),
        pid_namespace: place.pid_namespace,
        time_namespace: place.time_namespace,
        pid: process.pid(),
        start_ticks: stat.map(|stat| stat.start_ticks),
        pidfs_inode: process.inode(),
        pidfs_handle: process.handle(),
        attempt_token: token.to_owned(),
    })
}

/// Says whether the recorded process still runs. This is the only place where that is judged.
#[must_use]
pub fn classify(identity: &Identity, place: &Place) -> Liveness {
    if let Some(answer) = classify_place(identity, place) {
        return answer;
    }
    match identity
        .pidfs_handle
        .as_deref()
        .map(|handle| PidFd::from_handle(handle, identity.pid))
    {
        Some(Ok(process)) => return judge(process, identity, place),
        Some(Err(error)) if error.raw_os_error() == Some(libc::ESTALE) => {
            return gone(Gone::NoSuchProcess);
        }
        // This kernel, or this process, cannot use handles: the next layer.
        Some(Err(_)) | None => {}
    }
    match PidFd::open(identity.pid) {
        Ok(process) => judge(process, identity, place),
        Err(error) => match error.raw_os_error() {
            Some(libc::ESRCH) => gone(Gone::NoSuchProcess),
            Some(libc::ENOSYS) => unknown(Unknown::Unsupported),
            Some(libc::EINVAL) | None => unknown(Unknown::Incomplete),
            Some(_) => unknown(Unknown::Denied),
        },
    }
}

fn gone(why: Gone) -> Liveness {
    Liveness::Gone { why }
}

fn unknown(why: Unknown) -> Liveness {
    Liveness::Unknown { why }
}

/// What follows from machine, boot and pid namespace alone, without a look at any process; none when they are ours.
#[must_use]
pub fn classify_place(identity: &Identity, place: &Place) -> Option<Liveness> {
    if identity.host != place.host {
        return Some(unknown(Unknown::OtherHost));
    }
    match &place.boot_id {
        Some(here) if !identity.boot_id.is_empty() => {
            if *here != identity.boot_id {
                return Some(gone(Gone::EarlierBoot));
            }
        }
        Some(_) | None => return Some(unknown(Unknown::Incomplete)),
    }
    match (identity.pid_namespace, place.pid_namespace) {
        (Some(recorded), Some(here)) if recorded == here => None,
        (Some(_), Some(_)) => Some(unknown(Unknown::OtherPidNamespace)),
        _ => Some(unknown(Unknown::Incomplete)),
    }
}

/// Compares the process behind a descriptor with the record.
fn judge(process: PidFd, identity: &Identity, place: &Place) -> Liveness {
    let same_inode = identity
        .pidfs_inode
        .zip(process.inode())
        .map(|(recorded, found)| recorded == found);
    if same_inode == Some(false) {
        return gone(Gone::Recycled);
    }
    let comparable = identity.time_namespace.is_some() && identity.time_namespace == place.time_namespace;
    let stat = stat::read(identity.pid);
    // Read, then asked: still running means that the line read was this process's.
    let same_ticks = match (identity.start_ticks, &stat) {
        (Some(recorded), Ok(found)) if comparable => Some(recorded == found.start_ticks),
        _ => None,
    };
    let is_dead = stat.as_ref().is_ok_and(stat::Stat::is_dead);
    match process.has_exited() {
        Ok(true) if same_inode == Some(true) || (is_dead && same_ticks == Some(true)) => return gone(Gone::Zombie),
        Ok(true) => return gone(Gone::Vanished),
        Ok(false) => {}
        Err(_) => return unknown(Unknown::Denied),
    }
    match (same_inode, same_ticks) {
        (Some(true), Some(false)) => unknown(Unknown::Contradiction),
        (Some(true), _) | (None, Some(true)) => Liveness::Alive(process),
        (None, Some(false)) => gone(Gone::Recycled),
        (None, None) if identity.start_ticks.is_none() => unknown(Unknown::Incomplete),
        (None, None) if !comparable => unknown(Unknown::OtherTimeNamespace),
        // It runs, yet it is hidden from us.
        (None, None) => unknown(Unknown::Denied),
        (Some(false), _) => gone(Gone::Recycled),
    }
}

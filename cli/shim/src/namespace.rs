//! A pid namespace for a run's set: whoever is born into it ends with its first process, the init, at the latest.
//!
//! The init is a copy of the shim that does nothing: it reaps who lost their parents, and ends when the worker has ended
//! and nobody is left, or when it is killed. The worker is born into the namespace as a child of the shim all the same,
//! so that its end is seen as ever. If the shim dies, the set lives on as without a namespace.
//!
//! Without privileges the namespace needs a user namespace around it, in which the user is who they were and nobody
//! else exists. The set sees a `/proc` of its own, so it has a mount namespace too.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use libc::pid_t;

use crate::sys::{self, Errno, Reach};

/// The init of an empty namespace ends far sooner; nobody waits longer for it.
const ALONE_WITHIN_MS: i32 = 20;

/// A namespace whose init lives; dropped, all of it is killed.
pub(crate) struct Namespace {
    init: pid_t,
    pidfd: OwnedFd,
    flags: u64,
    /// Held open while the worker lives: the init ends no sooner.
    hold: Option<OwnedFd>,
}

impl Namespace {
    /// Makes the namespace with its init.
    pub(crate) fn make() -> Result<Self, Errno> {
        let plain = sys::NEW_PID | sys::NEW_MOUNT;
        match Self::with(plain) {
            Err(libc::EPERM) => Self::with(plain | sys::NEW_USER),
            other => other,
        }
    }

    fn with(flags: u64) -> Result<Self, Errno> {
        let (ready, told) = sys::pipe()?;
        let (waits, hold) = sys::pipe()?;
        let user = sys::user();
        let init = sys::clone_with(flags, None)?;
        if init == 0 {
            drop((ready, hold));
            be_init(flags, user, File::from(told), File::from(waits));
        }
        drop((told, waits));
        let pidfd = sys::open_pidfd(init)?;
        let mut answer = [0; 4];
        let errno = match File::from(ready).read_exact(&mut answer) {
            Ok(()) => i32::from_le_bytes(answer),
            Err(_) => libc::ECHILD,
        };
        let namespace = Self {
            init,
            pidfd,
            flags,
            hold: Some(hold),
        };
        // After a failure the init has ended; the main loop, if there is one, reaps it.
        if errno == 0 { Ok(namespace) } else { Err(errno) }
    }

    /// As [`sys::fork`]: 0 in a copy that lives in the namespace and is a child of this process.
    pub(crate) fn fork_inside(&self) -> Result<pid_t, Errno> {
        let (reader, writer) = sys::pipe()?;
        let helper = sys::fork()?;
        if helper == 0 {
            // Entering a pid namespace counts for children alone; the child is made the shim's, not the helper's.
            let made = sys::enter(self.pidfd.as_fd(), self.flags).and_then(|()| sys::clone_with(sys::SIBLING, None));
            if made == Ok(0) {
                return Ok(0);
            }
            let answer = made.unwrap_or_else(|errno| -errno);
            let _ = File::from(writer).write_all(&answer.to_le_bytes());
            sys::exit_now(0);
        }
        drop(writer);
        let mut answer = [0; 4];
        let read = File::from(reader).read_exact(&mut answer);
        sys::reap(helper);
        match i32::from_le_bytes(answer) {
            pid @ 1.. if read.is_ok() => Ok(pid),
            0 => Err(libc::ECHILD),
            failed => Err(-failed),
        }
    }

    /// The init, which is below the shim and no member.
    pub(crate) fn init(&self) -> pid_t {
        self.init
    }

    /// Lets the init end when nobody but it is left.
    pub(crate) fn release(&mut self) {
        self.hold = None;
        // Most often it is alone: then the first record of the end says already that the set is empty.
        let mut fds = [libc::pollfd {
            fd: self.pidfd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        }];
        sys::poll(&mut fds, ALONE_WITHIN_MS);
    }

    /// Kills the init, and with it everybody; nobody forks out of that.
    pub(crate) fn kill(&self) {
        let _ = sys::send_signal(self.pidfd.as_fd(), libc::SIGKILL, Reach::Process);
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The life of the init.
fn be_init(flags: u64, user: (u32, u32), mut told: File, mut waits: File) -> ! {
    let prepared = if flags & sys::NEW_USER == 0 {
        Ok(())
    } else {
        map_user(user)
    };
    let errno = prepared.and_then(|()| sys::mount_proc()).err().unwrap_or(0);
    let answered = told.write_all(&errno.to_le_bytes());
    drop(told);
    if errno != 0 || answered.is_err() {
        sys::exit_now(1);
    }
    // The lock above all: it would say that the shim lives.
    sys::close_all_but(waits.as_raw_fd());
    // The kernel reaps for who ignores the ends of children.
    sys::ignore_signal(libc::SIGCHLD);
    sys::set_name(INIT_NAME);
    let _ = sys::change_to(c"/");
    let _ = waits.read(&mut [0]);
    sys::wait_for_no_child();
    sys::exit_now(0);
}

const INIT_NAME: &CStr = c"runwarden-init";

/// The user and the group, each itself.
fn map_user((user, group): (u32, u32)) -> Result<(), Errno> {
    let files = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{user} {user} 1")),
        ("/proc/self/gid_map", format!("{group} {group} 1")),
    ];
    for (path, text) in files {
        fs::write(path, text).map_err(|error| sys::number(&error))?;
    }
    Ok(())
}

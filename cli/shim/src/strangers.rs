//! The members of an adopted set: they are not below us, so they are searched for ([`runwarden_shim::search`]). What the
//! search does not know is which shims are those of other runs.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

use libc::pid_t;
use runwarden_shim::search::{Extent, Held, Marks, Search};
use runwarden_shim::spared::Spared;
use runwarden_shim::spec::Adopt;
use runwarden_shim::stat::Stat;

use crate::members::Member;
use crate::nesting::{self, own_pid};
use crate::sys::{self, Reach};

/// The members, as far as they were found.
pub(crate) struct Strangers {
    search: Search<Pidfd>,
    /// When the worker was started, in clock ticks since boot.
    began_ticks: u64,
}

/// A process by its descriptor.
struct Pidfd(OwnedFd);

impl Held for Pidfd {
    fn open(pid: i32) -> io::Result<Self> {
        sys::open_pidfd(pid).map(Self).map_err(io::Error::from_raw_os_error)
    }

    fn is_over(&self) -> bool {
        sys::is_exited(&self.0)
    }

    fn leads_somebody(&self) -> bool {
        sys::send_signal(self.0.as_fd(), 0, Reach::Group) != Err(libc::ESRCH)
    }
}

impl Strangers {
    pub(crate) fn new(worker: Option<OwnedFd>, adopt: Adopt, token: &[u8]) -> Self {
        Self {
            search: Search::new(worker.map(Pidfd), adopt.worker, token),
            began_ticks: adopt.worker_ticks,
        }
    }

    /// Looks at every process. `listed` is who is in the cgroup.
    pub(crate) fn look(&mut self, spared: &Spared, listed: &[pid_t]) -> Extent {
        let began_ticks = self.began_ticks;
        self.search.look(&Marks {
            listed: &|| listed.to_vec(),
            is_other: &|pid, stat| is_other(pid, stat, (spared, began_ticks)),
        })
    }

    /// Takes in those of these processes that are members.
    pub(crate) fn take_in(&mut self, pids: &[pid_t], spared: &Spared) {
        let began_ticks = self.began_ticks;
        self.search.take_in(
            pids,
            &Marks {
                listed: &Vec::new,
                is_other: &|pid, stat| is_other(pid, stat, (spared, began_ticks)),
            },
        );
    }

    /// Who lives, as far as the last look saw.
    pub(crate) fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.search
            .members()
            .map(|(pid, found)| Member { pid, stat: found.stat })
    }

    /// Whether the process of this number is a member that was found.
    pub(crate) fn holds(&self, pid: pid_t) -> bool {
        self.search.holds(pid)
    }

    /// Reports the end of one of those who live.
    pub(crate) fn watch(&self) -> Option<RawFd> {
        let (_, living) = self.search.members().next()?;
        Some(living.process.0.as_raw_fd())
    }

    /// Whether a process is, or is below, the shim of a run that was started inside this one.
    pub(crate) fn is_spared(&self, pid: pid_t, spared: &Spared) -> bool {
        self.search.is_of_another(
            pid,
            &Marks {
                listed: &Vec::new,
                is_other: &|pid, stat| is_other(pid, stat, (spared, self.began_ticks)),
            },
        )
    }
}

/// Whether a process is the shim of a run that was started inside this one: registered with the shim that is gone, or
/// younger than the worker. An older one is that of a run around this one.
fn is_other(pid: pid_t, stat: Option<&Stat>, (spared, began_ticks): (&Spared, u64)) -> bool {
    let is_young_shim = |stat: &Stat| {
        stat.name() == nesting::NAME.to_bytes() && stat.start_ticks >= began_ticks && nesting::is_shim(pid)
    };
    pid == own_pid() || spared.holds(pid) || stat.is_some_and(is_young_shim)
}

//! The end of a worker that is somebody else's child: its shim was killed, and another process will reap it or has.
//!
//! A descriptor of the process reports that it has ended. How it ended is told, in this order, by the descriptor once the
//! process was reaped (Linux 6.15), and by its line in `/proc` until then. Where neither tells, nobody knows, and no
//! status is made up.

use std::fs;
use std::mem::zeroed;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use libc::{c_int, pid_t};
use runwarden_shim::clock;

use crate::sys::{self, Reach};
use crate::worker::End;

/// A status that cannot be read before the process is reaped is waited for so long.
const PATIENCE_MS: u64 = 5_000;
/// Between two looks meanwhile.
const PAUSE_MS: u64 = 20;

/// Watches a worker that was adopted.
#[derive(Default)]
pub(crate) struct Witness {
    /// Since when it is known to have ended, without its status.
    ended_since_ms: Option<u64>,
}

impl Witness {
    /// The end, once it can be told; without a status where nobody can tell it.
    pub(crate) fn look(&mut self, worker: Option<&OwnedFd>, pid: pid_t) -> Option<End> {
        let status = match worker {
            None => None,
            Some(worker) => {
                if !sys::is_exited(worker) {
                    return None;
                }
                let status = told_by_descriptor(worker.as_fd())
                    .or_else(|| told_by_line(worker.as_fd(), pid))
                    .or_else(|| told_by_descriptor(worker.as_fd()));
                let now_ms = clock::boottime_ms();
                let since_ms = *self.ended_since_ms.get_or_insert(now_ms);
                if status.is_none() && !is_reaped(worker.as_fd()) && now_ms - since_ms < PATIENCE_MS {
                    return None;
                }
                status
            }
        };
        Some(End { status, usage: None })
    }

    /// Whether the descriptor has nothing to report any more.
    pub(crate) fn is_pending(&self) -> bool {
        self.ended_since_ms.is_some()
    }

    /// When to look again, on the clock that counts from boot.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.ended_since_ms.map(|_| clock::boottime_ms() + PAUSE_MS)
    }
}

/// What the kernel keeps for those who hold a descriptor of a process that was reaped.
fn told_by_descriptor(worker: BorrowedFd<'_>) -> Option<c_int> {
    /// `struct pidfd_info` of Linux 6.15.
    #[repr(C)]
    struct Info {
        mask: u64,
        cgroup: u64,
        numbers: [u32; 11],
        exit_code: i32,
    }
    /// `PIDFD_INFO_EXIT`.
    const EXIT: u64 = 1 << 3;
    /// `PIDFD_GET_INFO`: reads and writes the structure, in group 0xFF, number 11.
    const GET_INFO: u64 = 3 << 30 | (size_of::<Info>() as u64) << 16 | 0xFF << 8 | 11;
    // SAFETY: `info` is plain data as long as the request says; the call fills it.
    unsafe {
        let mut info: Info = zeroed();
        info.mask = EXIT;
        let answer = libc::ioctl(worker.as_raw_fd(), GET_INFO as _, &raw mut info);
        (answer == 0 && info.mask & EXIT != 0).then_some(info.exit_code)
    }
}

/// The last field of a zombie's line. Who may not see it reads 0 there, so 0 is believed only of a process of our own
/// user, whom the kernel shows it.
fn told_by_line(worker: BorrowedFd<'_>, pid: pid_t) -> Option<c_int> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let ours = is_ours(pid);
    if is_reaped(worker) {
        // The number may have been another's already.
        return None;
    }
    let rest = &line[line.iter().rposition(|byte| *byte == b')')?..];
    let status = std::str::from_utf8(rest).ok()?.split_ascii_whitespace().last()?;
    status.parse().ok().filter(|status| *status != 0 || ours)
}

/// Whether all users and groups of a process are ours.
fn is_ours(pid: pid_t) -> bool {
    let (user, group) = sys::user();
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let all = |name: &[u8], number: u32| {
        let line = status
            .split(|byte| *byte == b'\n')
            .find_map(|line| line.strip_prefix(name));
        let line = line.and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
        let mut numbers = line.split_ascii_whitespace().peekable();
        numbers.peek().is_some() && numbers.all(|word| word.parse() == Ok(number))
    };
    all(b"Uid:", user) && all(b"Gid:", group)
}

/// A zombie takes signals, nobody does not.
fn is_reaped(worker: BorrowedFd<'_>) -> bool {
    sys::send_signal(worker, 0, Reach::Process) == Err(libc::ESRCH)
}

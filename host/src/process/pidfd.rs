//! A process held by descriptor: the only thing that is ever signalled.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, pidfd_send_signal, waitid,
};

use super::ProcessError;

/// `PID_FS_MAGIC`: descriptors of processes have inodes of their own (Linux 6.9).
const PIDFS_MAGIC: rustix::fs::FsWord = 0x5049_4446;
/// Room for a file handle of the pid file system: 8 bytes today.
const HANDLE_BYTES: usize = 32;

/// A process, held by a descriptor that no other process can ever be mistaken for.
#[derive(Debug)]
pub struct PidFd {
    descriptor: OwnedFd,
    pid: i32,
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The kernel accepted it.
    Sent,
    /// The process had ended.
    AlreadyDead,
    /// The kernel refused: the process is another user's.
    Denied,
}

/// Sends a signal to the process, never to another one that got its number.
///
/// # Errors
/// When the kernel answers anything but sent, gone or refused.
pub fn signal(process: &PidFd, signal: Signal) -> Result<Sent, ProcessError> {
    // A zombie accepts signals; that is no news of a living process.
    if process.has_exited()? {
        return Ok(Sent::AlreadyDead);
    }
    match pidfd_send_signal(process, signal) {
        Ok(()) => Ok(Sent::Sent),
        Err(rustix::io::Errno::SRCH) => Ok(Sent::AlreadyDead),
        Err(rustix::io::Errno::PERM) => Ok(Sent::Denied),
        Err(errno) => Err(ProcessError::system("send a signal")(errno)),
    }
}

/// Whether the process may be signalled; sends nothing.
///
/// # Errors
/// As [`signal`].
pub fn may_signal(process: &PidFd) -> Result<Sent, ProcessError> {
    if process.has_exited()? {
        return Ok(Sent::AlreadyDead);
    }
    send(process, None, 0).map_err(ProcessError::system("ask whether a signal is allowed"))
}

/// Sends a signal, or none to ask whether it has members, to the process group that the process leads or led: the
/// descriptor keeps its number from meaning another group. [`Sent::AlreadyDead`] when it leads none, or none is left of
/// it, or the kernel cannot (before Linux 6.9).
pub(super) fn signal_group(process: &PidFd, signal: Option<Signal>) -> io::Result<Sent> {
    /// `PIDFD_SIGNAL_PROCESS_GROUP`.
    const GROUP: libc::c_uint = 1 << 2;
    match send(process, signal, GROUP) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(Sent::AlreadyDead),
        other => other,
    }
}

fn send(process: &PidFd, signal: Option<Signal>, flags: libc::c_uint) -> io::Result<Sent> {
    let number = signal.map_or(0, Signal::as_raw);
    // SAFETY: the descriptor is open, no information is passed, and the kernel checks number and flags.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.descriptor.as_raw_fd(),
            number,
            std::ptr::null::<libc::siginfo_t>(),
            flags,
        )
    };
    if answer == 0 {
        return Ok(Sent::Sent);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(Sent::AlreadyDead),
        Some(libc::EPERM) => Ok(Sent::Denied),
        _ => Err(error),
    }
}

impl PidFd {
    pub(super) fn from_descriptor(descriptor: OwnedFd, pid: i32) -> Self {
        Self { descriptor, pid }
    }

    /// Opens whatever process has this number now.
    pub(super) fn open(pid: i32) -> io::Result<Self> {
        // A record may hold any number; one below 1 names no process.
        let number = Some(pid).filter(|pid| *pid > 0).and_then(Pid::from_raw);
        let number = number.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self {
            descriptor: pidfd_open(number, PidfdFlags::empty())?,
            pid,
        })
    }

    /// The same process, by another descriptor.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            descriptor: self.descriptor.try_clone()?,
            pid: self.pid,
        })
    }

    /// Waits for a child of ours to end and takes its end. Blocks for as long as it lives.
    pub(super) fn reap(&self) -> io::Result<WaitIdStatus> {
        loop {
            match waitid(WaitId::PidFd(self.as_fd()), WaitIdOptions::EXITED) {
                Ok(Some(status)) => return Ok(status),
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// The process's number, for people and for `/proc`.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether the process has ended, reaped or not.
    ///
    /// # Errors
    /// When the kernel cannot say.
    pub fn has_exited(&self) -> Result<bool, ProcessError> {
        self.wait_for_exit(Duration::ZERO)
    }

    /// Waits for the process to end, at most this long; whether it has. Blocks.
    ///
    /// # Errors
    /// When the kernel cannot say.
    pub fn wait_for_exit(&self, at_most: Duration) -> Result<bool, ProcessError> {
        wait_readable(self.as_fd(), at_most)
    }

    /// The inode in the pid file system, where there is one.
    pub(super) fn inode(&self) -> Option<u64> {
        let system = rustix::fs::fstatfs(&self.descriptor).ok()?;
        if system.f_type != PIDFS_MAGIC {
            return None;
        }
        Some(rustix::fs::fstat(&self.descriptor).ok()?.st_ino)
    }

    /// The file handle in the pid file system (Linux 6.14): type, then bytes.
    pub(super) fn handle(&self) -> Option<Vec<u8>> {
        self.inode()?;
        let mut handle = RawHandle {
            bytes: HANDLE_BYTES as u32,
            kind: 0,
            data: [0; HANDLE_BYTES],
        };
        let mut mount: libc::c_int = 0;
        let descriptor = self.descriptor.as_raw_fd();
        // SAFETY: the path is empty, the handle has room for as many bytes as it says, `mount` receives one int.
        let answer = unsafe {
            let (path, out, mount) = (c"".as_ptr(), &raw mut handle, &raw mut mount);
            libc::syscall(
                libc::SYS_name_to_handle_at,
                descriptor,
                path,
                out,
                mount,
                libc::AT_EMPTY_PATH,
            )
        };
        if answer == -1 {
            return None;
        }
        let mut bytes = handle.kind.to_le_bytes().to_vec();
        bytes.extend_from_slice(handle.data.get(..handle.bytes as usize)?);
        Some(bytes)
    }

    /// Opens the very process a handle was taken of; `ESTALE` when it is gone.
    pub(super) fn from_handle(handle: &[u8], pid: i32) -> io::Result<Self> {
        let (kind, data) = handle.split_first_chunk::<4>().ok_or(io::ErrorKind::InvalidInput)?;
        let mut raw = RawHandle {
            bytes: 0,
            kind: i32::from_le_bytes(*kind),
            data: [0; HANDLE_BYTES],
        };
        raw.data
            .get_mut(..data.len())
            .ok_or(io::ErrorKind::InvalidInput)?
            .copy_from_slice(data);
        raw.bytes = data.len() as u32;
        // Any descriptor of the file system names it; FD_PIDFS_ROOT would need a newer kernel.
        let own = Self::open(std::process::id().cast_signed())?;
        let flags = libc::O_CLOEXEC;
        // SAFETY: the handle is valid for as many bytes as it says.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                own.descriptor.as_raw_fd(),
                &raw const raw,
                flags,
            )
        };
        match i32::try_from(opened) {
            Ok(number) if number >= 0 => {
                // SAFETY: the kernel just made this descriptor for us.
                let descriptor = unsafe { std::os::fd::FromRawFd::from_raw_fd(number) };
                Ok(Self { descriptor, pid })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// `struct file_handle` with room for its bytes.
#[repr(C)]
struct RawHandle {
    bytes: u32,
    kind: i32,
    data: [u8; HANDLE_BYTES],
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl AsRawFd for PidFd {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// Waits until a descriptor is readable, at most this long; whether it is.
pub(super) fn wait_readable(descriptor: BorrowedFd<'_>, at_most: Duration) -> Result<bool, ProcessError> {
    let until = std::time::Instant::now() + at_most;
    loop {
        let left = until.saturating_duration_since(std::time::Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        });
        let mut fds = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(ProcessError::system("wait for a descriptor")(errno)),
        }
    }
}

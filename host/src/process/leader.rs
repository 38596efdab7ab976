//! A process that leads what it starts: the reaper of all of it, in a session of its own, and killed with us.
//!
//! It is made without a copy of this process, as `posix_spawn` makes one: until it executes it runs in our memory, on a
//! stack of its own, and the thread that makes it waits for that long. A copy of a large process costs milliseconds: its
//! page tables are copied, and each page that it writes next is a fault, in every thread. `posix_spawn` itself can make
//! no reaper, and with `pre_exec` the standard library makes the copy.
//!
//! What the child does meanwhile is system calls alone (`be_born`): it takes no lock, allocates nothing, and returns
//! nowhere. No signal reaches a handler in it, because a handler would act on our memory.

use std::ffi::c_void;
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_int, c_ulong};
use runwarden_shim::executable::Executable;

use super::PidFd;

/// The child's stack: some frames and the C library's wrappers of system calls.
const STACK_BYTES: usize = 64 << 10;
/// The highest signal there is.
const SIGNAL_MAX: c_int = 64;

/// Starts a program in `/` with these streams and no signal blocked or caught. It dies with the thread that calls this.
/// Blocks until it executes. Its end is ours to take ([`PidFd::reap`]).
///
/// # Errors
/// It cannot be executed, with the reason that exec gives; there is no process then.
pub(super) fn start_leader(program: &Executable, input: impl AsFd, output: impl AsFd) -> io::Result<PidFd> {
    let (input, output) = (above_streams(input)?, above_streams(output)?);
    let birth = Birth {
        program,
        input: input.as_raw_fd(),
        output: output.as_raw_fd(),
        parent: std::process::id().cast_signed(),
        errno: AtomicI32::new(0),
    };
    let child = give_birth(&birth)?;
    match birth.errno.load(Ordering::Relaxed) {
        0 => Ok(child),
        errno => {
            child.reap()?; // it has nothing left to do but to end
            Err(io::Error::from_raw_os_error(errno))
        }
    }
}

/// What the child needs, in memory that both have.
struct Birth<'a> {
    program: &'a Executable,
    input: RawFd,
    output: RawFd,
    parent: libc::pid_t,
    /// Why it did not execute; 0 when it did.
    errno: AtomicI32,
}

/// A copy of a descriptor that none of the standard streams is put over.
fn above_streams(descriptor: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?)
}

fn give_birth(birth: &Birth<'_>) -> io::Result<PidFd> {
    let mut stack = Box::<[u128; STACK_BYTES / size_of::<u128>()]>::new_uninit();
    let top = stack.as_mut_ptr().wrapping_add(1).cast::<c_void>();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut pidfd: RawFd = -1;
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the child shares our memory, so this thread's part of it must stay as it is while the child uses it: the
    // call returns when the child has executed or ended, and `birth` and `stack` outlive it. `be_born` gets the pointer
    // that it takes and does what its comment says. The sets are initialised by the calls that fill them; all signals
    // are held back meanwhile, so that none is delivered to the child before it has no handlers.
    let pid = unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let argument = std::ptr::from_ref(birth).cast_mut().cast::<c_void>();
        let pid = libc::clone(be_born, top, flags, argument, &raw mut pidfd);
        let failed = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
        if pid == -1 { Err(failed) } else { Ok(pid) }
    }?;
    // SAFETY: the kernel just made this descriptor for us.
    Ok(PidFd::from_descriptor(unsafe { OwnedFd::from_raw_fd(pidfd) }, pid))
}

/// The child's life until exec. It does not return: a failure is written where the parent reads it.
extern "C" fn be_born(argument: *mut c_void) -> c_int {
    // SAFETY: `give_birth` passes a `Birth` that outlives this.
    let birth = unsafe { &*argument.cast_const().cast::<Birth<'_>>() };
    let errno = match prepare(birth) {
        Ok(()) => birth.program.execute(),
        Err(NotPrepared) => io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
    };
    birth.errno.store(errno, Ordering::Relaxed);
    // SAFETY: ends the child alone; nothing of the parent's runs at its exit.
    unsafe { libc::_exit(127) }
}

/// A step failed; `errno` says why.
struct NotPrepared;

fn prepare(birth: &Birth<'_>) -> Result<(), NotPrepared> {
    let done = |answer: c_int| if answer == -1 { Err(NotPrepared) } else { Ok(()) };
    let one: c_ulong = 1;
    // SAFETY: system calls without memory of ours but for a literal and sets that they fill.
    unsafe {
        forget_handlers();
        done(libc::setsid())?;
        done(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, one))?;
        done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong))?;
        // Whoever was our parent and died before that is never told of.
        if libc::getppid() != birth.parent {
            libc::_exit(127);
        }
        for (from, to) in [(birth.input, 0), (birth.output, 1), (birth.output, 2)] {
            done(libc::dup2(from, to))?;
        }
        // What whoever started us left open is none of the program's. Kernels before 5.11 refuse; ours are marked anyway.
        let (first, last) = (3 as libc::c_uint, libc::c_uint::MAX);
        libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC);
        done(libc::chdir(c"/".as_ptr()))?;
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        done(libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), null_mut()))
    }
}

/// Has every signal that is caught do what it does by default, and the one that Rust ignores. What whoever started us
/// chose to ignore stays ignored.
///
/// # Safety
/// Only in a child that shares no handlers with its parent.
unsafe fn forget_handlers() {
    for signal in 1..=SIGNAL_MAX {
        // SAFETY: `sigaction` is plain data; a signal that does not exist or is the C library's own is refused.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            let is_known = libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0;
            let is_caught = action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN;
            if is_known && (is_caught || signal == libc::SIGPIPE) {
                action = zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, null_mut());
            }
        }
    }
}

#[cfg(test)]
mod tests;

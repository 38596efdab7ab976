//! The system calls the shim makes, each behind one safe function. Errors are bare error numbers.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use libc::{c_int, c_long, pid_t};
use runwarden_shim::spec::Window;

pub(crate) type Errno = i32;

/// Not in libc for every architecture (Linux 5.7).
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
pub(crate) const NEW_PID: u64 = libc::CLONE_NEWPID as u64;
pub(crate) const NEW_MOUNT: u64 = libc::CLONE_NEWNS as u64;
pub(crate) const NEW_USER: u64 = libc::CLONE_NEWUSER as u64;
/// The copy is a child of our parent.
pub(crate) const SIBLING: u64 = libc::CLONE_PARENT as u64;

pub(crate) fn errno() -> Errno {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// The number behind an error of std's, `EIO` when there is none.
pub(crate) fn number(error: &io::Error) -> Errno {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn check(result: c_int) -> Result<c_int, Errno> {
    if result == -1 { Err(errno()) } else { Ok(result) }
}

fn owned(result: c_long) -> Result<OwnedFd, Errno> {
    match RawFd::try_from(result) {
        // SAFETY: the kernel just made this descriptor for us; nobody else owns it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(errno()),
    }
}

/// Makes a copy of this process; 0 in the copy.
pub(crate) fn fork() -> Result<pid_t, Errno> {
    // SAFETY: the shim has one thread, so the copy may do whatever the original may.
    check(unsafe { libc::fork() })
}

/// As [`fork`], but the copy is born into a cgroup: moving it there later would cost milliseconds, because a move waits
/// for every processor.
pub(crate) fn fork_into(cgroup: Option<BorrowedFd<'_>>) -> Result<pid_t, Errno> {
    match cgroup {
        Some(_) => clone_with(0, cgroup),
        None => fork(),
    }
}

/// As [`fork`], into namespaces of its own or as a sibling.
pub(crate) fn clone_with(flags: u64, cgroup: Option<BorrowedFd<'_>>) -> Result<pid_t, Errno> {
    // SAFETY: clone_args is plain data; all zero but for what follows it asks for a plain copy.
    let mut wanted: libc::clone_args = unsafe { zeroed() };
    wanted.flags = flags;
    // A sibling's end is told as its maker's is.
    wanted.exit_signal = if flags & SIBLING == 0 { libc::SIGCHLD as u64 } else { 0 };
    if let Some(cgroup) = cgroup {
        wanted.flags |= CLONE_INTO_CGROUP;
        wanted.cgroup = cgroup.as_raw_fd() as u64;
    }
    // SAFETY: without CLONE_VM this is a fork; the structure is as long as said and outlives the call.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const wanted, size_of::<libc::clone_args>()) };
    check(pid as c_int)
}

/// Opens a directory for [`fork_into`].
pub(crate) fn open_directory(path: &CStr) -> Result<OwnedFd, Errno> {
    // SAFETY: a NUL-terminated path.
    owned(c_long::from(unsafe {
        libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC)
    }))
}

/// As [`fork`], but the copy becomes a sibling: a child of our parent and no member of our set.
pub(crate) fn fork_sibling() -> Result<Option<OwnedFd>, Errno> {
    let mut pidfd: RawFd = -1;
    let flags = libc::CLONE_PARENT | libc::CLONE_PIDFD;
    // SAFETY: without CLONE_VM this is a fork; the third argument receives the pidfd on every architecture.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            c_long::from(flags),
            0_usize,
            &raw mut pidfd,
            0_usize,
            0_usize,
        )
    };
    match pid {
        -1 => Err(errno()),
        0 => Ok(None),
        _ => owned(c_long::from(pidfd)).map(Some),
    }
}

pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: ends the process; nothing of ours needs to run at exit.
    unsafe { libc::_exit(code) }
}

pub(crate) fn new_session() {
    // SAFETY: no memory involved; it fails only for a group leader, which a fresh copy is not.
    unsafe { libc::setsid() };
}

/// What the process is called in the process list.
pub(crate) fn set_name(name: &CStr) {
    // SAFETY: a NUL-terminated string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

pub(crate) fn become_subreaper() {
    // SAFETY: no memory involved.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut ends = [-1; 2];
    // SAFETY: `ends` has room for two descriptors.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok((owned(c_long::from(ends[0]))?, owned(c_long::from(ends[1]))?))
}

pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) {
    // SAFETY: no memory involved.
    unsafe {
        let flags = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK);
    }
}

/// Keeps 0, 1 and 2 occupied, so that no descriptor of ours is taken for a standard stream.
pub(crate) fn occupy_standard_streams() {
    loop {
        // SAFETY: a literal path; the descriptor is left open on purpose when it is a standard stream.
        let fd = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        if fd > 2 {
            // SAFETY: the descriptor is ours.
            unsafe { libc::close(fd) };
        }
        if !(0..=2).contains(&fd) {
            return;
        }
    }
}

/// Takes over a descriptor that this process was given.
pub(crate) fn inherited(fd: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: no memory involved; fails when the descriptor is not open.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    owned(c_long::from(fd))
}

/// Takes the lock or fails at once.
pub(crate) fn lock(file: &File) -> Result<(), Errno> {
    // SAFETY: no memory involved.
    check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }).map(drop)
}

/// Whether somebody holds the lock that [`lock`] takes. Ours, if it is free, goes with the file.
pub(crate) fn is_locked(file: &File) -> bool {
    // SAFETY: no memory involved.
    check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) }) == Err(libc::EWOULDBLOCK)
}

/// Allocates the first `bytes` bytes of a file on its disk.
pub(crate) fn reserve(file: &File, bytes: usize) -> Result<(), Errno> {
    // SAFETY: no memory involved.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) } {
        0 => Ok(()),
        error => Err(error),
    }
}

/// Whether the other side of a socket has yet to read something.
pub(crate) fn has_unread(socket: BorrowedFd<'_>) -> bool {
    let mut count: c_int = 0;
    // SAFETY: TIOCOUTQ writes one int.
    unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    count > 0
}

fn signal_set(signals: &[c_int]) -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, initialised by sigemptyset.
    unsafe {
        let mut set = zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Holds every signal back; the ones we act on are read from the descriptor.
pub(crate) fn hold_signals(wanted: &[c_int]) -> Result<OwnedFd, Errno> {
    let wanted = signal_set(wanted);
    // SAFETY: both sets are initialised and outlive the calls.
    unsafe {
        let mut all = zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        owned(c_long::from(libc::signalfd(
            -1,
            &raw const wanted,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        )))
    }
}

pub(crate) fn release_signals() {
    let none = signal_set(&[]);
    // SAFETY: the set is initialised and outlives the call.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) };
}

pub(crate) fn ignore_signal(signal: c_int) {
    // SAFETY: no handler function involved.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// By the raw call: the C library keeps two signals to itself, and they are inherited like any other.
pub(crate) fn default_signal(signal: c_int) {
    // The kernel's sigaction (handler, flags, restorer, mask), all zero: the default.
    let action = [0_u64; 8];
    let nothing = std::ptr::null::<u64>();
    // SAFETY: `action` is longer than the kernel's structure; no handler function involved.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), nothing, 8_usize) };
}

/// Whether a signal is ignored; inherited that way, it stays so across exec.
pub(crate) fn is_ignored(signal: c_int) -> bool {
    // SAFETY: `action` is plain data that the call fills.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// The next signal waiting on the descriptor.
pub(crate) fn next_signal(signals: BorrowedFd<'_>) -> Option<c_int> {
    let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
    // SAFETY: `info` is as long as one record.
    let length = unsafe { libc::read(signals.as_raw_fd(), info.as_mut_ptr().cast(), info.len()) };
    // The record starts with the signal's number.
    (length == info.len() as isize).then(|| u32::from_ne_bytes([info[0], info[1], info[2], info[3]]) as c_int)
}

pub(crate) fn open_pidfd(pid: pid_t) -> Result<OwnedFd, Errno> {
    // SAFETY: no memory involved.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// Whom a signal through a pidfd reaches.
#[derive(Clone, Copy)]
pub(crate) enum Reach {
    Process = 0,
    /// `PIDFD_SIGNAL_PROCESS_GROUP`: the group the process leads, also after its death.
    Group = 4,
}

pub(crate) fn send_signal(pidfd: BorrowedFd<'_>, signal: c_int, reach: Reach) -> Result<(), Errno> {
    let info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is allowed and means "as kill(2) would".
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            info,
            reach as libc::c_uint,
        )
    };
    if sent == -1 { Err(errno()) } else { Ok(()) }
}

/// A child that ended.
pub(crate) struct Reaped {
    pub(crate) pid: pid_t,
    pub(crate) status: c_int,
    pub(crate) usage: libc::rusage,
}

/// What is left of the children.
pub(crate) enum Children {
    Ended(Box<Reaped>),
    Living,
    /// ECHILD: the kernel's word that there are none, adopted ones included.
    None,
}

pub(crate) fn reap_one() -> Children {
    let mut status = 0;
    // SAFETY: rusage is plain data that the call fills.
    let mut usage = unsafe { zeroed() };
    // SAFETY: both pointers are valid for the length of the call.
    match unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG | libc::__WALL, &raw mut usage) } {
        0 => Children::Living,
        -1 => match errno() {
            libc::ECHILD => Children::None,
            _ => Children::Living,
        },
        pid => Children::Ended(Box::new(Reaped { pid, status, usage })),
    }
}

/// Waits for the end of one child.
pub(crate) fn reap(pid: pid_t) {
    // SAFETY: no memory involved.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } == -1 && errno() == libc::EINTR {}
}

/// Waits until this process has no child; needs SIGCHLD to be ignored.
pub(crate) fn wait_for_no_child() {
    // SAFETY: no memory involved.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::__WALL) } != -1 || errno() == libc::EINTR {}
}

/// The effective user and group.
pub(crate) fn user() -> (u32, u32) {
    // SAFETY: no memory involved.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Enters namespaces of another process: the pid namespace for children made from now on.
pub(crate) fn enter(process: BorrowedFd<'_>, namespaces: u64) -> Result<(), Errno> {
    // SAFETY: no memory involved; the shim has one thread.
    check(unsafe { libc::setns(process.as_raw_fd(), namespaces as c_int) }).map(drop)
}

/// Shows this mount namespace the processes of this pid namespace.
pub(crate) fn mount_proc() -> Result<(), Errno> {
    let nothing = std::ptr::null();
    let proc = c"proc".as_ptr();
    let private = libc::MS_REC | libc::MS_PRIVATE;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: literal paths; no data is passed.
    unsafe {
        check(libc::mount(nothing, c"/".as_ptr(), nothing, private, std::ptr::null()))?;
        check(libc::mount(proc, c"/proc".as_ptr(), proc, flags, std::ptr::null())).map(drop)
    }
}

/// Closes every descriptor above the standard streams but one.
pub(crate) fn close_all_but(kept: RawFd) {
    let kept = kept as libc::c_uint;
    for (first, last) in [(3, kept.saturating_sub(1)), (kept + 1, libc::c_uint::MAX)] {
        if first <= last {
            // SAFETY: only called in a copy that uses none of them any more.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}

/// Waits for one of the descriptors; -1 is for ever.
pub(crate) fn poll(fds: &mut [libc::pollfd], timeout_ms: c_int) {
    // SAFETY: the slice is valid for the length of the call; an interruption leaves every revents 0 or stale-free.
    if unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) } < 0 {
        for fd in fds {
            fd.revents = 0;
        }
    }
}

/// A pseudo-terminal: master and slave.
pub(crate) fn open_terminal(window: Window) -> Result<(OwnedFd, OwnedFd), Errno> {
    // SAFETY: no memory involved.
    let master = owned(c_long::from(unsafe {
        libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC)
    }))?;
    let mut name = [0; 64];
    // SAFETY: the master is open; `name` is as long as said, and NUL-terminated when the call succeeds.
    let slave = unsafe {
        check(libc::grantpt(master.as_raw_fd()))?;
        check(libc::unlockpt(master.as_raw_fd()))?;
        match libc::ptsname_r(master.as_raw_fd(), name.as_mut_ptr(), name.len()) {
            0 => owned(c_long::from(libc::open(
                name.as_ptr(),
                libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC,
            )))?,
            error => return Err(error),
        }
    };
    set_window(master.as_fd(), window);
    Ok((master, slave))
}

pub(crate) fn set_window(master: BorrowedFd<'_>, window: Window) {
    let size = libc::winsize {
        ws_row: window.rows,
        ws_col: window.columns,
        ws_xpixel: window.width,
        ws_ypixel: window.height,
    };
    // SAFETY: TIOCSWINSZ reads one winsize.
    unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
}

pub(crate) fn take_terminal(slave: RawFd) -> Result<(), Errno> {
    // SAFETY: no memory involved.
    check(unsafe { libc::ioctl(slave, libc::TIOCSCTTY, 0) }).map(drop)
}

pub(crate) fn put_at(from: RawFd, to: RawFd) -> Result<(), Errno> {
    // SAFETY: no memory involved; only called in a copy that is about to exec.
    check(unsafe { libc::dup2(from, to) }).map(drop)
}

pub(crate) fn close_on_exec_from(first: libc::c_uint) {
    // SAFETY: marks descriptors only. Kernels before 5.11 refuse; ours are all marked one by one anyway.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
}

pub(crate) fn change_to(directory: &CStr) -> Result<(), Errno> {
    // SAFETY: a NUL-terminated path.
    check(unsafe { libc::chdir(directory.as_ptr()) }).map(drop)
}

/// Changes to an open directory.
pub(crate) fn change_back(directory: &File) {
    // SAFETY: no memory involved.
    unsafe { libc::fchdir(directory.as_raw_fd()) };
}

/// Becomes another program, or says why not. `argv` and `environment` come from
/// [`runwarden_shim::executable::pointers`].
pub(crate) fn execute(path: &CStr, argv: &[*const libc::c_char], environment: &[*const libc::c_char]) -> Errno {
    // SAFETY: both arrays are null-terminated and point to strings that outlive the call.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
    errno()
}

/// As [`execute`], with the program given by descriptor.
pub(crate) fn execute_image(image: RawFd, argv: &[*const libc::c_char], environment: &[*const libc::c_char]) -> Errno {
    let (argv, environment) = (argv.as_ptr(), environment.as_ptr());
    // SAFETY: both arrays are null-terminated and point to strings that outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            image,
            c"".as_ptr(),
            argv,
            environment,
            libc::AT_EMPTY_PATH,
        )
    };
    errno()
}

/// Gives the starter's copies of large freed blocks back to the kernel.
pub(crate) fn release_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no pointers involved.
    unsafe {
        libc::malloc_trim(0);
    }
}

pub(crate) fn is_exited(pidfd: &OwnedFd) -> bool {
    let mut fds = [libc::pollfd {
        fd: pidfd.as_fd().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    }];
    poll(&mut fds, 0);
    fds[0].revents & libc::POLLIN != 0
}

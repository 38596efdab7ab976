//! The shim: parent, reaper and witness of one run. One thread, one poll loop, as little memory as can be.
//!
//! It is started with a control socket at descriptor 3, the run's reference as its first argument and, if it is to leave
//! the caller's cgroup, the directory of another one as its second. It copies itself once, so that nobody has to wait
//! for it. It owns the run directory's lock, logs and exit file. If it dies half-way: before the gate opens nothing was
//! executed; afterwards the worker lives on without a witness, and the free lock tells everybody so.
#![cfg_attr(not(test), no_main)]

mod cgroup;
mod ending;
mod finish;
mod holding;
mod log;
mod members;
mod memory;
mod namespace;
mod nesting;
mod output;
mod shim;
mod start;
mod stopping;
mod sys;
mod worker;

/// The process's entry: without the standard runtime, which would change signals and map memory that the worker must
/// not inherit and the shim does not need.
#[unsafe(no_mangle)]
extern "C" fn main(argc: libc::c_int, argv: *const *const libc::c_char) -> libc::c_int {
    sys::occupy_standard_streams();
    sys::set_name(nesting::NAME);
    // Ignored, as some starters leave it, no end of a child would ever be told.
    sys::default_signal(libc::SIGCHLD);
    // SAFETY: the kernel hands over `argc` NUL-terminated arguments.
    let group = (argc > 2).then(|| unsafe { std::ffi::CStr::from_ptr(*argv.add(2)) });
    let group = group.and_then(|path| sys::open_directory(path).ok());
    match sys::fork_into(group.as_ref().map(std::os::fd::AsFd::as_fd)).or_else(|_| sys::fork()) {
        Ok(0) => start::start(),
        Ok(_) => 0,
        Err(_) => 75,
    }
}

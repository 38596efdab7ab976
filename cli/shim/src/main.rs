//! The shim: parent, reaper and witness of one run. One thread, one poll loop, as little memory as can be.
//!
//! It is started with a control socket at descriptor 3 and copies itself once, so that nobody has to wait for it. It
//! owns the run directory's lock, logs and exit file. If it dies half-way: before the gate opens nothing was
//! executed; afterwards the worker lives on without a witness, and the free lock tells everybody so.
#![cfg_attr(not(test), no_main)]

mod ending;
mod finish;
mod members;
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
extern "C" fn main(_argc: libc::c_int, _argv: *const *const libc::c_char) -> libc::c_int {
    sys::occupy_standard_streams();
    sys::set_name(nesting::NAME);
    // Ignored, as some starters leave it, no end of a child would ever be told.
    sys::default_signal(libc::SIGCHLD);
    match sys::fork() {
        Ok(0) => start::start(),
        Ok(_) => 0,
        Err(_) => 75,
    }
}

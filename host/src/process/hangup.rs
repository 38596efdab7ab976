//! What the loss of the terminal does to a program in the caller's own session.

/// From here on this process ignores SIGHUP, and so does a program that it starts in its own session, as under `nohup`:
/// a shell that loses its terminal sends the signal to the whole process group. Whoever listens for the signal afterwards
/// hears it again; what was started keeps ignoring it.
pub fn ignore_hangup() {
    // SAFETY: the call sets a disposition and touches no memory of ours.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

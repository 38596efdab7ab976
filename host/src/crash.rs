//! Named places at which a test lets the process die as if it were killed there: after it, the store must be in one of
//! the promised states. Release builds have no such places.

/// The place to die at.
#[cfg(debug_assertions)]
static CHOSEN: std::sync::OnceLock<String> = std::sync::OnceLock::new();

/// Chooses the place. The first choice counts.
pub fn choose(place: &str) {
    #[cfg(debug_assertions)]
    let _ = CHOSEN.set(place.to_owned());
    #[cfg(not(debug_assertions))]
    let _ = place;
}

/// Dies here if this place was chosen, by a signal that cannot be caught.
pub(crate) fn point(place: &str) {
    #[cfg(debug_assertions)]
    if CHOSEN.get().is_some_and(|chosen| chosen == place) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    #[cfg(not(debug_assertions))]
    let _ = place;
}

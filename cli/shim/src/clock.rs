//! The three clocks a run is measured with, in milliseconds.

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the length of the call; these clocks exist on every supported kernel.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1000 + nanoseconds / 1_000_000
}

/// Milliseconds since the epoch, UTC: for people and records, never for measuring.
#[must_use]
pub fn epoch_ms() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Milliseconds since boot, time asleep included: grace periods and durations.
#[must_use]
pub fn boottime_ms() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// Milliseconds since boot, time awake only: what a timeout counts.
#[must_use]
pub fn monotonic_ms() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

//! What an operation costs beside time: processor time of us and our children, bytes of the write-ahead log.

use std::path::Path;
use std::time::Duration;

/// Processor time, user and system, of this process and of every descendant that was reaped.
pub fn cpu_time() -> Duration {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].into_iter().map(of).sum()
}

fn of(who: i32) -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the structure, which is plain numbers; zeroed, it is valid also when the call fails.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    let time = |time: libc::timeval| {
        let micros = time.tv_sec * 1_000_000 + time.tv_usec;
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// The size of the write-ahead log of a database; it only grows while nobody works it in.
pub fn log_bytes(database: &Path) -> u64 {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    std::fs::metadata(name).map_or(0, |found| found.len())
}

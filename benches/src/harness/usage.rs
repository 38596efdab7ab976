//! Processor time, of us and our children.

use std::collections::HashMap;
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

/// Processor time that processes which live now, our descendants, have used so far. Whoever reaps them later is charged
/// all of it: what is to be counted from here on is the rest.
pub fn cpu_time_of_living() -> Duration {
    let parents = parents();
    let ours = i32::try_from(std::process::id()).unwrap_or(0);
    let is_descendant = |pid: &i32| {
        let mut above = *pid;
        while let Some(parent) = parents.get(&above) {
            if *parent == ours {
                return true;
            }
            above = *parent;
        }
        false
    };
    let used = |pid: &i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    let living = parents.keys().filter(|pid| is_descendant(pid));
    Duration::from_nanos(living.filter_map(used).sum())
}

/// The parent of every process.
fn parents() -> HashMap<i32, i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let after_name = stat.rsplit_once(") ")?.1;
        Some((pid, after_name.split(' ').nth(1)?.parse().ok()?))
    })
    .collect()
}

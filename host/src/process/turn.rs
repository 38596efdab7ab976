//! Taking turns: a lock that the kernel gives to whoever waits, and takes back from whoever dies.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// So many threads of a process wait at most, those included whose callers have lost patience: somebody who holds a lock
/// and is stopped costs no more than that.
const WAITING_MAX: usize = 64;

static WAITING: AtomicUsize = AtomicUsize::new(0);

/// The lock of a file or directory, in order of asking; held until it is dropped. None when it cannot be locked or does not
/// come free for so long.
pub(crate) fn take_in_order(path: &Path, patience: Duration) -> Option<File> {
    take(path, patience, &WAITING)
}

fn take(path: &Path, patience: Duration, waiting: &'static AtomicUsize) -> Option<File> {
    let file = File::open(path).ok()?;
    match file.try_lock() {
        Ok(()) => return Some(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(_)) => return None,
    }
    let more = |threads| (threads < WAITING_MAX).then_some(threads + 1);
    waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
    // The kernel's queue knows no time limit, so a thread waits in it; one that waits too long ends with the process.
    let (told, turn) = sync_channel(1);
    let wait = move || {
        let locked = file.lock().map(|()| file);
        waiting.fetch_sub(1, Ordering::Relaxed);
        let _ = told.send(locked); // nobody waits any more: the lock is given back
    };
    if thread::Builder::new().name("turn".to_owned()).spawn(wait).is_err() {
        waiting.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    turn.recv_timeout(patience).ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_who_never_gives_a_lock_back_costs_a_bounded_number_of_threads() {
        static OWN: AtomicUsize = AtomicUsize::new(0);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let held = take(directory.path(), Duration::ZERO, &OWN).expect("nobody has it");
        for _ in 0..2 * WAITING_MAX {
            assert!(take(directory.path(), Duration::ZERO, &OWN).is_none());
        }
        assert!(OWN.load(Ordering::Relaxed) <= WAITING_MAX);
        drop(held);
        // Those in front of it give it back at once.
        assert!(take(directory.path(), Duration::from_secs(20), &OWN).is_some());
    }
}

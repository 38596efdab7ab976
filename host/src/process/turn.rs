//! Taking turns: a lock that the kernel gives to whoever waits, and takes back from whoever dies.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// The lock of a file or directory, in order of asking; held until it is dropped. None when it cannot be locked or does not
/// come free for so long.
pub(crate) fn take_in_order(path: &Path, patience: Duration) -> Option<File> {
    let file = File::open(path).ok()?;
    match file.try_lock() {
        Ok(()) => return Some(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(_)) => return None,
    }
    // The kernel's queue knows no time limit, so a thread waits in it; one that waits too long ends with the process.
    let (told, turn) = sync_channel(1);
    let wait = move || {
        let locked = file.lock().map(|()| file);
        let _ = told.send(locked); // nobody waits any more: the lock is given back
    };
    thread::Builder::new().name("turn".to_owned()).spawn(wait).ok()?;
    turn.recv_timeout(patience).ok()?.ok()
}

//! Keeps the queue while the bidder takes and ends: a silent worker's run that is slow to stop delays nobody.

use std::time::Duration;

use super::{Progress, WorkerOptions, Working};
use crate::host::Host;
use crate::process::is_served;
use crate::verbs::lease::keep::{Kept, keep, next_due};
use crate::wake::POLL;

/// Keeps the queue until the worker has ended.
pub(super) fn keep_queue(
    host: &Host,
    options: &WorkerOptions,
    working: &Working,
    tell: &(dyn Fn(&Progress<'_>) + Sync),
) {
    loop {
        // A service that is up does it.
        if !is_served(&host.config().database_path()) {
            match keep(host, options.keeping()) {
                Ok(kept) => tell_failures(&kept, tell),
                Err(error) => tell(&Progress::Failed(&error.to_string())),
            }
        }
        let is_first = !std::mem::replace(&mut working.lock().is_kept, true);
        if is_first {
            working.wake();
        }
        let most = until_next(host);
        let shared = working.lock();
        let waited = working
            .changed
            .wait_timeout_while(shared, most, |shared| !shared.is_over);
        if waited.is_ok_and(|(shared, _)| shared.is_over) {
            return;
        }
    }
}

/// Tells what could not be done.
pub(super) fn tell_failures(kept: &[Kept], tell: &(dyn Fn(&Progress<'_>) + Sync)) {
    for kept in kept {
        if let Some(failure) = &kept.failure {
            tell(&Progress::Failed(&format!("{}: {failure}", kept.reference)));
        }
    }
}

/// How long nothing needs to be looked at, unless something is touched.
pub(super) fn until_next(host: &Host) -> Duration {
    let due = next_due(host).ok().flatten();
    let left = due.map(|due| due.since(host.now()).as_ms());
    let left = left
        .and_then(|ms| u64::try_from(ms).ok())
        .map_or(POLL, Duration::from_millis);
    // What is due and was not done waits for somebody: it is looked at again in a while.
    if left.is_zero() { POLL } else { left.min(POLL) }
}

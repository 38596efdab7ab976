//! What a delivery that goes on has done so far, for those who look at it from outside.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::attempt::Tried;

/// How an attempt came out, as it is counted.
const RESULTS: [&str; 7] = [
    "delivered",
    "unacknowledged",
    "retried",
    "dead",
    "expired",
    "postponed",
    "lost",
];

/// Counts of a delivery that goes on.
#[derive(Debug, Default)]
pub struct Tally {
    looks: AtomicU64,
    looked_at: Mutex<Option<Instant>>,
    results: [AtomicU64; RESULTS.len()],
}

impl Tally {
    /// How often it looked for what is due: when nothing happens, once in a [`crate::POLL`] and no more.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// How long ago it looked last; none before the first time.
    pub fn since_look(&self) -> Option<Duration> {
        let looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        looked_at.map(|looked_at| looked_at.elapsed())
    }

    /// Dispatches that were looked at, by what came of it: a word, and how many.
    pub fn results(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.results.iter().map(|count| count.load(Ordering::Relaxed));
        RESULTS.into_iter().zip(counts)
    }

    pub(super) fn look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(super) fn count(&self, tried: &Tried) {
        let place = match tried {
            Tried::Delivered => 0,
            Tried::Unacknowledged => 1,
            Tried::Retried(_) => 2,
            Tried::Dead(_) => 3,
            Tried::Expired => 4,
            Tried::Postponed(_) => 5,
            Tried::Lost => 6,
        };
        self.results[place].fetch_add(1, Ordering::Relaxed);
    }
}

//! How long a kill waits for a store that cannot be written.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::store::StoreError;

/// A kill waits no longer for the store, all its writes together (SEMANTICS 5.0).
const WAIT_MAX: Duration = Duration::from_secs(5);

/// What is left of that time.
#[derive(Debug)]
pub(super) struct Budget {
    left: Duration,
}

impl Budget {
    pub(super) const fn new() -> Self {
        Self { left: WAIT_MAX }
    }

    /// Writes, unless the time is used up: then the answer is that the store is busy. A write that waited in vain uses
    /// as much of it as it took.
    pub(super) fn write<T>(&mut self, write: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if self.is_spent() {
            let waited_ms = u64::try_from(WAIT_MAX.as_millis()).unwrap_or(u64::MAX);
            return Err(StoreError::Busy { waited_ms }.into());
        }
        let since = Instant::now();
        let outcome = write();
        if outcome.is_err() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
        outcome
    }

    /// Whether a write may be tried again after this failure.
    pub(super) fn allows_again(&self, error: &Error) -> bool {
        matches!(error, Error::Store(StoreError::Busy { .. })) && !self.is_spent()
    }

    /// A rest that is too short for a try counts as none.
    const fn is_spent(&self) -> bool {
        self.left.as_millis() < 10
    }
}

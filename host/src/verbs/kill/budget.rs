//! How long a kill waits for what others do: for a store that cannot be written, and for adoptions that go on.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::store::StoreError;

/// A kill waits no longer for the store, all its writes together (SEMANTICS 5.0).
const WAIT_MAX: Duration = Duration::from_secs(5);

/// An adoption is recorded far sooner; nothing tells when it is, so it is looked for again after a pause.
const ADOPTION_LOOKS: usize = 100;
const ADOPTION_PAUSE: Duration = Duration::from_millis(10);

/// What is left of that time.
#[derive(Debug)]
pub(super) struct Budget {
    left: Duration,
    looks_left: usize,
}

impl Budget {
    pub(super) const fn new() -> Self {
        Self {
            left: WAIT_MAX,
            looks_left: ADOPTION_LOOKS,
        }
    }

    /// Asks again until the answer is there, with a pause between; none once all that ask of this kill have waited for a
    /// second together: one that never has an answer keeps the others for no longer than that.
    #[expect(clippy::disallowed_methods, reason = "nothing tells that an adoption is recorded")]
    pub(super) fn wait_for<T>(&mut self, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            if let Some(answer) = ask() {
                return Some(answer);
            }
            self.looks_left = self.looks_left.checked_sub(1)?;
            std::thread::sleep(ADOPTION_PAUSE);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_have_no_answer_are_waited_for_together() {
        let mut budget = Budget::new();
        let mut asked = 0;
        let mut ask = |until: usize| {
            asked = 0;
            let answer = budget.wait_for(|| {
                asked += 1;
                (asked >= until).then_some(asked)
            });
            (answer, asked)
        };
        assert_eq!(ask(3), (Some(3), 3));
        assert_eq!(ask(usize::MAX), (None, ADOPTION_LOOKS - 1));
        assert_eq!(ask(usize::MAX), (None, 1), "the time of all is used up");
        assert_eq!(ask(1), (Some(1), 1), "what is there is seen");
    }
}

use super::texts;
use crate::{KillRow, RetrySchedule};

/// A kill from these statuses to that one, with `term_code` within the grace period and the two others by force
/// and by the sweep. What is linked below goes too when asked.
pub fn kill(killable: &[&str], goes_to: &str, term: &str, force: &str, stale: &str) -> KillRow {
    KillRow {
        killable: texts(killable),
        goes_to: goes_to.to_owned(),
        cascade: "recursive".to_owned(),
        term_code: term.to_owned(),
        force_code: force.to_owned(),
        stale_code: stale.to_owned(),
        ext: Vec::new(),
    }
}

/// The base doubled per attempt made, at most the cap, in milliseconds; no jitter.
pub fn retry(base_ms: i64, cap_ms: i64, attempts: i64) -> RetrySchedule {
    RetrySchedule {
        base: base_ms,
        cap: cap_ms,
        attempts,
        jitter_percent: 0,
        ext: Vec::new(),
    }
}

impl KillRow {
    /// What is linked below always goes too.
    #[must_use]
    pub fn always_cascading(mut self) -> Self {
        self.cascade = "always".to_owned();
        self
    }
}

impl RetrySchedule {
    /// Adds at most this share of the delay.
    #[must_use]
    pub fn jitter_percent(mut self, percent: i64) -> Self {
        self.jitter_percent = percent;
        self
    }
}

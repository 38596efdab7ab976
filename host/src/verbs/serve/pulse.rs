//! Whether a part of a service is at work, and what it failed at last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a service does, each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Sends what is due, and makes plans that are owed.
    Deliverer,
    /// Records ends, for finishing commands that leave it to the service.
    Finisher,
    /// Fires schedules.
    Scheduler,
    /// Does what is due for queued work: delays, retries, leases that ran out.
    Keeper,
    /// Repairs what died half-way.
    Reaper,
    /// Takes away what has been kept long enough.
    Retention,
    /// Looks after the store's log.
    Upkeep,
    /// Runs what is queued, when the service has slots.
    Worker,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Deliverer,
        Self::Finisher,
        Self::Scheduler,
        Self::Keeper,
        Self::Reaper,
        Self::Retention,
        Self::Upkeep,
        Self::Worker,
    ];

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Deliverer => "deliverer",
            Self::Finisher => "finisher",
            Self::Scheduler => "scheduler",
            Self::Keeper => "keeper",
            Self::Reaper => "reaper",
            Self::Retention => "retention",
            Self::Upkeep => "upkeep",
            Self::Worker => "worker",
        }
    }

    /// How long it may go without a pass before it is taken for stuck: several of its rounds, with a busy store in each.
    /// None: nobody is the worse for it.
    const fn silence_max(self) -> Option<Duration> {
        match self {
            Self::Deliverer | Self::Scheduler | Self::Keeper => Some(Duration::from_secs(60)),
            Self::Reaper => Some(Duration::from_secs(300)),
            // A finishing command that is not served works itself.
            Self::Finisher | Self::Retention | Self::Upkeep | Self::Worker => None,
        }
    }
}

/// How a part is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartHealth {
    /// Which.
    pub part: Part,
    /// How often it did its work.
    pub passes: u64,
    /// How often it failed.
    pub failures: u64,
    /// How long ago it did its work last.
    pub since_pass: Option<Duration>,
    /// What it fails at, if it does.
    pub failing: Option<String>,
}

impl PartHealth {
    /// Whether it is at work: not failing, and not silent for too long.
    pub fn is_well(&self) -> bool {
        let Some(most) = self.part.silence_max() else {
            return true;
        };
        self.failing.is_none() && self.since_pass.is_some_and(|since| since <= most)
    }
}

/// What is known of a part.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    passes: AtomicU64,
    failures: AtomicU64,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    passed: Option<Instant>,
    failed: Option<(Instant, String)>,
    /// What was told of single runs and entities in the pass before.
    problems: Vec<String>,
}

impl Pulse {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that it did its work.
    pub(super) fn passed(&self) {
        self.passes.fetch_add(1, Ordering::Relaxed);
        let mut last = self.last();
        last.passed = Some(Instant::now());
        last.failed = None;
    }

    /// Notes a failure; whether it is a new one.
    pub(super) fn failed(&self, words: &str) -> bool {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let before = self.last().failed.replace((Instant::now(), words.to_owned()));
        before.is_none_or(|(_, before)| before != words)
    }

    /// Notes what did not come out in a pass that did; those of it that are new.
    pub(super) fn problems(&self, found: Vec<String>) -> Vec<String> {
        let count = u64::try_from(found.len()).unwrap_or(u64::MAX);
        self.failures.fetch_add(count, Ordering::Relaxed);
        let mut last = self.last();
        let new = found.iter().filter(|problem| !last.problems.contains(problem));
        let new = new.cloned().collect();
        last.problems = found;
        new
    }

    /// How the part is; `passed` is how often and how long ago it did its work, where that is counted elsewhere.
    pub(super) fn health(&self, part: Part, passed: Option<(u64, Option<Duration>)>) -> PartHealth {
        let last = self.last();
        let own = || {
            let since = last.passed.map(|passed| passed.elapsed());
            (self.passes.load(Ordering::Relaxed), since)
        };
        let (passes, since_pass) = passed.unwrap_or_else(own);
        let failing = last.failed.as_ref().filter(|(failed, _)| {
            // Work that was done since then says that it is over.
            since_pass.is_none_or(|since| failed.elapsed() < since)
        });
        PartHealth {
            part,
            passes,
            failures: self.failures.load(Ordering::Relaxed),
            since_pass,
            failing: failing.map(|(_, words)| words.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_well_when_it_worked_lately_and_not_before_its_first_pass_or_after_a_failure() {
        let pulse = Pulse::default();
        let is_well = |part, passed| pulse.health(part, passed).is_well();
        assert!(!is_well(Part::Reaper, None), "it did nothing yet");
        pulse.passed();
        assert!(is_well(Part::Reaper, None));
        let long_ago = Some((9, Some(Duration::from_secs(3_600))));
        assert!(!is_well(Part::Reaper, long_ago));
        assert!(is_well(Part::Retention, long_ago), "nobody waits for it");
        assert!(pulse.failed("the store is gone"));
        assert!(!is_well(Part::Reaper, None));
        assert!(!pulse.failed("the store is gone"), "it was told");
        assert!(pulse.failed("the store is damaged"));
        pulse.passed();
        assert!(is_well(Part::Reaper, None));
        assert!(pulse.failed("the store is gone"), "it was over meanwhile");
        assert_eq!(pulse.health(Part::Reaper, None).failures, 4);
    }

    #[test]
    fn what_stays_wrong_with_one_run_is_told_once() {
        let pulse = Pulse::default();
        let found = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(pulse.problems(found(&["a", "b"])), found(&["a", "b"]));
        assert_eq!(pulse.problems(found(&["b", "c"])), found(&["c"]));
        assert_eq!(pulse.problems(found(&["a"])), found(&["a"]), "it was well in between");
    }
}

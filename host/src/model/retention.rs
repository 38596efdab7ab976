//! What may go, and when: retention as a function of what was observed (SEMANTICS 9). Nothing here deletes.

use super::{DurationMs, Entity, Runtime, Timestamp};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// How long things are kept, and how much of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The directories of a run that ended well, from its end.
    pub successes: DurationMs,
    /// The directories of a run that ended otherwise, from its end.
    pub failures: DurationMs,
    /// Records of entities that ended, from their end, and history and audit rows, from when they were written.
    pub records: DurationMs,
    /// Logs of all runs together, in bytes.
    pub logs_bytes: u64,
    /// A run directory that no row names, from its last change.
    pub strays: DurationMs,
}

impl Retention {
    /// What holds unless something else was asked for.
    pub const STANDARD: Self = Self {
        successes: DurationMs::from_ms(14 * DAY_MS),
        failures: DurationMs::from_ms(90 * DAY_MS),
        records: DurationMs::from_ms(365 * DAY_MS),
        logs_bytes: 5 << 30,
        strays: DurationMs::from_ms(DAY_MS),
    };

    /// The same, with the directories of every run that ended kept for so long.
    #[must_use]
    pub const fn directories_after(self, age: DurationMs) -> Self {
        Self {
            successes: age,
            failures: age,
            ..self
        }
    }
}

/// What speaks against taking something away, whatever its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Its status is not terminal.
    NotEnded,
    /// The inventory says that something of it may be running.
    MayBeRunning,
    /// A shim lives in its directory.
    ShimLives,
    /// Its program can take up its work again.
    Resumable,
    /// Something linked below it stays.
    ChildStays,
}

impl Hold {
    /// Why, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotEnded => "it has not ended",
            Self::MayBeRunning => "something of it may be running",
            Self::ShimLives => "its shim lives",
            Self::Resumable => "its program can take up its work again",
            Self::ChildStays => "something linked below it stays",
        }
    }
}

/// Whether something may go now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It may.
    Due,
    /// Not yet.
    Young,
    /// Not as long as this holds.
    Held(Hold),
}

/// Whether a shim lives in a run directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shim {
    /// It does, or that could not be found out.
    MayLive,
    /// Positively none.
    Gone,
}

/// When an entity ended; when it was last written if its kind does not say.
pub fn ended_at(entity: &Entity) -> Timestamp {
    entity.structural.ended_at.unwrap_or(entity.updated_at)
}

/// What forbids to touch anything of an entity.
pub fn hold(entity: &Entity, runtimes: &[Runtime], shim: Shim) -> Option<Hold> {
    if !entity.terminal {
        return Some(Hold::NotEnded);
    }
    if runtimes.iter().any(|runtime| !runtime.is_stopped()) {
        return Some(Hold::MayBeRunning);
    }
    if shim == Shim::MayLive {
        return Some(Hold::ShimLives);
    }
    let is_resumable = runtimes.iter().any(|runtime| runtime.resume_token.is_some());
    is_resumable.then_some(Hold::Resumable)
}

/// Whether the directories of a run may go: its run directory, and those it registered.
pub fn directory_fate(retention: &Retention, entity: &Entity, held: Option<Hold>, now: Timestamp) -> Fate {
    let age = if entity.success {
        retention.successes
    } else {
        retention.failures
    };
    fate(ended_at(entity), age, held, now)
}

/// Whether the record of an entity may go.
pub fn record_fate(retention: &Retention, entity: &Entity, held: Option<Hold>, now: Timestamp) -> Fate {
    fate(ended_at(entity), retention.records, held, now)
}

/// Whether a directory that the inventory was positively seen not to name may go.
pub fn stray_fate(retention: &Retention, changed_at: Timestamp, shim: Shim, now: Timestamp) -> Fate {
    let held = (shim == Shim::MayLive).then_some(Hold::ShimLives);
    fate(changed_at, retention.strays, held, now)
}

fn fate(since: Timestamp, age: DurationMs, held: Option<Hold>, now: Timestamp) -> Fate {
    match held {
        Some(hold) => Fate::Held(hold),
        None if since.plus(age) <= now => Fate::Due,
        None => Fate::Young,
    }
}

/// The logs of one run that ended and is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogUse {
    /// When the run ended.
    pub ended_at: Timestamp,
    /// What its logs take, in bytes.
    pub bytes: u64,
}

/// Which logs go so that all of them fit: the longest ended first, by their places in `logs`. `others_bytes` is what the
/// logs take that may not go.
pub fn logs_over(limit_bytes: u64, logs: &[LogUse], others_bytes: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..logs.len()).filter(|place| logs[*place].bytes > 0).collect();
    order.sort_by_key(|place| logs[*place].ended_at);
    let taken: u64 = logs.iter().map(|log| log.bytes).sum();
    let mut over = taken.saturating_add(others_bytes).saturating_sub(limit_bytes);
    let goes = |place: &usize| {
        let is_over = over > 0;
        over = over.saturating_sub(logs[*place].bytes);
        is_over
    };
    order.into_iter().take_while(goes).collect()
}

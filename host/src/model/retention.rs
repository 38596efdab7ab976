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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Reference, RuntimeState};
    use crate::store::MemoryStore;
    use crate::store::samples::{moment, new_entity, new_runtime};

    const END: Timestamp = moment(0);

    fn entity(status: &str) -> Entity {
        let mut entity = new_entity(&MemoryStore::named("retained"), "run", "r").entity;
        entity.terminal = status != "live";
        entity.success = status == "good";
        entity.structural.ended_at = entity.terminal.then_some(END);
        entity
    }

    fn days(days: i64) -> Timestamp {
        END.plus(DurationMs::from_ms(days * DAY_MS))
    }

    #[track_caller]
    fn check(status: &str, after_days: i64, directory: Fate, record: Fate) {
        let (entity, now) = (entity(status), days(after_days));
        let held = hold(&entity, &[], Shim::Gone);
        let retention = Retention::STANDARD;
        assert_eq!(
            directory_fate(&retention, &entity, held, now),
            directory,
            "{status} at {after_days} d"
        );
        assert_eq!(
            record_fate(&retention, &entity, held, now),
            record,
            "{status} at {after_days} d"
        );
    }

    #[test]
    fn directories_go_after_14_or_90_days_and_records_after_a_year() {
        check("good", 13, Fate::Young, Fate::Young);
        check("good", 14, Fate::Due, Fate::Young);
        check("bad", 89, Fate::Young, Fate::Young);
        check("bad", 90, Fate::Due, Fate::Young);
        check("bad", 364, Fate::Due, Fate::Young);
        check("good", 365, Fate::Due, Fate::Due);
        check("live", 4_000, Fate::Held(Hold::NotEnded), Fate::Held(Hold::NotEnded));
    }

    #[test]
    fn an_age_that_was_asked_for_is_that_of_directories_alone() {
        let retention = Retention::STANDARD.directories_after(DurationMs::from_ms(0));
        for status in ["good", "bad"] {
            assert_eq!(directory_fate(&retention, &entity(status), None, END), Fate::Due);
            assert_eq!(record_fate(&retention, &entity(status), None, END), Fate::Young);
        }
    }

    #[test]
    fn nothing_goes_that_is_alive_or_can_be_taken_up_again_however_old() {
        let runtime = |state, token: Option<&str>| {
            let mut runtime = new_runtime(&Reference::new("run", "r"));
            runtime.state = state;
            runtime.resume_token = token.map(str::to_owned);
            runtime
        };
        let held = |runtime: Runtime, shim| hold(&entity("good"), &[runtime], shim);
        let states = ["starting", "running", "stopping", "lingering", "lost"];
        for state in states.map(|word| RuntimeState::from_word(word).expect("a state")) {
            assert_eq!(
                held(runtime(state, None), Shim::Gone),
                Some(Hold::MayBeRunning),
                "{state:?}"
            );
        }
        let stopped = RuntimeState::Stopped;
        assert_eq!(held(runtime(stopped, None), Shim::Gone), None);
        assert_eq!(held(runtime(stopped, None), Shim::MayLive), Some(Hold::ShimLives));
        assert_eq!(held(runtime(stopped, Some("t")), Shim::Gone), Some(Hold::Resumable));
        let retention = Retention::STANDARD;
        let fate = directory_fate(&retention, &entity("good"), Some(Hold::Resumable), days(9_999));
        assert_eq!(fate, Fate::Held(Hold::Resumable));
    }

    /// Which rows the reference system must preserve, put to [`hold`].
    #[test]
    fn a_row_that_the_reference_preserves_is_held_and_one_more_by_name() {
        const NOT_ENDED: &str = "the row of what has not ended stays, whether or not it was ever started";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/liveness.json");
        let text = std::fs::read_to_string(path).expect("the vectors are in the repository");
        let vectors: serde_json::Value = serde_json::from_str(&text).expect("vectors are JSON");
        let mut put = 0;
        for case in vectors["kandev_preserve"].as_array().expect("cases") {
            if case["row_present"] == false {
                continue; // nothing to be held
            }
            let state = case["session_state"].as_str().expect("a state");
            let status = match state {
                "COMPLETED" => "good",
                "FAILED" | "CANCELLED" => "bad",
                _ => "live",
            };
            let mut runtime = new_runtime(&Reference::new("run", "r"));
            runtime.state = RuntimeState::Stopped;
            runtime.resume_token = (case["resume_token"] == true).then(|| "again".to_owned());
            let (expected, why) = match (state, &runtime.resume_token) {
                ("CREATED", None) => (true, NOT_ENDED),
                _ => (case["must_be_preserved"] == true, "the reference's own answer"),
            };
            let held = hold(&entity(status), &[runtime], Shim::Gone);
            assert_eq!(held.is_some(), expected, "{case}: {why}");
            put += 1;
        }
        assert_eq!(put, 16);
    }

    #[test]
    fn a_stray_directory_goes_a_day_after_its_last_change_and_never_with_a_shim() {
        let retention = Retention::STANDARD;
        let hours = |hours: i64| END.plus(DurationMs::from_ms(hours * 60 * 60 * 1_000));
        assert_eq!(stray_fate(&retention, END, Shim::Gone, hours(23)), Fate::Young);
        assert_eq!(stray_fate(&retention, END, Shim::Gone, hours(24)), Fate::Due);
        assert_eq!(
            stray_fate(&retention, END, Shim::MayLive, hours(24)),
            Fate::Held(Hold::ShimLives)
        );
        assert_eq!(stray_fate(&retention, hours(48), Shim::Gone, END), Fate::Young);
    }

    #[test]
    fn logs_go_the_longest_ended_first_until_the_rest_fits() {
        let logs = [(30, 5), (10, 4), (20, 0), (40, 6)].map(|(ms, bytes)| LogUse {
            ended_at: moment(ms),
            bytes,
        });
        assert_eq!(logs_over(15, &logs, 0), Vec::<usize>::new());
        assert_eq!(logs_over(14, &logs, 0), [1]);
        assert_eq!(logs_over(11, &logs, 0), [1]);
        assert_eq!(logs_over(11, &logs, 1), [1, 0]);
        assert_eq!(logs_over(0, &logs, 100), [1, 0, 3]);
    }
}

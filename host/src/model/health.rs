//! How an entity is: the scale that every policy answers on, what is observed of an entity, and the answer for a policy
//! that has thresholds and no function. Health is computed when somebody asks and is never stored (SEMANTICS 8).

#[cfg(test)]
mod tests;

use super::{Entity, HealthThreshold, Lifecycle, Stage, Timestamp};

/// How an entity is, the better the smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthLevel {
    /// Nothing is wrong that can be seen.
    Healthy,
    /// It is quiet for a while.
    Idle,
    /// Its process lives and is quiet for too long.
    Unresponsive,
    /// Nothing of it moves any more, and it has not ended.
    Stale,
    /// Nothing of it is known that would move.
    Orphaned,
    /// It has ended, and the inventory still says that something of it runs.
    Zombie,
}

impl HealthLevel {
    /// Every level, the best first.
    pub const ALL: [Self; 6] = [
        Self::Healthy,
        Self::Idle,
        Self::Unresponsive,
        Self::Stale,
        Self::Orphaned,
        Self::Zombie,
    ];

    /// The word that policies and reports use.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Idle => "idle",
            Self::Unresponsive => "unresponsive",
            Self::Stale => "stale",
            Self::Orphaned => "orphaned",
            Self::Zombie => "zombie",
        }
    }

    /// The level of a word; none when it is none.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }

    /// Its place on the scale: 0 for the best, 5 for the worst.
    pub const fn severity(self) -> u8 {
        self as u8
    }
}

/// How an entity is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The level.
    pub level: HealthLevel,
    /// Why, for people.
    pub message: String,
}

/// What there is to say of the health of an entity whose policy has an opinion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// What its policy says.
    Known(Health),
    /// Its policy failed, or answered nonsense: why.
    Unknown(String),
}

impl Condition {
    /// The level, where it is known.
    pub const fn level(&self) -> Option<HealthLevel> {
        match self {
            Self::Known(health) => Some(health.level),
            Self::Unknown(_) => None,
        }
    }

    /// The word of the level, or `unknown`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Known(health) => health.level.word(),
            Self::Unknown(_) => "unknown",
        }
    }

    /// Why, for people.
    pub fn message(&self) -> &str {
        match self {
            Self::Known(health) => &health.message,
            Self::Unknown(why) => why,
        }
    }

    /// Level and why, in a line.
    pub fn told(&self) -> String {
        format!("{}: {}", self.word(), self.message())
    }
}

/// What is known of the process of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessSeen {
    /// It never had one.
    None,
    /// All of it was seen to end, and that is recorded.
    Ended,
    /// It lives, or is just being started.
    Alive,
    /// It is positively gone, and its end is not recorded.
    Gone,
    /// It cannot be judged from here.
    Unknown,
}

impl ProcessSeen {
    /// The word that a policy's function is told.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ended | Self::Gone => "gone",
            Self::Alive => "alive",
            Self::Unknown => "unknown",
        }
    }
}

/// What is observed of an entity (SEMANTICS 8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signs {
    /// Its process.
    pub process: ProcessSeen,
    /// Its newest sign of life: a write of the entity, a report, output of its process.
    pub last_activity_at: Timestamp,
    /// How many messages it has exchanged; 1 when it is not counted and there is output.
    pub messages: i64,
    /// It left a file in `artifacts/`.
    pub has_artifacts: bool,
    /// The inventory says that something of it runs, and that is positively gone.
    pub has_stale_locks: bool,
    /// What kind of work it is: which thresholds hold.
    pub spawn_kind: String,
}

/// Judges an entity by the thresholds of its policy; none when the policy has none for it. What has not ended is judged
/// by its process first, by how quiet it is then; what waits for its time or for other work is not quiet.
pub fn by_thresholds(lifecycle: &Lifecycle, entity: &Entity, signs: &Signs, now: Timestamp) -> Option<Health> {
    let limits = limits(&lifecycle.descriptor().health, &signs.spawn_kind)?;
    let quiet = quiet(limits, signs, now);
    let traceless = signs.messages == 0 && !signs.has_artifacts;
    let waits = waits(entity, now);
    let (level, message) = match (entity.terminal, signs.process) {
        (true, _) if signs.has_stale_locks => (
            HealthLevel::Zombie,
            "it has ended, and the inventory says that something of it runs",
        ),
        (true, _) => (HealthLevel::Healthy, "it has ended"),
        (false, ProcessSeen::Alive) => match quiet {
            Quiet::TooLong => (
                HealthLevel::Unresponsive,
                "its process lives, and it has been quiet for too long",
            ),
            Quiet::AWhile => (
                HealthLevel::Idle,
                "its process lives, and it has been quiet for a while",
            ),
            Quiet::Not => (HealthLevel::Healthy, "its process lives, and it is active"),
        },
        (false, ProcessSeen::Gone) if traceless => (HealthLevel::Orphaned, "its process is gone and left no trace"),
        (false, ProcessSeen::Gone) => (HealthLevel::Stale, "its process is gone, and its end is not recorded"),
        (false, ProcessSeen::None | ProcessSeen::Ended | ProcessSeen::Unknown) if waits => {
            (HealthLevel::Healthy, "it waits for its time, or for other work")
        }
        (false, ProcessSeen::Unknown) if traceless => (
            HealthLevel::Orphaned,
            "its process cannot be judged from here, and there is no trace of it",
        ),
        (false, ProcessSeen::None | ProcessSeen::Ended | ProcessSeen::Unknown) => match quiet {
            Quiet::TooLong => (
                HealthLevel::Stale,
                "no live process of it is known, and it has been quiet for too long",
            ),
            Quiet::AWhile => (
                HealthLevel::Idle,
                "no live process of it is known, and it has been quiet for a while",
            ),
            Quiet::Not => (HealthLevel::Healthy, "there was a sign of life lately"),
        },
    };
    Some(Health {
        level,
        message: message.to_owned(),
    })
}

/// Whether it is no wonder that nothing moves: its time has not come, or other work has not ended.
fn waits(entity: &Entity, now: Timestamp) -> bool {
    let stage = entity.queued.as_ref().and_then(|queued| queued.stage);
    stage == Some(Stage::Waiting) || entity.structural.next_attempt_at.is_some_and(|due| due > now)
}

/// How long it has been quiet, by the limits that hold for it.
#[derive(Clone, Copy)]
enum Quiet {
    Not,
    AWhile,
    TooLong,
}

/// Strictly older than a limit; exactly at it is still within.
fn quiet(limits: &HealthThreshold, signs: &Signs, now: Timestamp) -> Quiet {
    let age = now.since(signs.last_activity_at);
    if age > limits.stale {
        Quiet::TooLong
    } else if age > limits.idle {
        Quiet::AWhile
    } else {
        Quiet::Not
    }
}

/// The row of a spawn kind, else the row for every other.
fn limits<'a>(rows: &'a [HealthThreshold], spawn_kind: &str) -> Option<&'a HealthThreshold> {
    let of = |kind: &str| rows.iter().find(|row| row.spawn_kind == kind);
    of(spawn_kind).or_else(|| of(""))
}

/// The worst of many: the place of the first that is at the worst level known, with the level. None when nothing is
/// known of any.
pub fn worst<'a>(conditions: impl IntoIterator<Item = Option<&'a Condition>>) -> Option<(usize, HealthLevel)> {
    let levels = conditions
        .into_iter()
        .map(|condition| condition.and_then(Condition::level));
    let known = levels.enumerate().filter_map(|(place, level)| Some((place, level?)));
    known.fold(None, |worst, (place, level)| match worst {
        Some((_, other)) if other >= level => worst,
        Some(_) | None => Some((place, level)),
    })
}

//! Leased work in its queue: what waits, what a worker has, and what a command does to a lease.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Entity, Lifecycle, Timestamp};

/// The queue of work that names none.
pub const QUEUE_DEFAULT: &str = "default";

/// Where leased work stands by its policy's lease rule: computed with every write, so that claims and sweeps find what
/// concerns them by an index and know no policy's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Waits for other work.
    Waiting,
    /// Waits for a moment: delayed, or between two attempts.
    Later,
    /// A worker may take it.
    Ready,
    /// A worker has it.
    Active,
    /// Its lease ran out; its worker may still live.
    Doubted,
}

impl Stage {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Later, Self::Ready, Self::Active, Self::Doubted];

    /// The word of output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Later => "later",
            Self::Ready => "ready",
            Self::Active => "active",
            Self::Doubted => "doubted",
        }
    }

    /// The number that stores keep.
    pub const fn number(self) -> i64 {
        match self {
            Self::Waiting => 1,
            Self::Later => 2,
            Self::Ready => 3,
            Self::Active => 4,
            Self::Doubted => 5,
        }
    }

    /// The stage of that number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.number() == number)
    }

    /// Whether it counts against the limit of its queue.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Active | Self::Doubted)
    }
}

/// Where leased work was put, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Its queue.
    pub queue: String,
    /// Higher is taken first; equal ones in order of creation.
    pub priority: i64,
    /// Where it stands; none when it has ended, or its status is none of the lease rule's.
    pub stage: Option<Stage>,
}

/// What a creation says of leased work.
#[derive(Clone, Debug, PartialEq)]
pub struct Queueing {
    /// The queue.
    pub queue: String,
    /// Higher is taken first.
    pub priority: i64,
    /// Not to be taken before; also set for what waits for other work, until that is looked at.
    pub due_at: Option<Timestamp>,
    /// Held by one live entity.
    pub unique_key: Option<String>,
    /// What the command asks for beside (work, delay, what it waits for), as JSON: a part of it.
    pub asked: Value,
}

/// The chain of attempts that a creation belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// The first of the chain.
    pub root: String,
    /// 0 for the first.
    pub generation: i64,
    /// The attempt before it, which has one successor at most.
    pub chain_parent: String,
    /// How often the chain was leased so far.
    pub lease_attempts: i64,
}

/// What a command does to a lease, beside moving the status. The host alone makes these: lease columns are no fields that
/// a command may patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseStep {
    /// Written only under this fence; another one is a conflict.
    pub fence: Option<i64>,
    /// What becomes of the lease.
    pub change: LeaseChange,
}

/// What becomes of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseChange {
    /// It stays as it is: the holder writes.
    Keep,
    /// Somebody takes it: the fence grows, and an attempt is counted.
    Take {
        /// Who: random for each start of a worker.
        holder: String,
        /// Until when it holds, in steady time.
        until: Timestamp,
    },
    /// It ran out; the holder may come back until the grace is over.
    Doubt {
        /// When that was seen, in steady time.
        since: Timestamp,
        /// When the grace is over.
        until: Timestamp,
    },
    /// The same holder came back.
    Recover {
        /// Until when it holds.
        until: Timestamp,
    },
    /// Nobody has it any more: the fence grows, so that the holder's later writes are conflicts.
    Release {
        /// When it is due again; none: now, or never when it has ended.
        due_at: Option<Timestamp>,
    },
    /// The holder is shut out: the fence grows, and the columns stay for the record.
    ShutOut,
    /// Nobody has it; it is due then.
    Schedule {
        /// When; none: now.
        due_at: Option<Timestamp>,
    },
}

impl LeaseStep {
    /// A step that no fence guards.
    pub const fn free(change: LeaseChange) -> Self {
        Self { fence: None, change }
    }

    /// A step of the holder with this fence.
    pub const fn under(fence: i64, change: LeaseChange) -> Self {
        Self {
            fence: Some(fence),
            change,
        }
    }

    /// As JSON, for fingerprints.
    pub(super) fn to_value(&self) -> Value {
        let change = match &self.change {
            LeaseChange::Keep => json!("keep"),
            LeaseChange::Take { holder, until } => json!(["take", holder, until]),
            LeaseChange::Doubt { since, until } => json!(["doubt", since, until]),
            LeaseChange::Recover { until } => json!(["recover", until]),
            LeaseChange::Release { due_at } => json!(["release", due_at]),
            LeaseChange::ShutOut => json!("shut_out"),
            LeaseChange::Schedule { due_at } => json!(["schedule", due_at]),
        };
        json!({"fence": self.fence, "change": change})
    }

    /// Makes the change to the lease columns of the row as it will be.
    pub(super) fn carry_out(&self, after: &mut Entity) {
        let lease = &mut after.structural;
        match &self.change {
            LeaseChange::Keep => {}
            LeaseChange::Take { holder, until } => {
                after.fence = after.fence.saturating_add(1);
                lease.leased_by = Some(holder.clone());
                lease.lease_expires_at = Some(*until);
                lease.lease_attempts = Some(lease.lease_attempts.unwrap_or(0).saturating_add(1));
                lease.unknown_since = None;
                lease.next_attempt_at = None;
            }
            LeaseChange::Doubt { since, until } => {
                lease.unknown_since = Some(*since);
                lease.next_attempt_at = Some(*until);
            }
            LeaseChange::Recover { until } => {
                lease.lease_expires_at = Some(*until);
                lease.unknown_since = None;
                lease.next_attempt_at = None;
            }
            LeaseChange::Release { due_at } => {
                after.fence = after.fence.saturating_add(1);
                lease.leased_by = None;
                lease.lease_expires_at = None;
                lease.unknown_since = None;
                lease.next_attempt_at = *due_at;
            }
            LeaseChange::ShutOut => after.fence = after.fence.saturating_add(1),
            LeaseChange::Schedule { due_at } => lease.next_attempt_at = *due_at,
        }
    }
}

/// Where an entity stands, by its lease rule; none when it was put into no queue.
pub(super) fn stage(lifecycle: &Lifecycle, entity: &Entity) -> Option<Stage> {
    let rule = lifecycle.descriptor().lease.as_ref()?;
    entity.queued.as_ref()?;
    if entity.terminal {
        return None;
    }
    let status = &entity.status;
    let is = |outcome: &Option<super::Outcome>| outcome.as_ref().is_some_and(|outcome| outcome.status == *status);
    if *status == rule.queued {
        let waits = entity.structural.next_attempt_at.is_some();
        return Some(if waits { Stage::Later } else { Stage::Ready });
    }
    if is(&rule.dependency_waiting) {
        return Some(Stage::Waiting);
    }
    if is(&rule.backed_off) || is(&rule.handed_back) {
        return Some(Stage::Later);
    }
    if *status == rule.lapsed.status {
        return Some(Stage::Doubted);
    }
    (*status == rule.claimed.status || rule.active.contains(status)).then_some(Stage::Active)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_has_a_number_of_its_own_and_is_found_by_it() {
        for stage in Stage::ALL {
            assert_eq!(Stage::from_number(stage.number()), Some(stage));
        }
        assert_eq!(Stage::from_number(0), None);
    }
}

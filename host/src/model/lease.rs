//! What becomes of leased work: taken, doubted, found again, given up, tried again; as a function of its row, of its
//! policy's lease rule and of what was observed (SEMANTICS 7). Nothing here looks at a process or a clock.
//!
//! ```text
//! waiting ─▶ later ─▶ ready ─▶ active ─▶ ended
//!              ▲        ▲        │ lease ran out
//!              │        └────────┤ (a policy that requeues)
//!              └── failed, given back
//!                                ▼ (a policy that doubts)
//!                             doubted ─▶ active (same holder, or its end was seen)
//!                                └─▶ fenced, with a successor in the same commit
//! ```
//!
//! Lease times are steady time, delays are wall time: whoever calls says which is which.

mod ending;

pub use ending::{AttemptEnd, Begun, ended, given_up, handed_back, keep_wish, kept_wish};

use serde_json::{Value, json};

use super::{
    Actor, DurationMs, Entity, Fields, LeaseChange, LeaseRule, LeaseStep, Lifecycle, Lineage, Outcome, Reason,
    Reference, Stage, Timestamp, Transition,
};

/// A holder renews so many times within the length of its lease.
pub const RENEWALS_PER_LEASE: i64 = 3;

const _: () = assert!(
    RENEWALS_PER_LEASE >= 3,
    "one renewal may be late and another fail before a lease runs out"
);

/// The shortest lease: below it a renewal would have to be quicker than a busy store is.
pub const LEASE_MIN: DurationMs = DurationMs::from_ms(500);

/// What holds for one piece of leased work: its policy's rule, and what was asked for instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Length of a lease.
    pub lease: DurationMs,
    /// From the lapse to the fence.
    pub grace: DurationMs,
    /// How many starts, whatever ended the earlier ones.
    pub attempts: i64,
}

/// What was asked for instead of a rule's own values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Length of a lease, asked for when the work was submitted.
    pub lease: Option<DurationMs>,
    /// How many starts, asked for when the work was submitted.
    pub attempts: Option<i64>,
    /// From the lapse to the fence, a setting of whoever judges.
    pub grace: Option<DurationMs>,
}

impl Terms {
    /// The terms of a rule.
    pub fn of(rule: &LeaseRule, asked: Asked) -> Self {
        Self {
            lease: asked.lease.unwrap_or(rule.lease).max(LEASE_MIN),
            grace: asked.grace.unwrap_or(rule.grace),
            attempts: asked.attempts.unwrap_or(rule.attempts),
        }
    }

    /// How often a holder renews.
    pub const fn renew_every(&self) -> DurationMs {
        DurationMs::from_ms(self.lease.as_ms() / RENEWALS_PER_LEASE)
    }

    fn has_attempts_left(&self, entity: &Entity) -> bool {
        entity.structural.lease_attempts.unwrap_or(0) < self.attempts
    }
}

/// The lease rule of a lifecycle, when it is one of leased work.
pub fn rule(lifecycle: &Lifecycle) -> Option<&LeaseRule> {
    lifecycle.descriptor().lease.as_ref()
}

/// Whether a lease that runs out is doubted first, by the word of its policy.
pub fn doubts(rule: &LeaseRule) -> bool {
    rule.lapsed.status != rule.queued
}

/// Whether a worker whose last heartbeat is so old may claim; exactly at the limit it may, and so may one that has not
/// had a heartbeat yet.
pub fn may_claim(rule: &LeaseRule, heartbeat_age: Option<DurationMs>) -> bool {
    heartbeat_age.is_none_or(|age| age <= rule.heartbeat_limit)
}

/// What a worker writes to take a row; none when nobody may.
pub fn claim(
    lifecycle: &Lifecycle,
    entity: &Entity,
    terms: &Terms,
    holder: &str,
    steady: Timestamp,
) -> Option<Transition> {
    let rule = rule(lifecycle)?;
    if stage(entity) != Some(Stage::Ready) {
        return None;
    }
    let attempt = entity.structural.lease_attempts.unwrap_or(0).saturating_add(1);
    let summary = format!("taken by {holder}, attempt {attempt} of {}", terms.attempts);
    let mut claim = step(entity, &rule.claimed, &summary, Actor::new("executor", holder));
    claim.lease = Some(LeaseStep::free(LeaseChange::Take {
        holder: holder.to_owned(),
        until: steady.plus(terms.lease),
    }));
    Some(claim)
}

/// Both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// What leases are measured by: never jumps.
    pub steady: Timestamp,
    /// What people read, and delays are measured by.
    pub wall: Timestamp,
}

/// What is due for a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Due {
    /// Nothing yet.
    Nothing,
    /// This is written.
    Write(Box<Transition>),
    /// Its grace is over: its processes are looked at, then [`fence`] decides.
    Judge,
}

/// What became of the work that a row waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// It waits for nothing.
    Nothing,
    /// Some of it goes on.
    Open,
    /// All of it succeeded.
    Met,
    /// This ended without success.
    Failed(Reference),
}

/// What time and other work make due for a row. `not_before` is when its submitter wants it to begin at the earliest.
pub fn due(
    lifecycle: &Lifecycle,
    entity: &Entity,
    (terms, not_before): (&Terms, Option<Timestamp>),
    awaited: &Awaited,
    now: Now,
) -> Due {
    let Some(rule) = rule(lifecycle) else {
        return Due::Nothing;
    };
    let written = match stage(entity) {
        // Between two attempts nothing is awaited any more: it ended with success before the first.
        Some(Stage::Later) if entity.status != rule.queued => come_due(rule, entity, now.wall),
        Some(Stage::Waiting | Stage::Later) if matches!(awaited, Awaited::Failed(_)) => {
            dependency_failed(rule, entity, awaited)
        }
        Some(Stage::Waiting) => dependency_met(rule, entity, (not_before, now.wall), awaited),
        Some(Stage::Later) if *awaited == Awaited::Open => dependency_waits(rule, entity),
        Some(Stage::Later) => come_due(rule, entity, now.wall),
        Some(Stage::Active) => lapse(rule, entity, terms, now.steady),
        Some(Stage::Doubted) => {
            let over = entity
                .structural
                .next_attempt_at
                .is_none_or(|until| until <= now.steady);
            return if over { Due::Judge } else { Due::Nothing };
        }
        Some(Stage::Ready) | None => None,
    };
    written.map_or(Due::Nothing, |written| Due::Write(Box::new(written)))
}

fn dependency_failed(rule: &LeaseRule, entity: &Entity, awaited: &Awaited) -> Option<Transition> {
    let Awaited::Failed(reference) = awaited else {
        return None;
    };
    let summary = format!("{reference} ended without success");
    let mut failed = step(entity, rule.dependency_failed.as_ref()?, &summary, reaper());
    failed.reason.evidence.push(json!({"awaited": reference.to_string()}));
    failed.lease = Some(LeaseStep::free(LeaseChange::Schedule { due_at: None }));
    Some(failed)
}

fn dependency_met(
    rule: &LeaseRule,
    entity: &Entity,
    (not_before, wall): (Option<Timestamp>, Timestamp),
    awaited: &Awaited,
) -> Option<Transition> {
    if *awaited == Awaited::Open {
        return None;
    }
    let summary = "what it waited for has ended";
    let mut met = step(entity, rule.dependency_met.as_ref()?, summary, reaper());
    met.lease = Some(LeaseStep::free(LeaseChange::Schedule {
        due_at: not_before.filter(|moment| *moment > wall),
    }));
    Some(met)
}

/// It was put into its queue, and is moved to where what waits for other work stands.
fn dependency_waits(rule: &LeaseRule, entity: &Entity) -> Option<Transition> {
    let waiting = rule.dependency_waiting.as_ref()?;
    let mut waits = step(entity, waiting, "waits for other work", reaper());
    waits.lease = Some(LeaseStep::free(LeaseChange::Schedule { due_at: None }));
    Some(waits)
}

fn come_due(rule: &LeaseRule, entity: &Entity, wall: Timestamp) -> Option<Transition> {
    if entity.structural.next_attempt_at.is_some_and(|due| due > wall) {
        return None;
    }
    let here = Outcome {
        status: entity.status.clone(),
        code: entity.reason.code.clone(),
    };
    let outcome = if entity.status == rule.queued {
        &here
    } else {
        rule.retry_due.as_ref()?
    };
    let mut due = step(entity, outcome, "its time has come", reaper());
    due.lease = Some(LeaseStep::free(LeaseChange::Schedule { due_at: None }));
    Some(due)
}

fn lapse(rule: &LeaseRule, entity: &Entity, terms: &Terms, steady: Timestamp) -> Option<Transition> {
    // Strictly: exactly at its end a lease still holds.
    let lapsed = entity.structural.lease_expires_at.is_some_and(|end| end < steady);
    if !lapsed {
        return None;
    }
    let (outcome, summary, change) = if doubts(rule) {
        let change = LeaseChange::Doubt {
            since: steady,
            until: steady.plus(terms.grace),
        };
        (&rule.lapsed, "its lease ran out, its worker may still live", change)
    } else if terms.has_attempts_left(entity) {
        let change = LeaseChange::Release { due_at: None };
        (&rule.lapsed, "its lease ran out", change)
    } else {
        (
            &rule.exhausted,
            "its lease ran out at the last attempt",
            LeaseChange::ShutOut,
        )
    };
    let mut lapse = step(entity, outcome, summary, reaper());
    lapse.reason.evidence.push(evidence(entity, terms, steady));
    lapse.lease = Some(LeaseStep::under(entity.fence, change));
    Some(lapse)
}

/// What is known of the processes of an attempt whose worker is silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing of it lives, by positive evidence, with the words for it.
    Stopped(String),
    /// Something lives, or it cannot be known; why.
    Unconfirmed(String),
    /// It is on another machine.
    Elsewhere(String),
    /// An operator says that nothing of it lives.
    Confirmed(String),
}

/// What follows once the grace is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Fencing {
    /// It stays doubted, and is told of.
    Stays(String),
    /// This is written, with or without another attempt in the same commit.
    Write(Box<Transition>, Next),
}

/// Whether another attempt follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// In the same commit.
    Successor,
    /// Once an operator confirms that the holder is stopped.
    OnceConfirmed,
    /// No.
    None,
}

/// Decides what follows for a doubted row; none when it is not doubted, or its grace goes on.
pub fn fence(lifecycle: &Lifecycle, entity: &Entity, terms: &Terms, seen: &Seen, steady: Timestamp) -> Option<Fencing> {
    let rule = rule(lifecycle)?;
    if stage(entity) != Some(Stage::Doubted) {
        return None;
    }
    let confirmed = matches!(seen, Seen::Confirmed(_));
    let in_grace = entity.structural.next_attempt_at.is_some_and(|until| until > steady);
    if in_grace && !confirmed {
        return None;
    }
    let words = match seen {
        Seen::Unconfirmed(why) => return Some(Fencing::Stays(why.clone())),
        Seen::Stopped(words) | Seen::Elsewhere(words) | Seen::Confirmed(words) => words,
    };
    let (outcome, next) = match &rule.fenced {
        Some(fenced) if terms.has_attempts_left(entity) => {
            let next = if matches!(seen, Seen::Elsewhere(_)) {
                Next::OnceConfirmed
            } else {
                Next::Successor
            };
            (fenced, next)
        }
        _ => (&rule.exhausted, Next::None),
    };
    let change = if next == Next::None {
        LeaseChange::ShutOut
    } else {
        LeaseChange::Release { due_at: None }
    };
    let mut fenced = step(entity, outcome, words, reaper());
    let mut evidence = evidence(entity, terms, steady);
    evidence["observed"] = json!(words);
    fenced.reason.evidence.push(evidence);
    fenced.lease = Some(LeaseStep::under(entity.fence, change));
    Some(Fencing::Write(Box::new(fenced), next))
}

/// The chain that the successor of a row goes on.
pub fn lineage_after(entity: &Entity) -> Lineage {
    Lineage {
        root: entity.root.clone().unwrap_or_else(|| entity.reference.id.clone()),
        generation: entity.generation.saturating_add(1),
        chain_parent: entity.reference.id.clone(),
        lease_attempts: entity.structural.lease_attempts.unwrap_or(0),
    }
}

/// The holder of this fence is back, or the end of its attempt was seen: the row is its again. Under another fence it is
/// a conflict. None when the row is not doubted, or its policy knows no way.
pub fn recovered(
    lifecycle: &Lifecycle,
    entity: &Entity,
    (terms, fence): (&Terms, i64),
    (by, words): (Actor, &str),
    steady: Timestamp,
) -> Option<Transition> {
    let recovered = rule(lifecycle)?.recovered.as_ref()?;
    if stage(entity) != Some(Stage::Doubted) {
        return None;
    }
    let mut back = step(entity, recovered, words, by);
    back.guards = Fields::from_iter([("leased_by".to_owned(), entity.field("leased_by"))]);
    back.lease = Some(LeaseStep::under(
        fence,
        LeaseChange::Recover {
            until: steady.plus(terms.lease),
        },
    ));
    Some(back)
}

fn stage(entity: &Entity) -> Option<Stage> {
    entity.queued.as_ref()?.stage
}

fn reaper() -> Actor {
    Actor::system("reaper")
}

/// A write that a look at this version of the row led to.
fn step(entity: &Entity, outcome: &Outcome, summary: &str, actor: Actor) -> Transition {
    let reason = Reason::code(&outcome.code).summary(summary);
    let mut step = Transition::new(&outcome.status, reason, actor);
    step.expected_version = Some(entity.version);
    step
}

/// What a decision about a lease acted on.
fn evidence(entity: &Entity, terms: &Terms, steady: Timestamp) -> Value {
    let lease = &entity.structural;
    let moment = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
    json!({
        "leased_by": lease.leased_by,
        "fence": entity.fence,
        "lease_expires_at": moment(lease.lease_expires_at),
        "unknown_since": moment(lease.unknown_since),
        "judged_at": steady.to_rfc3339(),
        "silent_ms": lease.lease_expires_at.map(|end| steady.since(end).as_ms()),
        "lease_ms": terms.lease.as_ms(),
        "grace_ms": terms.grace.as_ms(),
        "lease_attempts": lease.lease_attempts,
        "attempts": terms.attempts,
        "policy_digest": entity.policy.digest,
    })
}

#[cfg(test)]
mod exhaustive;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

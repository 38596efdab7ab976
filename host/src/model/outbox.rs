//! What becomes of a dispatch: claimed, sent, tried again, given up; as a function of its row, of its policy's rule and
//! of what an attempt came to (SEMANTICS 4). Nothing here sends.

use serde_json::{Value, json};

use super::{
    Actor, CLAIM_MARGIN, DeliveryRule, DestinationHealth, Dispatch, DurationMs, Entity, Fields, Lifecycle, Outcome,
    OwedPlan, Reason, RetrySchedule, Sent, Timestamp, Transition,
};

/// After so many failures in a row a destination is paused: one more than a receiver that restarts is likely to give.
pub const PAUSE_AFTER: i64 = 5;

/// The least time until a dispatch that cannot be attempted is looked at again.
const UNREADABLE_LEAST: DurationMs = DurationMs::from_ms(60_000);

/// Its most: the cap of the bundled retry schedule.
const UNREADABLE_MOST: DurationMs = DurationMs::from_ms(1_800_000);

/// When a plan that failed is tried again at the earliest, doubled with each try.
const REPLAN_BASE_MS: i64 = 1_000;

/// And at the latest: the cap of the bundled retry schedule.
const REPLAN_CAP_MS: i64 = 1_800_000;

/// The schedule of a policy that has none: its dispatches are attempted once.
static ONCE: RetrySchedule = RetrySchedule {
    base: DurationMs::from_ms(30_000),
    cap: DurationMs::from_ms(1_800_000),
    attempts: 1,
    jitter_percent: 0,
    ext: Vec::new(),
};

/// What is to be done with a dispatch for which something is due.
#[derive(Clone, Debug, PartialEq)]
pub enum Due {
    /// Take it, then send.
    Claim(Transition),
    /// Nothing is sent any more: write that.
    Close(Transition),
    /// It is in no status from which it is claimed.
    Nothing,
}

/// The delivery rule of a lifecycle, when it is one of dispatches.
fn rule(lifecycle: &Lifecycle) -> Option<&DeliveryRule> {
    lifecycle.descriptor().delivery.as_ref()
}

fn schedule(lifecycle: &Lifecycle) -> &RetrySchedule {
    lifecycle.descriptor().retry.as_ref().unwrap_or(&ONCE)
}

fn attempts_made(entity: &Entity) -> i64 {
    entity.structural.attempt.unwrap_or(0)
}

/// What is due for a dispatch now. Its lease, when it is claimed, is as long as its transport may take and a margin.
pub fn due(lifecycle: &Lifecycle, entity: &Entity, dispatch: &Dispatch, now: Timestamp) -> Due {
    let Some(rule) = rule(lifecycle) else {
        return Due::Nothing;
    };
    if entity.terminal || !rule.claimable.contains(&entity.status) {
        return Due::Nothing;
    }
    if entity.due_at().is_some_and(|due| due > now) {
        return Due::Nothing;
    }
    let made = attempts_made(entity);
    let is_taken_over = entity.status == rule.claimed.status;
    if dispatch
        .deadline
        .is_some_and(|deadline| deadline <= now && !is_revived(rule, entity))
    {
        return Due::Close(step(
            entity,
            &rule.expired,
            "its deadline passed before it was delivered",
        ));
    }
    if is_taken_over && made >= schedule(lifecycle).attempts {
        let mut given_up = step(entity, &rule.exhausted, "outcome of the last attempt unknown");
        given_up.patch = patch(&[("last_error", json!("outcome of the last attempt unknown"))]);
        return Due::Close(given_up);
    }
    let lease = now.plus(dispatch.target.timeout_ms).plus(CLAIM_MARGIN);
    let summary = if is_taken_over {
        format!("attempt {}; outcome of the one before unknown", made + 1)
    } else {
        format!("attempt {}", made + 1)
    };
    let mut claim = step(entity, &rule.claimed, &summary);
    claim.patch = patch(&[("attempt", json!(made + 1)), ("next_attempt_at", json!(lease.as_ms()))]);
    claim.guards = patch(&[("attempt", entity.field("attempt"))]);
    Due::Claim(claim)
}

/// Whether an operator asked for another round and no attempt was made since: it is attempted whatever its deadline.
fn is_revived(rule: &DeliveryRule, entity: &Entity) -> bool {
    entity.version > 1 && entity.status == rule.revived.status && entity.reason.code == rule.revived.code
}

/// What an attempt that was claimed as `entity` came to. `entropy` spreads what failed together.
pub fn settled(
    lifecycle: &Lifecycle,
    entity: &Entity,
    dispatch: &Dispatch,
    sent: &Sent,
    (now, entropy): (Timestamp, u64),
) -> Option<Transition> {
    let rule = rule(lifecycle)?;
    let schedule = schedule(lifecycle);
    let made = attempts_made(entity);
    let is_last = made >= schedule.attempts;
    let again = |delay: DurationMs| ("next_attempt_at", json!(now.plus(delay).as_ms()));
    let delay = delay(schedule, made, entropy);
    let (outcome, summary, changes) = match sent {
        Sent::Delivered(words) if !dispatch.wants_acknowledgement => {
            (&rule.delivered, words.clone(), vec![("last_error", Value::Null)])
        }
        Sent::Delivered(words) if is_last => {
            let summary = format!("{words}; {made} attempts, never acknowledged");
            (&rule.acknowledgement_missed, summary, Vec::new())
        }
        Sent::Delivered(words) => {
            let summary = format!("{words}; waits for its acknowledgement, again in {}", spoken(delay));
            let changes = vec![("last_error", Value::Null), again(delay)];
            (&rule.awaiting_acknowledgement, summary, changes)
        }
        Sent::Failed { error, .. } if is_last => {
            let summary = format!("{made} attempts, the last: {error}");
            (&rule.exhausted, summary, vec![("last_error", json!(error))])
        }
        Sent::Failed { error, retry_after } => {
            let delay = retry_after.map_or(delay, |asked| asked.min(schedule.cap).max(delay));
            let summary = format!("again in {}: {error}", spoken(delay));
            (
                &rule.backed_off,
                summary,
                vec![("last_error", json!(error)), again(delay)],
            )
        }
        Sent::Refused(error) => (&rule.refused, error.clone(), vec![("last_error", json!(error))]),
        Sent::Unreadable(error) => {
            let delay = unreadable_delay(entity, now);
            let changes = vec![("attempt", json!(made - 1)), ("last_error", json!(error)), again(delay)];
            (&rule.backed_off, format!("{NOT_ATTEMPTED}{error}"), changes)
        }
    };
    let mut settled = step(entity, outcome, &summary);
    settled.patch = patch(&changes);
    Some(settled)
}

/// What is written to a dispatch that was not claimed because something it needs cannot be read.
pub fn postponed(lifecycle: &Lifecycle, entity: &Entity, error: &str, now: Timestamp) -> Option<Transition> {
    let rule = rule(lifecycle)?;
    let outcome = Outcome {
        status: entity.status.clone(),
        code: rule.backed_off.code.clone(),
    };
    let mut postponed = step(entity, &outcome, &format!("{NOT_ATTEMPTED}{error}"));
    let due = now.plus(unreadable_delay(entity, now));
    postponed.patch = patch(&[("last_error", json!(error)), ("next_attempt_at", json!(due.as_ms()))]);
    Some(postponed)
}

/// The older it is, the longer until it is looked at again: nobody writes a row a minute for a month.
fn unreadable_delay(entity: &Entity, now: Timestamp) -> DurationMs {
    now.since(entity.created_at).max(UNREADABLE_LEAST).min(UNREADABLE_MOST)
}

/// That the receiver has it: the token was presented and is right.
pub fn acknowledged(lifecycle: &Lifecycle, entity: &Entity, actor: Actor) -> Option<Transition> {
    let rule = rule(lifecycle)?;
    let mut acknowledged = step(entity, &rule.acknowledged, "its receiver presented the token");
    acknowledged.actor = actor;
    // Whoever else writes meanwhile (a claim, an outcome) is no reason to refuse it.
    acknowledged.expected_version = None;
    Some(acknowledged)
}

/// Another round, asked for by an operator: no attempt is counted, and it is due now.
pub fn revived(lifecycle: &Lifecycle, entity: &Entity, actor: Actor, now: Timestamp) -> Option<Transition> {
    let rule = rule(lifecycle)?;
    let mut revived = step(entity, &rule.revived, "an operator asked for another round");
    revived.actor = actor;
    revived.patch = patch(&[
        ("attempt", json!(0)),
        ("next_attempt_at", json!(now.as_ms())),
        ("last_error", Value::Null),
    ]);
    Some(revived)
}

/// The wait after a failed attempt, `made` counting it: doubled with each, capped, and up to the schedule's share longer.
pub fn delay(schedule: &RetrySchedule, made: i64, entropy: u64) -> DurationMs {
    let base = schedule.base.as_ms().max(0);
    let doubled = u32::try_from(made.max(0))
        .ok()
        .and_then(|doublings| 1_i64.checked_shl(doublings).filter(|factor| *factor > 0))
        .and_then(|factor| base.checked_mul(factor));
    let delay = doubled.map_or(schedule.cap.as_ms(), |delay| delay.min(schedule.cap.as_ms()));
    let most = delay.saturating_mul(schedule.jitter_percent.clamp(0, 100)) / 100;
    let most = u64::try_from(most).unwrap_or(0);
    let jitter = i64::try_from(entropy % (most + 1)).unwrap_or(0);
    DurationMs::from_ms(delay.saturating_add(jitter))
}

/// How a destination has been doing after an attempt; none when the attempt says nothing of it.
pub fn destination_after(
    before: Option<&DestinationHealth>,
    dispatch: &Dispatch,
    sent: &Sent,
    now: Timestamp,
) -> Option<DestinationHealth> {
    let known = DestinationHealth {
        target_digest: dispatch.target_digest.clone(),
        label: label(dispatch),
        ..DestinationHealth::default()
    };
    match sent {
        Sent::Delivered(_) => before.map(|_| known),
        Sent::Failed { error, retry_after } => {
            let failures = before.map_or(0, |before| before.failures) + 1;
            let pause = (failures >= PAUSE_AFTER).then(|| {
                let pause = delay(&ONCE, failures - PAUSE_AFTER, 0);
                retry_after.map_or(pause, |asked| asked.min(ONCE.cap).max(pause))
            });
            Some(DestinationHealth {
                failures,
                paused_until: pause.map(|pause| now.plus(pause)),
                last_error: Some(error.clone()),
                ..known
            })
        }
        Sent::Refused(_) | Sent::Unreadable(_) => None,
    }
}

/// What a destination is, for people, without what only its transport needs.
pub fn label(dispatch: &Dispatch) -> String {
    let name = dispatch.handler.as_deref().unwrap_or("outbox");
    format!("{name}/{} ({})", dispatch.destination, dispatch.target.transport.word())
}

/// When a plan that failed for the `tries`th time is made again.
pub fn replanned(handler: &str, tries: i64, error: Option<String>, now: Timestamp) -> OwedPlan {
    let doublings = u32::try_from(tries.clamp(0, 20)).unwrap_or(0);
    let delay = (REPLAN_BASE_MS << doublings).min(REPLAN_CAP_MS);
    OwedPlan {
        handler: handler.to_owned(),
        tries,
        due_at: now.plus(DurationMs::from_ms(delay)),
        error,
    }
}

/// The next attempt of one that waits is made now, because an operator asked; attempts made still count.
pub fn sooner(lifecycle: &Lifecycle, entity: &Entity, actor: Actor, now: Timestamp) -> Option<Transition> {
    let rule = rule(lifecycle)?;
    if entity.status != rule.enqueued.status {
        return revived(lifecycle, entity, actor, now);
    }
    let outcome = Outcome {
        status: entity.status.clone(),
        code: rule.backed_off.code.clone(),
    };
    let mut sooner = step(entity, &outcome, "an operator asked for the next attempt now");
    sooner.actor = actor;
    sooner.patch = patch(&[("next_attempt_at", json!(now.as_ms()))]);
    Some(sooner)
}

/// What the summary of a dispatch begins with that could not be attempted.
const NOT_ATTEMPTED: &str = "not attempted: ";

/// Whether the summary of a dispatch says that it could not be attempted.
pub fn is_not_attempted(summary: &str) -> bool {
    summary.starts_with(NOT_ATTEMPTED)
}

fn step(entity: &Entity, outcome: &Outcome, summary: &str) -> Transition {
    let reason = Reason::code(&outcome.code).summary(summary);
    let mut step = Transition::new(&outcome.status, reason, Actor::system("deliver"));
    step.expected_version = Some(entity.version);
    step
}

fn patch(changes: &[(&str, Value)]) -> Fields {
    let named = changes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    named.collect()
}

fn spoken(delay: DurationMs) -> String {
    format!("{} s", delay.as_ms() / 1_000)
}

#[cfg(test)]
mod tests;

//! What the end of an attempt means for its row, and what a worker writes for one that it does not finish.

use serde_json::{Value, json};

use super::super::outbox::delay;
use super::super::{
    Actor, Cause, DurationMs, Entity, Fields, LeaseChange, LeaseStep, Lifecycle, Outcome, Reason, Stage, Timestamp,
    Transition,
};
use super::{Terms, rule, stage, step};

/// The longest wait that a verdict gets where its row's policy has no retry schedule with a cap of its own.
pub(super) const WISH_MOST: DurationMs = DurationMs::from_ms(30 * 60 * 1_000);

/// Where the evidence of a run's end keeps that its verdict asked for another attempt: whoever ends the row finds it there.
const WISH: &str = "retry_after_ms";

/// Adds to the evidence of an end that its verdict asked for another attempt.
pub fn keep_wish(evidence: &mut Value, wish: Option<DurationMs>) {
    if let Some(wish) = wish {
        evidence[WISH] = json!(wish.as_ms());
    }
}

/// After how long the verdict of an end asked for another attempt, by the reason that the end was written with.
pub fn kept_wish(reason: &Reason) -> Option<DurationMs> {
    let told = reason.evidence.first()?.get(WISH)?.as_i64()?;
    Some(DurationMs::from_ms(told.max(0)))
}

/// How an attempt ended, as the row's policy judges it.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptEnd {
    /// The status and code of that end.
    pub outcome: Outcome,
    /// What is told of it.
    pub reason: Reason,
    /// Companion fields of the end.
    pub patch: Fields,
    /// How it came: what somebody wanted is not tried again.
    pub cause: Cause,
    /// The verdict of its run asked for another attempt after so long: it gets that, within the cap of the row's schedule
    /// and as long as attempts are left.
    pub retry_after: Option<DurationMs>,
}

/// What the end of an attempt means for its row, written under the fence that the attempt was started with: under an
/// older one it is a conflict. `entropy` spreads what failed together. None when the row has ended already, or is doubted:
/// then [`super::recovered`] comes first.
pub fn ended(
    lifecycle: &Lifecycle,
    entity: &Entity,
    (terms, fence): (&Terms, i64),
    end: &AttemptEnd,
    (wall, entropy): (Timestamp, u64),
) -> Option<Transition> {
    let rule = rule(lifecycle).filter(|_| !is_settled(entity, fence))?;
    let is_failure = lifecycle.is_terminal(&end.outcome.status) && !lifecycle.is_success(&end.outcome.status);
    let was_wanted = matches!(end.cause, Cause::Kill | Cause::Hangup);
    let tries_again = is_failure && !was_wanted && terms.has_attempts_left(entity);
    let actor = Actor::new("executor", entity.structural.leased_by.as_deref().unwrap_or("worker"));
    if let Some(backed_off) = rule.backed_off.as_ref().filter(|_| tries_again) {
        let made = entity.structural.lease_attempts.unwrap_or(0);
        let wait = match (end.retry_after, &lifecycle.descriptor().retry) {
            (Some(wish), Some(schedule)) => wish.min(schedule.cap),
            (Some(wish), None) => wish.min(WISH_MOST),
            (None, Some(schedule)) => delay(schedule, made, entropy),
            (None, None) => DurationMs::default(),
        };
        let told = end.reason.summary.as_deref().unwrap_or(&end.outcome.code);
        let mut again = step(entity, backed_off, &format!("again in {wait}: {told}"), actor);
        again.reason.evidence.clone_from(&end.reason.evidence);
        again.reason.evidence.push(json!({"attempt_ended_as": end.outcome}));
        again.expected_version = None;
        again.expected_statuses = Some(vec![entity.status.clone()]);
        again.lease = Some(LeaseStep::under(
            fence,
            LeaseChange::Release {
                due_at: Some(wall.plus(wait)),
            },
        ));
        return Some(again);
    }
    let mut over = Transition::new(&end.outcome.status, end.reason.clone(), actor);
    over.reason.code.clone_from(&end.outcome.code);
    over.patch.clone_from(&end.patch);
    // Who saw the same end may be faster: it is written once.
    over.expected_statuses = Some(vec![entity.status.clone()]);
    over.lease = Some(LeaseStep::under(fence, LeaseChange::Keep));
    Some(over)
}

/// A worker gives a row back unharmed, once nothing of it runs: due at once, and nobody has it. None as for [`ended`], and
/// when its policy knows no way.
pub fn handed_back(lifecycle: &Lifecycle, entity: &Entity, fence: i64, wall: Timestamp) -> Option<Transition> {
    let rule = rule(lifecycle).filter(|_| !is_settled(entity, fence))?;
    let outcome = rule.handed_back.as_ref()?;
    let holder = entity.structural.leased_by.as_deref().unwrap_or("worker");
    let actor = Actor::new("executor", holder);
    let mut back = step(entity, outcome, "its worker stops and gives it back", actor);
    back.expected_version = None;
    back.lease = Some(LeaseStep::under(fence, LeaseChange::Release { due_at: Some(wall) }));
    Some(back)
}

/// Whether an attempt that is given up had begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Its program was executed, and is stopped.
    Yes,
    /// Nothing of it was executed.
    No,
}

/// What a worker writes for a row that it does not finish: given back, unless that was its last attempt and it had begun: then
/// nobody may begin another.
pub fn given_up(
    lifecycle: &Lifecycle,
    entity: &Entity,
    (terms, fence): (&Terms, i64),
    begun: Begun,
    wall: Timestamp,
) -> Option<Transition> {
    if begun == Begun::No || terms.has_attempts_left(entity) {
        return handed_back(lifecycle, entity, fence, wall);
    }
    let rule = rule(lifecycle).filter(|_| !is_settled(entity, fence))?;
    let holder = entity.structural.leased_by.as_deref().unwrap_or("worker");
    let summary = "its worker stopped it, and that was its last attempt";
    let mut over = step(entity, &rule.exhausted, summary, Actor::new("executor", holder));
    over.expected_version = None;
    over.lease = Some(LeaseStep::under(fence, LeaseChange::ShutOut));
    Some(over)
}

/// Whether the holder of this fence has nothing to write: a late holder writes all the same, so that it is refused and
/// recorded.
fn is_settled(entity: &Entity, fence: i64) -> bool {
    fence == entity.fence && stage(entity) != Some(Stage::Active)
}

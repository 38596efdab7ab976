//! Where a notice is on its way, what holds it up, and what became of those that an entity's events made.

use super::super::{DeliveryRule, DestinationHealth, Dispatch, Entity, outbox};
use super::{Case, Explanation};

/// How many notices of an entity are told one by one.
const NAMED_MAX: usize = 5;

/// What is known of a dispatch beside its entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// What it delivers.
    pub dispatch: Dispatch,
    /// How its destination has been doing, when it has failed since its last success.
    pub health: Option<DestinationHealth>,
    /// A service is up that delivers.
    pub served: bool,
}

/// Explains a dispatch.
pub(super) fn explain(case: &Case<'_>, notice: &Notice) -> Explanation {
    let entity = case.entity;
    let answer = match case.lifecycle.descriptor().delivery.as_ref() {
        Some(rule) if entity.terminal => over(case, rule),
        Some(rule) if entity.status == rule.claimed.status => under_way(case, notice),
        Some(rule) => waits(case, notice, rule),
        None => Explanation::new("its policy has no rule of delivery"),
    };
    let dispatch = &notice.dispatch;
    let mut answer = answer
        .with("to", outbox::label(dispatch))
        .with("attempts", entity.structural.attempt.unwrap_or(0).to_string());
    answer.maybe("last error", entity.field("last_error").as_str());
    answer.maybe("tells", dispatch.event_id.as_ref().map(ToString::to_string));
    answer.maybe("deadline", dispatch.deadline.map(super::super::Timestamp::to_rfc3339));
    answer.then(format!("runwarden outbox show {}", entity.reference.id))
}

fn over(case: &Case<'_>, rule: &DeliveryRule) -> Explanation {
    let entity = case.entity;
    let retry = format!("runwarden outbox retry {}", entity.reference.id);
    let is = |outcome: &super::super::Outcome| entity.status == outcome.status;
    match &entity.reason.summary {
        _ if is(&rule.acknowledged) => Explanation::new("its receiver has it and said so"),
        _ if is(&rule.delivered) => Explanation::new("its destination took it"),
        _ if is(&rule.expired) => Explanation::new("its deadline passed before it was delivered").then(retry),
        Some(summary) => Explanation::new(format!("it was given up: {summary}")).then(retry),
        None => Explanation::new("it was given up").then(retry),
    }
}

fn under_way(case: &Case<'_>, notice: &Notice) -> Explanation {
    let due = case.entity.due_at().filter(|due| *due > case.now);
    match due {
        Some(due) => Explanation::new(format!(
            "an attempt is under way; whoever makes it has {} left",
            due.since(case.now)
        )),
        None => nobody(
            notice,
            "whoever made the last attempt died before its outcome was written",
        ),
    }
}

fn waits(case: &Case<'_>, notice: &Notice, rule: &DeliveryRule) -> Explanation {
    let entity = case.entity;
    let error = entity.field("last_error");
    let error = error.as_str().unwrap_or("no reason is known");
    let later = entity.due_at().filter(|due| *due > case.now);
    let sooner = format!("runwarden outbox retry {}", entity.reference.id);
    if entity.reason.summary.as_deref().is_some_and(outbox::is_not_attempted) {
        return Explanation::new(format!("it cannot be attempted, and no attempt is counted: {error}")).then(sooner);
    }
    let paused = notice.health.as_ref().and_then(|health| {
        let until = health.paused_until.filter(|until| *until > case.now)?;
        Some((health, until.since(case.now)))
    });
    if let Some((health, left)) = paused {
        let error = health.last_error.as_deref().unwrap_or(error);
        let said = format!(
            "its destination failed {} times in a row and is paused for {left} more: {error}",
            health.failures
        );
        return Explanation::new(said);
    }
    match later {
        Some(due) if entity.reason.code == rule.awaiting_acknowledgement.code => {
            let said = "it was sent and its receiver has not acknowledged it";
            Explanation::new(format!("{said}; it is sent again in {}", due.since(case.now)))
        }
        Some(due) => Explanation::new(format!(
            "its last attempt failed, and the next is in {}: {error}",
            due.since(case.now)
        ))
        .then(sooner),
        None => nobody(notice, "it is due"),
    }
}

/// It is due: with a service it is as good as on its way.
fn nobody(notice: &Notice, said: &str) -> Explanation {
    if notice.served {
        return Explanation::new(format!("{said}; the service delivers it"));
    }
    Explanation::new(format!("{said}, and nobody delivers: no service is up"))
        .then("runwarden outbox deliver")
        .then("runwarden serve")
}

/// What became of the notices of an entity's events.
pub(super) fn told(answer: &mut Explanation, notices: &[Entity]) {
    let (well, rest): (Vec<&Entity>, Vec<&Entity>) = notices.iter().partition(|notice| notice.success);
    for notice in rest.iter().take(NAMED_MAX) {
        let error = notice.field("last_error");
        let said = match error.as_str() {
            Some(error) => format!("{} is {}: {error}", notice.reference.id, notice.status),
            None => format!("{} is {}", notice.reference.id, notice.status),
        };
        answer.fact("notice", said);
    }
    if rest.len() > NAMED_MAX {
        answer.fact("notices", format!("{} more are not delivered", rest.len() - NAMED_MAX));
    }
    if !well.is_empty() {
        answer.fact("told", format!("{} of its notices arrived", well.len()));
    }
    if let Some(first) = rest.first() {
        answer.next.push(format!("runwarden why {}", first.reference));
    }
}

//! Puts work into a queue.

use serde_json::{Value, json};

use super::keep::keep_row;
use crate::error::Error;
use crate::host::Host;
use crate::model::lease::{LEASE_MIN, rule};
use crate::model::{Create, Invalid, LeaseRule, Queueing, Reference, SameStatus, Timestamp};
use crate::policy::Selected;
use crate::store::{NewRun, Work as StoredWork};
use crate::verbs::create::{IdChoice, Made, make, policy_for};
use crate::verbs::run::not_run;
use crate::work::Work;

/// What is submitted.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The entity: kind, id, name, tags, parents, actor, key. Its status is the one in which its policy lets work wait.
    pub create: Create,
    /// Whose choice the id is.
    pub id: IdChoice,
    /// Another policy than the one in force.
    pub policy: Option<String>,
    /// What it is to do; [`Work::queue`] is given.
    pub work: Work,
    /// The queue.
    pub queue: String,
    /// Higher is taken first.
    pub priority: i64,
    /// What it waits for; all of it has to succeed.
    pub after: Vec<Reference>,
    /// Not to be begun before.
    pub not_before: Option<Timestamp>,
    /// Held by one live entity of the store.
    pub unique_key: Option<String>,
}

/// Puts work into a queue, under the policy in force for its kind, or under the one named. What waits for other work is
/// moved to where it waits at once; if we die between the two, whoever keeps the queue does it.
///
/// # Errors
/// The command is wrong, the id or the unique key is taken, what it waits for does not exist, or the store failed: nothing
/// was written.
pub fn submit(host: &Host, submission: Submission) -> Result<Made, Error> {
    let selected = policy_for(host, &submission.create.kind, submission.policy.as_deref())?;
    let rule = checked(host, &selected, &submission)?;
    let waits = !submission.after.is_empty();
    let (create, run) = (creation(host, &submission, rule), brought(&submission));
    let made = make(host, &create, submission.id, &selected, |_| Some(run.clone()))?;
    if !waits || made.replayed {
        return Ok(made);
    }
    let entity = keep_row(host, made.entity, None)?;
    Ok(Made { entity, ..made })
}

/// The lease rule that a submission is queued by.
///
/// # Errors
/// Its policy is not one of queued work, or cannot do what is asked, or what a worker would start for it is no run.
pub(crate) fn checked<'a>(
    host: &Host,
    selected: &'a Selected,
    submission: &Submission,
) -> Result<&'a LeaseRule, Error> {
    let descriptor = selected.lifecycle.descriptor();
    let label = descriptor.label();
    let refuse = |code, message: String, hint: &str| Error::from(Invalid::new(code, message, Some(hint.to_owned())));
    let Some(rule) = rule(&selected.lifecycle) else {
        let message = format!("a {} is not queued: {label} has no lease rule", submission.create.kind);
        return Err(refuse(
            "kind",
            message,
            "`runwarden policy show KIND` shows what a policy has",
        ));
    };
    if descriptor.execution.is_none() {
        let message = format!("a {} is not run: {label} has no execution rule", submission.create.kind);
        return Err(refuse(
            "kind",
            message,
            "`runwarden policy show KIND` shows what a policy has",
        ));
    }
    if let Some(terms) = &submission.work.queue
        && policy_for(host, &terms.run_kind, None)?
            .lifecycle
            .descriptor()
            .execution
            .is_none()
    {
        return Err(not_run(host, &terms.run_kind));
    }
    if !submission.after.is_empty() && (rule.dependency_waiting.is_none() || rule.dependency_met.is_none()) {
        let message = format!("{label} has no status in which work waits for other work");
        return Err(refuse("after", message, "leave --after out, or use another policy"));
    }
    let waits = submission.not_before.is_some() || !submission.after.is_empty();
    if waits && descriptor.same_status != SameStatus::Append {
        let message = format!("{label} admits no second write of a status, which ends a delay");
        return Err(refuse("delay", message, "leave the delay out, or use another policy"));
    }
    let terms = submission.work.queue.as_ref();
    if terms
        .and_then(|terms| terms.lease_ms)
        .is_some_and(|lease| lease < LEASE_MIN)
    {
        let message = format!("a lease is at least {LEASE_MIN}: a holder renews it three times");
        return Err(refuse("lease", message, "give --lease 5s, or more"));
    }
    if terms
        .and_then(|terms| terms.attempts)
        .is_some_and(|attempts| attempts < 1)
    {
        let message = "work is attempted at least once".to_owned();
        return Err(refuse("attempts", message, "give --attempts 1, or more"));
    }
    Ok(rule)
}

/// The creation of what is submitted.
pub(crate) fn creation(host: &Host, submission: &Submission, rule: &LeaseRule) -> Create {
    let mut create = submission.create.clone();
    create.status = Some(rule.queued.clone());
    let now = host.now();
    let waits = (!submission.after.is_empty()).then_some(now);
    let delayed = submission.not_before.filter(|moment| *moment > now);
    create.queueing = Some(Queueing {
        queue: submission.queue.clone(),
        priority: submission.priority,
        // Nobody takes what waits for other work before that was looked at.
        due_at: delayed.or(waits),
        unique_key: submission.unique_key.clone(),
        asked: asked(submission),
    });
    create
}

/// What makes two submissions the same command.
fn asked(submission: &Submission) -> Value {
    let after: Vec<String> = submission.after.iter().map(ToString::to_string).collect();
    let mut work = json!(submission.work);
    // A delay is counted from each submission.
    work["queue"]["not_before"] = Value::Null;
    json!({"work": work, "after": after})
}

/// What it brings along.
pub(crate) fn brought(submission: &Submission) -> NewRun {
    let mut work = submission.work.clone();
    if let Some(queue) = &mut work.queue {
        queue.not_before = submission.not_before;
    }
    NewRun {
        runtime: None,
        work: StoredWork(json!(work)),
        directories: Vec::new(),
        lease: None,
        after: submission.after.clone(),
    }
}

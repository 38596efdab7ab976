//! The end of a row, from the end of the run that was started for it: whoever comes first, the result is the same.

use serde_json::{Value, json};

use super::terms::{Row, stored_work};
use crate::crash;
use crate::error::Error;
use crate::host::{Host, entropy};
use crate::model::lease::{AttemptEnd, Begun, ended, given_up, kept_wish, recovered};
use crate::model::{
    Actor, Cause, DurationMs, Ended, Ending, Entity, Evidence, Fields, Lifecycle, Outcome, Reason, Runtime, Stage,
    judge, spawn_outcome,
};
use crate::store::{HeldLease, HistoryQuery};
use crate::verbs::settle::{Found, attempt_ending, exit_record, newest_runtime};
use crate::verbs::transition::{Beside, TransitionOutcome, write};

/// Who stops the run of a row without meaning its end: a worker that gives the row back or has lost it, and whoever fences
/// it. Such a stop is no end of the row; the one who stopped goes on.
pub(super) fn stopper() -> Actor {
    Actor::system("lease")
}

/// Whether the end of a run says nothing of its row: whoever stopped it goes on with the row.
pub(super) fn is_stopped_for_the_lease(runtime: Option<&Runtime>) -> bool {
    runtime
        .and_then(|runtime| runtime.stop_intent.as_ref())
        .is_some_and(|intent| intent.actor == stopper())
}

/// Whether nobody saw how a run ended: that is proof that nothing of it lives, and no more.
pub(super) fn is_unseen(run: &Entity) -> bool {
    let cause = run.structural.cause.as_deref().and_then(Cause::from_word);
    matches!(cause, Some(Cause::Unobserved | Cause::HostRestarted))
}

/// Ends the row that a run was started for, if it was started for one and its end was seen; a run that its worker stopped to
/// give the row back gives it back, should the worker not live to do it. An end that nobody saw is left to the holder, or to
/// whoever judges the row once its lease has run out. Safe to repeat.
pub(crate) fn end_row_of(host: &Host, run: &Entity) -> Result<(), Error> {
    let Some(lease) = stored_work(host, run)?.and_then(|work| work.lease) else {
        return Ok(());
    };
    if is_unseen(run) {
        return Ok(());
    }
    if end_row(host, run, &lease)? == RowEnd::Open && run.terminal {
        give_back(host, &lease, Begun::Yes)?;
    }
    Ok(())
}

/// Writes that a row is nobody's, as long as it is held under this lease. One whose lease ran out is left to whoever judges
/// it, and so is one whose policy knows no way back. After its last attempt, if that had begun, it ends.
pub(super) fn give_back(host: &Host, lease: &HeldLease, begun: Begun) -> Result<(), Error> {
    let Some(entity) = host.store().load(&lease.reference.id)? else {
        return Ok(());
    };
    let holds = entity
        .structural
        .lease_expires_at
        .is_some_and(|end| host.steady_now().is_ok_and(|now| now <= end));
    if entity.fence != lease.fence || stage(&entity) != Some(Stage::Active) || !holds {
        return Ok(());
    }
    let Some(row) = Row::of(host, entity, None)? else {
        return Ok(());
    };
    let terms = (&row.terms, lease.fence);
    if let Some(mut command) = given_up(&row.lifecycle, &row.entity, terms, begun, host.now()) {
        command.expected_statuses = Some(vec![row.entity.status.clone()]);
        write(host, &row.entity, &command, &Beside::NOTHING)?;
    }
    Ok(())
}

/// How the end of a row came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowEnd {
    /// It is written, or was before.
    Written,
    /// The run goes on, or was stopped for the lease's sake.
    Open,
    /// The row is somebody else's by now, or ended otherwise: the refused write is in the audit rows.
    Lost,
}

/// Ends a row from the end of the run that was started for it under `lease`.
pub(super) fn end_row(host: &Host, run: &Entity, lease: &HeldLease) -> Result<RowEnd, Error> {
    let runtime = newest_runtime(host, run)?;
    if !run.terminal || is_stopped_for_the_lease(runtime.as_ref()) {
        return Ok(RowEnd::Open);
    }
    for _ in 0..CHANGES_MAX {
        let Some(entity) = host.store().load(&lease.reference.id)? else {
            return Ok(RowEnd::Lost);
        };
        let Some(row) = Row::of(host, entity, None)? else {
            return Ok(RowEnd::Lost);
        };
        match stage(&row.entity) {
            // Ended, by whoever saw the same end, or by a kill of the row.
            None if row.entity.fence == lease.fence => return Ok(RowEnd::Written),
            Some(Stage::Doubted) if row.entity.fence == lease.fence => {
                if !is_recovered(host, &row, run, lease)? {
                    return Ok(RowEnd::Lost);
                }
            }
            _ if row.entity.fence != lease.fence && is_written(host, &row.entity, run)? => return Ok(RowEnd::Written),
            _ => {
                if let Some(end) = write_end(host, &row, (run, runtime.as_ref()), lease)? {
                    return Ok(end);
                }
            }
        }
    }
    Ok(RowEnd::Open)
}

/// Whether a row that is not held under a lease any more has got the end of the run that was started under it, or was
/// ended as a whole; otherwise it was lost.
pub(super) fn has_ended_with(host: &Host, row: &Entity, run: &Entity, lease: &HeldLease) -> Result<bool, Error> {
    Ok((row.terminal && row.fence == lease.fence) || is_written(host, row, run)?)
}

/// Whether the end of this run is in the history of its row: whoever saw it was faster, and the row has gone on.
fn is_written(host: &Host, row: &Entity, run: &Entity) -> Result<bool, Error> {
    let rows = host.store().history(&HistoryQuery {
        id: Some(row.reference.id.clone()),
        ..HistoryQuery::default()
    })?;
    let name = run.reference.to_string();
    let tells = |evidence: &Value| evidence["attempt"]["run"] == name.as_str();
    Ok(rows.iter().any(|row| row.reason.evidence.iter().any(tells)))
}

/// How often a row that changes meanwhile is looked at again.
const CHANGES_MAX: usize = 4;

fn stage(entity: &Entity) -> Option<Stage> {
    entity.queued.as_ref()?.stage
}

/// A doubted row whose run was seen to end is its holder's again: its end is written from there.
fn is_recovered(host: &Host, row: &Row, run: &Entity, lease: &HeldLease) -> Result<bool, Error> {
    let words = format!("the end of {} was seen", run.reference);
    let by = (Actor::system("reaper"), words.as_str());
    let Some(mut back) = recovered(
        &row.lifecycle,
        &row.entity,
        (&row.terms, lease.fence),
        by,
        host.steady_now()?,
    ) else {
        return Ok(false);
    };
    back.reason.evidence.push(json!({
        "run": run.reference.to_string(),
        "status": run.status,
        "cause": run.structural.cause,
        "policy_digest": row.entity.policy.digest,
    }));
    let outcome = write(host, &row.entity, &back, &Beside::NOTHING)?;
    Ok(!matches!(outcome, TransitionOutcome::Rejected(_)))
}

/// Writes it; none when the row changed meanwhile.
fn write_end(
    host: &Host,
    row: &Row,
    (run, runtime): (&Entity, Option<&Runtime>),
    lease: &HeldLease,
) -> Result<Option<RowEnd>, Error> {
    let Some(end) = attempt_end(host, row, run, runtime)? else {
        return Ok(Some(RowEnd::Lost));
    };
    let random = u64::from_le_bytes(entropy()?[..8].try_into().expect("eight bytes of sixteen"));
    let now = (host.now(), random);
    let Some(mut command) = ended(&row.lifecycle, &row.entity, (&row.terms, lease.fence), &end, now) else {
        return Ok(Some(RowEnd::Lost));
    };
    // An end is written once, whoever else sees it.
    command.expected_statuses = Some(vec![row.entity.status.clone()]);
    if let Some(intent) = runtime.and_then(|runtime| runtime.stop_intent.as_ref())
        && end.cause == Cause::Kill
    {
        command.actor = intent.actor.clone();
    }
    crash::point("lease.ending");
    Ok(match write(host, &row.entity, &command, &Beside::NOTHING)? {
        TransitionOutcome::Applied { .. } => Some(RowEnd::Written),
        TransitionOutcome::Conflict(conflict) if conflict.code != "fence" => None,
        TransitionOutcome::Conflict(_) | TransitionOutcome::Rejected(_) => Some(RowEnd::Lost),
    })
}

/// The end of a run as the policy of its row judges it; none when that policy has no word for it.
fn attempt_end(host: &Host, row: &Row, run: &Entity, runtime: Option<&Runtime>) -> Result<Option<AttemptEnd>, Error> {
    let record = runtime.map(exit_record).transpose()?.flatten();
    let seen = match (runtime, &record) {
        (Some(runtime), Some(record)) => attempt_ending(runtime, record),
        _ => by_fields(run),
    };
    let evidence = match runtime {
        Some(runtime) => Found::of(host, run, runtime, stored_work(host, run)?.as_ref())?.evidence(),
        None => Evidence::NotWanted,
    };
    let Some(outcome) = outcome(&row.lifecycle, &row.entity, run, (seen, evidence)) else {
        return Ok(None);
    };
    let is_failure = !row.lifecycle.is_success(&outcome.status);
    let mut fields = Fields::new();
    for name in ["ended_at", "exit_code", "term_signal", "cause"] {
        fields.insert(name.to_owned(), run.field(name));
    }
    if let Some(summary) = run.reason.summary.as_ref().filter(|_| is_failure) {
        fields.insert("error_detail".to_owned(), json!(summary));
    }
    if run.policy.digest == row.entity.policy.digest {
        // One policy, one vocabulary: what its verdict found, and what its program reported, is true of the row.
        fields.extend(run.fields.clone());
    }
    fields.insert("invocation_id".to_owned(), json!(run.reference.id));
    fields.retain(|name, _| row.lifecycle.field(name).is_some());
    let (ending, ended) = seen;
    Ok(Some(AttemptEnd {
        reason: Reason {
            code: outcome.code.clone(),
            summary: run.reason.summary.clone(),
            evidence: vec![json!({"attempt": {
                "run": run.reference.to_string(),
                "status": run.status,
                "code": run.reason.code,
            }})],
        },
        outcome,
        patch: fields,
        cause: ending.cause(ended),
        retry_after: wish(host, run)?,
    }))
}

/// What the verdict of a run asked for: in the row of its history that ended it, whatever was written to it since.
fn wish(host: &Host, run: &Entity) -> Result<Option<DurationMs>, Error> {
    if run.success {
        return Ok(None);
    }
    let rows = host.store().history(&HistoryQuery {
        id: Some(run.reference.id.clone()),
        ..HistoryQuery::default()
    })?;
    Ok(rows.iter().rev().find_map(|row| kept_wish(&row.reason)))
}

/// What the row's policy says of the end. Where the run is under the same one, it has said so already, its verdict function
/// included; where the row's calls a success what the run's own policy does not, the run's word counts if the row's policy
/// knows it.
fn outcome(
    lifecycle: &Lifecycle,
    row: &Entity,
    run: &Entity,
    ((ending, ended), evidence): ((Ending, Ended), Evidence),
) -> Option<Outcome> {
    if let Some(stage) = failed_stage(run) {
        return spawn_outcome(lifecycle, &stage);
    }
    let own = Outcome {
        status: run.status.clone(),
        code: run.reason.code.clone(),
    };
    let is_known = lifecycle.edge(&row.status, &own.status).is_some() && lifecycle.admits_reason(&own.code);
    if is_known && run.policy.digest == row.policy.digest {
        return Some(own);
    }
    let judged = judge(lifecycle, &row.status, ending, ended, evidence)?;
    if run.success || !lifecycle.is_success(&judged.status) {
        return Some(judged);
    }
    if is_known {
        return Some(own);
    }
    let rule = lifecycle.descriptor().execution.as_ref()?;
    // A success with nothing to show is one for a policy that does not tell the two apart.
    Some(if evidence == Evidence::WantedAndAbsent {
        judged
    } else {
        rule.verdict_failed.clone()
    })
}

/// The step at which a start failed, as its evidence tells.
fn failed_stage(run: &Entity) -> Option<String> {
    let evidence = run.reason.evidence.first()?;
    let stage = evidence
        .get("stage")
        .or_else(|| evidence.pointer("/spawn_error/stage"))?;
    let stage = stage.as_str().filter(|_| run.structural.exit_code.is_none())?;
    Some(stage.to_owned())
}

/// How a run ended of which no exit record tells.
fn by_fields(run: &Entity) -> (Ending, Ended) {
    let lease = &run.structural;
    let ended = match (lease.exit_code, lease.term_signal) {
        (Some(code), _) => Ended::Exited(code),
        (None, Some(signal)) => Ended::Signalled(signal),
        (None, None) => Ended::Unobserved,
    };
    // What has ended without a process was ended by somebody.
    let cause = lease.cause.as_deref().and_then(Cause::from_word).unwrap_or(Cause::Kill);
    (cause.ending(), ended)
}

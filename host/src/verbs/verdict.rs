//! Asking a policy's verdict function what the end of a process means.

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{Bytes, DurationMs, EndSeen, Entity, Lifecycle, Runtime, Timestamp};
use crate::policy::{Judged, PolicyFault};
use crate::process::{self, ExitRecord, RunDir};
use crate::verbs::guarded::surroundings;
use crate::verbs::kept::{self, KeptVerdict, Observed};
use crate::verbs::lease::{RowSeen, row_of_run};
use crate::verbs::settle::{Found, Meaning, seen};

/// An end that a write tells: what was seen of it, for whoever judges it.
#[derive(Debug)]
pub(crate) struct End {
    /// What a table needs.
    pub(super) seen: EndSeen,
    /// What a verdict function may see beside it, if one would be asked.
    pub(super) observed: Option<Observed>,
    /// What is kept of it.
    pub(super) kept: Value,
}

impl End {
    /// An end of which no function is asked.
    pub(super) fn of(seen: EndSeen) -> Self {
        let kept = kept::end(&seen, None);
        Self {
            seen,
            observed: None,
            kept,
        }
    }
}

/// Asks the policy's verdict function, where it has one, and notes the call with the end. If it fails, the rule's "verdict
/// failed" is written, with the true exit code.
pub(super) fn ask_verdict(
    host: &Host,
    lifecycle: &Lifecycle,
    entity: &Entity,
    end: &mut End,
    meaning: &mut Meaning,
) -> Result<(), Error> {
    let Some(observed) = &mut end.observed else {
        return Ok(());
    };
    let digest = &entity.policy.digest;
    if !host.policies().exports(digest, "execution")? {
        return Ok(());
    }
    observed.last_output = last_output(host, entity, lifecycle)?;
    if let Some(row) = row_of_run(host, entity)? {
        observed.of_row = Some(row.attempts);
        let stop = stop_of_row(&row, observed.ended_at).map(str::to_owned);
        observed.stop_intent = observed.stop_intent.take().or(stop);
    }
    let surroundings = surroundings(host, lifecycle, entity)?;
    let by_table = meaning.outcome.clone();
    let request = observed.request(entity, by_table.as_ref(), &surroundings);
    let answer = host.policies().verdict(&entity.policy, &request);
    let seen = (&surroundings, &lifecycle.descriptor().reads);
    let request = kept::to_value(&KeptVerdict::of(observed, entity, by_table.as_ref(), seen));
    let decision = match &answer {
        Ok(judged) => decision(judged),
        Err(fault) => json!({"code": "policy_fault", "message": fault.to_string()}),
    };
    meaning.take(lifecycle, answer);
    end.kept = kept::end(&end.seen, Some(kept::call(digest, request, decision)));
    Ok(())
}

impl Meaning {
    /// What the verdict function made of it, or the rule's "verdict failed".
    pub(super) fn take(&mut self, lifecycle: &Lifecycle, answer: Result<Judged, PolicyFault>) {
        match answer {
            Ok(judged) => {
                self.outcome = Some(judged.outcome);
                self.summary = judged.summary.or(self.summary.take());
                self.patch = judged.patch;
                self.retry_after = judged.retry_after;
            }
            Err(fault) => {
                let rule = lifecycle.descriptor().execution.as_ref();
                self.outcome = rule.map(|rule| rule.verdict_failed.clone());
                self.summary = Some(fault.to_string());
            }
        }
    }
}

/// A verdict as it is kept.
fn decision(judged: &Judged) -> Value {
    json!({
        "status": judged.outcome.status,
        "code": judged.outcome.code,
        "summary": judged.summary,
        "patch": judged.patch,
        "retry_after_ms": judged.retry_after.map(DurationMs::as_ms),
    })
}

/// What a verdict function may see of an end, but for the output and what only its row tells.
pub(super) fn observed(
    lifecycle: &Lifecycle,
    entity: &Entity,
    (runtime, record, found): (&Runtime, &ExitRecord, &Found),
) -> Observed {
    let (ending, ended) = seen(record);
    let ms = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let ended_at = Timestamp::from_ms(ms(record.ended_at_ms));
    Observed {
        exit_code: record.exit_code.map(i64::from),
        signal: record.term_signal.map(i64::from),
        cause: ending.cause(ended).word().to_owned(),
        stop_intent: stop_code(lifecycle, entity, runtime, ended_at).map(str::to_owned),
        started_at: Timestamp::from_ms(ms(record.started_at_ms)),
        ended_at,
        duration: DurationMs::from_ms(ms(record.duration_ms)),
        usage: Some((ms(record.user_ms), ms(record.system_ms), ms(record.max_rss_bytes))),
        artifacts: found.artifacts.clone(),
        evidence_wanted: found.evidence_wanted,
        artifacts_missing: found.missing.clone(),
        last_output: Bytes::default(),
        of_row: None,
    }
}

/// The code of the kill that somebody wanted before the worker ended, though no stop of ours was going on yet.
fn stop_code<'a>(lifecycle: &'a Lifecycle, entity: &Entity, runtime: &Runtime, ended_at: Timestamp) -> Option<&'a str> {
    let intent = runtime.stop_intent.as_ref()?;
    let row = lifecycle.kill_row(&entity.status)?;
    (intent.at <= ended_at).then_some(row.term_code.as_str())
}

/// The code of the kill that ended the row of an attempt before the attempt did.
fn stop_of_row(row: &RowSeen, ended_at: Timestamp) -> Option<&str> {
    let (code, at) = row.killed.as_ref()?;
    (*at <= ended_at).then_some(code.as_str())
}

/// The end of the run's output, as much as the policy's descriptor asked for.
pub(super) fn last_output(host: &Host, entity: &Entity, lifecycle: &Lifecycle) -> Result<Bytes, Error> {
    let bytes = u64::try_from(lifecycle.descriptor().reads.last_output_bytes).unwrap_or(0);
    if bytes == 0 {
        return Ok(Bytes::default());
    }
    let directory = RunDir::at(host.run_dir(&entity.reference.id));
    Ok(Bytes(process::last_output(&directory, bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Actor, Create, StopIntent, create};
    use crate::store::samples;

    #[test]
    fn a_stop_counts_if_it_was_wanted_before_the_end() {
        let bundled = runwarden_bundled::POLICIES.iter().find(|policy| policy.kind == "run");
        let descriptor = serde_json::from_str(bundled.expect("it ships").descriptor).expect("a descriptor");
        let lifecycle = Lifecycle::new(descriptor);
        let command = Create::new("run", "r", Actor::new("operator", "tests"));
        let pin = samples::pin();
        let made = create(&lifecycle, &pin, &command, "store", Timestamp::from_ms(1)).expect("it is valid");
        let mut runtime = samples::new_runtime(&made.entity.reference);
        let mut wanted = |at: Option<i64>| {
            runtime.stop_intent = at.map(|at| StopIntent {
                actor: Actor::new("operator", "tests"),
                note: None,
                grace: DurationMs::from_ms(1),
                at: Timestamp::from_ms(at),
            });
            stop_code(&lifecycle, &made.entity, &runtime, Timestamp::from_ms(10)).map(str::to_owned)
        };
        assert_eq!(wanted(None), None);
        assert_eq!(wanted(Some(10)).as_deref(), Some("run.cancelled.manual_kill"));
        assert_eq!(wanted(Some(11)), None, "it was too late");
    }

    #[test]
    fn a_kill_of_its_row_counts_for_an_attempt_if_it_came_before_the_end() {
        let row = |killed: Option<i64>| RowSeen {
            attempts: (1, 2),
            killed: killed.map(|at| ("run.cancelled.force_kill".to_owned(), Timestamp::from_ms(at))),
        };
        let stop = |killed: Option<i64>| stop_of_row(&row(killed), Timestamp::from_ms(10)).map(str::to_owned);
        assert_eq!(stop(None), None);
        assert_eq!(stop(Some(10)).as_deref(), Some("run.cancelled.force_kill"));
        assert_eq!(stop(Some(11)), None, "the attempt had ended before");
    }
}

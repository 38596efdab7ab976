//! Asking a policy's verdict function what the end of a process means.

use crate::error::Error;
use crate::host::Host;
use crate::model::{DurationMs, Entity, Lifecycle, Runtime, Timestamp};
use crate::policy::VerdictRequest;
use crate::process::{self, ExitRecord, RunDir};
use crate::verbs::guarded::surroundings;
use crate::verbs::lease::{RowSeen, row_of_run};
use crate::verbs::settle::{Found, Meaning, seen};

/// Asks the policy's verdict function, where it has one. If it fails, the rule's "verdict failed" is written, with the
/// true exit code.
pub(super) fn ask_verdict(
    host: &Host,
    lifecycle: &Lifecycle,
    entity: &Entity,
    (runtime, record, found): (&Runtime, &ExitRecord, &Found),
    meaning: &mut Meaning,
) -> Result<(), Error> {
    if !host.policies().exports(&entity.policy.digest, "execution")? {
        return Ok(());
    }
    let (ending, ended) = seen(record);
    let surroundings = surroundings(host, lifecycle, entity)?;
    let ms = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let ended_at = Timestamp::from_ms(ms(record.ended_at_ms));
    let row = row_of_run(host, entity)?;
    let request = VerdictRequest {
        entity,
        exit_code: record.exit_code.map(i64::from),
        signal: record.term_signal.map(i64::from),
        cause: ending.cause(ended).word(),
        stop_intent: stop_code(lifecycle, entity, runtime, ended_at)
            .or_else(|| row.as_ref().and_then(|row| stop_of_row(row, ended_at))),
        started_at: Timestamp::from_ms(ms(record.started_at_ms)),
        ended_at,
        duration: DurationMs::from_ms(ms(record.duration_ms)),
        usage: Some((ms(record.user_ms), ms(record.system_ms), ms(record.max_rss_bytes))),
        artifacts: &found.artifacts,
        evidence_wanted: found.evidence_wanted,
        artifacts_missing: &found.missing,
        last_output: &last_output(host, entity, lifecycle)?,
        by_table: meaning.outcome.as_ref(),
        of_row: row.as_ref().map(|row| row.attempts),
        surroundings: &surroundings,
    };
    match host.policies().verdict(&entity.policy, &request) {
        Ok(judged) => {
            meaning.outcome = Some(judged.outcome);
            meaning.summary = judged.summary.or(meaning.summary.take());
            meaning.patch = judged.patch;
            meaning.retry_after = judged.retry_after;
        }
        Err(fault) => {
            let rule = lifecycle.descriptor().execution.as_ref();
            meaning.outcome = rule.map(|rule| rule.verdict_failed.clone());
            meaning.summary = Some(fault.to_string());
        }
    }
    Ok(())
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
fn last_output(host: &Host, entity: &Entity, lifecycle: &Lifecycle) -> Result<Vec<u8>, Error> {
    let bytes = u64::try_from(lifecycle.descriptor().reads.last_output_bytes).unwrap_or(0);
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let directory = RunDir::at(host.run_dir(&entity.reference.id));
    Ok(process::last_output(&directory, bytes)?)
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

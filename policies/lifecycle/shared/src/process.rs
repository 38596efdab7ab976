//! What the host writes for processes, and what their endings mean.

use crate::codes::{FORCE_KILL, MANUAL_KILL, STALE_AUTO};
use runwarden_kit::table::{always, exit_codes, kill, on_exit, on_signal, outcome};
use runwarden_kit::{ExecutionRule, KillRow, VerdictRow};

/// From `running` to the end that fits.
pub fn execution() -> ExecutionRule {
    ExecutionRule {
        start: outcome("running", "run.started.ok"),
        spawn_failed: outcome("failed", "run.failed.spawn_error"),
        directory_missing: outcome("failed", "run.failed.missing_cwd"),
        identity_lost: outcome("failed", "run.failed.spawn_identity_lost"),
        timed_out: outcome("timed_out", "run.timed_out.deadline"),
        hung_up: outcome("cancelled", "run.cancelled.hangup"),
        interrupted: outcome("cancelled", "run.cancelled.sigint"),
        terminated: outcome("cancelled", "run.cancelled.sigterm"),
        parent_gone: outcome("cancelled", "run.cancelled.system"),
        host_restarted: outcome("failed", "run.failed.host_restarted"),
        ended_unobserved: outcome("failed", "run.failed.orphaned_parent"),
        verdict_failed: outcome("failed", "run.failed.policy_fault"),
        ext: Vec::new(),
    }
}

/// Verdicts for a kind that tells an empty completion from a full one.
pub fn verdicts() -> Vec<VerdictRow> {
    let mut rows = verdicts_without_empty();
    let empty = outcome("completed_empty", "run.completed_empty.no_evidence");
    rows.insert(1, on_exit(0, empty).evidence("wanted_and_absent"));
    rows
}

/// Verdicts for a kind without `completed_empty`.
pub fn verdicts_without_empty() -> Vec<VerdictRow> {
    let missing = outcome("failed", "run.failed.missing_artifact");
    let nonzero = outcome("failed", "run.failed.exit_nonzero");
    vec![
        on_exit(0, missing).evidence("artifact_missing"),
        on_exit(0, outcome("completed", "run.completed.ok")),
        exit_codes(i32::MIN.into(), i32::MAX.into(), nonzero), // 32 bits are all that one has
        on_signal(&[], outcome("failed", "run.failed.exception")),
        always(execution().ended_unobserved),
    ]
}

/// A kill with the codes that are alike for every kind.
pub fn kill_from(killable: &[&str], goes_to: &str) -> KillRow {
    kill(killable, goes_to, MANUAL_KILL, FORCE_KILL, STALE_AUTO)
}

#[cfg(test)]
mod tests {
    use super::{execution, verdicts, verdicts_without_empty};
    use runwarden_kit::VerdictRow;

    #[test]
    fn the_first_verdict_that_fits_decides() {
        let check = |end, evidence, expected| assert_eq!(judge(&verdicts(), end, evidence), expected);
        check(End::Exit(0), "artifact_missing", "run.failed.missing_artifact");
        check(End::Exit(0), "wanted_and_absent", "run.completed_empty.no_evidence");
        check(End::Exit(0), "present", "run.completed.ok");
        check(End::Exit(1), "artifact_missing", "run.failed.exit_nonzero");
        check(End::Exit(255), "present", "run.failed.exit_nonzero");
        check(End::Signal, "present", "run.failed.exception");
        check(End::Unobserved, "present", "run.failed.orphaned_parent");
    }

    #[test]
    fn leased_work_is_complete_without_evidence() {
        let rows = verdicts_without_empty();
        assert_eq!(judge(&rows, End::Exit(0), "wanted_and_absent"), "run.completed.ok");
    }

    #[test]
    fn an_end_that_nobody_observed_is_written_alike_by_rule_and_verdict() {
        let last = verdicts().pop().map(|row| row.outcome);
        assert_eq!(last, Some(execution().ended_unobserved));
    }

    enum End {
        Exit(i64),
        Signal,
        Unobserved,
    }

    fn judge(rows: &[VerdictRow], end: End, evidence: &str) -> String {
        let fits = |row: &&VerdictRow| {
            let ended = match (&end, row.exit_codes, &row.signals) {
                (_, None, None) => true,
                (End::Exit(code), Some((first, last)), _) => (first..=last).contains(code),
                (End::Signal, _, Some(signals)) => signals.is_empty(),
                _ => false,
            };
            ended && row.evidence.as_ref().is_none_or(|wanted| wanted == evidence)
        };
        let row = rows.iter().find(fits).expect("the last row fits everything");
        row.outcome.code.clone()
    }
}

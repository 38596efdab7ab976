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
        exit_codes(i64::MIN, i64::MAX, nonzero),
        on_signal(&[], outcome("failed", "run.failed.exception")),
        always(execution().ended_unobserved),
    ]
}

/// A kill with the codes that are alike for every kind.
pub fn kill_from(killable: &[&str], goes_to: &str) -> KillRow {
    kill(killable, goes_to, MANUAL_KILL, FORCE_KILL, STALE_AUTO)
}

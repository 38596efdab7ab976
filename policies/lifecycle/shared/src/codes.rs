//! Reason codes that several kinds admit.

use runwarden_kit::ReasonCode;
use runwarden_kit::table::codes;

/// Ended by a kill within the grace period.
pub const MANUAL_KILL: &str = "run.cancelled.manual_kill";
/// Ended by a kill by force.
pub const FORCE_KILL: &str = "run.cancelled.force_kill";
/// Ended by the sweep of what is positively gone.
pub const STALE_AUTO: &str = "run.cancelled.stale_auto";

/// The codes of a kill: a watcher tells a kill by one code whatever the kind.
pub fn of_kills() -> Vec<ReasonCode> {
    codes(&[
        (MANUAL_KILL, "Killed, ended within the grace period."),
        (FORCE_KILL, "Killed, ended by force."),
        (STALE_AUTO, "Ended by the sweep: its processes were gone."),
    ])
}

/// The `run.` family: what may be said of everything that runs a process.
pub fn of_runs() -> Vec<ReasonCode> {
    [codes(ENDS), of_kills(), codes(WAITS)].concat()
}

/// How a run started and how it may end.
const ENDS: &[(&str, &str)] = &[
    ("run.started.ok", "Was started."),
    ("run.completed.ok", "Ended well."),
    (
        "run.completed.finalize_error",
        "Ended well; tidying up afterwards failed.",
    ),
    ("run.completed.gate_rejected", "Ended well; a gate rejected the result."),
    (
        "run.completed.spawn_refused",
        "Ended well; it was refused to start more work.",
    ),
    (
        "run.completed_empty.no_evidence",
        "Ended well, and nothing of what was wanted is there.",
    ),
    ("run.failed.exit_nonzero", "Ended with a code other than 0."),
    ("run.failed.exception", "Broke down."),
    (
        "run.failed.provider_retryable",
        "A provider failed; trying again may help.",
    ),
    (
        "run.failed.provider_nonretryable",
        "A provider failed; trying again cannot help.",
    ),
    ("run.failed.missing_artifact", "An expected result is missing."),
    ("run.failed.artifact_write", "A result could not be written."),
    ("run.failed.missing_cwd", "The working directory does not exist."),
    (
        "run.failed.cwd_inherit_refused",
        "It was refused to inherit the working directory.",
    ),
    ("run.failed.escalated", "Was handed to a person."),
    ("run.failed.never_dispatched", "Nobody ever took it up."),
    (
        "run.failed.lease_attempts_exhausted",
        "The lease ran out, and no attempts are left.",
    ),
    ("run.failed.dependency_failed", "What it waited for did not succeed."),
    ("run.failed.spawn_error", "The program could not be started."),
    (
        "run.failed.spawn_identity_lost",
        "Nobody learned which process was started.",
    ),
    ("run.failed.host_restarted", "The machine restarted under it."),
    ("run.failed.orphaned_parent", "It ended, and nobody could observe how."),
    ("run.failed.policy_fault", "The policy failed to judge the ending."),
    ("run.timed_out.deadline", "The deadline ended it."),
    ("run.aborted.user", "The user gave it up."),
    ("run.cancelled.sigint", "Interrupted from the terminal."),
    ("run.cancelled.sigterm", "Told to end."),
    ("run.cancelled.hangup", "The terminal went away."),
    (
        "run.cancelled.system",
        "The system ended it: what it was to live with is gone.",
    ),
    ("run.cancelled.orchestrator", "Its orchestrator ended it."),
];

/// Why a run is not under way.
const WAITS: &[(&str, &str)] = &[
    ("run.paused.operator", "Paused by an operator."),
    ("run.queued.lease_expired", "Back in the queue: its lease ran out."),
    ("run.queued.retry_due", "Back in the queue: the next attempt is due."),
    ("run.retry_wait.backoff", "Failed, and will be tried again later."),
    ("run.retry_wait.handed_back", "A worker gave it back unharmed."),
    ("run.skipped.waiter_cap_exceeded", "Not taken up: too many are waiting."),
    (
        "run.skipped.duration_exceeds_lease",
        "Not taken up: it would outlast its lease.",
    ),
];

/// The `session.` family: what may be said of a session beside its end.
pub fn of_sessions() -> Vec<ReasonCode> {
    codes(&[
        ("session.stale.no_heartbeat", "Quiet for too long."),
        ("session.orphaned.no_process", "No process and no traces."),
        ("session.zombie.stale_locks", "Ended, and its locks were left."),
        ("session.phantom.process_dead", "Said to run, and its process is gone."),
        (
            "session.phantom.missing_artifacts",
            "Said to have ended, and its results are missing.",
        ),
        ("session.reopened.by_resume", "Taken up again."),
    ])
}

//! Leased work: what both generations of schedule_run have in common.

use crate::{codes, health, process, running};
use runwarden_kit::table::{codes as rows, edges, field, outcome, policy, retry, status};
use runwarden_kit::{Descriptor, LeaseRule};

const LEASE_MS: i64 = 300_000;
const GRACE_MS: i64 = 20_000;
const HEARTBEAT_LIMIT_MS: i64 = 90_000;
const ATTEMPTS: i64 = 3;
const RETRY_BASE_MS: i64 = 30_000;
const RETRY_CAP_MS: i64 = 1_800_000;
const JITTER_PERCENT: i64 = 10;

/// The statuses, edges, fields and codes that every version has; each adds its own.
pub fn table(version: &str, summary: &str) -> Descriptor {
    policy("schedule_run", version, summary)
        .statuses([
            status("queued", "Waits for a worker.").initial("schedule.queued.created"),
            status("waiting_dependency", "Waits for other work to succeed."),
            status("running", "A worker holds its lease.").initial("run.started.ok"),
            status("retry_wait", "Waits until the next attempt is due."),
            status("completed", "Ended well.").success(),
            status("failed", "Ended badly, or nobody knows how.")
                .terminal()
                .initial_with_given_code(),
            status("timed_out", "The deadline ended it.").terminal(),
            status("skipped", "Was not taken up.")
                .terminal()
                .initial_with_given_code(),
            status("cancelled", "Killed, interrupted or told to end.").terminal(),
        ])
        .edges(edges(
            "queued",
            &["waiting_dependency", "running", "skipped", "cancelled"],
        ))
        .edges(edges("waiting_dependency", &["queued", "cancelled"]))
        .edges(edges(
            "running",
            &["completed", "failed", "timed_out", "retry_wait", "cancelled"],
        ))
        .edges(edges("retry_wait", &["queued", "cancelled"]))
        .fields([running::ended_at()])
        .fields(running::ending_fields())
        .fields([
            field("error_detail", "text", "What went wrong, for people."),
            field("invocation_id", "text", "The invocation that did the work."),
            field("queued_at", "timestamp", "When it was queued last."),
            field("leased_by", "text", "The worker that holds the lease."),
            field("lease_expires_at", "timestamp", "When the lease runs out."),
            field("lease_attempts", "integer", "How often it was claimed."),
        ])
        .codes(codes::of_runs())
        .codes(rows(&[
            ("schedule.queued.created", "Was queued."),
            ("schedule.fired.due", "Was due."),
            ("schedule.deferred.capacity", "Put off: no room for it."),
            ("schedule.budget.exhausted", "The budget is used up."),
            ("schedule.skipped.precondition", "A condition was not met."),
            ("schedule.skipped.overlap", "The one before was still running."),
            ("schedule.skipped.missed_fire", "Its time was missed."),
        ]))
        .emitting_events()
        .execution(process::execution())
        .verdicts(process::verdicts_without_empty())
        .retry(retry(RETRY_BASE_MS, RETRY_CAP_MS, ATTEMPTS).jitter_percent(JITTER_PERCENT))
        .health(health::thresholds())
}

/// The first generation: a lease that runs out sends the work back to the queue, and a failed attempt is a failure.
pub fn lease() -> LeaseRule {
    LeaseRule {
        queued: "queued".to_owned(),
        claimed: outcome("running", "run.started.ok"),
        active: vec!["running".to_owned()],
        lease: LEASE_MS,
        grace: GRACE_MS,
        heartbeat_limit: HEARTBEAT_LIMIT_MS,
        attempts: ATTEMPTS,
        lapsed: outcome("queued", "run.queued.lease_expired"),
        recovered: None,
        fenced: None,
        exhausted: outcome("failed", "run.failed.lease_attempts_exhausted"),
        backed_off: None,
        retry_due: Some(outcome("queued", "run.queued.retry_due")),
        handed_back: Some(outcome("retry_wait", "run.retry_wait.handed_back")),
        dependency_waiting: Some(outcome("waiting_dependency", "schedule.queued.created")),
        dependency_met: Some(outcome("queued", "schedule.fired.due")),
        dependency_failed: Some(outcome("cancelled", "run.failed.dependency_failed")),
        ext: Vec::new(),
    }
}

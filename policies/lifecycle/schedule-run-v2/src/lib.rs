//! The lifecycle of leased work with a two-stage detector: a lease that runs out is first doubted, then fenced.

use runwarden_kit::table::{codes, edge, edges, field, outcome, status};
use runwarden_kit::{Descriptor, LeaseRule, Policy};
use runwarden_policy_shared::{leased, process};

/// Version 2 of the policy of the kind `schedule_run`.
#[derive(Debug)]
pub struct ScheduleRun;

/// From where a kill ends it.
const KILLABLE: &[&str] = &[
    "queued",
    "waiting_dependency",
    "running",
    "retry_wait",
    "supervisor_unknown",
];

impl Policy for ScheduleRun {
    fn describe() -> Descriptor {
        leased::table(
            "2.0.0",
            "Work that a worker takes on lease, doubted before it is given up.",
        )
        .statuses([
            status("supervisor_unknown", "Its lease ran out; its worker may still live."),
            status("orphaned", "Its worker is shut out for good.").terminal(),
        ])
        .edges([edge("running", "supervisor_unknown")])
        .edges([edge("waiting_dependency", "skipped")])
        .edges([edge("supervisor_unknown", "running").guarding(&["leased_by"])])
        .edges(edges("supervisor_unknown", &["orphaned", "failed", "cancelled"]))
        .fields([
            field("unknown_since", "timestamp", "When its lease ran out."),
            field("process_identity", "json", "The process that did the work."),
        ])
        .codes(codes(&[
            (
                "run.supervisor_unknown.lease_stale",
                "Its lease ran out; its worker is not heard of.",
            ),
            ("run.running.recovered_same_holder", "Its worker came back in time."),
            ("run.orphaned.fence_committed", "Its worker was shut out for good."),
        ]))
        .kill(process::kill_from(KILLABLE, "cancelled").always_cascading())
        .lease(lease())
    }
}

fn lease() -> LeaseRule {
    LeaseRule {
        active: vec!["running".to_owned(), "supervisor_unknown".to_owned()],
        lapsed: outcome("supervisor_unknown", "run.supervisor_unknown.lease_stale"),
        recovered: Some(outcome("running", "run.running.recovered_same_holder")),
        fenced: Some(outcome("orphaned", "run.orphaned.fence_committed")),
        backed_off: Some(outcome("retry_wait", "run.retry_wait.backoff")),
        dependency_failed: Some(outcome("skipped", "run.failed.dependency_failed")),
        ..leased::lease()
    }
}

runwarden_kit::export!(ScheduleRun: policy);

#[cfg(test)]
mod tests {
    use super::{KILLABLE, ScheduleRun};
    use runwarden_kit::Policy;
    use runwarden_kit::check::{edge_between, names, problems, targets};

    #[test]
    fn the_table_is_sound() {
        assert_eq!(problems(&ScheduleRun::describe()), [""; 0]);
    }

    #[test]
    fn a_kill_ends_it_from_every_status_that_is_not_terminal() {
        let table = ScheduleRun::describe();
        assert_eq!(names(&table, |status| !status.terminal), KILLABLE);
    }

    #[test]
    fn running_work_never_goes_back_to_the_queue_directly() {
        assert_eq!(edge_between(&ScheduleRun::describe(), "running", "queued"), None);
    }

    #[test]
    fn only_the_holder_of_the_lease_brings_doubted_work_back() {
        let table = ScheduleRun::describe();
        let back = edge_between(&table, "supervisor_unknown", "running").expect("there is a way");
        assert_eq!(back.required_guards, ["leased_by"]);
        assert_eq!(
            targets(&table, "supervisor_unknown"),
            ["running", "orphaned", "failed", "cancelled"]
        );
    }

    #[test]
    fn doubted_work_counts_against_the_limit() {
        let lease = ScheduleRun::describe().lease.expect("the work is leased");
        assert_eq!(lease.active, ["running", "supervisor_unknown"]);
    }
}

//! The lifecycle of leased work, first generation: a lease that runs out puts the work back into the queue.

use runwarden_kit::table::edge;
use runwarden_kit::{Descriptor, Policy};
use runwarden_policy_shared::{leased, process};

/// Version 1 of the policy of the kind `schedule_run`.
#[derive(Debug)]
pub struct ScheduleRun;

/// From where a kill ends it.
const KILLABLE: &[&str] = &["queued", "waiting_dependency", "running", "retry_wait"];

impl Policy for ScheduleRun {
    fn describe() -> Descriptor {
        leased::table("1.0.0", "Work that a worker takes on lease.")
            .edges([edge("running", "queued")])
            .kill(process::kill_from(KILLABLE, "cancelled").always_cascading())
            .lease(leased::lease())
    }
}

runwarden_kit::export!(ScheduleRun: policy);

#[cfg(test)]
mod tests {
    use super::{KILLABLE, ScheduleRun};
    use runwarden_kit::Policy;
    use runwarden_kit::check::{edge_between, names, problems};

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
    fn a_lease_that_runs_out_leads_back_to_the_queue() {
        let table = ScheduleRun::describe();
        let lease = table.lease.clone().expect("the work is leased");
        assert_eq!(lease.lapsed.status, "queued");
        assert!(edge_between(&table, "running", "queued").is_some());
        assert_eq!((lease.recovered, lease.fenced), (None, None));
    }
}

//! The lifecycle of an agent session.

use runwarden_kit::{Assessment, Descriptor, Fault, Health, Observation, Policy};
use runwarden_policy_shared::{codes, health, running};

/// The policy of the kind `session`.
#[derive(Debug)]
pub struct Session;

impl Policy for Session {
    fn describe() -> Descriptor {
        running::table("session", "1.0.0", "An agent session.")
            .fields(running::session_fields())
            .codes(codes::of_runs())
            .codes(codes::of_sessions())
            .measuring_ends()
    }
}

impl Health for Session {
    fn assess(observation: Observation) -> Result<Assessment, Fault> {
        health::assess(&observation)
    }
}

runwarden_kit::export!(Session: policy, health);

#[cfg(test)]
mod tests {
    use super::Session;
    use runwarden_kit::check::{names, problems, targets};
    use runwarden_kit::{Policy, Status};
    use runwarden_policy_shared::running::ENDS;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(problems(&Session::describe()), [""; 0]);
    }

    #[test]
    fn running_leads_to_every_end_and_no_end_leads_on() {
        let table = Session::describe();
        assert_eq!(targets(&table, "running"), ENDS);
        assert_eq!(names(&table, |status| status.terminal), ENDS);
        assert!(ENDS.iter().all(|end| targets(&table, end).is_empty()));
    }

    #[test]
    fn only_completed_counts_as_a_success() {
        let success = |status: &Status| status.success;
        assert_eq!(names(&Session::describe(), success), ["completed"]);
    }
}

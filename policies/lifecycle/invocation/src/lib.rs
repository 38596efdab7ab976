//! The lifecycle of one invocation of a program.

use runwarden_kit::{Assessment, Descriptor, Fault, Health, Observation, Policy};
use runwarden_policy_shared::{codes, health, running};

/// The policy of the kind `invocation`.
#[derive(Debug)]
pub struct Invocation;

impl Policy for Invocation {
    fn describe() -> Descriptor {
        running::table("invocation", "1.0.0", "One invocation of a program.")
            .fields(running::invocation_fields())
            .codes(codes::of_runs())
    }
}

impl Health for Invocation {
    fn assess(observation: Observation) -> Result<Assessment, Fault> {
        health::assess(&observation)
    }
}

runwarden_kit::export!(Invocation: policy, health);

#[cfg(test)]
mod tests {
    use super::Invocation;
    use runwarden_kit::check::{names, problems, targets};
    use runwarden_kit::{Policy, Status};
    use runwarden_policy_shared::running::ENDS;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(problems(&Invocation::describe()), [""; 0]);
    }

    #[test]
    fn running_leads_to_every_end_and_no_end_leads_on() {
        let table = Invocation::describe();
        assert_eq!(targets(&table, "running"), ENDS);
        assert_eq!(names(&table, |status| status.terminal), ENDS);
        assert!(ENDS.iter().all(|end| targets(&table, end).is_empty()));
    }

    #[test]
    fn only_completed_counts_as_a_success() {
        let success = |status: &Status| status.success;
        assert_eq!(names(&Invocation::describe(), success), ["completed"]);
    }
}

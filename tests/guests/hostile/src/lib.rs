//! A policy that misbehaves in every way the host must survive.
//!
//! It is built once. Which way it misbehaves is read from two digits in its data, which a test replaces
//! ([`MARKER`]), so that one build gives every hostile component.

mod answers;
mod harm;
mod mode;
mod table;

pub use mode::{MARKER, Mode};

use runwarden_kit::{
    Assessment, Decision, Descriptor, Ending, Execution, Fault, Guard, Health, Judgement, Observation, Policy, Request,
};

/// The policy of the kind `gadget`.
#[derive(Debug)]
pub struct Hostile;

impl Policy for Hostile {
    fn describe() -> Descriptor {
        table::describe(mode::current())
    }
}

impl Guard for Hostile {
    fn evaluate(request: Request) -> Result<Decision, Fault> {
        answers::decide(mode::current(), &request)
    }
}

impl Execution for Hostile {
    fn verdict(ending: Ending) -> Result<Judgement, Fault> {
        answers::judge(mode::current(), &ending)
    }
}

impl Health for Hostile {
    fn assess(_: Observation) -> Result<Assessment, Fault> {
        answers::assess(mode::current())
    }
}

runwarden_kit::export!(Hostile: policy, guard, execution, health);

#[cfg(test)]
mod tests {
    use runwarden_kit::check::problems;

    use super::{Mode, table};

    #[test]
    fn the_honest_table_is_sound() {
        assert_eq!(problems(&table::describe(Mode::Honest)), [""; 0]);
    }
}

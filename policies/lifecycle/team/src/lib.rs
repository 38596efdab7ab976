//! The lifecycle of a team.

use runwarden_kit::table::{codes, edge, policy, status};
use runwarden_kit::{Descriptor, Policy};

/// The policy of the kind `team`.
#[derive(Debug)]
pub struct Team;

impl Policy for Team {
    fn describe() -> Descriptor {
        policy("team", "1.0.0", "A group of agents.")
            .statuses([
                status("active", "At work.").initial("team.active.created"),
                status("archived", "Put away.").success(),
            ])
            .edges([edge("active", "archived")])
            .codes(codes(&[
                ("team.active.created", "Was created."),
                ("team.archived.operator", "Put away by an operator."),
            ]))
    }
}

runwarden_kit::export!(Team: policy);

#[cfg(test)]
mod tests {
    use super::Team;
    use runwarden_kit::Policy;
    use runwarden_kit::check::{problems, targets};

    #[test]
    fn the_table_is_sound() {
        assert_eq!(problems(&Team::describe()), [""; 0]);
    }

    #[test]
    fn an_archived_team_stays_archived() {
        assert_eq!(targets(&Team::describe(), "active"), ["archived"]);
        assert_eq!(targets(&Team::describe(), "archived"), [""; 0]);
    }
}

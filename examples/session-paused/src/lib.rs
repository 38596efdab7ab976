//! The session policy with a status more: `paused`, for a session that is asked to rest and may go on later.
//!
//! It takes the table that ships and adds rows, so that everything else stays as it is.

use runwarden_kit::table::{code, edge, edges, status};
use runwarden_kit::{Assessment, Descriptor, Fault, Health, Observation, Policy};
use runwarden_policy_shared::process::kill_from;
use runwarden_policy_shared::{codes, health, running};

/// The policy of the kind `session`.
#[derive(Debug)]
pub struct SessionPaused;

impl Policy for SessionPaused {
    fn describe() -> Descriptor {
        running::table("session", "1.1.0", "An agent session that can be paused.")
            .statuses([status("paused", "Rests until it is resumed; its process may live.").announced()])
            .edges([edge("running", "paused"), edge("paused", "running")])
            // Whatever can end a session can end a paused one.
            .edges(edges("paused", running::ENDS))
            .kill(kill_from(&["paused"], "cancelled"))
            .fields(running::session_fields())
            .codes(codes::of_runs())
            .codes(codes::of_sessions())
            .codes([code("session.resumed.operator", "Resumed by an operator.")])
            .measuring_ends()
    }
}

impl Health for SessionPaused {
    fn assess(observation: Observation) -> Result<Assessment, Fault> {
        if observation.entity.status != "paused" {
            return health::assess(&observation);
        }
        // Rest is quiet by intent: only a process that is gone is worth a word.
        Ok(match observation.process.as_str() {
            "gone" => Assessment::new("stale", "it is paused, its process is gone, and no end is recorded"),
            _ => Assessment::new("healthy", "it is paused"),
        })
    }
}

runwarden_kit::export!(SessionPaused: policy, health);

#[cfg(test)]
mod tests {
    use runwarden_kit::check::{edge_between, names, problems, targets};
    use runwarden_policy_session::Session;
    use runwarden_policy_shared::running::ENDS;

    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(problems(&SessionPaused::describe()), [""; 0]);
    }

    #[test]
    fn everything_of_the_session_policy_is_still_there() {
        let (ours, theirs) = (SessionPaused::describe(), Session::describe());
        assert!(theirs.statuses.iter().all(|status| ours.statuses.contains(status)));
        assert!(theirs.edges.iter().all(|edge| ours.edges.contains(edge)));
        assert!(theirs.kill.iter().all(|row| ours.kill.contains(row)));
        assert!(theirs.reason_codes.iter().all(|code| ours.reason_codes.contains(code)));
        assert_eq!((ours.kind, ours.name), (theirs.kind, theirs.name));
        assert_eq!(ours.verdicts, theirs.verdicts);
    }

    #[test]
    fn a_paused_session_can_go_on_and_can_end_in_every_way() {
        let table = SessionPaused::describe();
        assert_eq!(names(&table, |status| !status.terminal), ["running", "paused"]);
        assert!(edge_between(&table, "running", "paused").is_some());
        let ways_out: Vec<&str> = ["running"].iter().chain(ENDS).copied().collect();
        assert_eq!(targets(&table, "paused"), ways_out);
    }
}

//! The lifecycle of one piece of a show. The graph is deliberately permissive: work may go back and forth until it ends.

use runwarden_kit::table::{codes, edges, field, policy, status};
use runwarden_kit::{Descriptor, Edge, Policy};
use runwarden_policy_shared::codes as shared_codes;
use runwarden_policy_shared::{health, process, running};

/// The policy of the kind `play`.
#[derive(Debug)]
pub struct Play;

const OPEN: &[&str] = &["pending", "prepared", "running", "running_complete", "gated", "redoing"];

const ENDS: &[&str] = &["merged", "escalated", "gate_failed", "blocked", "aborted_after_finish"];

impl Policy for Play {
    fn describe() -> Descriptor {
        policy("play", "1.0.0", "One piece of a show.")
            .statuses([
                status("pending", "Waits to be prepared.").initial("play.pending.created"),
                status("prepared", "Ready to run."),
                status("running", "A session works on it."),
                status("running_complete", "The session has ended."),
                status("gated", "Its result is judged."),
                status("redoing", "Its result was sent back."),
                status("merged", "Its result was taken over.").success(),
                status("escalated", "Handed to a person.").terminal(),
                status("gate_failed", "Its result was refused.").terminal(),
                status("blocked", "Cannot go on, or was killed.").terminal(),
                status("aborted_after_finish", "Given up after it had finished.").terminal(),
            ])
            .edges(every_way_on())
            .fields([
                running::ended_at(),
                field("exit_code", "integer", "The code its session exited with."),
                field("merge_sha", "text", "The commit that took it over."),
                field("merged_at", "timestamp", "When it was taken over."),
                field("gate_passed", "boolean", "Whether its result was accepted."),
                field("gate_feedback", "text", "Why it was accepted or refused."),
            ])
            .codes(codes(&[
                ("play.pending.created", "Was created."),
                ("play.pending.waiting_on_deps", "Waits for other plays."),
                ("play.pending.ready", "Everything it waited for is there."),
                ("play.blocked.invalid_deps", "What it waits for does not exist."),
                ("play.blocked.dep_failed", "What it waits for did not succeed."),
                ("play.blocked.runner_orphaned", "What ran it is gone without an end."),
                ("play.gate_failed.verdict", "Its result was refused."),
                ("play.escalated.gate_twice", "Refused twice: handed to a person."),
                ("play.merged.ok", "Its result was taken over."),
            ]))
            .codes(shared_codes::of_kills())
            .emitting_events()
            .kill(process::kill_from(OPEN, "blocked").always_cascading())
            .health(health::thresholds())
    }
}

/// From every open status to every other.
fn every_way_on() -> Vec<Edge> {
    let ways = OPEN.iter().flat_map(|from| {
        let others = OPEN.iter().chain(ENDS).filter(move |to| *to != from);
        let others: Vec<&str> = others.copied().collect();
        edges(from, &others)
    });
    ways.collect()
}

runwarden_kit::export!(Play: policy);

#[cfg(test)]
mod tests {
    use super::{ENDS, OPEN, Play};
    use runwarden_kit::check::{names, problems, targets};
    use runwarden_kit::{Policy, Status};

    #[test]
    fn the_table_is_sound() {
        assert_eq!(problems(&Play::describe()), [""; 0]);
    }

    #[test]
    fn every_open_status_leads_to_every_other_and_no_end_leads_on() {
        let table = Play::describe();
        assert_eq!(table.edges.len(), 60);
        assert!(OPEN.iter().all(|from| targets(&table, from).len() == 10));
        assert_eq!(names(&table, |status| status.terminal), ENDS);
    }

    #[test]
    fn only_merged_counts_as_a_success() {
        let success = |status: &Status| status.success;
        assert_eq!(names(&Play::describe(), success), ["merged"]);
    }

    #[test]
    fn a_kill_blocks_it_from_every_open_status() {
        let kill = Play::describe().kill;
        assert_eq!(kill[0].killable, OPEN);
        assert_eq!(
            (kill[0].goes_to.as_str(), kill[0].cascade.as_str()),
            ("blocked", "always")
        );
    }
}

//! A play with one way through: prepared, run, judged, merged, and no step left out.
//!
//! The policy that ships lets a play go from every status to every other. This one asks: whether the sessions of a play
//! have ended before it is complete, whether the one who merges it looked at what they merge, and whether it was not sent
//! back once before.

use runwarden_kit::table::{codes, edge, edges, field, migration, policy, status};
use runwarden_kit::{Decision, Descriptor, Edge, Fault, Guard, Migration, Policy, Request};
use runwarden_policy_shared::{codes as shared_codes, health, process, running};

/// A tight policy of the kind `play`.
#[derive(Debug)]
pub struct StrictPlay;

const OPEN: &[&str] = &["pending", "prepared", "running", "running_complete", "gated", "redoing"];

/// Who judges: people, and never what did the work.
const JUDGES: &[&str] = &["operator", "admin"];

impl Policy for StrictPlay {
    fn describe() -> Descriptor {
        let table = policy("play", "1.0.0", "One piece of a show, with one way through.")
            .statuses([
                status("pending", "Waits to be prepared.").initial("play.pending.created"),
                status("prepared", "Ready to run."),
                status("running", "A session works on it."),
                status("running_complete", "Its sessions have ended."),
                status("gated", "Its result is judged.").announced(),
                status("redoing", "Its result was sent back."),
                status("merged", "Its result was taken over.").success(),
                status("escalated", "Handed to a person.").terminal(),
                status("gate_failed", "Its result was refused.").terminal(),
                status("blocked", "Cannot go on, or was killed.").terminal(),
                status("aborted_after_finish", "Given up after it had finished.").terminal(),
            ])
            .edges(way_through())
            .edges(OPEN.iter().flat_map(|from| edges(from, &["blocked"])))
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
                ("play.prepared.ok", "Everything it needs is there."),
                ("play.running.started", "A session was set to work."),
                ("play.running_complete.ok", "Its sessions have ended."),
                ("play.gated.asked", "Somebody is to judge it."),
                ("play.redoing.feedback", "Sent back, with the reason why."),
                ("play.blocked.invalid_deps", "What it waits for does not exist."),
                ("play.blocked.dep_failed", "What it waits for did not succeed."),
                ("play.blocked.runner_orphaned", "What ran it is gone without an end."),
                ("play.gate_failed.verdict", "Its result was refused."),
                ("play.escalated.gate_twice", "Refused twice: handed to a person."),
                ("play.aborted_after_finish.operator", "Given up after it had finished."),
                ("play.merged.ok", "Its result was taken over."),
            ]))
            .codes(shared_codes::of_kills())
            .emitting_events()
            .kill(process::kill_from(OPEN, "blocked").always_cascading())
            .health(health::thresholds())
            .migrations([from_the_play_that_ships()])
            .reading_children()
            .reading_history(100);
        Descriptor {
            name: "strict_play".to_owned(),
            ..table
        }
    }
}

fn way_through() -> Vec<Edge> {
    let judged = |to| edge("gated", to).only(JUDGES);
    vec![
        edge("pending", "prepared"),
        edge("prepared", "running"),
        edge("running", "running_complete").patching(&["exit_code"]).guarded(),
        edge("running_complete", "gated"),
        judged("merged")
            .patching(&["gate_passed", "merge_sha", "merged_at"])
            // Whoever merges names the exit code they saw: what changed under their eyes is a conflict.
            .guarding(&["exit_code"])
            .guarded(),
        judged("redoing").patching(&["gate_passed", "gate_feedback"]).guarded(),
        judged("gate_failed").patching(&["gate_passed", "gate_feedback"]),
        judged("escalated").patching(&["gate_feedback"]),
        edge("redoing", "running"),
        edge("running_complete", "aborted_after_finish").only(JUDGES),
        judged("aborted_after_finish"),
    ]
}

/// Every status is there under the same name.
fn from_the_play_that_ships() -> Migration {
    Migration {
        from_name: "play".to_owned(),
        ..migration("1", &[])
    }
}

impl Guard for StrictPlay {
    fn evaluate(request: Request) -> Result<Decision, Fault> {
        Ok(match request.target.as_str() {
            "running_complete" => complete(&request),
            "merged" => merged(&request),
            "redoing" => redoing(&request),
            other => {
                return Err(Fault::new(
                    "not_asked_about",
                    &format!("nothing is known of the way to {other}"),
                ));
            }
        })
    }
}

/// What still works on it could undo what is judged.
fn complete(request: &Request) -> Decision {
    let alive = request.surroundings.children.iter().filter(|child| !child.terminal);
    let alive: Vec<String> = alive.map(|child| format!("{}/{}", child.kind, child.id)).collect();
    if alive.is_empty() {
        return Decision::admit();
    }
    let words = format!("{} still works on it: wait for its end, or kill it", alive.join(", "));
    Decision::refuse("sessions_alive", &words)
}

fn merged(request: &Request) -> Decision {
    if patched(request, "gate_passed") != Some("true") {
        let words = "what did not pass the gate is not merged: set gate_passed=true, or send it back";
        return Decision::refuse("gate_not_passed", words);
    }
    let children = &request.surroundings.children;
    if !children.is_empty() && !children.iter().any(|child| child.success) {
        let words = "none of its sessions ended with success: there is nothing to merge";
        return Decision::refuse("nothing_to_merge", words);
    }
    Decision::admit()
}

fn redoing(request: &Request) -> Decision {
    if patched(request, "gate_passed") != Some("false") {
        let words = "what passed the gate is merged: set gate_passed=false to send it back";
        return Decision::refuse("gate_passed", words);
    }
    if patched(request, "gate_feedback").is_none_or(|text| ["null", "\"\""].contains(&text)) {
        let words = "it cannot be done better without a word of what is wrong: set gate_feedback";
        return Decision::refuse("no_feedback", words);
    }
    if request.surroundings.history.iter().any(|row| row.status == "redoing") {
        let words = "it was sent back before: refuse it (gate_failed), or hand it to a person (escalated)";
        return Decision::refuse("sent_back_before", words);
    }
    Decision::admit()
}

/// The JSON text that a field is to have.
fn patched<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let entry = request.patch.iter().find(|entry| entry.name == name)?;
    Some(&entry.json)
}

runwarden_kit::export!(StrictPlay: policy, guard);

#[cfg(test)]
mod tests {
    use runwarden_kit::check::{edge_between, problems, targets};
    use runwarden_kit::sample;

    use super::*;

    /// What is said of a move: the code of its refusal, none when it is admitted.
    fn asked(request: Request) -> Option<String> {
        let decision = StrictPlay::evaluate(request).expect("it is no fault");
        (!decision.admitted).then_some(decision.code)
    }

    fn judging(to: &str, patch: &[(&str, &str)]) -> Request {
        let mut request = sample::request("gated", to, "operator:ann");
        request.patch = sample::values(patch);
        request
    }

    #[test]
    fn the_table_is_sound() {
        assert_eq!(problems(&StrictPlay::describe()), [""; 0]);
    }

    #[test]
    fn there_is_one_way_through_and_no_shortcut() {
        let table = StrictPlay::describe();
        let onward = |from: &str| -> Vec<&str> {
            let all = targets(&table, from).into_iter();
            all.filter(|to| *to != "blocked").collect()
        };
        assert_eq!(onward("pending"), ["prepared"]);
        assert_eq!(onward("prepared"), ["running"]);
        assert_eq!(onward("running"), ["running_complete"]);
        assert_eq!(onward("redoing"), ["running"]);
        assert_eq!(onward("running_complete"), ["gated", "aborted_after_finish"]);
        let judges_alone = |to: &&str| edge_between(&table, "gated", to).is_some_and(|edge| edge.actors == JUDGES);
        assert!(onward("gated").iter().all(judges_alone));
    }

    #[test]
    fn it_is_complete_once_nothing_works_on_it() {
        let mut request = sample::request("running", "running_complete", "agent:one");
        assert_eq!(asked(request.clone()), None);
        request.surroundings.children = vec![sample::child("completed", Some(true)), sample::child("running", None)];
        assert_eq!(asked(request).as_deref(), Some("sessions_alive"));
    }

    #[test]
    fn only_what_passed_and_succeeded_is_merged() {
        assert_eq!(asked(judging("merged", &[("gate_passed", "true")])), None);
        let refused = asked(judging("merged", &[("gate_passed", "false")]));
        assert_eq!(refused.as_deref(), Some("gate_not_passed"));
        let mut in_vain = judging("merged", &[("gate_passed", "true")]);
        in_vain.surroundings.children = vec![sample::child("failed", Some(false))];
        assert_eq!(asked(in_vain).as_deref(), Some("nothing_to_merge"));
    }

    #[test]
    fn it_is_sent_back_once_and_with_a_word() {
        let patch = [("gate_passed", "false"), ("gate_feedback", "\"no tests\"")];
        assert_eq!(asked(judging("redoing", &patch)), None);
        assert_eq!(asked(judging("redoing", &patch[..1])).as_deref(), Some("no_feedback"));
        assert_eq!(asked(judging("redoing", &patch[1..])).as_deref(), Some("gate_passed"));
        let mut again = judging("redoing", &patch);
        again.surroundings.history = vec![
            sample::row("gated", "agent:one"),
            sample::row("redoing", "operator:ann"),
        ];
        assert_eq!(asked(again).as_deref(), Some("sent_back_before"));
    }
}

//! A policy with every optional part: reviews that are admitted by a guard, judged by code and carried over.
//!
//! `CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-component-ld cargo build -p runwarden-kit --example review
//! --target wasm32-unknown-unknown --profile guest` makes the component.

use runwarden_kit::table::{always, code, edge, field, migration, outcome, parameter, policy, status};
use runwarden_kit::{
    Assessment, Decision, Descriptor, Ending, Entity, Execution, ExecutionRule, Fault, Guard, Health, Judgement, Level,
    Mapping, Migrate, Observation, Policy, Request, Surroundings, log,
};

/// A review of one change.
#[derive(Debug)]
pub(crate) struct Review;

impl Policy for Review {
    fn describe() -> Descriptor {
        policy("review", "2.0.0", "A review of one change.")
            .statuses([
                status("open", "Is read.").initial("review.open.created"),
                status("approved", "May be merged.").success(),
                status("waived", "May be merged without this review.").success(),
                status("declined", "May not be merged.").terminal(),
            ])
            .edges([
                edge("open", "approved"),
                edge("open", "waived").only(&["operator"]).guarded(),
                edge("open", "declined"),
            ])
            .codes([
                code("review.open.created", "Was opened."),
                code("review.approved.ok", "The reviewer approves."),
                code("review.waived.quorum", "Enough others have approved."),
                code("review.declined.no", "The reviewer declines, or there was no review."),
            ])
            .fields([
                field("ended_at", "timestamp", "When the reviewer ended."),
                field("exit_code", "integer", "The code it exited with."),
                field("term_signal", "integer", "The signal it died by."),
                field("cause", "text", "How it ended."),
            ])
            .execution(execution())
            // Every ending has a meaning by the table, which the verdict is told and may better.
            .verdicts([always(outcome("declined", "review.declined.no"))])
            .parameters([parameter("quorum", "integer", "2", "Approvals needed.").choices(&["1", "2", "3"])])
            // Entities of 1.x are carried over; the statuses that are not named keep their names.
            .migrations([migration("1", &[("reading", "open")])])
            .reading_children()
            .reading_last_output(1024)
    }
}

fn execution() -> ExecutionRule {
    let declined = || outcome("declined", "review.declined.no");
    ExecutionRule {
        start: outcome("open", "review.open.created"),
        spawn_failed: declined(),
        directory_missing: declined(),
        identity_lost: declined(),
        timed_out: declined(),
        hung_up: declined(),
        interrupted: declined(),
        terminated: declined(),
        parent_gone: declined(),
        host_restarted: declined(),
        ended_unobserved: declined(),
        verdict_failed: declined(),
        ext: Vec::new(),
    }
}

impl Guard for Review {
    fn evaluate(request: Request) -> Result<Decision, Fault> {
        let approvals = request.surroundings.children.iter().filter(|child| child.success);
        let quorum = request.surroundings.parameter("quorum").unwrap_or("2");
        let quorum: usize = quorum
            .parse()
            .map_err(|_| Fault::new("bad_parameter", "the quorum is no number").hint("set `quorum` to 1, 2 or 3"))?;
        if approvals.count() >= quorum {
            Ok(Decision::admit())
        } else {
            Ok(Decision::refuse("quorum_missing", "too few reviews have approved"))
        }
    }
}

impl Execution for Review {
    fn verdict(ending: Ending) -> Result<Judgement, Fault> {
        let text = String::from_utf8_lossy(&ending.last_output);
        log(Level::Debug, "judged by the last output");
        if text.contains("LGTM") {
            Ok(Judgement::new("approved", "review.approved.ok"))
        } else {
            Ok(Judgement::new("declined", "review.declined.no").summary("no approval in the output"))
        }
    }
}

impl Health for Review {
    fn assess(observation: Observation) -> Result<Assessment, Fault> {
        assert!(observation.messages >= 0, "messages are counted, not owed");
        Ok(Assessment::new("healthy", "reviews take their time"))
    }
}

impl Migrate for Review {
    fn map(entity: Entity, _name: String, _version: String, _seen: Surroundings) -> Result<Mapping, Fault> {
        match entity.status.as_str() {
            "reading" => Ok(Mapping::to("open")),
            status => Ok(Mapping::to(status)),
        }
    }
}

runwarden_kit::export!(Review: policy, guard, execution, health, migrate);

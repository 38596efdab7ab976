//! Runs of AI agents: a rate limit is a reason to try again and says when, a full context is one to give up, and a question
//! to a person is a status of its own, which somebody is told of.

use runwarden_kit::table::{codes, edge, edges, field, parameter, retry};
use runwarden_kit::{
    Assessment, Descriptor, Ending, Execution, Fault, Health, Judgement, Observation, Policy, Surroundings,
};
use runwarden_policy_shared::process::kill_from;
use runwarden_policy_shared::{codes as shared_codes, health, running};

mod words;

/// The policy of the kind `agent`.
#[derive(Debug)]
pub struct Agent;

/// How much of the end of its output is read: its last words, not its work.
const LAST_OUTPUT_BYTES: i64 = 8 << 10;

/// The parameter that says how long to wait where the program does not.
const WAIT: &str = "rate_limit_wait_ms";

impl Policy for Agent {
    fn describe() -> Descriptor {
        running::table("agent", "1.0.0", "A run of an AI agent.")
            .statuses([runwarden_kit::table::status("awaiting_input", "Asked a person, and waits.").announced()])
            .edges([
                edge("running", "awaiting_input").patching(&["question"]),
                // What asks does not answer itself.
                edge("awaiting_input", "running")
                    .only(&["operator", "admin", "webhook"])
                    .patching(&["answer"]),
            ])
            .edges(edges("awaiting_input", running::ENDS))
            .kill(kill_from(&["awaiting_input"], "cancelled"))
            .fields(running::session_fields())
            .fields([
                field("question", "text", "What it asked last."),
                field("answer", "text", "What it was told."),
            ])
            .codes(shared_codes::of_runs())
            .codes(shared_codes::of_sessions())
            .codes(codes(&[
                ("agent.awaiting_input.asked", "Asked a person."),
                ("agent.running.answered", "A person answered."),
                ("agent.failed.rate_limited", "Its provider wants it to slow down."),
                (
                    "agent.failed.context_full",
                    "Its context is full: again would be no better.",
                ),
            ]))
            .measuring_ends()
            .parameters([parameter(
                WAIT,
                "integer",
                "90000",
                "How long to wait after a rate limit that does not say, in milliseconds.",
            )])
            .retry(retry(30_000, 3_600_000, 5))
            .reading_last_output(LAST_OUTPUT_BYTES)
    }
}

impl Execution for Agent {
    fn verdict(ending: Ending) -> Result<Judgement, Fault> {
        let by_table = ending.by_table.clone().map(Judgement::from);
        let by_table = by_table.ok_or_else(|| Fault::new("no_verdict", "the table has no row for this end"));
        // A program that did its work may well have talked of limits.
        if ending.exit_code.is_none_or(|code| code == 0) {
            return by_table;
        }
        match words::last(&String::from_utf8_lossy(&ending.last_output)) {
            Some(words::Last::RateLimited { wait_ms }) => {
                let wait_ms = match wait_ms {
                    Some(told) => told,
                    None => usual_wait(&ending.surroundings)?,
                };
                let seconds = wait_ms / 1_000;
                Ok(Judgement::new("failed", "agent.failed.rate_limited")
                    .summary(&format!("its provider limits its rate; wants {seconds} s of rest"))
                    .retry_after(wait_ms))
            }
            Some(words::Last::ContextFull) => Ok(Judgement::new("failed", "agent.failed.context_full")
                .summary("its context is full: give it less, or a larger model")),
            None => by_table,
        }
    }
}

fn usual_wait(seen: &Surroundings) -> Result<i64, Fault> {
    let set = seen.parameter(WAIT).unwrap_or_default();
    set.parse()
        .map_err(|_| Fault::new("bad_wait", &format!("{WAIT} is `{set}`")).hint("activate it with a number"))
}

impl Health for Agent {
    fn assess(observation: Observation) -> Result<Assessment, Fault> {
        if observation.entity.status != "awaiting_input" {
            return health::assess(&observation);
        }
        // Whoever waits for a person is quiet, and not to be blamed for it.
        Ok(match observation.process.as_str() {
            "gone" => Assessment::new("stale", "it asked a person, and its process is gone"),
            _ => Assessment::new("healthy", "it waits for a person"),
        })
    }
}

runwarden_kit::export!(Agent: policy, execution, health);

#[cfg(test)]
mod tests;

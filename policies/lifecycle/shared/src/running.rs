//! The table that run, session and invocation share: one status to be in, six to end in.

use crate::{health, process};
use runwarden_kit::table::{edges, field, policy, status};
use runwarden_kit::{Descriptor, Field};

/// The statuses in which such work ends.
pub const ENDS: &[&str] = &[
    "completed",
    "completed_empty",
    "failed",
    "timed_out",
    "aborted",
    "cancelled",
];

/// Everything but fields, reason codes and whether the host measures the end.
pub fn table(kind: &str, version: &str, summary: &str) -> Descriptor {
    policy(kind, version, summary)
        .statuses([
            status("running", "Its process is started or alive.").initial("run.started.ok"),
            status("completed", "Ended well.").success(),
            status("completed_empty", "Ended well without what was wanted.").terminal(),
            status("failed", "Ended badly, or nobody knows how.").terminal(),
            status("timed_out", "The deadline ended it.").terminal(),
            status("aborted", "Given up by the user.").terminal(),
            status("cancelled", "Killed, interrupted or told to end.").terminal(),
        ])
        .edges(edges("running", ENDS))
        .emitting_events()
        .execution(process::execution())
        .verdicts(process::verdicts())
        .kill(process::kill_from(&["running"], "cancelled"))
        .health(health::thresholds())
}

/// How a process ended.
pub fn ending_fields() -> Vec<Field> {
    vec![
        field("exit_code", "integer", "The code it exited with; null after a signal."),
        field("term_signal", "integer", "The signal it died by; null after an exit."),
        field("cause", "text", "How it ended, observed and never guessed."),
    ]
}

/// The fields of run and session.
pub fn session_fields() -> Vec<Field> {
    let mut fields = vec![
        ended_at(),
        field(
            "ended_at_is_approximate",
            "boolean",
            "The end was not observed when it happened.",
        ),
    ];
    fields.extend(ending_fields());
    fields.extend([
        field("input_tokens", "integer", "Tokens read by a model."),
        field("output_tokens", "integer", "Tokens written by a model."),
        field("total_cost_usd", "number", "What it cost, in US dollars."),
        field("num_turns", "integer", "Turns of the conversation."),
        field("duration_ms", "integer", "From start to end, in milliseconds."),
        spawn_kind(),
    ]);
    fields
}

/// The fields of an invocation.
pub fn invocation_fields() -> Vec<Field> {
    let mut fields = vec![ended_at()];
    fields.extend(ending_fields());
    fields.push(spawn_kind());
    fields
}

/// When it ended.
pub fn ended_at() -> Field {
    field("ended_at", "timestamp", "When it ended.")
}

fn spawn_kind() -> Field {
    field("spawn_kind", "text", "What kind of work it is; agent when unset.")
}

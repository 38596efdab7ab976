//! `outbox ack`: a receiver has it.

use runwarden_host::verbs::TransitionOutcome;
use runwarden_host::verbs::outbox::{Presented, acknowledge};
use serde_json::{Value, json};

use super::dispatch_meant;
use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};

/// Acknowledge a notice with the token that came with it
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The dispatch's id
    #[arg(value_name = "ID")]
    id: String,
    /// The token: RUNWARDEN_ACK_TOKEN of a program, the header runwarden-acknowledgement of a webhook
    #[arg(value_name = "TOKEN")]
    token: String,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden outbox ack \"$RUNWARDEN_DISPATCH_ID\" \"$RUNWARDEN_ACK_TOKEN\"

EXIT CODES
  0 it is acknowledged, now or before   5 it was given up, or wants none any more   64 that is not its token";

/// What came of it.
pub(crate) struct Acked {
    reference: String,
    again: bool,
}

/// Presents the token.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Acked> {
    let host = context.open()?;
    let entity = dispatch_meant(&host, &args.id)?;
    let reference = entity.reference.to_string();
    match acknowledge(&host, &entity, &args.token, &operator())? {
        Presented::Acknowledged(_) => Ok(Acked {
            reference,
            again: false,
        }),
        Presented::Again(_) => Ok(Acked { reference, again: true }),
        Presented::Rejected(outcome) => Err(rejected(&reference, &entity.status, outcome)),
    }
}

/// A failure out of an outcome that applied nothing.
pub(super) fn rejected(reference: &str, status: &str, outcome: TransitionOutcome) -> Failure {
    let said = format!("{reference} is {status}: nothing was written");
    match outcome {
        TransitionOutcome::Conflict(conflict) => Failure::new(Exit::CONFLICT, "conflict", said)
            .cause(conflict.message)
            .hint("try again"),
        TransitionOutcome::Rejected(refusal) => Failure::new(Exit::REJECTED, "rejected", said)
            .cause(refusal.message)
            .hint(format!("`runwarden outbox show {reference}` says how it came there")),
        TransitionOutcome::Applied { .. } => Failure::new(Exit::FAULT, "fault", said),
    }
}

impl Report for Acked {
    fn json(&self) -> Value {
        json!({"ref": self.reference, "status": "acked", "again": self.again})
    }

    fn text(&self, _page: &Page) -> Text {
        let again = if self.again { " (it was before)" } else { "" };
        Text::styled(Style::Good, "acknowledged").and(format!(" {}{again}", self.reference))
    }
}

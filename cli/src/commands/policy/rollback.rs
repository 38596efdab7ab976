//! `policy rollback`: the policy before the present one, in one step.

use super::activate::{InForce, back};
use crate::context::Context;
use crate::errors::Outcome;

/// Put back the policy that was in force before
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The kind
    kind: String,
    /// Why; it is audited
    #[arg(long, value_name = "T", default_value = "rolled back", help_heading = "Activation")]
    reason: String,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy rollback play
  runwarden policy rollback play --reason 'too strict'";

/// Rolls back.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<InForce> {
    back(context, &args.kind, &args.reason)
}

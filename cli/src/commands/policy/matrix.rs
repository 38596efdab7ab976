//! `policy matrix`: what happens for every ordered pair of statuses.

use serde_json::Value;

use super::find::{self, Subject};
use crate::context::Context;
use crate::draw;
use crate::errors::Outcome;
use crate::output::{Page, Report, Text};

/// Show what happens for every pair of statuses
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A kind, KIND@V, a digest, or the path of a file
    #[arg(value_name = "KIND[@V]|FILE")]
    policy: String,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy matrix play
  runwarden policy matrix schedule_run@1 --json | jq '.cells[] | select(.guarded)'";

/// The matrix of a policy.
pub(crate) struct Matrix(Subject);

/// Shows it.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Matrix> {
    let host = context.read_or_create()?;
    Ok(Matrix(find::policy(&host, &args.policy)?))
}

impl Report for Matrix {
    fn json(&self) -> Value {
        draw::matrix_json(&self.0.lifecycle, &self.0.digest)
    }

    fn text(&self, page: &Page) -> Text {
        draw::matrix_text(&self.0.lifecycle, page)
    }
}

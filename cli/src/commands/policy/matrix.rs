//! `policy matrix`: what happens for every ordered pair of statuses.

use std::sync::Arc;

use runwarden_host::model::Lifecycle;
use serde_json::Value;

use super::find;
use super::limits::LimitArgs;
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
    #[command(flatten)]
    limits: LimitArgs,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy matrix play
  runwarden policy matrix schedule_run@1 --json | jq '.cells[] | select(.guarded)'";

/// The matrix of a policy.
pub(crate) struct Matrix {
    lifecycle: Arc<Lifecycle>,
    digest: String,
}

/// Shows it.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Matrix> {
    let host = context.read_or_create()?;
    let subject = find::component(&host, &args.policy, &args.limits.raised())?;
    Ok(Matrix {
        lifecycle: Arc::clone(subject.lifecycle()?),
        digest: subject.digest,
    })
}

impl Report for Matrix {
    fn json(&self) -> Value {
        draw::matrix_json(&self.lifecycle, &self.digest)
    }

    fn text(&self, page: &Page) -> Text {
        draw::matrix_text(&self.lifecycle, page)
    }
}

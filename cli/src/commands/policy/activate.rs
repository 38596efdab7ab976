//! `policy activate`: which policy entities are created under.

use runwarden_host::store::ComponentRecord;
use runwarden_host::verbs::{Activating, activate, known_kind, rollback};
use serde_json::{Value, json};

use super::offer::trusted;
use crate::context::{Context, operator};
use crate::errors::Outcome;
use crate::output::{Page, Report, Style, Text};
use crate::parse;

/// Put an installed policy in force for entities created later
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// NAME@V (1 is the newest 1.x), or a digest
    #[arg(value_name = "NAME@V|DIGEST", required_unless_present = "previous")]
    policy: Option<String>,
    /// Put back what was in force before, for this kind
    #[arg(long, value_name = "KIND", conflicts_with_all = ["policy", "parameters"], help_heading = "Activation")]
    previous: Option<String>,
    /// Set a parameter of the policy
    #[arg(long = "set", value_name = "K=V", value_parser = parse::lenient_pair, help_heading = "Activation")]
    parameters: Vec<(String, Value)>,
    /// Why; it is audited
    #[arg(long, value_name = "T", required = true, help_heading = "Activation")]
    reason: String,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy activate schedule_run@1 --reason 'workers are not ready for 2.x'
  runwarden policy activate strict_play@1.2.0 --set reviewers=2 --reason 'two reviewers from now on'
  runwarden policy activate --previous play --reason 'too strict'";

/// What is in force now.
pub(crate) struct InForce(ComponentRecord);

/// Activates.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<InForce> {
    let host = context.create()?;
    if let Some(kind) = &args.previous {
        return back(context, kind, &args.reason);
    }
    let trust = trusted(context)?;
    let activating = Activating {
        parameters: args.parameters.iter().cloned().collect(),
        reason: args.reason.clone(),
    };
    let words = args.policy.as_deref().unwrap_or_default();
    let words = match words.split_once('@') {
        Some((name, version)) => format!("{}@{version}", known_kind(&host, name)?),
        None => known_kind(&host, words)?,
    };
    Ok(InForce(activate(&host, &words, &activating, &trust, &operator())?))
}

/// Puts back what was in force before.
pub(super) fn back(context: &Context, kind: &str, reason: &str) -> Outcome<InForce> {
    let host = context.create()?;
    let kind = known_kind(&host, kind)?;
    let trust = trusted(context)?;
    Ok(InForce(rollback(&host, &kind, reason, &trust, &operator())?))
}

impl Report for InForce {
    fn json(&self) -> Value {
        let record = &self.0;
        json!({"kind": record.kind, "name": record.name, "version": record.version, "digest": record.digest, "active": true})
    }

    fn text(&self, _: &Page) -> Text {
        let record = &self.0;
        Text::styled(Style::Strong, format!("{}@{}", record.name, record.version)).and(format!(
            " is active for {}; entities that exist keep their own",
            record.kind
        ))
    }
}

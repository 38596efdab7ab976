//! `policy activate`: which policy entities are created under.

use runwarden_host::store::ComponentRecord;
use runwarden_host::verbs::{Activating, activate, known_kind, rollback, start_shadow};
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
    /// Let it judge every transition of its kind beside the active policy; nothing it says is enforced
    #[arg(long, conflicts_with = "previous", help_heading = "Activation")]
    shadow: bool,
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
  runwarden policy activate strict_play@2 --shadow --reason 'what would it refuse?'
  runwarden policy activate --previous play --reason 'too strict'";

/// What is in force now, or judges.
pub(crate) struct InForce(ComponentRecord, Part);

/// What a policy does from now on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Entities are created under it.
    Decides,
    /// It judges beside the one that decides.
    Judges,
}

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
    if args.shadow {
        let record = start_shadow(&host, &words, &activating, &operator())?;
        return Ok(InForce(record, Part::Judges));
    }
    let record = activate(&host, &words, &activating, &trust, &operator())?;
    Ok(InForce(record, Part::Decides))
}

/// Puts back what was in force before.
pub(super) fn back(context: &Context, kind: &str, reason: &str) -> Outcome<InForce> {
    let host = context.create()?;
    let kind = known_kind(&host, kind)?;
    let trust = trusted(context)?;
    let record = rollback(&host, &kind, reason, &trust, &operator())?;
    Ok(InForce(record, Part::Decides))
}

impl Report for InForce {
    fn json(&self) -> Value {
        let record = &self.0;
        let mut document = json!({
            "kind": record.kind,
            "name": record.name,
            "version": record.version,
            "digest": record.digest,
            "active": self.1 == Part::Decides,
        });
        if self.1 == Part::Judges {
            document["shadow"] = json!(true);
        }
        document
    }

    fn text(&self, _: &Page) -> Text {
        let record = &self.0;
        let kind = &record.kind;
        let does = match self.1 {
            Part::Decides => format!(" is active for {kind}; entities that exist keep their own"),
            Part::Judges => format!(" judges {kind} beside the active one; `policy shadow {kind}` shows what it says"),
        };
        Text::styled(Style::Strong, format!("{}@{}", record.name, record.version)).and(does)
    }
}

//! `report`: what a running program says of itself.

use std::path::{Path, PathBuf};

use runwarden_host::model::Actor;
use runwarden_host::verbs;
use serde_json::Value;

use super::transition::{Moved, Tense};
use crate::context::{Context, meant};
use crate::errors::{Failure, Outcome};
use crate::parse;

/// From inside a run: tell its status, its progress, or that it lives
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The status reported [default: the one it has, as a sign of life]
    status: Option<String>,
    /// Why, as a code that the policy admits [default with no new status: the code it has]
    #[arg(long, value_name = "CODE", help_heading = "What is told")]
    reason: Option<String>,
    /// In words
    #[arg(long, value_name = "T", help_heading = "What is told")]
    message: Option<String>,
    /// Done, and of how many
    #[arg(long, value_name = "N/M", value_parser = parse::progress, help_heading = "What is told")]
    progress: Option<(u64, u64)>,
    /// Set a field
    #[arg(long = "set", value_name = "K=JSON", value_parser = parse::json_pair, help_heading = "What is told")]
    fields: Vec<(String, Value)>,
    /// A file that is evidence of the work
    #[arg(long, value_name = "FILE", help_heading = "What is told")]
    evidence: Vec<PathBuf>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden report --progress 3/10 --message 'compiling'
  runwarden report --evidence out/report.html
  runwarden report failed --reason run.failed.exception --message 'no network'

The run is the one this process belongs to (@self); the actor is agent.";

/// Writes the report.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Moved> {
    let host = context.open()?;
    let entity = meant(&host, "@self")?;
    let report = verbs::Report {
        status: args.status.clone(),
        code: args.reason.clone(),
        message: args.message.clone(),
        progress: args.progress,
        fields: args.fields.iter().cloned().collect(),
        evidence: args
            .evidence
            .iter()
            .map(|path| existing(path))
            .collect::<Outcome<_>>()?,
    };
    let actor = Actor::new("agent", &entity.reference.id);
    let outcome = verbs::report(&host, &entity, &report, &actor)?;
    let target = args.status.as_ref().unwrap_or(&entity.status);
    Ok(Moved::new(&entity.reference.to_string(), target, outcome, Tense::Done))
}

/// The absolute path of a file that is there.
fn existing(path: &Path) -> Outcome<String> {
    let found = path
        .canonicalize()
        .map_err(|error| Failure::file("read", path, &error))?;
    Ok(found.to_string_lossy().into_owned())
}

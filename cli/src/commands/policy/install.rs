//! `policy install`: adds a component to the store.

use std::path::PathBuf;

use runwarden_host::model::{Described, Fields};
use runwarden_host::verbs::{Activating, Installed, Installing, install};
use serde_json::{Value, json};

use super::find::read;
use super::limits::LimitArgs;
use crate::context::{Context, operator};
use crate::errors::{Outcome, finding_line};
use crate::output::{Page, Report, Style, Text};

/// Check a component and add it to the store
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The component of a policy or handler, a .wasm file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Put it in force for entities created later
    #[arg(long, help_heading = "Activation")]
    activate: bool,
    /// Why it is put in force
    #[arg(long, value_name = "T", requires = "activate", help_heading = "Activation")]
    reason: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy show ./strict_play.wasm
  runwarden policy install ./strict_play.wasm
  runwarden policy install ./strict_play.wasm --activate --reason 'no merge without a gate'
  runwarden policy install ./mail.wasm
  runwarden policy install ./ticket.wasm --memory 128MiB --wall 1s

A handler is installed in the same way; `runwarden notify add` binds it. A limit
that is raised is raised for this component alone, for as long as it is installed: the engines
of other languages want that. Installing it again raises more.";

/// What was installed.
pub(crate) struct Done(Installed);

/// Installs.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Done> {
    let bytes = read(&args.file)?;
    let host = context.create()?;
    let reason = args
        .reason
        .clone()
        .unwrap_or_else(|| "activated at installation".to_owned());
    let installing = Installing {
        raised: args.limits.raised(),
        activating: args.activate.then(|| Activating {
            parameters: Fields::new(),
            reason,
        }),
    };
    Ok(Done(install(&host, &bytes, &installing, &operator())?))
}

impl Report for Done {
    fn json(&self) -> Value {
        let descriptor = &self.0.candidate.descriptor;
        let warnings: Vec<String> = self.0.candidate.warnings.iter().map(finding_line).collect();
        json!({
            "kind": descriptor.kind(),
            "name": descriptor.name(),
            "version": descriptor.version(),
            "digest": self.0.candidate.digest,
            "was_present": self.0.was_present,
            "activated": self.0.activated,
            "warnings": warnings,
        })
    }

    fn text(&self, _: &Page) -> Text {
        let candidate = &self.0.candidate;
        let done = if self.0.was_present {
            "was installed before"
        } else {
            "installed"
        };
        let force = if self.0.activated { ", now active" } else { "" };
        let what = match &candidate.descriptor {
            Described::Policy(descriptor) => format!("for {}", descriptor.kind),
            Described::Handler(_) => "(a handler)".to_owned(),
        };
        let mut text = Text::styled(Style::Strong, candidate.descriptor.label())
            .and(format!(" {what}: {done}{force} ({})", &candidate.digest[..12]));
        for warning in &candidate.warnings {
            text.line(Text::of(finding_line(warning)));
        }
        text
    }
}

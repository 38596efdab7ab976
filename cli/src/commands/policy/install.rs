//! `policy install`: adds a component to the store.

use std::path::PathBuf;

use runwarden_host::model::{Described, Fields};
use runwarden_host::verbs::{Activating, Installed, Installing, Offer, install};
use serde_json::{Value, json};

use super::findings::{findings_json, findings_text};
use super::limits::LimitArgs;
use super::offer::{offered, trusted};
use crate::context::{Context, operator};
use crate::errors::Outcome;
use crate::output::{Page, Report, Style, Text};

/// Check a component and add it to the store
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The component of a policy or handler: a .wasm file, or an OCI image layout with one
    #[arg(value_name = "FILE|DIR")]
    file: PathBuf,
    /// Its signature [default: the file's name with .sig behind it, if that is there]
    #[arg(long, value_name = "FILE")]
    signature: Option<PathBuf>,
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
  runwarden policy install ./from-a-registry

A handler is installed in the same way; `runwarden notify add` binds it. A limit
that is raised is raised for this component alone, for as long as it is installed: the engines
of other languages want that. Installing it again raises more.

A signature that comes with a component must be by a key of [policies.keys] in your own
settings; with `require_signature = true` in [policies], there must be one.";

/// What was installed.
pub(crate) struct Done(Installed);

/// Installs.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Done> {
    let trust = trusted(context)?;
    let offered = offered(&args.file, args.signature.as_deref())?;
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
    let offer = Offer {
        bytes: &offered.bytes,
        signatures: &offered.signatures,
    };
    Ok(Done(install(&host, &offer, &installing, &trust, &operator())?))
}

impl Report for Done {
    fn json(&self) -> Value {
        let descriptor = &self.0.candidate.descriptor;
        json!({
            "kind": descriptor.kind(),
            "name": descriptor.name(),
            "version": descriptor.version(),
            "digest": self.0.candidate.digest,
            "was_present": self.0.was_present,
            "activated": self.0.activated,
            "findings": findings_json(&self.0.candidate.findings),
        })
    }

    fn text(&self, page: &Page) -> Text {
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
        findings_text(&candidate.findings, page, &mut text);
        text
    }
}

//! `runtime register`: that something runs elsewhere for an entity.

use runwarden_host::model::{Runtime, RuntimeKind};
use runwarden_host::verbs::{Registered, Registration, inventory_json, register};
use serde_json::Value;

use super::super::entity::settled;
use crate::context::{Context, meant, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Text};

/// Register something that runs elsewhere; its number is told
///
/// Whether it lives is never judged from here: it counts as running until it is released. `kill` refuses it, and what it
/// belongs to cannot be removed meanwhile.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The entity that it runs for
    #[arg(value_name = "REF")]
    reference: String,
    /// Where it runs: ssh, container, other
    #[arg(long, value_name = "KIND", value_enum, hide_possible_values = true)]
    kind: Kind,
    /// The machine it runs on
    #[arg(long, value_name = "H", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    host: String,
    /// What it is called there
    #[arg(long, value_name = "X", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    handle: String,
    /// What its program needs to take up its work again; kept, and never shown
    #[arg(long, value_name = "T")]
    resume_token: Option<String>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden runtime register session/7kq2 --kind ssh --host build7 --handle 4711
  runwarden runtime register play/release-42 --kind container --host build7 --handle web-1";

/// Where something runs that does not run here.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    Ssh,
    Container,
    Other,
}

impl From<Kind> for RuntimeKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Ssh => Self::Ssh,
            Kind::Container => Self::Container,
            Kind::Other => Self::Other,
        }
    }
}

/// What was registered.
pub(crate) struct New(Runtime);

/// Registers.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<New> {
    let host = context.open()?;
    let entity = settled(context, &host, meant(&host, &args.reference)?)?;
    let asked = Registration {
        kind: args.kind.into(),
        host: args.host.clone(),
        handle: args.handle.clone(),
        resume_token: args.resume_token.clone(),
        actor: operator(),
    };
    let reference = &entity.reference;
    match register(&host, &entity, &asked)? {
        Registered::New(runtime) => Ok(New(*runtime)),
        Registered::Ended => Err(Failure::new(
            Exit::CONFLICT,
            "ended",
            format!("{reference} has ended: nothing is registered for it"),
        )
        .hint(format!("runwarden why {reference}"))),
        Registered::InUse(id) => Err(Failure::new(
            Exit::CONFLICT,
            "in_use",
            format!("{reference} has runtime {id}, which is not stopped: it has one at a time"),
        )
        .hint(format!("runwarden runtime ls {reference}"))),
    }
}

impl Report for New {
    fn json(&self) -> Value {
        inventory_json(&self.0)
    }

    fn text(&self, _: &Page) -> Text {
        Text::of(self.0.id.to_string())
    }
}

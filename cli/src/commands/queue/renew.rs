//! `queue renew`: extends a lease by hand.

use runwarden_host::model::Entity;
use runwarden_host::verbs::lease::{RenewedByHand, renew_by_hand};
use serde_json::{Value, json};

use crate::context::{Context, meant};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Text, between};

/// Extend a lease by its length: for a program whose worker is known to be slow
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What is held
    #[arg(value_name = "REF")]
    reference: String,
    /// The token of the lease: RUNWARDEN_LEASE_TOKEN in the environment of its program
    #[arg(long, value_name = "T")]
    token: i64,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden queue renew \"$RUNWARDEN_LEASE_REF\" --token \"$RUNWARDEN_LEASE_TOKEN\"

EXIT CODES
  0 it holds for another length   4 it is not held under this token any more: whoever goes on works beside somebody else";

/// A lease that was extended.
pub(crate) struct Extended(Box<Entity>);

/// Extends it.
pub(super) fn execute(context: &Context, args: &Args) -> Outcome<Extended> {
    let host = context.open()?;
    let entity = meant(&host, &args.reference)?;
    match renew_by_hand(&host, entity, args.token)? {
        RenewedByHand::Extended(entity) => Ok(Extended(entity)),
        RenewedByHand::Lost(entity) => {
            let reference = &entity.reference;
            let said = format!(
                "{reference} is not held under token {}: it is {}",
                args.token, entity.status
            );
            let failure = Failure::new(Exit::CONFLICT, "fence", said);
            Err(failure.hint(format!("`runwarden history {reference}` shows who has had it")))
        }
    }
}

impl Report for Extended {
    fn json(&self) -> Value {
        let lease = &self.0.structural;
        json!({
            "ref": self.0.reference.to_string(),
            "leased_by": lease.leased_by,
            "lease_expires_at": lease.lease_expires_at.map(|at| at.to_rfc3339()),
        })
    }

    fn text(&self, page: &Page) -> Text {
        let until = self.0.structural.lease_expires_at;
        let left = until
            .map(|until| format!(" for {}", between(page.now, until)))
            .unwrap_or_default();
        Text::of(format!("{} is held{left}", self.0.reference))
    }
}

//! `finish`: records the end of a run from its exit file. Shims start it; people need it never.

use runwarden_host::verbs::settle;

use crate::context::Context;
use crate::errors::Outcome;
use crate::exit::Exit;

/// Record how a run ended
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id
    id: String,
}

/// Records the end, if there is one and nobody has.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Exit> {
    let host = context.open()?;
    if let Some(entity) = host.store().load(&args.id)? {
        settle(&host, entity)?;
    }
    Ok(Exit::DONE)
}

//! `finish`: records the end of a run from its exit file. Shims start it; people need it never.

use runwarden_host::verbs::finish;

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
    finish(context.config(), &args.id)?;
    Ok(Exit::DONE)
}

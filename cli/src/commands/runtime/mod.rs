//! `runtime`: the inventory of what may be running, here and elsewhere.

mod ls;
mod register;
mod release;

use serde_json::Value;

use crate::app::report;
use crate::context::Context;
use crate::exit::Exit;

/// List what may be running; register and release what runs elsewhere
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// The commands about runtimes.
#[derive(Debug, clap::Subcommand)]
enum Command {
    Ls(ls::Args),
    Register(register::Args),
    Release(release::Args),
}

/// Does what one of them says.
pub(crate) fn execute(context: &Context, args: Args) -> Exit {
    match args.command {
        Command::Ls(args) => report(context, ls::execute(context, &args)),
        Command::Register(args) => report(context, register::execute(context, &args)),
        Command::Release(args) => report(context, release::execute(context, &args)),
    }
}

/// Where a runtime is that is not of this machine, from its document: `ssh on build7 as 4711`.
pub(super) fn elsewhere(runtime: &Value) -> Option<String> {
    let (kind, host) = (runtime["kind"].as_str()?, runtime["host"].as_str()?);
    let handle = runtime["handle"].as_str()?;
    Some(format!("{kind} on {host} as {handle}"))
}

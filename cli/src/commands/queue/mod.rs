//! `queue`: what waits, what is held, and how queues are steered.

mod confirm;
mod ls;
mod renew;
mod setup;

use crate::app::report;
use crate::context::Context;
use crate::exit::Exit;

/// See and steer queues: list, pause, resume, limit; renew leases, confirm lost workers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// The commands about queues.
#[derive(Debug, clap::Subcommand)]
enum Command {
    Ls(ls::Args),
    Pause(setup::PauseArgs),
    Resume(setup::ResumeArgs),
    Limit(setup::LimitArgs),
    Renew(renew::Args),
    Confirm(confirm::Args),
}

/// Does what one of them says.
pub(crate) fn execute(context: &Context, args: Args) -> Exit {
    match args.command {
        Command::Ls(args) => report(context, ls::execute(context, &args)),
        Command::Pause(args) => report(context, setup::pause(context, &args)),
        Command::Resume(args) => report(context, setup::resume(context, &args)),
        Command::Limit(args) => report(context, setup::limit(context, &args)),
        Command::Renew(args) => report(context, renew::execute(context, &args)),
        Command::Confirm(args) => report(context, confirm::execute(context, &args)),
    }
}

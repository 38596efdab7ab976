//! `schedule`: work that is due again and again.

mod add;
mod ls;
mod show;
mod steer;
mod words;

use crate::app::report;
use crate::context::Context;
use crate::exit::Exit;

/// Submit work again and again: by a cron expression or an interval
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// The commands about schedules.
#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(Box<add::Args>),
    Ls(ls::Args),
    Show(show::Args),
    /// Fire nothing until it is resumed
    #[command(after_help = "EXAMPLES\n  runwarden schedule pause nightly")]
    Pause(steer::Args),
    /// Let it go on; nothing of the pause is made up
    #[command(after_help = "EXAMPLES\n  runwarden schedule resume nightly")]
    Resume(steer::Args),
    /// Take a schedule away; what it started stays
    #[command(after_help = "EXAMPLES\n  runwarden schedule rm nightly")]
    Rm(steer::Args),
}

/// Does what one of them says.
pub(crate) fn execute(context: &Context, args: Args) -> Exit {
    match args.command {
        Command::Add(args) => report(context, add::execute(context, &args)),
        Command::Ls(_) => report(context, ls::execute(context)),
        Command::Show(args) => report(context, show::execute(context, &args)),
        Command::Pause(args) => report(context, steer::pause(context, &args)),
        Command::Resume(args) => report(context, steer::resume(context, &args)),
        Command::Rm(args) => report(context, steer::remove(context, &args)),
    }
}

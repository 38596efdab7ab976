//! `notify`: who is told of an end, and how.

mod add;
mod ls;
mod rm;
mod show;
mod test;
mod words;

use crate::app::report;
use crate::context::Context;
use crate::exit::Exit;

/// Show, bind and try out who is told when something ends
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// The commands about handlers.
#[derive(Debug, clap::Subcommand)]
enum Command {
    Ls(ls::Args),
    Show(show::Args),
    Add(Box<add::Args>),
    Rm(rm::Args),
    Test(test::Args),
}

/// Does what one of them says.
pub(crate) fn execute(context: &Context, args: Args) -> Exit {
    match args.command {
        Command::Ls(_) => report(context, ls::execute(context)),
        Command::Show(args) => report(context, show::execute(context, &args)),
        Command::Add(args) => report(context, add::execute(context, &args)),
        Command::Rm(args) => report(context, rm::execute(context, &args)),
        Command::Test(args) => report(context, test::execute(context, &args)),
    }
}

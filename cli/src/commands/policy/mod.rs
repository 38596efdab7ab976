//! `policy`: what is installed, what it allows, which one is in force, and how one is written.

mod activate;
mod build;
mod diff;
mod export;
mod find;
mod findings;
mod install;
mod keygen;
mod language;
pub(crate) mod limits;
mod ls;
mod matrix;
mod migrate;
mod new;
mod offer;
mod replay;
mod rm;
mod rollback;
mod shadow;
mod show;
mod sign;
mod tally;
mod template;
mod test;
mod wit;

use crate::app::report;
use crate::context::Context;
use crate::exit::Exit;

/// Write, try, judge, install and move policies; write and install handlers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// The commands about policies.
#[derive(Debug, clap::Subcommand)]
enum Command {
    New(new::Args),
    Build(build::Args),
    Test(test::Args),
    Ls(ls::Args),
    Show(show::Args),
    Matrix(matrix::Args),
    Diff(diff::Args),
    Replay(replay::Args),
    Install(install::Args),
    Activate(activate::Args),
    Shadow(shadow::Args),
    Rollback(rollback::Args),
    Migrate(migrate::Args),
    Rm(rm::Args),
    Keygen(keygen::Args),
    Sign(sign::Args),
    Export(export::Args),
    Wit(wit::Args),
}

/// Does what one of them says.
pub(crate) fn execute(context: &Context, args: Args) -> Exit {
    match args.command {
        Command::New(args) => report(context, new::execute(&args)),
        Command::Build(args) => report(context, build::execute(context, &args)),
        Command::Test(args) => report(context, test::execute(context, &args)),
        Command::Ls(_) => report(context, ls::execute(context)),
        Command::Show(args) => report(context, show::execute(context, &args)),
        Command::Matrix(args) => report(context, matrix::execute(context, &args)),
        Command::Diff(args) => report(context, diff::execute(context, &args)),
        Command::Replay(args) => report(context, replay::execute(context, &args)),
        Command::Install(args) => report(context, install::execute(context, &args)),
        Command::Activate(args) => report(context, activate::execute(context, &args)),
        Command::Shadow(args) => report(context, shadow::execute(context, &args)),
        Command::Rollback(args) => report(context, rollback::execute(context, &args)),
        Command::Migrate(args) => report(context, migrate::execute(context, &args)),
        Command::Rm(args) => report(context, rm::execute(context, &args)),
        Command::Keygen(args) => report(context, keygen::execute(&args)),
        Command::Sign(args) => report(context, sign::execute(&args)),
        Command::Export(args) => report(context, export::execute(context, &args)),
        Command::Wit(args) => report(context, wit::execute(&args)),
    }
}

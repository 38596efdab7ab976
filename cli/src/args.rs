//! The command line: global options, the list of commands, and how help is laid out.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::commands::{
    compile, completions, create, demo, doctor, finish, history, kill, logs, ls, man, notify, outbox, policy, prune,
    queue, report, rm, run, runtime, schedule, serve, show, submit, transition, wait, why, worker,
};
use crate::context::width;
use crate::output::{ColourChoice, broken};

/// The form of the log on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// JSON Lines.
    Json,
}

/// Options of every command.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Where the store and the runs are [env: RUNWARDEN_HOME]
    ///
    /// Without it: $XDG_STATE_HOME/runwarden, else ~/.local/state/runwarden.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// The store, sqlite:PATH [env: RUNWARDEN_STORE]
    ///
    /// Without it: state.db in the home.
    #[arg(long, global = true, value_name = "URL", hide_short_help = true)]
    pub(crate) store: Option<OsString>,
    /// Answer with one JSON document
    ///
    /// It goes to standard output, also when it tells an error; a command that streams writes JSON Lines.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours: auto, always, never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub(crate) color: ColourChoice,
    /// The form of the log: text, json
    ///
    /// RUNWARDEN_LOG says what is logged to standard error, such as runwarden_host=debug; without it nothing is.
    #[arg(
        long,
        global = true,
        value_name = "FORM",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub(crate) log_format: LogFormat,
}

/// Know how every run ended. Stop everything it started. Change the rules without stopping anything.
#[derive(Debug, Parser)]
#[command(name = "runwarden", version, styles = STYLES, max_term_width = usize::from(WIDTH_MAX), disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<run::Args>),
    Ls(ls::Args),
    Show(show::Args),
    Logs(logs::Args),
    Wait(wait::Args),
    Kill(kill::Args),
    Why(why::Args),
    Rm(rm::Args),
    Doctor(doctor::Args),
    Prune(prune::Args),
    Submit(Box<submit::Args>),
    Worker(worker::Args),
    Queue(queue::Args),
    Create(create::Args),
    Transition(transition::Args),
    Report(report::Args),
    History(history::Args),
    Runtime(runtime::Args),
    Schedule(schedule::Args),
    Outbox(outbox::Args),
    Policy(policy::Args),
    Notify(notify::Args),
    Serve(serve::Args),
    Demo(demo::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    Finish(finish::Args),
    #[command(hide = true)]
    Compile(compile::Args),
}

/// Columns that help takes at most.
const WIDTH_MAX: u16 = 100;

/// Which commands help shows under which heading, in order. What is not built is left out.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Commands",
        &["run", "ls", "show", "logs", "wait", "kill", "why", "rm", "doctor"],
    ),
    ("Queued work", &["submit", "schedule", "worker", "queue"]),
    ("Records", &["create", "transition", "report", "history", "runtime"]),
    (
        "Setup",
        &[
            "policy",
            "notify",
            "outbox",
            "serve",
            "prune",
            "demo",
            "completions",
            "man",
        ],
    ),
];

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The command line, with the commands grouped in its help.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let page = width().map_or(usize::MAX, |width| usize::from(width.min(WIDTH_MAX)));
    let more = broken("`runwarden COMMAND --help` says more, with examples.", page, page).join("\n");
    let template = format!(
        "{{about-with-newline}}{{usage-heading}} {{usage}}\n{}\n{{options}}\n{more}\n",
        groups(&command, page),
    );
    command.help_template(template)
}

fn groups(command: &clap::Command, page: usize) -> String {
    let (heading, literal) = (STYLES.get_header(), STYLES.get_literal());
    /// Where what a command does begins.
    const INDENT: usize = 15;
    let room = page.saturating_sub(INDENT);
    let mut text = String::new();
    for (name, members) in GROUPS {
        let present: Vec<&clap::Command> = members
            .iter()
            .filter_map(|name| command.find_subcommand(name))
            .collect();
        if present.is_empty() {
            continue;
        }
        text.push_str(&format!("{heading}{name}:{heading:#}\n"));
        for member in present {
            let about = member.get_about().map(ToString::to_string).unwrap_or_default();
            let about = broken(&about, room, room).join(&format!("\n{:INDENT$}", ""));
            text.push_str(&format!("  {literal}{:<12}{literal:#} {about}\n", member.get_name()));
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_command_is_under_a_heading() {
        for member in command().get_subcommands().filter(|member| !member.is_hide_set()) {
            let name = member.get_name();
            assert!(GROUPS.iter().any(|(_, members)| members.contains(&name)), "{name}");
            assert!(member.get_about().is_some(), "{name} says what it does");
        }
    }

    #[test]
    fn every_command_ends_its_help_with_examples() {
        fn check(command: &clap::Command) {
            for member in command.get_subcommands().filter(|member| !member.is_hide_set()) {
                if member.has_subcommands() {
                    check(member);
                } else {
                    let end = member.get_after_help().map(ToString::to_string).unwrap_or_default();
                    assert!(end.contains("EXAMPLES"), "{}", member.get_name());
                }
            }
        }
        check(&command());
    }
}

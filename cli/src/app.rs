//! The way of one command: read the line, open what it needs, do it, report, leave.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::FromArgMatches as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::{self, Cli, Command, Global, LogFormat};
use crate::commands;
use crate::context::{Context, variable};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{ColourChoice, Form, Output, Report, Style, Text};

/// Runs the command that these arguments ask for.
pub(crate) fn main(arguments: Vec<OsString>) -> Exit {
    guarded(|| run(&arguments))
}

/// Runs `work`; a panic is told and ends with 70.
fn guarded(work: impl FnOnce() -> Exit) -> Exit {
    std::panic::set_hook(Box::new(|panic| {
        let output = Output::new(Form::Text, ColourChoice::Auto);
        let mut text = Text::styled(Style::Bad, "error:")
            .and(" runwarden has a fault: ")
            .and(panic.to_string());
        text.line(Text::styled(Style::Strong, "hint:").and(" please report it with this message and the command"));
        output.note(&text);
    }));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Exit::FAULT)
}

fn run(arguments: &[OsString]) -> Exit {
    let parsed = args::command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error, arguments),
    };
    let form = if cli.global.json { Form::Json } else { Form::Text };
    let output = Output::new(form, cli.global.color);
    let context = match start_log(&cli.global).and_then(|()| Context::new(&cli.global, output)) {
        Ok(context) => context,
        Err(failure) => return output.failure(&failure),
    };
    let exit = execute(&context, cli.command);
    context.deliver_own();
    exit
}

fn execute(context: &Context, command: Command) -> Exit {
    match command {
        Command::Run(args) => commands::run::execute(context, &args),
        Command::Ls(args) => report(context, commands::ls::execute(context, &args)),
        Command::Show(args) => report(context, commands::show::execute(context, &args)),
        Command::Wait(args) => exit(context, commands::wait::execute(context, &args)),
        Command::Logs(args) => exit(context, commands::logs::execute(context, &args)),
        Command::Kill(args) => report(context, commands::kill::execute(context, &args)),
        Command::Why(args) => report(context, commands::why::execute(context, &args)),
        Command::Doctor(args) => report(context, commands::doctor::execute(context, &args)),
        Command::Rm(args) => report(context, commands::rm::execute(context, &args)),
        Command::Prune(args) => report(context, commands::prune::execute(context, &args)),
        Command::Submit(args) => report(context, commands::submit::execute(context, &args)),
        Command::Worker(args) => commands::worker::execute(context, &args),
        Command::Queue(args) => commands::queue::execute(context, args),
        Command::Create(args) => report(context, commands::create::execute(context, &args)),
        Command::Transition(args) => report(context, commands::transition::execute(context, &args)),
        Command::Report(args) => report(context, commands::report::execute(context, &args)),
        Command::History(args) => report(context, commands::history::execute(context, &args)),
        Command::Runtime(args) => commands::runtime::execute(context, args),
        Command::Schedule(args) => commands::schedule::execute(context, args),
        Command::Outbox(args) => commands::outbox::execute(context, args),
        Command::Policy(args) => commands::policy::execute(context, args),
        Command::Notify(args) => commands::notify::execute(context, args),
        Command::Serve(args) => commands::serve::execute(context, &args),
        Command::Demo(args) => exit(context, commands::demo::execute(context, &args)),
        Command::Completions(args) => report(context, commands::completions::execute(&args)),
        Command::Man(args) => report(context, commands::man::execute(&args)),
        Command::Finish(args) => exit(context, commands::finish::execute(context, &args)),
        Command::Compile(args) => exit(context, commands::compile::execute(context, &args)),
    }
}

/// Writes what a command reports.
pub(crate) fn report(context: &Context, outcome: Outcome<impl Report>) -> Exit {
    match outcome {
        Ok(report) => context.output.report(&report, &context.page()),
        Err(failure) => context.output.failure(&failure),
    }
}

/// Ends a command that wrote as it went.
fn exit(context: &Context, outcome: Outcome<Exit>) -> Exit {
    outcome.unwrap_or_else(|failure| context.output.failure(&failure))
}

/// Help and version are answers; all else is a wrong command line.
fn not_parsed(error: &clap::Error, arguments: &[OsString]) -> Exit {
    let said_json = arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .any(|argument| argument == "--json");
    let output = Output::new(if said_json { Form::Json } else { Form::Text }, ColourChoice::Auto);
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let plain = !std::io::stdout().is_terminal() || variable("NO_COLOR").is_some();
        let text = if plain {
            error.render().to_string()
        } else {
            error.render().ansi().to_string()
        };
        return output.ended(output.bytes(text.as_bytes()), Exit::DONE);
    }
    let mut failure = usage(error, arguments);
    if is_foreground_run(arguments) {
        failure.exit = Exit::RUN_FAILED;
    }
    output.failure(&failure)
}

/// What the argument parser found, in our form.
fn usage(error: &clap::Error, arguments: &[OsString]) -> Failure {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Failure::usage("no command is given").hint(format!("`{} --help` lists them", command_path(arguments)));
    }
    let rendered = error.render().to_string();
    let said = rendered.strip_prefix("error: ").unwrap_or(&rendered);
    let paragraph = said.split("\n\n").next().unwrap_or_default();
    let message: Vec<&str> = paragraph
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("tip:"))
        .collect();
    let suggestion = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ]
    .into_iter()
    .find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        ContextValue::Strings(words) => words.first().cloned(),
        _ => None,
    });
    let hint = match suggestion {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("`{} --help` shows how it is used", command_path(arguments)),
    };
    Failure::usage(message.join(" ")).hint(hint)
}

/// `runwarden` with the commands that the arguments name.
fn command_path(arguments: &[OsString]) -> String {
    let mut path = "runwarden".to_owned();
    let mut command = args::command();
    for word in words(arguments) {
        let Some(next) = word.to_str().and_then(|word| command.find_subcommand(word)).cloned() else {
            break;
        };
        path.push(' ');
        path.push_str(next.get_name());
        command = next;
    }
    path
}

/// The arguments without the options before the command, and their values.
fn words(arguments: &[OsString]) -> Vec<&OsStr> {
    const WITH_VALUE: [&str; 4] = ["--home", "--store", "--color", "--log-format"];
    let mut words = Vec::new();
    let mut arguments = arguments.iter().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            break;
        }
        if WITH_VALUE.iter().any(|option| argument == option) {
            arguments.next();
        } else if !argument.as_encoded_bytes().starts_with(b"-") {
            words.push(argument.as_os_str());
        }
    }
    words
}

/// Whether the arguments ask for a run in the foreground, whose every failure is 125.
fn is_foreground_run(arguments: &[OsString]) -> bool {
    let own = || arguments.iter().skip(1).take_while(|argument| *argument != "--");
    let is_run = words(arguments).first().is_some_and(|word| *word == "run");
    is_run && !own().any(|argument| argument == "-d" || argument == "--detach")
}

/// Starts the log that `RUNWARDEN_LOG` asks for; without it nothing is set up.
fn start_log(global: &Global) -> Outcome<()> {
    let Some(filter) = variable("RUNWARDEN_LOG") else {
        return Ok(());
    };
    let filter = filter.to_string_lossy().into_owned();
    // Targets and levels: filters by spans and values would bring an engine for regular expressions along.
    let parsed: Targets = filter.parse().map_err(|error: ParseError| {
        Failure::usage(format!("RUNWARDEN_LOG is no filter: `{filter}`"))
            .cause(error.to_string())
            .hint("export RUNWARDEN_LOG=runwarden_host=debug")
    })?;
    let builder = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(std::io::stderr().is_terminal() && variable("NO_COLOR").is_none())
        .with_writer(std::io::stderr);
    // It is the first and only one of this process; a second would be refused and is not needed.
    let _ = match global.log_format {
        LogFormat::Text => builder.finish().with(parsed).try_init(),
        LogFormat::Json => builder.json().finish().with(parsed).try_init(),
    };
    let _ = std::io::stderr().flush();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_panic_ends_with_70() {
        assert_eq!(guarded(|| panic!("on purpose")), Exit::FAULT);
    }

    #[test]
    fn only_a_run_in_the_foreground_has_its_own_code_for_usage() {
        for (arguments, expected) in [
            ("runwarden run --nonsense -- x", true),
            ("runwarden --home /run run", true),
            ("runwarden run -d -- x", false),
            ("runwarden run -- x -d", true),
            ("runwarden --home run ls", false),
            ("runwarden ls run", false),
        ] {
            assert_eq!(is_foreground_run(&line(arguments)), expected, "{arguments}");
        }
    }

    #[test]
    fn a_hint_names_the_command_that_was_meant() {
        assert_eq!(
            command_path(&line("runwarden --home x policy show --nonsense")),
            "runwarden policy show"
        );
        assert_eq!(command_path(&line("runwarden nonsense")), "runwarden");
    }
}

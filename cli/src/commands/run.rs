//! `run`: starts a program under the shim, and attends it unless it is detached.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;

use runwarden_host::Host;
use runwarden_host::model::{Create, Ended, Entity};
use runwarden_host::process::{AtLogout, Io, Login, ParentTie, ignore_hangup};
use runwarden_host::verbs::{
    Begun, Enclosing, EntityView, Running, Start, StartFailure, enclosing, known_kind, observed_exit, run, view,
};
use serde_json::Value;

use crate::app;
use crate::context::{Context, meant, operator, own_id};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::foreground::{Attendance, Attended, OnHangup, Streams, Words, attend, window};
use crate::notify;
use crate::output::{Form, Page, Report, Style, Text, span};
use crate::work::{WorkArgs, inherited};

/// Run a program: know how it ends, and stop everything it started
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    work: WorkArgs,
    /// The kind of entity: any whose policy has an execution rule
    #[arg(long, value_name = "KIND", default_value = "run", help_heading = "What it is")]
    kind: String,
    /// Start it under this installed policy [default: the active one of its kind]
    #[arg(long, value_name = "NAME@VERSION", help_heading = "What it is")]
    policy: Option<String>,
    /// Do not wait: print the reference alone; the run outlives the terminal
    #[arg(short, long, help_heading = "How it is attended")]
    detach: bool,
    /// Give it a pseudo-terminal [default: when all three streams are terminals]
    #[arg(long, conflicts_with_all = ["no_tty", "detach"], help_heading = "How it is attended")]
    tty: bool,
    /// Give it no pseudo-terminal
    #[arg(long, help_heading = "How it is attended")]
    no_tty: bool,
    /// What the loss of the terminal means: stop, detach
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value = "stop",
        hide_possible_values = true,
        help_heading = "How it is attended"
    )]
    on_hangup: OnHangup,
    /// Stop everything it started when this command ends, however it ends
    #[arg(long, conflicts_with = "detach", help_heading = "How it is attended")]
    die_with_parent: bool,
    /// Say nothing beside the program's own output
    #[arg(short, long, help_heading = "How it is attended")]
    quiet: bool,
    /// The program and its arguments, executed as they are
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    argv: Vec<OsString>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden run -- make test
  runwarden run --detach --name nightly --timeout 2h -- ./nightly.sh
  runwarden run --die-with-parent --contain cgroup -- ./helper
  runwarden run --kind session --tag team=core --env TOKEN -- agent --task 7
  runwarden run --expect-artifact 'dist/*.tar.gz' -- ./build.sh
  runwarden run --notify '[\"notify-send\",\"{payload}\"]' -- ./long.sh

EXIT CODES (in the foreground)
  the program's own; 128 + n when signal n ended it; 124 when --timeout did; 1 when it exited with 0 and was no success
  125 Runwarden itself failed   126 the program is not executable   127 the program is not found

Ctrl-C goes to the program; a second one stops everything it started; a third one kills it.
With a pseudo-terminal, Ctrl-C is the program's, and Ctrl-\\ then d detaches.";

/// Starts the program; in the foreground, stays until its end is recorded.
pub(crate) fn execute(context: &Context, args: &Args) -> Exit {
    if args.detach {
        return match begin(context, args, Io::Null).map_err(|failure| *failure) {
            Ok((host, Begun::Running(running))) => {
                if !args.quiet {
                    say_what_a_logout_does(context, &running.entity);
                }
                detached(context, &host, *running)
            }
            Ok((host, Begun::Replayed(entity))) => announce(context, &host, *entity),
            Ok((host, Begun::Failed(failure))) => {
                let exit = announce(context, &host, failure.entity.clone());
                context.output.complain(&start_failed(&failure));
                if exit == Exit::DONE { start_exit(&failure) } else { exit }
            }
            Err(failure) => context.output.failure(&failure),
        };
    }
    foreground(context, args).unwrap_or_else(|mut failure| {
        failure.exit = Exit::RUN_FAILED;
        context.output.failure(&failure)
    })
}

fn begin(context: &Context, args: &Args, io: Io) -> Result<(Arc<Host>, Begun), Box<Failure>> {
    let host = context.create()?;
    let create = creation(context, &host, args)?;
    let (id, choice) = args.work.own_id(&host)?;
    let start = Start {
        create: Create { id, ..create },
        id: choice,
        policy: args.policy.clone(),
        work: args.work.work(&args.argv)?,
        inherited: inherited(),
        io,
        parent: if args.die_with_parent {
            ParentTie::DieWithStarter
        } else {
            ParentTie::Survive
        },
    };
    let begun = run(&host, start).map_err(Failure::from)?;
    Ok((host, begun))
}

fn creation(context: &Context, host: &Host, args: &Args) -> Outcome<Create> {
    let kind = known_kind(host, &args.kind)?;
    let mut create = Create::new(&kind, "", operator());
    create.name.clone_from(&args.work.name);
    create.tags = args.work.tags.iter().cloned().collect();
    for word in &args.work.parents {
        create.parents.push(meant(host, word)?.reference);
    }
    let claimed = own_id().filter(|_| args.work.parents.is_empty() && !args.work.no_parent);
    if let Some(id) = claimed {
        match enclosing(host, &id)? {
            Enclosing::Inside(entity) => create.parents.push(entity.reference),
            Enclosing::Unproven => context.output.warn(&format!(
                "RUNWARDEN_ID names {id}, and this process is not inside it: not linked below it"
            )),
        }
    }
    let settings = args.work.notify.resolved(host, args.work.directory().as_deref())?;
    if !args.quiet {
        notify::warn(context, &settings);
    }
    create.notify = settings.stored();
    create.notify_asked = args.work.notify.words();
    Ok(create)
}

fn detached(context: &Context, host: &Host, running: Running) -> Exit {
    let entity = running.entity;
    if let Err(error) = running.control.detach() {
        tracing::warn!(%error, "the shim did not take leave");
    }
    announce(context, host, entity)
}

/// One line where the system ends what a user leaves running, with what to type.
fn say_what_a_logout_does(context: &Context, entity: &Entity) {
    let reference = &entity.reference;
    match Login::read(Path::new("/")).at_logout() {
        AtLogout::Survives => {}
        AtLogout::EndsWithSession => context.output.warn(&format!(
            "{reference} ends when you log out (KillUserProcesses=yes); to keep what you start: \
             loginctl enable-linger; systemd-run --user --scope runwarden run --detach …"
        )),
        AtLogout::EndsWithManager => context.output.warn(&format!(
            "{reference} ends with your last session; to keep it: loginctl enable-linger"
        )),
    }
}

/// The reference alone, or the entity.
fn announce(context: &Context, host: &Host, entity: Entity) -> Exit {
    app::report(context, view(host, entity).map(Announced).map_err(Failure::from))
}

/// A run that was started.
struct Announced(EntityView);

impl Report for Announced {
    fn json(&self) -> Value {
        self.0.json.clone()
    }

    fn text(&self, _: &Page) -> Text {
        Text::of(self.0.entity.reference.to_string())
    }
}

fn foreground(context: &Context, args: &Args) -> Outcome<Exit> {
    if context.output.form() == Form::Json {
        return Err(
            Failure::usage("--json is for detached runs: here standard output is the program's")
                .hint("add --detach, or leave --json out"),
        );
    }
    if args.die_with_parent && args.on_hangup == OnHangup::Detach {
        return Err(
            Failure::usage("--die-with-parent ends with this command what --on-hangup detach would keep")
                .hint("leave one of them out"),
        );
    }
    let streams = Streams::found();
    let system = |error: anyhow::Error| {
        let failure = Failure::new(Exit::RUN_FAILED, "system", error.to_string());
        error
            .chain()
            .skip(1)
            .fold(failure, |failure, cause| failure.cause(cause.to_string()))
    };
    let io = if args.tty || (streams == Streams::AllTerminals && !args.no_tty) {
        Io::Pty(window().unwrap_or_default())
    } else {
        if args.on_hangup == OnHangup::Detach {
            ignore_hangup();
        }
        let stdin = std::io::stdin().as_fd().try_clone_to_owned();
        Io::Inherit(stdin.map_err(|error| system(anyhow::Error::new(error).context("cannot pass standard input on")))?)
    };
    let (host, begun) = begin(context, args, io).map_err(|failure| *failure)?;
    let running = match begun {
        Begun::Running(running) => *running,
        Begun::Replayed(entity) => return Ok(announce(context, &host, *entity)),
        Begun::Failed(failure) => {
            match (args.quiet, streams) {
                (true, _) => {}
                // A script is told one line about every run that failed, whatever the stage.
                (false, Streams::Script) => say_ended(context, &host, &failure.entity),
                (false, _) => context.output.complain(&start_failed(&failure)),
            }
            return Ok(start_exit(&failure));
        }
    };
    let talks = !args.quiet && streams != Streams::Script;
    if talks {
        context
            .output
            .note(&Text::styled(Style::Dim, running.entity.reference.to_string()));
    }
    let grace = args.work.grace.unwrap_or(runwarden_host::GRACE_DEFAULT);
    let attendance = Attendance {
        grace: std::time::Duration::from_millis(grace.as_ms().unsigned_abs()),
        on_hangup: args.on_hangup,
        words: if talks { Words::Terminal } else { Words::None },
    };
    let reference = running.entity.reference.to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| system(error.into()))?;
    let attended = runtime.block_on(attend(&host, running, attendance)).map_err(system)?;
    // A thread may be reading standard input still: it ends with the process.
    runtime.shutdown_background();
    Ok(match attended {
        Attended::Ended(entity) => ended(context, &host, args, &entity),
        Attended::Detached => {
            if !args.quiet {
                let words = format!("{reference} goes on; `runwarden logs -f {reference}` follows it");
                context.output.note(&Text::styled(Style::Dim, words));
            }
            Exit::UNFINISHED
        }
    })
}

/// The code to leave with, after the one line about an end that was no success.
fn ended(context: &Context, host: &Host, args: &Args, entity: &Entity) -> Exit {
    if !entity.success && !args.quiet {
        say_ended(context, host, entity);
    }
    if entity.terminal {
        return crate::foreground::exit_code(entity);
    }
    match observed_exit(host, entity) {
        // Over, and no success: a policy that refused the end does not make one of it.
        Ok(Some(Ended::Exited(0) | Ended::Unobserved)) => Exit::NO,
        Ok(Some(Ended::Exited(code))) => Exit::of_program(Some(code), None).unwrap_or(Exit::NO),
        Ok(Some(Ended::Signalled(signal))) => Exit::of_program(None, Some(signal)).unwrap_or(Exit::NO),
        Ok(None) => Exit::UNFINISHED,
        Err(error) => context.output.failure(&Failure::from(error)),
    }
}

/// The one line about an end that was no success: reference, reason, where the logs are.
fn say_ended(context: &Context, host: &Host, entity: &Entity) {
    let reference = entity.reference.to_string();
    let logs = host.run_dir(&entity.reference.id);
    let summary = entity.reason.summary.as_ref();
    let text = Text::styled(Style::of_status(entity.terminal, entity.success), &reference)
        .and(format!(" {} ({})", entity.status, entity.reason.code))
        .and(summary.map(|summary| format!(": {summary}")).unwrap_or_default())
        .and_styled(
            Style::Dim,
            format!(
                " after {}; logs in {}",
                span(crate::foreground::took(entity)),
                logs.display()
            ),
        );
    context.output.note(&text);
}

/// A start that failed, in words.
fn start_failed(failure: &StartFailure) -> Failure {
    let entity = &failure.entity;
    let summary = entity
        .reason
        .summary
        .clone()
        .unwrap_or_else(|| "it could not be started".to_owned());
    let told = Failure::new(
        start_exit(failure),
        "start_failed",
        format!("{}: {summary}", entity.reference),
    );
    match failure.stage.as_str() {
        "directory" => told.hint("--cwd DIR names the working directory"),
        "exec" => told.hint(format!(
            "`runwarden show --command {}` shows what was executed",
            entity.reference.id
        )),
        _ => told,
    }
}

/// 127 not found, 126 not executable, 125 everything else.
fn start_exit(failure: &StartFailure) -> Exit {
    const NOT_FOUND: i32 = rustix::io::Errno::NOENT.raw_os_error();
    match (failure.stage.as_str(), failure.errno) {
        ("exec", NOT_FOUND) => Exit::NOT_FOUND,
        ("exec", _) => Exit::NOT_EXECUTABLE,
        _ => Exit::RUN_FAILED,
    }
}

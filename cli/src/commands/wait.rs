//! `wait`: until entities end, or reach a status.

use std::time::Duration;

use runwarden_host::Host;
use runwarden_host::model::{DurationMs, Entity};
use runwarden_host::verbs::{Finished, Going, News, Until, wait};
use tokio::signal::unix::{SignalKind, signal};

use crate::context::Context;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Form, compact};
use crate::parse;
use crate::select::{Chosen, SelectorArgs, choose};

/// Wait until entities end; a line for each as it does
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Entities: kind/id, an id, a prefix of one, a name, @, @failed or @self; a line for each mention
    #[arg(value_name = "REF")]
    references: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    /// Until the first of them
    #[arg(long, help_heading = "How long")]
    any: bool,
    /// Until this status, terminal or not (an end is waited for no longer)
    #[arg(long, value_name = "STATUS", help_heading = "How long")]
    until: Option<String>,
    /// At most so long, then exit 3
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true, help_heading = "How long")]
    timeout: Option<DurationMs>,
    /// The form of a line: line, json
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        hide_possible_values = true,
        help_heading = "What is told"
    )]
    format: Option<Format>,
    /// Leave with the program's code, or 128 and its signal; for one entity
    #[arg(long, help_heading = "What is told")]
    exit_code: bool,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Five fields between tabs.
    Line,
    /// A JSON document.
    Json,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden wait @
  runwarden wait run/7kq2 run/m3vx --timeout 10m
  runwarden wait --tag batch=7 --any
  runwarden wait play/release-42 --until gated
  runwarden wait 7kq2 --exit-code

EXIT CODES
  0 all of them a success (with --until: all reached it)   1 otherwise
  2 some are unknown, ambiguous or not found               3 interrupted or timed out with work still running";

/// Waits, and tells each end as it comes.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Exit> {
    if args.references.is_empty() && args.selectors.is_empty() {
        return Err(Failure::usage("nothing to wait for is given").hint("`runwarden wait @` waits for the newest run"));
    }
    let host = context.read()?;
    let chosen = chosen(&host, args)?;
    chosen
        .failures
        .iter()
        .for_each(|failure| context.output.complain(failure));
    if args.exit_code && chosen.entities.len() + chosen.failures.len() != 1 {
        return Err(Failure::usage("--exit-code is for one entity").hint("give one reference, or leave it out"));
    }
    let until = until(&host, args, &chosen.entities)?;
    let format = match (args.format, context.output.form()) {
        (Some(format), _) => format,
        (None, Form::Json) => Format::Json,
        (None, Form::Text) => Format::Line,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::IO, "system", "cannot wait").cause(error.to_string()))?;
    let mut told = Told {
        context,
        format,
        any: args.any,
        finished: Vec::new(),
        broken: None,
    };
    let stopped = runtime.block_on(told.until_stopped(&host, &chosen.entities, &until, args.timeout))?;
    if let Some(error) = told.broken.take() {
        return Ok(context.output.ended(Err(error), Exit::DONE));
    }
    Ok(verdict(stopped, &chosen, &told.finished, &until, args))
}

fn chosen(host: &Host, args: &Args) -> Outcome<Chosen> {
    let mut query = args.selectors.query();
    let others = SelectorArgs {
        all: false,
        ..args.selectors.clone()
    };
    if others.is_empty() {
        // Waiting for everything is waiting for what is alive.
        query.terminal = Some(false);
    }
    let chosen = choose(host, &args.references, &args.selectors, &query)?;
    if chosen.entities.is_empty() && chosen.failures.is_empty() && !others.is_empty() {
        return Err(
            Failure::new(Exit::UNKNOWN, "not_found", "nothing matches the selectors")
                .hint("`runwarden ls` takes the same selectors and shows what matches"),
        );
    }
    Ok(chosen)
}

/// What is waited for; a status that no target can have is a typing error.
fn until(host: &Host, args: &Args, targets: &[Entity]) -> Outcome<Until> {
    let Some(status) = &args.until else {
        return Ok(Until::Ended);
    };
    let mut known: Vec<String> = Vec::new();
    for target in targets {
        let lifecycle = host.lifecycle(target)?;
        known.extend(lifecycle.descriptor().statuses.iter().map(|status| status.name.clone()));
    }
    if !targets.is_empty() && !known.contains(status) {
        known.sort();
        known.dedup();
        return Err(Failure::usage(format!("`{status}` is no status of what is waited for"))
            .hint(format!("the statuses are {}", known.join(", "))));
    }
    Ok(Until::Status(status.clone()))
}

/// Why waiting stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    Answered,
    Interrupted,
    TimedOut,
}

/// Tells each end once.
struct Told<'a> {
    context: &'a Context,
    format: Format,
    any: bool,
    finished: Vec<Finished>,
    broken: Option<std::io::Error>,
}

impl Told<'_> {
    async fn until_stopped(
        &mut self,
        host: &Host,
        targets: &[Entity],
        until: &Until,
        timeout: Option<DurationMs>,
    ) -> Outcome<Stopped> {
        let watch = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(Exit::IO, "system", "cannot watch signals").cause(error.to_string()))
        };
        let (mut interrupt, mut terminate) = (watch(SignalKind::interrupt())?, watch(SignalKind::terminate())?);
        let deadline = async {
            match timeout {
                Some(length) => tokio::time::sleep(Duration::from_millis(length.as_ms().unsigned_abs())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answered = wait(host, targets, until, |news| self.tell(news)) => {
                answered?;
                Ok(Stopped::Answered)
            }
            _ = interrupt.recv() => Ok(Stopped::Interrupted),
            _ = terminate.recv() => Ok(Stopped::Interrupted),
            () = deadline => Ok(Stopped::TimedOut),
        }
    }

    fn tell(&mut self, news: News) -> Going {
        let finished = match news {
            News::Finished(finished) => finished,
            News::EndWaits(reference) => {
                self.context.warn_that_an_end_waits(&reference);
                return Going::On;
            }
        };
        let line = match self.format {
            Format::Line => finished.line(),
            Format::Json => format!("{}\n", compact(&finished.json())).into_bytes(),
        };
        self.finished.push(finished);
        if let Err(error) = self.context.output.script_line(&line) {
            self.broken = Some(error);
            return Going::Stop;
        }
        if self.any { Going::Stop } else { Going::On }
    }
}

/// Still running comes first, then unknown, then how they ended.
fn verdict(stopped: Stopped, chosen: &Chosen, finished: &[Finished], until: &Until, args: &Args) -> Exit {
    if stopped != Stopped::Answered {
        return Exit::UNFINISHED;
    }
    if !chosen.failures.is_empty() || finished.iter().any(|finished| finished.status == "unknown") {
        return Exit::UNKNOWN;
    }
    if let (true, [only]) = (args.exit_code, finished) {
        let signal = only.exit_code.filter(|code| *code < 0).map(|code| -code);
        let code = only.exit_code.filter(|code| *code >= 0);
        if let Some(exit) = Exit::of_program(code, signal) {
            return exit;
        }
    }
    let is_good = |finished: &Finished| match until {
        Until::Ended => finished.success,
        Until::Status(status) => finished.status == *status,
    };
    if finished.iter().all(is_good) {
        Exit::DONE
    } else {
        Exit::NO
    }
}

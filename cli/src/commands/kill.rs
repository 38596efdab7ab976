//! `kill`: stops runs and what is linked below them, and says only what was observed.

use std::collections::HashSet;

use runwarden_host::model::{DurationMs, Entity, KillStep, Reach, STALE_AFTER, StaleVerdict};
use runwarden_host::process::Survivor;
use runwarden_host::store::EntityQuery;
use runwarden_host::verbs::{
    Act, Kill, KillPlan, KillResult, Killed, Killing, Planned, Sweep, Swept, declare_gone, kill, plan_kill, stale,
};
use runwarden_host::{GRACE_DEFAULT, Host};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};
use crate::parse;
use crate::select::{SelectorArgs, choose};

/// Stop runs and everything they started; "stopped" is said of what was seen to be gone
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Entities: kind/id, an id, a prefix of one, a name, @, @failed or @self
    #[arg(value_name = "REF")]
    references: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    /// Kill everything linked below, too; a play's runs are always killed with it
    #[arg(short, long, help_heading = "How")]
    recursive: bool,
    /// From the first signal to KILL [default: 10s]
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true, help_heading = "How")]
    grace: Option<DurationMs>,
    /// Why; kept with the end
    #[arg(long, value_name = "T", help_heading = "How")]
    note: Option<String>,
    /// Show what would be done, in its order, and signal nobody; ends that wait to be recorded are, as with any reading
    #[arg(long, help_heading = "How")]
    dry_run: bool,
    /// End everything whose processes are positively gone, and the plays and shows below which nothing is left; signals
    /// nobody
    #[arg(long, help_heading = "What", conflicts_with_all = ["references", "recursive", "grace", "declare_gone", "SelectorArgs"])]
    all_stale: bool,
    /// With --all-stale: what is younger is left alone [default: 1h]
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true, requires = "all_stale", help_heading = "How")]
    older_than: Option<DurationMs>,
    /// Your word that it is gone, where its processes cannot be looked at from here (another machine, a container that is
    /// no more); kept with the note, and refused where a look can tell
    #[arg(long, requires = "note", conflicts_with_all = ["recursive", "dry_run"], help_heading = "How")]
    declare_gone: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden kill @
  runwarden kill run/7kq2 nightly --note 'wrong branch'
  runwarden kill --grace 1m 7kq2
  runwarden kill play/opening-night --dry-run
  runwarden kill --recursive --tag batch=7
  runwarden kill --all-stale --older-than 2h --dry-run
  runwarden kill 7kq2 --declare-gone --note 'its container was removed'

EXIT CODES
  0 all of them are stopped, or had ended before
  1 something could not be stopped, confirmed or judged, or nothing shows what runs
  2 some are not found or ambiguous: nothing was signalled
  3 interrupted: what was asked for goes on
  74 stopped, and not recorded yet: the next command that reads it records it";

/// What a kill came to.
pub(crate) enum Told {
    /// It was carried out.
    Done(Killing),
    /// It was planned.
    Planned(KillPlan),
    /// What is gone was swept.
    Swept(Swept, Act),
    /// It was left before it was over.
    Interrupted,
}

/// Resolves every word first, then kills what was meant and what is linked below.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Told> {
    if args.all_stale {
        return sweep(context, args);
    }
    if args.references.is_empty() && args.selectors.is_empty() {
        return Err(Failure::usage("nothing to kill is given").hint("`runwarden kill @` kills the newest run"));
    }
    let host = context.open_to_stop()?;
    let targets = targets(&host, args)?;
    let reach = if args.recursive {
        Reach::Everything
    } else {
        Reach::Policy
    };
    if args.dry_run {
        return Ok(Told::Planned(plan_kill(&host, &targets, reach)?));
    }
    let asked = Kill {
        grace: args.grace.unwrap_or(GRACE_DEFAULT),
        actor: operator(),
        note: args.note.clone(),
        reach,
    };
    let told = match args.declare_gone {
        true => Told::Done(declare_gone(&host, &targets, &asked)?),
        false => carry_out(&host, &targets, &asked)?,
    };
    match &told {
        Told::Done(killing) => {
            for (what, error) in &killing.failures {
                let failure = Failure::from(error).cause(format!("{what} was not killed"));
                context.output.complain(&failure);
            }
        }
        Told::Interrupted => context.output.complain(
            &Failure::new(
                Exit::UNFINISHED,
                "interrupted",
                "interrupted: what was asked of the runs goes on",
            )
            .hint("`runwarden wait` waits for their ends; kill again to hurry them with a shorter --grace"),
        ),
        Told::Planned(_) | Told::Swept(..) => {}
    }
    Ok(told)
}

/// Ends what is positively gone.
fn sweep(context: &Context, args: &Args) -> Outcome<Told> {
    let act = if args.dry_run { Act::DryRun } else { Act::Do };
    let sweep = Sweep {
        older_than: args.older_than.unwrap_or(STALE_AFTER),
        actor: operator(),
        note: args.note.clone(),
        act,
    };
    let host = context.open_to_stop()?;
    let swept = stale(&host, &sweep)?;
    Ok(Told::Swept(swept, act))
}

/// The words, then what the selectors choose of what can be killed. One word that means nothing keeps everybody alive.
fn targets(host: &Host, args: &Args) -> Outcome<Vec<Entity>> {
    let named = choose(
        host,
        &args.references,
        &SelectorArgs::default(),
        &EntityQuery::default(),
    )?;
    if let Some(failure) = named.failures.into_iter().next() {
        return Err(failure.cause("nothing was signalled"));
    }
    let mut targets = named.entities;
    if !args.selectors.is_empty() {
        let chosen = chosen(host, args)?;
        if chosen.is_empty() && targets.is_empty() && !args.selectors.all {
            return Err(Failure::new(
                Exit::UNKNOWN,
                "not_found",
                "nothing that can be killed matches the selectors",
            )
            .hint("`runwarden ls` takes the same selectors and shows what matches"));
        }
        targets.extend(chosen);
    }
    let mut seen = HashSet::new();
    targets.retain(|entity| seen.insert(entity.row));
    Ok(targets)
}

/// Every killable entity that has not ended, and whatever still has processes.
fn chosen(host: &Host, args: &Args) -> Outcome<Vec<Entity>> {
    let running = host.store().runtimes(None)?;
    let running: HashSet<String> = running.into_iter().map(|runtime| runtime.owner.id).collect();
    let mut chosen = Vec::new();
    for entity in host.store().list(&args.selectors.query())? {
        let is_running = running.contains(&entity.reference.id);
        let is_killable = !entity.terminal && host.lifecycle(&entity)?.kill_row(&entity.status).is_some();
        if is_running || is_killable {
            chosen.push(entity);
        }
    }
    Ok(chosen)
}

fn carry_out(host: &Host, targets: &[Entity], asked: &Kill) -> Outcome<Told> {
    let failed = |error: std::io::Error| Failure::new(Exit::IO, "system", "cannot wait").cause(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        tokio::select! {
            biased;
            _ = interrupt.recv() => Ok(Told::Interrupted),
            _ = terminate.recv() => Ok(Told::Interrupted),
            killing = kill(host, targets, asked) => Ok(Told::Done(killing?)),
        }
    })
}

impl Report for Told {
    fn json(&self) -> Value {
        match self {
            Self::Done(killing) => killing.json(),
            Self::Planned(plan) => plan.json(),
            Self::Swept(swept, _) => swept.json(),
            Self::Interrupted => json!({"targets": [], "complete": false}),
        }
    }

    fn text(&self, page: &Page) -> Text {
        let mut text = Text::new();
        match self {
            Self::Done(killing) if killing.targets.is_empty() && killing.failures.is_empty() => {
                return Text::of("Nothing to kill.");
            }
            Self::Done(killing) => killing
                .targets
                .iter()
                .for_each(|killed| add(&mut text, killed, 0, page)),
            Self::Planned(plan) if plan.steps.is_empty() => return Text::of("Nothing to kill."),
            Self::Planned(plan) => {
                let is_left = |planned: &Planned| planned.step == KillStep::Unchanged;
                let are_all_left = plan.steps.iter().all(is_left);
                let steps = plan.steps.iter().filter(|planned| are_all_left || !is_left(planned));
                steps.for_each(|planned| foretell(&mut text, planned, page));
            }
            Self::Swept(swept, act) => return swept_text(swept, *act, page),
            Self::Interrupted => {}
        }
        text
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Interrupted => Exit::UNFINISHED,
            Self::Done(killing) if killing.unrecorded => Exit::IO,
            Self::Done(Killing { failures, .. }) if !failures.is_empty() => Failure::from(&failures[0].1).exit,
            Self::Done(killing) if killing.is_complete() => Exit::DONE,
            Self::Planned(plan) if plan.is_complete() => Exit::DONE,
            Self::Swept(swept, _) if swept.is_complete() => Exit::DONE,
            Self::Done(_) | Self::Planned(_) | Self::Swept(..) => Exit::NO,
        }
    }
}

/// Every candidate, its verdict and why.
fn swept_text(swept: &Swept, act: Act, page: &Page) -> Text {
    if swept.candidates.is_empty() {
        return Text::of("Nothing has not ended.");
    }
    let mut text = Text::new();
    for (reference, verdict) in &swept.candidates {
        let style = match verdict {
            StaleVerdict::End(_) => Style::Strong,
            StaleVerdict::Keep(_) => Style::Dim,
            StaleVerdict::Undetermined(_) => Style::Bad,
        };
        let verb = match (verdict, act) {
            (StaleVerdict::End(_), Act::Do) if swept.ended.contains(reference) => "ended",
            _ => verdict.word(),
        };
        text.line(Text::styled(style, verb).and(" ").and(reference));
        wrapped(&mut text, "", verdict.reason(), page);
        if let Some((_, why)) = swept.failures.iter().find(|(failed, _)| failed == reference) {
            wrapped(&mut text, "", &format!("not ended: {why}"), page);
        }
    }
    text
}

/// What came of one, and below it, further in, of those that were killed with it.
fn add(text: &mut Text, killed: &Killed, depth: usize, page: &Page) {
    let style = if killed.result.is_complete() {
        Style::Good
    } else {
        Style::Bad
    };
    let margin = "  ".repeat(depth);
    let head = format!(" {} {}", killed.reference, killed.status);
    let pid = killed.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    let observed = match (killed.stopped, &killed.proof) {
        (true, Some(proof)) => format!(", nothing of it is left: {proof}"),
        (true, None) => ", nothing of it is left".to_owned(),
        (false, _) => String::new(),
    };
    let details = format!("{}{pid}{observed}", killed.signal);
    let begun = Text::of(&margin).and_styled(style, killed.result.word()).and(&head);
    let width = margin.len() + killed.result.word().len() + head.len();
    if fits(width + details.len() + 3, page) {
        text.line(begun.and(format!(" ({details})")));
    } else {
        text.line(begun);
        wrapped(text, &margin, &details, page);
    }
    if let Some(message) = &killed.message {
        wrapped(text, &margin, message, page);
    }
    for survivor in &killed.survivors {
        let begun = Text::of(&margin).and_styled(Style::Bad, "  lives on:");
        told(text, begun, (&margin, "  lives on:"), survivor, page);
    }
    let children = killed.children.iter().filter(|child| has_news(child));
    children.for_each(|child| add(text, child, depth + 1, page));
}

/// Whether anything of it, or below it, is worth a line: not that it had ended long before.
fn has_news(killed: &Killed) -> bool {
    killed.result != KillResult::Unchanged || killed.stopped || killed.children.iter().any(has_news)
}

/// What would be done with one.
fn foretell(text: &mut Text, planned: &Planned, page: &Page) {
    let status = match &planned.goes_to {
        Some(goes_to) => format!("{} -> {goes_to}", planned.status),
        None => planned.status.clone(),
    };
    let style = if planned.step.is_complete() {
        Style::Strong
    } else {
        Style::Bad
    };
    let (verb, why) = match &planned.step {
        KillStep::Stop => ("stop", None),
        KillStep::StopLingering => (
            "stop",
            Some("this lives beside its newest set, or lives on after its end"),
        ),
        KillStep::End => ("end", Some("it has no process")),
        KillStep::EndGone => ("end", Some("its processes are gone")),
        KillStep::EndUnreached => ("end", Some("no run is linked below it: nothing would be stopped")),
        KillStep::Unchanged => ("leave", None),
        KillStep::Refused(why) => ("refuse", Some(why.message.as_str())),
    };
    let head = format!(" {}", planned.reference);
    let begun = Text::styled(style, verb).and(&head);
    if fits(verb.len() + head.len() + 1 + status.len(), page) {
        text.line(begun.and(format!(" {status}")));
    } else {
        text.line(begun);
        wrapped(text, "", &status, page);
    }
    if let Some(why) = why {
        wrapped(text, "", why, page);
    }
    for one in &planned.processes {
        told(
            text,
            Text::styled(Style::Dim, "  reaches"),
            ("", "  reaches"),
            one,
            page,
        );
    }
}

/// A process behind the words that begin its line, or below them where the page is too narrow.
fn told(text: &mut Text, begun: Text, (margin, words): (&str, &str), of: &Survivor, page: &Page) {
    let named = process(of);
    if fits(margin.len() + words.len() + 1 + named.len(), page) {
        text.line(begun.and(" ").and(named));
    } else {
        text.line(begun);
        wrapped(text, &format!("{margin}  "), &named, page);
    }
}

fn process(of: &Survivor) -> String {
    let uid = of.uid.map_or_else(|| "?".to_owned(), |uid| uid.to_string());
    format!("pid {} {} state {} uid {uid}", of.pid, of.comm, of.state)
}

fn fits(columns: usize, page: &Page) -> bool {
    page.width.is_none_or(|width| columns <= usize::from(width))
}

/// Words below a line, further in, broken between words where the page ends.
fn wrapped(text: &mut Text, margin: &str, words: &str, page: &Page) {
    let margin = format!("{margin}  ");
    text.line(Text::hanging(Text::of(&margin), margin.len(), words, page));
}

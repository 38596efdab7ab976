//! `policy test`: what can be known of a component without running it, then its cases.

use std::path::{Path, PathBuf};
use std::time::Duration;

use runwarden_host::model::{Described, RaisedLimits, Severity};
use runwarden_host::policy::Candidate;
use runwarden_host::verbs::examine_on_trial;
use runwarden_host::verbs::trial::{Bench, CaseTable, Problem, Timed, Tried, bench, try_cases};
use serde_json::{Value, json};

use super::find;
use super::findings::{findings_json, findings_text};
use super::limits::LimitArgs;
use crate::context::Context;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text, size};

/// Try a policy or handler: what is doubtful about it, then a table of cases
///
/// Everything that can be known without running it is told first. Then each case of the table is put to the code that
/// would decide it for an entity, with the limits that hold there. Nothing is installed and nothing is written; a file is
/// tried without a home.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A .wasm file, a directory with one, or what is installed: NAME@V
    #[arg(value_name = "FILE")]
    component: String,
    /// The table of cases; cases.toml beside the component if it is there
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Measure a decision and a call of the component, cold and warm: medians on this machine
    #[arg(long)]
    bench: bool,
    #[command(flatten)]
    limits: LimitArgs,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy test ./strict_play.wasm
  runwarden policy test ./strict_play.wasm --cases more.toml --bench
  runwarden policy test play@1 --cases cases.toml --json | jq '.cases[] | select(.ok | not)'

A CASE FILE
  [[case]]                  # also [[exit]], [[guard]], [[health]]; [[plan]] for handlers
  from = \"draft\"
  to = \"published\"
  actor = \"agent\"
  expect = \"rejected\"
  code = \"not_reviewed\"

EXIT CODES
  0 every case came to what it says   1 one did not, or there is an error   64 the case file is wrong
  65 no component of ours";

/// The file of cases that is looked for.
pub(super) const CASES: &str = "cases.toml";

/// Columns of a verdict with its gap.
const INDENT: usize = 8;

/// What was found.
pub(crate) struct Tested {
    candidate: Candidate,
    /// The case file, when there is one.
    cases_file: Option<PathBuf>,
    /// Whether the command named it.
    cases_wanted: bool,
    tried: Vec<Tried>,
    bench: Option<Bench>,
}

/// Tries it.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Tested> {
    let found = component(context, &args.component, args.limits.raised())?;
    let candidate = examine_on_trial(&context.config(), &found.bytes, &found.raised)?;
    let (cases_file, table) = table(args, found.beside, &candidate)?;
    let is_sound = candidate.errors().next().is_none();
    let (mut tried, mut measured) = (Vec::new(), None);
    if is_sound {
        let trial = candidate.on_trial().map_err(runwarden_host::Error::from)?;
        tried = try_cases(&trial, &candidate, &table);
        if args.bench {
            measured = Some(bench(&candidate, &table).map_err(runwarden_host::Error::from)?);
        }
    }
    Ok(Tested {
        candidate,
        cases_file,
        cases_wanted: args.cases.is_some(),
        tried,
        bench: measured,
    })
}

/// A component that was found.
struct Found {
    bytes: Vec<u8>,
    raised: RaisedLimits,
    /// The directory it lies in.
    beside: Option<PathBuf>,
}

/// The component that a word means.
fn component(context: &Context, word: &str, raised: RaisedLimits) -> Outcome<Found> {
    let path = Path::new(word);
    let in_directory = path.is_dir();
    if in_directory || find::is_file(word) {
        let file = if in_directory {
            only_component(path)?
        } else {
            path.to_owned()
        };
        return Ok(Found {
            bytes: find::read(&file)?,
            raised,
            beside: file.parent().map(Path::to_owned),
        });
    }
    find::only_for_files(word, &raised)?;
    let host = context.read_or_create()?;
    let (bytes, raised) = find::installed_bytes(&host, word)?;
    Ok(Found {
        bytes,
        raised,
        beside: None,
    })
}

/// The one component of a directory.
fn only_component(directory: &Path) -> Outcome<PathBuf> {
    let entries = std::fs::read_dir(directory).map_err(|error| Failure::file("read", directory, &error))?;
    let is_component = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "wasm");
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_component)
        .collect();
    found.sort();
    let shown = directory.display();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            Err(Failure::usage(format!("there is no .wasm file in {shown}")).hint("build it first, then name the file"))
        }
        [first, ..] => Err(
            Failure::usage(format!("there are {} .wasm files in {shown}", found.len()))
                .hint(format!("name one: runwarden policy test {}", first.display())),
        ),
    }
}

/// The case file, where there is one, and what it holds.
fn table(args: &Args, beside: Option<PathBuf>, candidate: &Candidate) -> Outcome<(Option<PathBuf>, CaseTable)> {
    let beside = || {
        beside
            .map(|directory| directory.join(CASES))
            .filter(|path| path.exists())
    };
    let Some(path) = args.cases.clone().or_else(beside) else {
        return Ok((None, CaseTable::default()));
    };
    let text = std::fs::read_to_string(&path).map_err(|error| Failure::file("read", &path, &error))?;
    let table = CaseTable::read(&text, candidate).map_err(|problems| wrong(&path, &problems))?;
    Ok((Some(path), table))
}

/// A case file that cannot be used, with everything that is wrong with it.
fn wrong(path: &Path, problems: &[Problem]) -> Failure {
    let shown = path.display();
    let count = problems.len();
    let plural = if count == 1 { "" } else { "s" };
    let failure = Failure::new(
        Exit::USAGE,
        "cases",
        format!("{shown} is no table of cases: {count} problem{plural}"),
    );
    let told =
        |failure: Failure, problem: &Problem| failure.cause(format!("{shown}:{}: {}", problem.line, problem.message));
    problems
        .iter()
        .fold(failure, told)
        .hint("`runwarden policy test --help` shows the form")
}

impl Tested {
    fn failed(&self) -> usize {
        self.tried.iter().filter(|tried| !tried.passed).count()
    }

    fn count(&self, severity: Severity) -> usize {
        let findings = self.candidate.findings.iter();
        findings.filter(|finding| finding.severity == severity).count()
    }

    /// Why there is no case, when there is none.
    fn without_cases(&self) -> Option<String> {
        if !self.tried.is_empty() {
            return None;
        }
        Some(match &self.cases_file {
            _ if self.count(Severity::Error) > 0 => "no case is tried: there are errors".to_owned(),
            Some(path) => format!("{} has no cases", path.display()),
            None => format!("there is no case file: write {CASES} beside the component, or name one with --cases"),
        })
    }

    fn summary(&self) -> Text {
        let (cases, failed) = (self.tried.len(), self.failed());
        let mut words = match (self.without_cases(), failed) {
            (Some(why), _) => why,
            (None, 0) => format!("{cases} of {cases} cases ok"),
            (None, failed) => format!("{failed} of {cases} cases FAILED"),
        };
        for (severity, one, many) in [
            (Severity::Error, "error", "errors"),
            (Severity::Warning, "warning", "warnings"),
        ] {
            match self.count(severity) {
                0 => {}
                1 => words.push_str(&format!("; 1 {one}")),
                count => words.push_str(&format!("; {count} {many}")),
            }
        }
        let style = match (self.is_ok(), self.tried.is_empty()) {
            (false, _) => Style::Bad,
            (true, true) => Style::Notice,
            (true, false) => Style::Good,
        };
        Text::styled(style, words)
    }

    fn is_ok(&self) -> bool {
        let has_cases = !self.tried.is_empty() || !self.cases_wanted;
        has_cases && self.failed() == 0 && self.count(Severity::Error) == 0
    }

    fn line(&self, tried: &Tried, page: &Page) -> Text {
        if tried.passed {
            let verdict = Text::styled(Style::Good, format!("{:<INDENT$}", "ok"));
            return Text::hanging(verdict, INDENT, format!("{}: {}", tried.name, tried.came), page);
        }
        let verdict = Text::styled(Style::Bad, format!("{:<INDENT$}", "FAILED"));
        let place = self
            .cases_file
            .as_ref()
            .map_or_else(String::new, |path| format!(" ({}:{})", path.display(), tried.line));
        let said = format!(
            "{}{place}: expected {}, came {}",
            tried.name, tried.expected, tried.came
        );
        Text::hanging(verdict, INDENT, said, page)
    }
}

impl Report for Tested {
    fn json(&self) -> Value {
        let descriptor = &self.candidate.descriptor;
        let case = |tried: &Tried| {
            json!({"section": tried.section, "name": tried.name, "line": tried.line, "ok": tried.passed,
                   "expected": tried.expected, "came": tried.came})
        };
        json!({
            "kind": descriptor.kind(),
            "name": descriptor.name(),
            "version": descriptor.version(),
            "digest": self.candidate.digest,
            "findings": findings_json(&self.candidate.findings),
            "cases_file": self.cases_file,
            "cases": self.tried.iter().map(case).collect::<Vec<_>>(),
            "failed": self.failed(),
            "bench": self.bench.as_ref().map(bench_json),
            "ok": self.is_ok(),
        })
    }

    fn text(&self, page: &Page) -> Text {
        let descriptor = &self.candidate.descriptor;
        let what = match descriptor {
            Described::Policy(policy) => format!(" for {}", policy.kind),
            Described::Handler(_) => " (a handler)".to_owned(),
        };
        let mut text = Text::styled(Style::Strong, descriptor.label()).and(what);
        findings_text(&self.candidate.findings, page, &mut text);
        for tried in &self.tried {
            text.line(self.line(tried, page));
        }
        for line in self.bench.iter().flat_map(bench_lines) {
            text.line(Text::hanging(Text::new(), 2, line, page));
        }
        text.line(self.summary());
        text
    }

    fn exit(&self) -> Exit {
        if self.is_ok() { Exit::DONE } else { Exit::NO }
    }
}

fn bench_json(bench: &Bench) -> Value {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let call = bench.call.as_ref().map(|call| {
        json!({"function": call.function, "cold_ns": ns(call.cold), "warm_ns": ns(call.warm),
               "fuel": call.used.fuel, "memory_bytes": call.used.memory_bytes})
    });
    json!({"decision_ns": bench.decision.map(ns), "call": call})
}

fn bench_lines(bench: &Bench) -> Vec<String> {
    let decision = bench
        .decision
        .map(|time| format!("bench   a decision by the graph: {time:.1?}"));
    let call = bench.call.as_ref().map(|call: &Timed| {
        let memory = size(u64::try_from(call.used.memory_bytes).unwrap_or(u64::MAX));
        format!(
            "bench   {}: first call {:.1?}, later ones {:.1?}; {} fuel, {memory} of memory",
            call.function, call.cold, call.warm, call.used.fuel
        )
    });
    decision.into_iter().chain(call).collect()
}

//! `doctor`: what is not as it should be, and what to type.

use runwarden_host::verbs::lease::Kept;
use runwarden_host::verbs::{Act, Check, CheckResult, Reaped, Repaired, doctor, reap};
use serde_json::{Value, json};

use crate::context::Context;
use crate::errors::Outcome;
use crate::exit::Exit;
use crate::notify::lease_grace;
use crate::output::{Page, Report, Style, Text};

/// Look the machine, the home, the store and the runs over; repair what died half-way
///
/// Without --fix nothing is changed. Checked are the kernel and what it lets Runwarden do, what a logout ends, where the home lies and
/// who may read it, room on the disk, the soundness of the store, and runs that wait for somebody.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Repair first: runs without a shim get another one, ends that nobody recorded are, and what is unknown is left
    #[arg(long)]
    fix: bool,
    /// With --fix: say what would be done, and change nothing
    #[arg(long, requires = "fix")]
    dry_run: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden doctor
  runwarden doctor --fix --dry-run
  runwarden doctor --fix
  runwarden doctor --json | jq -r '.checks[] | select(.result != \"ok\") | .name'

EXIT CODES
  0 nothing is bad; there may be warnings   1 something is bad, or could not be repaired";

/// Columns of a verdict with its gap.
const INDENT: usize = 6;

/// What was looked at, and what was done before.
pub(crate) struct Checks {
    checks: Vec<Check>,
    reaped: Option<Reaped>,
}

/// Repairs if that is asked for, then looks everything over.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Checks> {
    let act = if args.dry_run { Act::DryRun } else { Act::Do };
    let reaped = match args.fix {
        false => None,
        true => Some(match context.read_if_present()? {
            Some(host) => reap(&host, act, lease_grace(context, None))?,
            None => Reaped::default(),
        }),
    };
    Ok(Checks {
        checks: doctor(&context.config()),
        reaped,
    })
}

impl Checks {
    fn count(&self, result: CheckResult) -> usize {
        self.checks.iter().filter(|check| check.result == result).count()
    }

    /// Runs of which something was, or would be, repaired, or could not be looked at.
    fn repairs(&self) -> impl Iterator<Item = &Repaired> {
        let all = self.reaped.iter().flat_map(|reaped| &reaped.repaired);
        all.filter(|repaired| repaired.decision.acts() || repaired.failure.is_some())
    }

    /// Queued work for which something was, or would be, done, or could not be.
    fn kept(&self) -> impl Iterator<Item = &Kept> {
        self.reaped.iter().flat_map(|reaped| &reaped.kept)
    }

    fn has_failed(&self) -> bool {
        self.repairs().any(|repaired| repaired.failure.is_some())
            || self.kept().any(|kept| kept.failure.is_some() || kept.needs_somebody)
    }
}

impl Report for Checks {
    fn json(&self) -> Value {
        let checks = self.checks.iter().map(Check::json).collect::<Vec<_>>();
        let ok = self.count(CheckResult::Bad) == 0 && !self.has_failed();
        let mut document = json!({"checks": checks, "ok": ok});
        if self.reaped.is_some() {
            document["repaired"] = self.repairs().map(Repaired::json).collect();
            document["queued"] = self.kept().map(Kept::json).collect();
        }
        document
    }

    fn text(&self, page: &Page) -> Text {
        let mut text = Text::new();
        for repaired in self.repairs() {
            text.line(told(repaired, page));
        }
        for kept in self.kept() {
            text.line(told_of_queued(kept, page));
        }
        for check in &self.checks {
            let style = match check.result {
                CheckResult::Ok => Style::Good,
                CheckResult::Warn => Style::Notice,
                CheckResult::Bad => Style::Bad,
            };
            let verdict = Text::styled(style, format!("{:<INDENT$}", check.result.word()));
            let name = verdict.and_styled(Style::Strong, check.name).and(": ");
            text.line(Text::hanging(name, INDENT, &check.message, page));
            if let Some(hint) = &check.hint {
                let lead = Text::of(format!("{:INDENT$}", "")).and_styled(Style::Strong, "hint: ");
                text.line(Text::hanging(lead, INDENT, hint, page));
            }
        }
        text.line(match (self.count(CheckResult::Bad), self.count(CheckResult::Warn)) {
            (0, 0) => Text::styled(Style::Good, "All is well."),
            (0, warnings) => Text::styled(Style::Good, "Nothing is bad").and(format!("; {warnings} to know.")),
            (bad, _) => Text::styled(Style::Bad, format!("{bad} bad.")),
        });
        text
    }

    fn exit(&self) -> Exit {
        if self.count(CheckResult::Bad) == 0 && !self.has_failed() {
            Exit::DONE
        } else {
            Exit::NO
        }
    }
}

/// What was done for queued work, in a line.
fn told_of_queued(kept: &Kept, page: &Page) -> Text {
    let (style, verdict) = if kept.failure.is_some() || kept.needs_somebody {
        (Style::Bad, "bad")
    } else {
        (Style::Good, "fix")
    };
    let lead = Text::styled(style, format!("{verdict:<INDENT$}")).and_styled(Style::Strong, &kept.reference);
    let follows = kept
        .successor
        .as_ref()
        .map(|successor| format!("; {successor} follows"))
        .unwrap_or_default();
    let words = format!("{} (was {}){follows}", kept.words, kept.previous_status);
    Text::hanging(lead.and(": "), INDENT, words, page)
}

/// One repair, in a line.
fn told(repaired: &Repaired, page: &Page) -> Text {
    let (style, verdict) = match repaired.failure {
        None => (Style::Good, "fix"),
        Some(_) => (Style::Bad, "bad"),
    };
    let lead = Text::styled(style, format!("{verdict:<INDENT$}")).and_styled(Style::Strong, &repaired.reference);
    let status = if repaired.status == repaired.previous_status {
        repaired.status.clone()
    } else {
        format!("{} -> {}", repaired.previous_status, repaired.status)
    };
    let failure = repaired.failure.as_ref();
    let failure = failure.map(|error| format!("; {error}")).unwrap_or_default();
    let words = format!("{} ({status}){failure}", repaired.decision.said());
    Text::hanging(lead.and(": "), INDENT, words, page)
}

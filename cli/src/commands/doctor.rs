//! `doctor`: what is not as it should be, and what to type.

use runwarden_host::verbs::{Check, CheckResult, doctor};
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};

/// Look the machine, the home, the store and the runs over
///
/// Nothing is changed. Checked are the kernel and what it lets Runwarden do, what a logout ends, where the home lies and
/// who may read it, room on the disk, the soundness of the store, and runs that wait for somebody.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

const EXAMPLES: &str = "EXAMPLES
  runwarden doctor
  runwarden doctor --json | jq -r '.checks[] | select(.result != \"ok\") | .name'

EXIT CODES
  0 nothing is bad; there may be warnings   1 something is bad";

/// Columns of a verdict with its gap.
const INDENT: usize = 6;

/// What was looked at.
pub(crate) struct Checks(Vec<Check>);

/// Looks everything over.
pub(crate) fn execute(context: &Context) -> Checks {
    Checks(doctor(&context.config()))
}

impl Checks {
    fn count(&self, result: CheckResult) -> usize {
        self.0.iter().filter(|check| check.result == result).count()
    }
}

impl Report for Checks {
    fn json(&self) -> Value {
        let checks = self.0.iter().map(Check::json).collect::<Vec<_>>();
        json!({"checks": checks, "ok": self.count(CheckResult::Bad) == 0})
    }

    fn text(&self, page: &Page) -> Text {
        let mut text = Text::new();
        for check in &self.0 {
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
        if self.count(CheckResult::Bad) == 0 {
            Exit::DONE
        } else {
            Exit::NO
        }
    }
}

//! `prune`: takes away what has been kept long enough.

use runwarden_host::model::{DurationMs, Retention};
use runwarden_host::verbs::{PruneItem, PruneKind, PruneOutcome, PruneReport, Pruning, plan_prune, prune};
use serde_json::{Value, json};

use crate::context::{Context, operator, precious};
use crate::errors::Outcome;
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text, moment, size};
use crate::parse;

/// Take away what has been kept long enough: directories, logs, records, history
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directories of every run that ended so long ago [default: 14d after a success, 90d after a failure]
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true)]
    older_than: Option<DurationMs>,
    /// Show what would be taken, and take nothing
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden prune --dry-run
  runwarden prune
  runwarden prune --older-than 48h

WHAT GOES
  the run directory and the --own-dir directories of a run, 14 days after a success, 90 days after any other end
  logs, the longest ended run's first, when all of them take more than 5 GiB
  records of what ended, and history and audit rows, after a year
  run directories that no row names, a day after their last change
Nothing of what may be running goes, nor of what can be taken up again (--resume-token).

EXIT CODES
  0 done, or nothing to do   1 something that was to go stays, and why is said";

/// What went, or would go.
pub(crate) struct Told {
    report: PruneReport,
    is_plan: bool,
}

/// Plans, and acts unless only the plan was asked for.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Told> {
    let host = context.open()?;
    let retention = match args.older_than {
        Some(age) => Retention::STANDARD.directories_after(age),
        None => Retention::STANDARD,
    };
    let asked = Pruning {
        retention,
        actor: operator(),
        protected: precious(),
    };
    let report = if args.dry_run {
        plan_prune(&host, &asked)?
    } else {
        prune(&host, &asked)?
    };
    Ok(Told {
        report,
        is_plan: args.dry_run,
    })
}

impl Report for Told {
    fn json(&self) -> Value {
        let mut document = self.report.json();
        document["dry_run"] = json!(self.is_plan);
        document
    }

    fn text(&self, page: &Page) -> Text {
        let mut text = Text::new();
        for item in &self.report.items {
            text.line(line(item, page));
        }
        for note in &self.report.notes {
            text.line(Text::styled(Style::Notice, note));
        }
        if text.is_empty() {
            return Text::of("Nothing has been kept long enough to go.");
        }
        let freed = size(self.report.bytes());
        let words = if self.is_plan {
            format!("{freed} would be freed; nothing was taken.")
        } else {
            format!("{freed} freed.")
        };
        text.line(Text::styled(Style::Dim, words));
        text
    }

    fn exit(&self) -> Exit {
        if self.report.is_complete() {
            Exit::DONE
        } else {
            Exit::NO
        }
    }
}

fn line(item: &PruneItem, page: &Page) -> Text {
    let (style, word) = match &item.outcome {
        PruneOutcome::Planned => (Style::Notice, "would go:"),
        PruneOutcome::Done => (Style::Good, "gone:"),
        PruneOutcome::Kept(_) => (Style::Bad, "stays:"),
    };
    let path = item
        .path
        .as_ref()
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    let what = match item.kind {
        PruneKind::Directories => "directories of",
        PruneKind::Logs => "logs of",
        PruneKind::Record => "record of",
        PruneKind::Stray => "a directory that no row names,",
        PruneKind::History => "history rows:",
        PruneKind::Audit => "audit rows:",
    };
    let target = match (&item.reference, item.rows) {
        (Some(reference), _) => reference.clone(),
        (None, 0) => path,
        (None, rows) => rows.to_string(),
    };
    let since = match item.kind {
        PruneKind::History | PruneKind::Audit => format!("before {}", moment(item.since, page)),
        PruneKind::Stray => format!("unchanged since {}", moment(item.since, page)),
        PruneKind::Directories | PruneKind::Logs | PruneKind::Record => format!("ended {}", moment(item.since, page)),
    };
    let why = match &item.outcome {
        PruneOutcome::Kept(why) => format!(": {why}"),
        PruneOutcome::Planned | PruneOutcome::Done => String::new(),
    };
    let words = format!("{what} {target} ({since}){why}");
    Text::hanging(Text::styled(style, word).and(" "), 2, words, page)
}

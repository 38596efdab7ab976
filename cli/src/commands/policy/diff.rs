//! `policy diff`: what changes from one policy to another, and which live entities that would touch.

use runwarden_host::model::{ChangeSort, DescriptorChange, Prospect, diff};
use runwarden_host::verbs::{Touched, touched};
use serde_json::{Value, json};

use super::find::{self, Subject};
use super::limits::LimitArgs;
use crate::context::Context;
use crate::errors::Outcome;
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};

/// Show what changes from one policy to another
///
/// Everything that the two say of themselves is compared; what their functions answer is not (`policy replay` judges that).
/// Told, too: the live entities pinned to the first, by status, with those whose status the second does not know and those
/// that no way of it leads to an end. Ends with 0 when the two are equal, with 1 when they differ.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A kind (its active policy), NAME@V, a digest, or the path of a file
    #[arg(value_name = "A")]
    first: String,
    /// The same
    #[arg(value_name = "B")]
    second: String,
    #[command(flatten)]
    limits: LimitArgs,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy diff schedule_run@1 schedule_run@2
  runwarden policy diff play ./strict_play.wasm
  runwarden policy diff play ./strict_play.wasm --json | jq '.touched[] | select(.prospect != \"can_end\")'";

/// Two policies, what changes, and what it touches.
pub(crate) struct Compared {
    first: Subject,
    second: Subject,
    changes: Vec<DescriptorChange>,
    touched: Vec<Touched>,
}

/// Compares.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Compared> {
    let host = context.read_or_create()?;
    let first = find::one_of_several(&host, &args.first, &args.limits)?;
    let second = find::one_of_several(&host, &args.second, &args.limits)?;
    let (a, b) = (first.lifecycle()?, second.lifecycle()?);
    let mut changes = diff(a.descriptor(), b.descriptor());
    changes.extend(exports(&first, &second));
    if changes.is_empty() && first.digest != second.digest {
        changes.push(DescriptorChange {
            section: "component".to_owned(),
            sort: ChangeSort::Changed,
            what: "code".to_owned(),
            how: vec!["they say the same of themselves; their functions may not answer the same".to_owned()],
        });
    }
    let touched = if changes.is_empty() {
        Vec::new()
    } else {
        touched(&host, (&first.digest, a), b)?
    };
    Ok(Compared {
        first,
        second,
        changes,
        touched,
    })
}

/// Functions that only one of them has, or in another version.
fn exports(first: &Subject, second: &Subject) -> Vec<DescriptorChange> {
    let names = |subject: &Subject| -> Vec<String> {
        let exports = subject.inspected.exports.iter();
        exports
            .map(|export| format!("{}@{}", export.interface, export.version))
            .collect()
    };
    let (a, b) = (names(first), names(second));
    let only = |these: &[String], those: &[String], sort: ChangeSort| -> Vec<DescriptorChange> {
        let only = these.iter().filter(|name| !those.contains(name));
        only.map(|name| DescriptorChange {
            section: "exports".to_owned(),
            sort,
            what: name.clone(),
            how: Vec::new(),
        })
        .collect()
    };
    let mut changes = only(&a, &b, ChangeSort::Removed);
    changes.extend(only(&b, &a, ChangeSort::Added));
    changes
}

impl Report for Compared {
    fn json(&self) -> Value {
        let side = |subject: &Subject| {
            json!({
                "kind": subject.kind(),
                "name": subject.name(),
                "version": subject.version(),
                "digest": subject.digest,
            })
        };
        let touched = self.touched.iter().map(|touched| {
            json!({
                "status": touched.status,
                "count": touched.group.count,
                "examples": touched.group.examples,
                "prospect": word(touched.prospect),
                "loses_every_end": loses_every_end(touched),
            })
        });
        json!({
            "a": side(&self.first),
            "b": side(&self.second),
            "equal": self.changes.is_empty(),
            "changes": self.changes.iter().map(DescriptorChange::to_value).collect::<Vec<_>>(),
            "touched": touched.collect::<Vec<_>>(),
        })
    }

    fn text(&self, page: &Page) -> Text {
        let label = |subject: &Subject| format!("{}@{}", subject.name(), subject.version());
        let mut text = Text::styled(
            Style::Strong,
            format!("{} -> {}", label(&self.first), label(&self.second)),
        );
        if self.changes.is_empty() {
            return text.and("  no difference");
        }
        let mut section = "";
        for change in &self.changes {
            if change.section != section {
                section = &change.section;
                text.line(Text::new());
                text.line(Text::styled(Style::Strong, section.replace('_', " ")));
            }
            text.line(line(change, page));
        }
        text.line(Text::new());
        text.line(Text::styled(Style::Strong, "live entities"));
        if self.touched.is_empty() {
            text.line(Text::of(format!("  none is pinned to {}", label(&self.first))));
        }
        for touched in &self.touched {
            let words = format!(
                "{} {}{} ({})",
                touched.group.count,
                touched.status,
                meaning(touched),
                touched.group.examples.join(", ")
            );
            text.line(Text::hanging(Text::of("  "), 4, words, page));
        }
        text
    }

    fn exit(&self) -> Exit {
        if self.changes.is_empty() { Exit::DONE } else { Exit::NO }
    }
}

fn line(change: &DescriptorChange, page: &Page) -> Text {
    let (mark, style) = match change.sort {
        ChangeSort::Added => ("+", Style::Good),
        ChangeSort::Removed => ("-", Style::Bad),
        ChangeSort::Changed => ("~", Style::Notice),
    };
    let how = if change.how.is_empty() {
        String::new()
    } else {
        format!(": {}", change.how.join("; "))
    };
    let mark = Text::of("  ").and_styled(style, mark).and(" ");
    Text::hanging(mark, 6, format!("{}{how}", change.what), page)
}

/// Whether they could end, and could no more.
fn loses_every_end(touched: &Touched) -> bool {
    touched.could_end && matches!(touched.prospect, Prospect::Stranded | Prospect::Unknown)
}

const fn word(prospect: Prospect) -> &'static str {
    match prospect {
        Prospect::CanEnd => "can_end",
        Prospect::Stranded => "stranded",
        Prospect::Unknown => "unknown",
        Prospect::Ended => "ended",
    }
}

fn meaning(touched: &Touched) -> &'static str {
    match touched.prospect {
        Prospect::CanEnd => "",
        Prospect::Stranded if touched.could_end => ": every way to an end would be lost",
        Prospect::Stranded => ": no way leads to an end, nor did one",
        Prospect::Unknown => ": the status would be unknown",
        Prospect::Ended => ": the status would be an end",
    }
}

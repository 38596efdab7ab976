//! A policy written as a table: from the text of a `lifecycle.toml` to a descriptor.
//!
//! Everything that is wrong with a text is told at once, with its line and column: first what cannot be read and names
//! that nothing bears, then, of a text that can be read, what [`super::check`] finds. What needs code (guards, parameters,
//! what a function may read) is refused with the reason: a table has none.

mod graph;
mod names;
mod problem;
mod rules;
mod table;
#[cfg(test)]
mod tests;
mod verdicts;
mod vocabulary;
mod work;

pub use problem::Problem;

use graph::{edges, statuses};
use names::Names;
use problem::{Reading, found};
use rules::{kill, migrations, retry, thresholds};
use table::Table;
use toml::de::DeTable;
use verdicts::verdicts;
use vocabulary::{codes, fields};
use work::{execution, lease};

use super::{Descriptor, Reads, SameStatus, Severity, check};

/// What a text says, and what is doubtful about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Authored {
    /// The policy.
    pub descriptor: Descriptor,
    /// Findings that are no errors.
    pub warnings: Vec<Problem>,
}

/// Reads a policy that is written as a table.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text; what is merely doubtful is among it.
pub fn author(text: &str) -> Result<Authored, Vec<Problem>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut reading = Reading::new(text);
    for error in errors {
        reading.unreadable(error.span().unwrap_or_default(), error.message());
    }
    reading.stop_at_problems()?;
    let descriptor = descriptor(&mut reading, document.get_ref());
    reading.stop_at_problems()?;
    let problems = found(&reading, &check(&descriptor));
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(problems);
    }
    Ok(Authored {
        descriptor,
        warnings: problems,
    })
}

fn descriptor(reading: &mut Reading<'_>, document: &DeTable<'_>) -> Descriptor {
    let mut root = Table::root(document);
    let kind = root.needed_text(reading, "kind");
    let name = root.text_or(reading, "name", &kind);
    let kind = kind.text;
    let version = root.needed_text(reading, "version").text;
    let summary = root.needed_text(reading, "summary").text;
    let fields = fields(reading, &mut root);
    let reason_codes = codes(reading, &mut root);
    let statuses = statuses(reading, &mut root, &reason_codes);
    let names = Names::new(&statuses, &fields, &reason_codes);
    let descriptor = Descriptor {
        edges: edges(reading, &mut root, &names),
        same_status: root
            .word(reading, "same_status", &["append", "reject"])
            .and_then(|word| SameStatus::from_word(&word))
            .unwrap_or(SameStatus::Append),
        emits_events: root.flag(reading, "emits_events"),
        measures_end: root.flag(reading, "measures_end"),
        execution: execution(reading, &mut root, &names),
        verdicts: verdicts(reading, &mut root, &names),
        kill: kill(reading, &mut root, &names),
        lease: lease(reading, &mut root, &names),
        delivery: None,
        retry: retry(reading, &mut root),
        health: thresholds(reading, &mut root),
        parameters: Vec::new(),
        reads: Reads::default(),
        migrations: migrations(reading, &mut root, &names),
        ext: Vec::new(),
        kind,
        name,
        version,
        summary,
        statuses,
        fields,
        reason_codes,
    };
    for (key, why) in REFUSED {
        root.refuse(reading, key, why);
    }
    root.finish(reading);
    descriptor
}

/// Parts of a descriptor that a table cannot have, and why.
const REFUSED: [(&str, &str); 3] = [
    ("parameter", "a parameter is read by a function, and a table has none"),
    ("reads", "what functions may see is for functions, and a table has none"),
    ("delivery", "how notices are delivered is not written as a table"),
];

//! Live processes of runs, as `show` and `ls` tell them.

use runwarden_host::Host;
use runwarden_host::process::Living;
use runwarden_host::verbs::{EntityView, Seen, living, living_json};
use serde_json::Value;

use super::entity::quoted;
use crate::errors::Outcome;
use crate::output::{Style, Text, stems};

/// What was seen of the processes of an entity; none when nothing of it is running as far as the inventory knows.
///
/// # Errors
/// The list of processes cannot be read.
pub(super) fn seen_of(host: &Host, view: &EntityView) -> Outcome<Option<Seen>> {
    match &view.runtime {
        Some(runtime) if !runtime.is_stopped() => Ok(Some(living(host, runtime)?)),
        Some(_) | None => Ok(None),
    }
}

/// What was seen, as the member `processes` of an entity's document: a list, or null when nobody can see.
pub(super) fn seen_json(seen: Option<&Seen>) -> Value {
    match seen {
        None => Value::Array(Vec::new()),
        Some(Seen::Processes(processes)) => processes.iter().map(living_json).collect(),
        Some(Seen::ShimGone | Seen::Unknown) => Value::Null,
    }
}

/// Adds what was seen to an entity's document.
pub(super) fn add_seen(document: &mut Value, seen: Option<&Seen>) {
    if let Some(document) = document.as_object_mut() {
        document.insert("processes".to_owned(), seen_json(seen));
    }
}

/// A line for each process, with the lines that lead to it; or the one that says why there is none.
pub(super) fn lines(seen: &Seen) -> Vec<Text> {
    match seen {
        Seen::Processes(processes) => {
            let depths: Vec<usize> = processes.iter().map(|one| one.depth).collect();
            let stems = stems(&depths).into_iter();
            stems
                .zip(processes)
                .map(|(stem, one)| Text::of(stem).with(numbered(one)).and(" ").with(words(one)))
                .collect()
        }
        Seen::ShimGone => vec![Text::styled(
            Style::Notice,
            "its shim is gone: what is left cannot be listed",
        )],
        Seen::Unknown => vec![Text::styled(Style::Dim, "its processes cannot be seen from here")],
    }
}

/// The number of a process.
pub(super) fn numbered(one: &Living) -> Text {
    Text::styled(Style::Dim, one.pid.to_string())
}

/// The command of a process, and what is unusual about it.
pub(super) fn words(one: &Living) -> Text {
    if let Some(run) = &one.run {
        return Text::styled(Style::Strong, run).and_styled(Style::Dim, " a run of its own: not reached");
    }
    let spoken: Vec<String> = one
        .command
        .iter()
        .map(|word| quoted(&String::from_utf8_lossy(word)))
        .collect();
    let text = Text::of(if spoken.is_empty() {
        format!("[{}]", one.name)
    } else {
        spoken.join(" ")
    });
    match one.state {
        'T' | 't' => text.and_styled(Style::Notice, " (stopped)"),
        'D' => text.and_styled(Style::Notice, " (uninterruptible)"),
        _ => text,
    }
}

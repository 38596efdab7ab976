//! Rules that stand for themselves: what a kill writes, when is tried again, how quiet is too quiet, who is carried over.

use super::names::Names;
use super::problem::Reading;
use super::table::{Table, string};
use crate::model::{Cascade, HealthThreshold, KillRow, Migration, RetrySchedule, StatusMapping};

/// `[[kill]]`: from each status of `from` to `to`, `cascade` (recursive, which is what is meant without it, or always),
/// and the codes `term`, `force` and `stale`.
pub(super) fn kill(reading: &mut Reading<'_>, root: &mut Table<'_>, names: &Names) -> Vec<KillRow> {
    let mut rows = Vec::new();
    for mut table in root.tables(reading, "kill") {
        table.is_at(reading, format!("kill[{}]", rows.len()));
        let from = table.needed_words(reading, "from");
        let to = table.needed(reading, "to");
        let [term, force, stale] = ["term", "force", "stale"].map(|key| {
            let code = table.needed(reading, key);
            names.code(reading, code)
        });
        let cascades = [Cascade::Recursive, Cascade::Always].map(Cascade::word);
        let cascade = table.word(reading, "cascade", &cascades);
        rows.push(KillRow {
            killable: names.statuses(reading, from),
            goes_to: names.status(reading, to),
            cascade: cascade
                .and_then(|word| Cascade::from_word(&word))
                .unwrap_or(Cascade::Recursive),
            term_code: term,
            force_code: force,
            stale_code: stale,
            ext: Vec::new(),
        });
        table.finish(reading);
    }
    rows
}

/// `[retry]`: `base`, `cap`, `attempts`, and `jitter_percent`, which is none without it.
pub(super) fn retry(reading: &mut Reading<'_>, root: &mut Table<'_>) -> Option<RetrySchedule> {
    let mut table = root.table(reading, "retry")?;
    table.is_at(reading, "retry");
    let schedule = RetrySchedule {
        base: table.needed_duration(reading, "base"),
        cap: table.needed_duration(reading, "cap"),
        attempts: table.needed_integer(reading, "attempts"),
        jitter_percent: table.integer(reading, "jitter_percent").unwrap_or(0),
        ext: Vec::new(),
    };
    table.finish(reading);
    Some(schedule)
}

/// `[[health]]`: `idle` and `stale` of a `spawn_kind`, or of every other without it.
pub(super) fn thresholds(reading: &mut Reading<'_>, root: &mut Table<'_>) -> Vec<HealthThreshold> {
    let mut rows = Vec::new();
    for mut table in root.tables(reading, "health") {
        table.is_at(reading, format!("health[{}]", rows.len()));
        rows.push(HealthThreshold {
            spawn_kind: table.text_or_empty(reading, "spawn_kind"),
            idle: table.needed_duration(reading, "idle"),
            stale: table.needed_duration(reading, "stale"),
        });
        table.finish(reading);
    }
    rows
}

/// `[[migrate]]`: entities under version `from` (or its beginning) of this policy, or of the one with this `name`; their
/// `statuses` whose names differ, as `old = "new"`.
pub(super) fn migrations(reading: &mut Reading<'_>, root: &mut Table<'_>, names: &Names) -> Vec<Migration> {
    let mut rows = Vec::new();
    for mut table in root.tables(reading, "migrate") {
        let place = format!("migrations[{}]", rows.len());
        let from = table.needed(reading, "from");
        table.is_at(reading, &place);
        reading.place(format!("{place}.from_version"), from.at);
        let mut statuses = Vec::new();
        let pairs = table
            .table(reading, "statuses")
            .map_or_else(Vec::new, |pairs| pairs.entries());
        for (old, value) in pairs {
            reading.place(format!("{place}.statuses[{}]", statuses.len()), old.at);
            if let Some(new) = string(reading, &old.text, value) {
                let to = names.status(reading, new);
                statuses.push(StatusMapping { from: old.text, to });
            }
        }
        rows.push(Migration {
            from_name: table.text_or_empty(reading, "name"),
            from_version: from.text,
            statuses,
            ext: Vec::new(),
        });
        table.finish(reading);
    }
    rows
}

//! Statuses and the moves between them.

use toml::de::DeValue;

use super::names::{Names, declared};
use super::problem::Reading;
use super::table::{Table, Value, one_of, string};
use crate::model::{ACTOR_KINDS, Edge, ReasonCode, Status};

/// `[[status]]`: `name`, `summary`, `initial` (true, or the reason code of a creation), `terminal`, `success` (which is
/// terminal too), `announced`.
pub(super) fn statuses(reading: &mut Reading<'_>, root: &mut Table<'_>, codes: &[ReasonCode]) -> Vec<Status> {
    let codes: Vec<String> = codes.iter().map(|code| code.code.clone()).collect();
    let mut statuses = Vec::new();
    for mut table in root.tables(reading, "status") {
        let name = table.needed(reading, "name");
        reading.place(format!("statuses[{}]", statuses.len()), name.at);
        reading.place(format!("statuses.{}", name.text), name.at);
        let (initial, creation_code) = match table.get("initial") {
            None => (false, None),
            Some(value) => creation(reading, value, &codes),
        };
        let success = table.flag(reading, "success");
        statuses.push(Status {
            name: name.text,
            summary: table.text_or_empty(reading, "summary"),
            initial,
            creation_code,
            terminal: table.flag(reading, "terminal") || success,
            success,
            announced: table.flag(reading, "announced"),
            ext: Vec::new(),
        });
        table.finish(reading);
    }
    statuses
}

/// Whether an entity may be created in a status, and the code of its creation.
fn creation(reading: &mut Reading<'_>, value: &Value<'_>, codes: &[String]) -> (bool, Option<String>) {
    match value.get_ref() {
        DeValue::Boolean(initial) => (*initial, None),
        DeValue::String(_) => {
            let word = string(reading, "initial", value);
            let code = word.map(|word| declared(reading, word, "reason code", codes));
            (true, code)
        }
        _ => {
            let message = "`initial` is true, or the reason code of a creation";
            reading.problem(value.span().start, message);
            (false, None)
        }
    }
}

/// `[[edge]]`: from each status of `from` to each of `to`, with `actors`, `requires` (fields that the command patches) and
/// `guards` (fields that it guards).
pub(super) fn edges(reading: &mut Reading<'_>, root: &mut Table<'_>, names: &Names) -> Vec<Edge> {
    let mut edges = Vec::new();
    for mut table in root.tables(reading, "edge") {
        let from = table.needed_words(reading, "from");
        let from = names.statuses(reading, from);
        let to = table.needed_words(reading, "to");
        let to = names.statuses(reading, to);
        let actors = table.words(reading, "actors").into_iter();
        let actors: Vec<String> = actors.map(|word| one_of(reading, word, &ACTOR_KINDS)).collect();
        let required_patch = table.words(reading, "requires");
        let required_patch = names.fields(reading, required_patch);
        let required_guards = table.words(reading, "guards");
        let required_guards = names.fields(reading, required_guards);
        table.refuse(reading, "guarded", "a guard is a function, and a table has none");
        for (from, to) in from.iter().flat_map(|from| to.iter().map(move |to| (from, to))) {
            reading.place(format!("edges[{}]", edges.len()), table.at);
            edges.push(Edge {
                from: from.clone(),
                to: to.clone(),
                actors: actors.clone(),
                required_patch: required_patch.clone(),
                required_guards: required_guards.clone(),
                guarded: false,
                ext: Vec::new(),
            });
        }
        table.finish(reading);
    }
    edges
}

//! What a table declares beside its statuses: fields and reason codes.

use super::names::did_you_mean;
use super::problem::Reading;
use super::table::{Table, Value, Word, string};
use crate::model::{Field, FieldKind, ReasonCode};

/// `[fields]`: `words = "integer"`, or `words = { kind = "integer", summary = "…" }`.
pub(super) fn fields(reading: &mut Reading<'_>, root: &mut Table<'_>) -> Vec<Field> {
    let Some(mut table) = root.table(reading, "fields") else {
        return Vec::new();
    };
    table.is_at(reading, "fields");
    let mut fields = Vec::new();
    for (name, value) in table.entries() {
        reading.place(format!("fields[{}]", fields.len()), name.at);
        reading.place(format!("fields.{}", name.text), name.at);
        fields.push(field(reading, name.text, value));
    }
    fields
}

fn field(reading: &mut Reading<'_>, name: String, value: &Value<'_>) -> Field {
    let (kind, summary) = match Table::of_value(format!("the field `{name}`"), value) {
        Some(mut table) => {
            let kind = table.needed(reading, "kind");
            let summary = table.text_or_empty(reading, "summary");
            table.finish(reading);
            (Some(kind), summary)
        }
        None => {
            let kind = value.get_ref().as_str().map(|kind| Word::of(kind, value.span().start));
            if kind.is_none() {
                let message = format!("the field `{name}` is a kind, or {{ kind = \"…\", summary = \"…\" }}");
                reading.problem(value.span().start, message);
            }
            (kind, String::new())
        }
    };
    Field {
        kind: kind.map_or(FieldKind::Json, |word| field_kind(reading, &word)),
        name,
        summary,
        ext: Vec::new(),
    }
}

fn field_kind(reading: &mut Reading<'_>, word: &Word) -> FieldKind {
    let known = FieldKind::ALL.map(FieldKind::word);
    FieldKind::from_word(&word.text).unwrap_or_else(|| {
        let meant = did_you_mean(&word.text, known);
        let message = format!(
            "`{}` is no kind of field: one of {}{meant}",
            word.text,
            known.join(", ")
        );
        reading.problem(word.at, message);
        FieldKind::Json
    })
}

/// `[codes]`: `post.draft.created = "Was begun."`, with or without quotes around the code.
pub(super) fn codes(reading: &mut Reading<'_>, root: &mut Table<'_>) -> Vec<ReasonCode> {
    let Some(table) = root.table(reading, "codes") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    gather(&table, "", &mut found);
    // A code without quotes is a table in a table: they are put into the order of the text.
    found.sort_by_key(|(code, _)| code.at);
    let mut codes = Vec::new();
    for (code, value) in found {
        reading.place(format!("reason_codes[{}]", codes.len()), code.at);
        reading.place(format!("reason_codes.{}", code.text), code.at);
        codes.push(ReasonCode {
            summary: string(reading, &code.text, value).map_or_else(String::new, |word| word.text),
            code: code.text,
        });
    }
    codes
}

fn gather<'a>(table: &Table<'a>, prefix: &str, found: &mut Vec<(Word, &'a Value<'a>)>) {
    for (key, value) in table.entries() {
        let code = format!("{prefix}{}", key.text);
        match Table::of_value(&code, value) {
            Some(inner) => gather(&inner, &format!("{code}."), found),
            None => found.push((Word::of(&code, key.at), value)),
        }
    }
}

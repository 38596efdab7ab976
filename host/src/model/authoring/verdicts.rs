//! What an ending means.

use toml::de::DeValue;

use super::names::{Names, did_you_mean};
use super::problem::Reading;
use super::table::{Table, Value, integer, one_of};
use super::work::needed_outcome;
use crate::model::{Cause, Evidence, VerdictRow, parse_signal};

/// What stands for every exit code, or every signal.
const ANY: &str = "any";

/// Exit codes have 32 bits.
const EXIT_CODES: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);

/// `[[verdict]]`: `exit` (a code, a range such as "1..9", or "any"), `signals` (names, numbers, or "any"), `causes`,
/// `evidence`, and the `outcome`. The first that matches decides; the last one has no conditions.
pub(super) fn verdicts(reading: &mut Reading<'_>, root: &mut Table<'_>, names: &Names) -> Vec<VerdictRow> {
    let causes = Cause::ALL.map(Cause::word);
    let evidence = Evidence::ASKED.map(|evidence| evidence.word().unwrap_or_default());
    let mut rows = Vec::new();
    for mut table in root.tables(reading, "verdict") {
        // What is wrong with all of them is wrong with the last one.
        reading.place("verdicts", table.at);
        table.is_at(reading, format!("verdicts[{}]", rows.len()));
        let exit_codes = table.get("exit").and_then(|value| exit_codes(reading, value));
        let signals = table.get("signals").map(|value| signals(reading, value));
        let words = table.words(reading, "causes").into_iter();
        rows.push(VerdictRow {
            exit_codes,
            signals,
            causes: words.map(|word| one_of(reading, word, &causes)).collect(),
            evidence: table.word(reading, "evidence", &evidence),
            outcome: needed_outcome(reading, &mut table, names, "outcome"),
            ext: Vec::new(),
        });
        table.finish(reading);
    }
    rows
}

fn exit_codes(reading: &mut Reading<'_>, value: &Value<'_>) -> Option<(i64, i64)> {
    let range = match value.get_ref() {
        DeValue::Integer(_) => integer(value).map(|code| (code, code)),
        DeValue::String(words) if words == ANY => Some(EXIT_CODES),
        DeValue::String(words) => words
            .split_once("..")
            .and_then(|(first, last)| Some((first.trim().parse().ok()?, last.trim().parse().ok()?))),
        _ => None,
    };
    if range.is_none() {
        let message = "`exit` is an exit code, a range such as \"1..9\" (both ends belong to it), or \"any\"";
        reading.problem(value.span().start, message);
    }
    range
}

fn signals(reading: &mut Reading<'_>, value: &Value<'_>) -> Vec<i64> {
    let list = match value.get_ref() {
        DeValue::String(word) if word == ANY => return Vec::new(),
        DeValue::Array(list) => list.iter().collect(),
        _ => vec![value],
    };
    let mut signals = Vec::new();
    for value in list {
        let word = match value.get_ref() {
            DeValue::String(word) => word.clone().into_owned(),
            _ => integer(value).map_or_else(String::new, |number| number.to_string()),
        };
        match parse_signal(&word) {
            Ok(signal) => signals.push(i64::from(signal)),
            Err(why) => {
                let meant = did_you_mean(&word, [ANY]);
                reading.problem(
                    value.span().start,
                    format!("`signals`: {why}; \"any\" is every signal{meant}"),
                );
            }
        }
    }
    signals
}

//! One table of a case file: its keys are taken out one by one, and whatever is wrong is kept with its line.

use std::ops::Range;

use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

use crate::model::{Actor, DurationMs, Fields, Tags, Timestamp, nearest, parse_duration};

/// Something wrong in a case file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its line, from 1.
    pub line: usize,
    /// What.
    pub message: String,
}

/// Where the lines of a text begin.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(after_breaks).collect())
    }

    /// The line, from 1, in which a span begins.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        self.0.partition_point(|begin| *begin <= span.start)
    }
}

/// A table on its way out of the file.
pub(super) struct Row<'a> {
    /// What it is, in messages: `[[case]]`.
    what: &'static str,
    table: &'a DeTable<'a>,
    lines: &'a Lines,
    line: usize,
    known: Vec<&'static str>,
    problems: Vec<Problem>,
}

impl<'a> Row<'a> {
    pub(super) const fn new(what: &'static str, table: &'a DeTable<'a>, lines: &'a Lines, line: usize) -> Self {
        Self {
            what,
            table,
            lines,
            line,
            known: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// The line it begins in.
    pub(super) const fn line(&self) -> usize {
        self.line
    }

    /// A value by its key, with its line.
    fn value(&mut self, key: &'static str) -> Option<(&'a DeValue<'a>, usize)> {
        self.known.push(key);
        let (name, value) = self.table.iter().find(|(name, _)| name.get_ref() == key)?;
        Some((value.get_ref(), self.lines.line(&name.span())))
    }

    /// A value that `read` makes something of, or says what it takes.
    fn read<T>(
        &mut self,
        key: &'static str,
        takes: &str,
        read: impl FnOnce(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<T> {
        let (value, line) = self.value(key)?;
        let read = read(value);
        if read.is_none() {
            self.problem(line, format!("`{key}` takes {takes}"));
        }
        read
    }

    fn problem(&mut self, line: usize, message: String) {
        let message = format!("{}: {message}", self.what);
        self.problems.push(Problem { line, message });
    }

    /// Something wrong with the row as a whole.
    pub(super) fn wrong(&mut self, message: impl Into<String>) {
        self.problem(self.line, message.into());
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// A text that must be there.
    pub(super) fn required(&mut self, key: &'static str) -> String {
        let is_there = self.table.iter().any(|(name, _)| name.get_ref() == key);
        let text = self.text(key);
        if !is_there {
            self.wrong(format!("`{key}` is missing"));
        }
        text.unwrap_or_default()
    }

    /// One of some words; none when it is not given, and a problem when it is no such word.
    pub(super) fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
        let takes = format!("one of {}", words.join(", "));
        self.read(key, &takes, |value| {
            let given = value.as_str()?;
            words.iter().copied().find(|word| *word == given)
        })
    }

    pub(super) fn integer(&mut self, key: &'static str) -> Option<i64> {
        self.read(key, "a whole number", |value| json(value).as_i64())
    }

    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, "true or false", DeValue::as_bool)
    }

    pub(super) fn duration(&mut self, key: &'static str) -> Option<DurationMs> {
        self.read(key, "a length of time such as \"90s\"", |value| {
            parse_duration(value.as_str()?).ok()
        })
    }

    pub(super) fn moment(&mut self, key: &'static str) -> Option<Timestamp> {
        self.read(key, "a time such as \"2026-01-01T00:00:00Z\"", |value| {
            Timestamp::parse_rfc3339(json(value).as_str()?)
        })
    }

    /// `KIND` or `KIND:ID`; whether it is one is judged with the command that carries it.
    pub(super) fn actor(&mut self, key: &'static str) -> Option<Actor> {
        let word = self.text(key)?;
        let (kind, id) = word.split_once(':').unwrap_or((&word, "cases"));
        let actor = Actor::new(kind, id);
        if let Some(why) = actor.problem() {
            self.wrong(format!("`{key}`: {why}"));
        }
        Some(actor)
    }

    pub(super) fn fields(&mut self, key: &'static str) -> Fields {
        let read = self.read(key, "a table", |value| value.as_table().map(object));
        read.unwrap_or_default()
    }

    pub(super) fn tags(&mut self, key: &'static str) -> Tags {
        let read = self.read(key, "a table of strings", |value| {
            let pairs = value.as_table()?.iter();
            let texts =
                pairs.map(|(name, value)| Some((name.get_ref().to_string(), value.get_ref().as_str()?.to_owned())));
            texts.collect::<Option<Tags>>()
        });
        read.unwrap_or_default()
    }

    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.read(key, "a list of strings", |value| {
            let values = value.as_array()?.iter();
            values
                .map(|value| value.get_ref().as_str().map(str::to_owned))
                .collect()
        })
    }

    /// The tables of a list, each read by `read`.
    pub(super) fn rows<T>(
        &mut self,
        key: &'static str,
        what: &'static str,
        read: impl Fn(&mut Row<'a>) -> T,
    ) -> Vec<T> {
        let Some(rows) = self.read(key, "a list of tables", |value| {
            let values = value.as_array()?.iter();
            values
                .map(|value| Some((value.get_ref().as_table()?, value.span())))
                .collect::<Option<Vec<_>>>()
        }) else {
            return Vec::new();
        };
        let mut all = Vec::with_capacity(rows.len());
        for (table, span) in rows {
            let mut row = Row::new(what, table, self.lines, self.lines.line(&span));
            all.push(read(&mut row));
            self.problems.append(&mut row.finish());
        }
        all
    }

    /// Everything that is wrong with it, keys that nobody asked for too.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        let table = self.table;
        let unknown = table
            .iter()
            .filter(|(name, _)| !self.known.iter().any(|known| name.get_ref() == *known));
        let unknown: Vec<(String, usize)> = unknown
            .map(|(name, _)| (name.get_ref().to_string(), self.lines.line(&name.span())))
            .collect();
        for (name, line) in unknown {
            let message = match nearest(&name, self.known.iter().copied()) {
                Some(meant) => format!("unknown key `{name}`: did you mean `{meant}`?"),
                None => format!("unknown key `{name}`: there are {}", self.known.join(", ")),
            };
            self.problem(line, message);
        }
        self.problems
    }
}

/// A table as JSON; a date or time is its text.
pub(super) fn object(table: &DeTable<'_>) -> Fields {
    let pairs = table.iter();
    pairs
        .map(|(name, value)| (name.get_ref().to_string(), json(value.get_ref())))
        .collect::<Map<_, _>>()
}

/// A value as JSON; what JSON has not (a number that is none, or too large) is null, which no key takes.
fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => {
            let float = number.as_str().parse().ok().and_then(Number::from_f64);
            float.map_or(Value::Null, Value::Number)
        }
        DeValue::Boolean(truth) => Value::from(*truth),
        DeValue::Datetime(moment) => Value::from(moment.to_string()),
        DeValue::Array(values) => values.iter().map(|value| json(value.get_ref())).collect(),
        DeValue::Table(table) => Value::Object(object(table)),
    }
}

//! One table of a text: its keys are read by type, and everything that is wrong with them is kept.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::names::did_you_mean;
use super::problem::Reading;
use crate::model::{DurationMs, parse_duration};

/// A word of the text, and the byte at which it stands.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) at: usize,
}

impl Word {
    pub(super) fn of(text: &str, at: usize) -> Self {
        Self {
            text: text.to_owned(),
            at,
        }
    }
}

/// A table that is being read.
pub(super) struct Table<'a> {
    /// What it is called in messages.
    what: String,
    /// The byte at which it stands.
    pub(super) at: usize,
    /// What the descriptor calls it.
    place: String,
    entries: &'a DeTable<'a>,
    known: Vec<&'static str>,
}

/// A value that is being read.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

impl<'a> Table<'a> {
    /// The table that is the whole text.
    pub(super) fn root(entries: &'a DeTable<'a>) -> Self {
        Self::new("the file", 0, entries)
    }

    fn new(what: impl Into<String>, at: usize, entries: &'a DeTable<'a>) -> Self {
        Self {
            what: what.into(),
            at,
            place: String::new(),
            entries,
            known: Vec::new(),
        }
    }

    /// A table that is a value.
    pub(super) fn of_value(what: impl Into<String>, value: &'a Value<'a>) -> Option<Self> {
        let entries = value.get_ref().as_table()?;
        Some(Self::new(what, value.span().start, entries))
    }

    /// Says what part of the descriptor it is.
    pub(super) fn is_at(&mut self, reading: &mut Reading<'_>, place: impl Into<String>) {
        self.place = place.into();
        reading.place(self.place.clone(), self.at);
    }

    /// Says that a key is what the descriptor calls the same.
    pub(super) fn place_of(&self, reading: &mut Reading<'_>, key: &str, value: &Value<'_>) {
        reading.place(format!("{}.{key}", self.place), value.span().start);
    }

    /// The value of a key.
    pub(super) fn get(&mut self, key: &'static str) -> Option<&'a Value<'a>> {
        self.known.push(key);
        self.entries.get(key)
    }

    /// Every key with its value, in the order of the text. No key is unknown then.
    pub(super) fn entries(&self) -> Vec<(Word, &'a Value<'a>)> {
        let mut entries: Vec<(Word, &Value<'_>)> = self
            .entries
            .iter()
            .map(|(key, value)| (Word::of(key.get_ref(), key.span().start), value))
            .collect();
        entries.sort_by_key(|(key, _)| key.at);
        entries
    }

    /// Keeps a problem when a key is missing.
    pub(super) fn require(&self, reading: &mut Reading<'_>, key: &str) {
        if !self.entries.contains_key(key) {
            reading.problem(self.at, format!("{} needs `{key}`", self.what));
        }
    }

    /// A string.
    pub(super) fn text(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Option<Word> {
        let value = self.get(key)?;
        string(reading, key, value)
    }

    /// A string that must be there.
    pub(super) fn needed(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Word {
        self.require(reading, key);
        self.text(reading, key).unwrap_or_else(|| Word::of("", self.at))
    }

    /// A string of the whole file, which must be there; the descriptor calls it the same.
    pub(super) fn needed_text(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Word {
        let word = self.needed(reading, key);
        reading.place(key, word.at);
        word
    }

    /// A text of the whole file, or another that stands for it; the descriptor calls it the same.
    pub(super) fn text_or(&mut self, reading: &mut Reading<'_>, key: &'static str, other: &Word) -> String {
        let word = self.text(reading, key).unwrap_or_else(|| other.clone());
        reading.place(key, word.at);
        word.text
    }

    /// A text that may be missing.
    pub(super) fn text_or_empty(&mut self, reading: &mut Reading<'_>, key: &'static str) -> String {
        self.text(reading, key).map_or_else(String::new, |word| word.text)
    }

    /// One of a few words.
    pub(super) fn word(&mut self, reading: &mut Reading<'_>, key: &'static str, known: &[&str]) -> Option<String> {
        let word = self.text(reading, key)?;
        Some(one_of(reading, word, known))
    }

    /// A string or a list of strings; empty when it is missing.
    pub(super) fn words(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Vec<Word> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        match value.get_ref() {
            DeValue::Array(list) => list.iter().filter_map(|value| string(reading, key, value)).collect(),
            DeValue::String(text) => vec![Word::of(text, value.span().start)],
            _ => {
                reading.problem(value.span().start, format!("`{key}` is a string, or a list of strings"));
                Vec::new()
            }
        }
    }

    /// Strings of which there must be one or more.
    pub(super) fn needed_words(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Vec<Word> {
        self.require(reading, key);
        self.words(reading, key)
    }

    /// True or false; false when it is missing.
    pub(super) fn flag(&mut self, reading: &mut Reading<'_>, key: &'static str) -> bool {
        let Some(value) = self.get(key) else { return false };
        value.get_ref().as_bool().unwrap_or_else(|| {
            reading.problem(value.span().start, format!("`{key}` is true or false"));
            false
        })
    }

    /// A whole number.
    pub(super) fn integer(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Option<i64> {
        let value = self.get(key)?;
        self.place_of(reading, key, value);
        let number = integer(value);
        if number.is_none() {
            reading.problem(value.span().start, format!("`{key}` is a whole number"));
        }
        number
    }

    /// A length of time: words such as `5m`, or a number of seconds.
    pub(super) fn duration(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Option<DurationMs> {
        let value = self.get(key)?;
        self.place_of(reading, key, value);
        let words = match value.get_ref() {
            DeValue::String(words) => words.clone().into_owned(),
            DeValue::Integer(_) => integer(value).map_or_else(String::new, |seconds| seconds.to_string()),
            _ => String::new(),
        };
        match parse_duration(&words) {
            Ok(length) => Some(length),
            Err(form) => {
                reading.problem(value.span().start, format!("`{key}`: {form}"));
                None
            }
        }
    }

    /// A length of time that must be there.
    pub(super) fn needed_duration(&mut self, reading: &mut Reading<'_>, key: &'static str) -> DurationMs {
        self.require(reading, key);
        self.duration(reading, key).unwrap_or(DurationMs::from_ms(0))
    }

    /// A whole number that must be there.
    pub(super) fn needed_integer(&mut self, reading: &mut Reading<'_>, key: &'static str) -> i64 {
        self.require(reading, key);
        self.integer(reading, key).unwrap_or_default()
    }

    /// A table: `[key]`.
    pub(super) fn table(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Option<Self> {
        let value = self.get(key)?;
        let table = Self::of_value(format!("[{key}]"), value);
        if table.is_none() {
            reading.problem(value.span().start, format!("`{key}` is a table: write [{key}]"));
        }
        table
    }

    /// Tables of which there may be several: `[[key]]`.
    pub(super) fn tables(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Vec<Self> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let list = value.get_ref().as_array().into_iter().flat_map(|list| list.iter());
        let tables: Option<Vec<Self>> = list.map(|value| Self::of_value(format!("[[{key}]]"), value)).collect();
        match tables {
            Some(tables) if value.get_ref().is_array() => tables,
            _ => {
                let message = format!("there may be several of `{key}`: write [[{key}]] above each");
                reading.problem(value.span().start, message);
                Vec::new()
            }
        }
    }

    /// Refuses a key that means something elsewhere.
    pub(super) fn refuse(&mut self, reading: &mut Reading<'_>, key: &'static str, why: &str) {
        self.known.push(key);
        if let Some((key, _)) = self.entries.get_key_value(key) {
            let hint = "`runwarden policy new NAME --lang rust` begins a policy with code";
            let message = format!("`{}` cannot be had here: {why}; {hint}", key.get_ref());
            reading.problem(key.span().start, message);
        }
    }

    /// Keeps a problem for every key that nobody asked for.
    pub(super) fn finish(self, reading: &mut Reading<'_>) {
        for (key, _) in self.entries() {
            if self.known.contains(&key.text.as_str()) {
                continue;
            }
            let meant = did_you_mean(&key.text, self.known.iter().copied());
            reading.problem(key.at, format!("`{}` is no key of {}{meant}", key.text, self.what));
        }
    }
}

/// One of a few words; another one is told, and kept.
pub(super) fn one_of(reading: &mut Reading<'_>, word: Word, known: &[&str]) -> String {
    if !known.contains(&word.text.as_str()) {
        let meant = did_you_mean(&word.text, known.iter().copied());
        let message = format!("`{}` is none of {}{meant}", word.text, known.join(", "));
        reading.problem(word.at, message);
    }
    word.text
}

/// A value that is a string.
pub(super) fn string(reading: &mut Reading<'_>, key: &str, value: &Value<'_>) -> Option<Word> {
    let at = value.span().start;
    let text = value.get_ref().as_str();
    if text.is_none() {
        reading.problem(at, format!("`{key}` is a string"));
    }
    text.map(|text| Word::of(text, at))
}

/// A value that is a whole number of 64 bits.
pub(super) fn integer(value: &Value<'_>) -> Option<i64> {
    let digits = value.get_ref().as_integer()?;
    i64::from_str_radix(digits.as_str(), digits.radix()).ok()
}

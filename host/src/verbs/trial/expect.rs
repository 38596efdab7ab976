//! What a case says is to come, and what came.

use jiff::SignedDuration;
use serde_json::Value;

use crate::model::{DurationMs, Fields, json_equal};

/// What is to come. What is none may be anything.
#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    /// The outcome's word, or the status.
    pub(super) word: String,
    /// The code of a refusal, or the reason code.
    pub(super) code: Option<String>,
    /// Fields that are set, at least these.
    pub(super) sets: Fields,
    /// Another attempt after this long.
    pub(super) retry_after: Option<DurationMs>,
    /// How many dispatches.
    pub(super) count: Option<i64>,
    /// A text in each body.
    pub(super) contains: Option<String>,
}

/// What came.
#[derive(Clone, Debug, Default)]
pub(super) struct Came {
    pub(super) word: String,
    pub(super) code: Option<String>,
    /// In words.
    pub(super) message: String,
    pub(super) sets: Fields,
    pub(super) retry_after: Option<DurationMs>,
    pub(super) bodies: Vec<Vec<u8>>,
}

impl Expected {
    pub(super) fn is_met_by(&self, came: &Came) -> bool {
        let told = |body: &Vec<u8>, text: &String| String::from_utf8_lossy(body).contains(text.as_str());
        self.word == came.word
            && (self.code.is_none() || self.code == came.code)
            && self.sets.iter().all(|(name, value)| has(&came.sets, name, value))
            && (self.retry_after.is_none() || self.retry_after == came.retry_after)
            && self
                .count
                .is_none_or(|count| usize::try_from(count) == Ok(came.bodies.len()))
            && self
                .contains
                .iter()
                .all(|text| came.bodies.iter().all(|body| told(body, text)))
    }

    /// In words.
    pub(super) fn told(&self) -> String {
        let mut told = headed(&self.word, self.code.as_deref());
        told.push_str(&rest(&self.sets, self.retry_after));
        if let Some(count) = self.count {
            told.push_str(&format!(", {count} dispatches"));
        }
        if let Some(text) = &self.contains {
            told.push_str(&format!(", each with `{text}`"));
        }
        told
    }
}

impl Came {
    /// A case that could not be put to the component; no expectation is met by it.
    pub(super) fn not_tried(why: String) -> Self {
        Self {
            word: "not tried".to_owned(),
            message: why,
            ..Self::default()
        }
    }

    pub(super) fn new(word: &str, code: Option<&str>, message: impl Into<String>) -> Self {
        Self {
            word: word.to_owned(),
            code: code.map(str::to_owned),
            message: message.into(),
            ..Self::default()
        }
    }

    /// In words.
    pub(super) fn told(&self) -> String {
        let mut told = headed(&self.word, self.code.as_deref());
        told.push_str(&rest(&self.sets, self.retry_after));
        match self.bodies.as_slice() {
            [] => {}
            [one] => told.push_str(&format!(", 1 dispatch: {}", String::from_utf8_lossy(one))),
            many => told.push_str(&format!(", {} dispatches", many.len())),
        }
        if !self.message.is_empty() {
            told.push_str(": ");
            told.push_str(&self.message);
        }
        told
    }
}

fn has(sets: &Fields, name: &str, value: &Value) -> bool {
    sets.get(name).is_some_and(|set| json_equal(set, value))
}

fn headed(word: &str, code: Option<&str>) -> String {
    match code {
        Some(code) => format!("{word} ({code})"),
        None => word.to_owned(),
    }
}

fn rest(sets: &Fields, retry_after: Option<DurationMs>) -> String {
    let mut rest = String::new();
    for (name, value) in sets {
        rest.push_str(&format!(", {name} = {value}"));
    }
    if let Some(delay) = retry_after {
        rest.push_str(&format!(
            ", again after {:#}",
            SignedDuration::from_millis(delay.as_ms())
        ));
    }
    rest
}

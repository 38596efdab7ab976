//! What is declared, and whether a word that is used is among it.

use super::problem::Reading;
use super::table::Word;
use crate::model::{Field, Outcome, ReasonCode, Status, nearest};

/// The names that a table declares.
pub(super) struct Names {
    statuses: Vec<String>,
    fields: Vec<String>,
    codes: Vec<String>,
}

impl Names {
    pub(super) fn new(statuses: &[Status], fields: &[Field], codes: &[ReasonCode]) -> Self {
        Self {
            statuses: statuses.iter().map(|status| status.name.clone()).collect(),
            fields: fields.iter().map(|field| field.name.clone()).collect(),
            codes: codes.iter().map(|code| code.code.clone()).collect(),
        }
    }

    /// A status that is used.
    pub(super) fn status(&self, reading: &mut Reading<'_>, word: Word) -> String {
        declared(reading, word, "status", &self.statuses)
    }

    /// Statuses that are used.
    pub(super) fn statuses(&self, reading: &mut Reading<'_>, words: Vec<Word>) -> Vec<String> {
        words.into_iter().map(|word| self.status(reading, word)).collect()
    }

    /// Fields that are used.
    pub(super) fn fields(&self, reading: &mut Reading<'_>, words: Vec<Word>) -> Vec<String> {
        let field = |word| declared(reading, word, "field", &self.fields);
        words.into_iter().map(field).collect()
    }

    /// A reason code that is used.
    pub(super) fn code(&self, reading: &mut Reading<'_>, word: Word) -> String {
        declared(reading, word, "reason code", &self.codes)
    }

    /// An outcome that is used.
    pub(super) fn outcome(&self, reading: &mut Reading<'_>, status: Word, code: Word) -> Outcome {
        Outcome {
            status: self.status(reading, status),
            code: self.code(reading, code),
        }
    }
}

/// A word that is used, told when it is not among what is declared.
pub(super) fn declared(reading: &mut Reading<'_>, word: Word, what: &str, known: &[String]) -> String {
    if !known.contains(&word.text) {
        let meant = did_you_mean(&word.text, known.iter().map(String::as_str));
        reading.problem(word.at, format!("{what} `{}` is not declared{meant}", word.text));
    }
    word.text
}

/// The end of a message about an unknown word.
pub(super) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |meant| format!(": did you mean `{meant}`?"))
}

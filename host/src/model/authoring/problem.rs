//! What is wrong with a text, and where.

use std::collections::BTreeMap;

use crate::model::{Finding, Severity};

/// Something wrong or doubtful in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How much it matters.
    pub severity: Severity,
    /// The first line is 1.
    pub line: usize,
    /// The first character of a line is 1.
    pub column: usize,
    /// What.
    pub message: String,
}

/// A text that is being read: what is wrong with it so far, and where what was read stands.
pub(super) struct Reading<'t> {
    text: &'t str,
    /// With the byte at which each stands.
    problems: Vec<(usize, Problem)>,
    /// Places as [`Finding`] names them, and the byte at which each stands.
    places: BTreeMap<String, usize>,
}

impl<'t> Reading<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            problems: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    /// Keeps what is wrong at a byte.
    pub(super) fn problem(&mut self, at: usize, message: impl Into<String>) {
        let problem = self.located(at, Severity::Error, message.into());
        self.problems.push((at, problem));
    }

    /// Keeps what a parser says of a part of the text, with the part itself where it is a word.
    pub(super) fn unreadable(&mut self, span: std::ops::Range<usize>, said: &str) {
        const WORD_BYTES_MAX: usize = 40;
        let part = self.text.get(span.clone()).unwrap_or_default();
        let is_word = !part.is_empty() && part.len() <= WORD_BYTES_MAX && !part.contains(char::is_control);
        let message = if is_word {
            format!("`{part}`: {said}")
        } else {
            said.to_owned()
        };
        self.problem(span.start, message);
    }

    /// Remembers where a part of the descriptor stands.
    pub(super) fn place(&mut self, place: impl Into<String>, at: usize) {
        self.places.insert(place.into(), at);
    }

    /// # Errors
    /// Everything that is wrong so far, in the order of the text.
    pub(super) fn stop_at_problems(&mut self) -> Result<(), Vec<Problem>> {
        if self.problems.is_empty() {
            return Ok(());
        }
        self.problems.sort_by_key(|(at, _)| *at);
        Err(self.problems.drain(..).map(|(_, problem)| problem).collect())
    }

    fn located(&self, at: usize, severity: Severity, message: String) -> Problem {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Problem {
            severity,
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }

    /// Where a place stands, and what of its name leads on from there: `[retry]` holds `retry.base`.
    fn nearest_place<'p>(&self, place: &'p str) -> (usize, &'p str) {
        let mut known = place;
        loop {
            if let Some(at) = self.places.get(known) {
                return (*at, place[known.len()..].trim_start_matches('.'));
            }
            let Some(end) = known.rfind(['.', '[']) else {
                return (0, place);
            };
            known = &known[..end];
        }
    }
}

/// Findings where they stand in the text, in its order.
pub(super) fn found(reading: &Reading<'_>, findings: &[Finding]) -> Vec<Problem> {
    let mut problems: Vec<(usize, Problem)> = findings
        .iter()
        .map(|finding| {
            let (at, rest) = reading.nearest_place(&finding.place);
            let message = if rest.is_empty() {
                finding.message.clone()
            } else {
                format!("{rest}: {}", finding.message)
            };
            (at, reading.located(at, finding.severity, message))
        })
        .collect();
    problems.sort_by_key(|(at, _)| *at);
    // One line may stand for several parts of the descriptor.
    problems.dedup();
    problems.into_iter().map(|(_, problem)| problem).collect()
}

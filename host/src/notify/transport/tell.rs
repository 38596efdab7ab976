//! Words of an outcome: what a program or a receiver said, on one line, within bounds, without what must not be told.

/// The most characters of an outcome's words.
const TOLD_CHARS_MAX: usize = 2_000;
/// The most characters of what somebody said.
const SAID_CHARS_MAX: usize = 1_500;
/// What is hidden is at least so long: shorter values are in every other word.
const HIDDEN_BYTES_MIN: usize = 6;
/// What stands in its place.
const MASK: &str = "[hidden]";

/// Values that are never told: secrets, tokens.
#[derive(Default)]
pub(super) struct Hidden(Vec<String>);

impl Hidden {
    /// Adds a value; empty and very short ones are not worth hiding.
    pub(super) fn add(&mut self, value: impl Into<String>) {
        let value = value.into();
        if value.len() >= HIDDEN_BYTES_MIN {
            self.0.push(value);
        }
        // The longest first: one may be a part of another.
        self.0.sort_by_key(|value| std::cmp::Reverse(value.len()));
    }

    /// The text without them.
    pub(super) fn mask(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in &self.0 {
            text = text.replace(value, MASK);
        }
        text
    }
}

/// What happened, and the end of what was said: where programs say why they failed.
pub(super) fn with_end(what: &str, said: &[u8], hidden: &Hidden) -> String {
    let said = one_line(said, hidden);
    let surplus = said.chars().count().saturating_sub(SAID_CHARS_MAX);
    let mark = if surplus == 0 { "" } else { "…" };
    let end: String = said.chars().skip(surplus).collect();
    joined(what, &format!("{mark}{end}"), hidden)
}

/// What happened, and the first line of what was said.
pub(super) fn with_first_line(what: &str, said: &[u8], hidden: &Hidden) -> String {
    let text = String::from_utf8_lossy(said);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = one_line(line.unwrap_or_default().as_bytes(), hidden);
    let start: String = line.chars().take(SAID_CHARS_MAX).collect();
    joined(what, &start, hidden)
}

/// An error with its causes.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let told = inner.to_string();
        // Some errors tell their cause themselves.
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        cause = inner.source();
    }
    text
}

/// One line of at most [`TOLD_CHARS_MAX`] characters.
pub(super) fn bounded(words: &str) -> String {
    escaped(words).chars().take(TOLD_CHARS_MAX).collect()
}

fn joined(what: &str, said: &str, hidden: &Hidden) -> String {
    let what = one_line(what.as_bytes(), hidden);
    if said.is_empty() {
        what
    } else {
        format!("{what}: {said}")
    }
}

/// Hidden first, escaped then: what was cut apart or written otherwise would not be found.
fn one_line(said: &[u8], hidden: &Hidden) -> String {
    escaped(&hidden.mask(String::from_utf8_lossy(said).trim()))
}

fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => line.extend(character.escape_default()),
            false => line.push(character),
        }
    }
    line
}

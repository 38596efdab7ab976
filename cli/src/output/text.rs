//! Text for people: words from outside come in escaped, and no other way.

use super::escape;
use super::style::Style;

/// Text for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(String);

impl Text {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Words from anywhere, on one line.
    pub(crate) fn of(words: impl AsRef<str>) -> Self {
        Self(escape::for_people(words.as_ref()))
    }

    /// Words from anywhere, styled.
    pub(crate) fn styled(style: Style, words: impl AsRef<str>) -> Self {
        Self(style.marked(&escape::for_people(words.as_ref())))
    }

    /// Lines from anywhere: their breaks stay, all else is escaped.
    pub(crate) fn lines(lines: &str) -> Self {
        let lines: Vec<String> = lines.lines().map(escape::for_people).collect();
        Self(lines.join("\n"))
    }

    /// Words of this program itself, as they are.
    pub(crate) fn own(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// What a table or another text gave.
    pub(super) fn made(text: String) -> Self {
        Self(text)
    }

    /// Adds words.
    #[must_use]
    pub(crate) fn and(self, words: impl AsRef<str>) -> Self {
        self.with(Self::of(words))
    }

    /// Adds styled words.
    #[must_use]
    pub(crate) fn and_styled(self, style: Style, words: impl AsRef<str>) -> Self {
        self.with(Self::styled(style, words))
    }

    /// Adds text.
    #[must_use]
    pub(crate) fn with(mut self, text: Self) -> Self {
        self.0.push_str(&text.0);
        self
    }

    /// Begins a new line with text; the first one begins the text.
    pub(crate) fn line(&mut self, text: Self) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(&text.0);
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// With its marks.
    pub(super) fn marked(&self) -> &str {
        &self.0
    }
}

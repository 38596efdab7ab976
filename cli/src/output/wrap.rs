//! Words that stand beside a name, broken where the page ends.

use unicode_width::UnicodeWidthStr as _;

use super::{Page, Text, escape};

/// The least columns that words are given; on a narrower page the terminal breaks them.
const LEAST: usize = 12;

impl Text {
    /// Words from anywhere behind `name`, broken between words at the end of the page; every further line begins after `indent`
    /// columns. A word that is longer than the page stays whole, so that it can be copied.
    pub(crate) fn hanging(name: Self, indent: usize, words: impl AsRef<str>, page: &Page) -> Self {
        let words = escape::for_people(words.as_ref());
        let left = |taken: usize| {
            let left = |width: u16| usize::from(width).saturating_sub(taken).max(LEAST);
            page.width.map_or(usize::MAX, left)
        };
        let lines = broken(&words, left(name.marked().width()), left(indent));
        let below = format!("\n{:indent$}", "");
        name.with(Self::made(lines.join(&below)))
    }
}

/// The lines of words that take no more columns than there is room in the first line and in the others, as far as words
/// are short enough.
pub(crate) fn broken(words: &str, first: usize, others: usize) -> Vec<String> {
    let mut room = first;
    let mut lines = vec![String::new()];
    let mut taken = 0;
    // What is between words stays as it is, unless the line is broken there.
    for word in words.split_inclusive(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if taken > 0 && taken + word.trim_end().width() > room {
            line.truncate(line.trim_end().len());
            lines.push(word.to_owned());
            room = others;
            taken = word.width();
        } else {
            line.push_str(word);
            taken += word.width();
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, room: usize, expected: &[&str]) {
        assert_eq!(broken(words, room, room), expected, "{words:?} in {room}");
    }

    #[test]
    fn words_are_broken_where_the_page_ends_and_nowhere_else() {
        check("", 12, &[""]);
        check("one two three", 80, &["one two three"]);
        check("one two three", 13, &["one two three"]);
        check("one two three", 12, &["one two", "three"]);
        check(
            "one /a/path/that/is/long two",
            8,
            &["one", "/a/path/that/is/long", "two"],
        );
        check("  kept   apart", 80, &["  kept   apart"]);
        check("日本 語", 5, &["日本", "語"]);
        assert_eq!(broken("one two three", 3, 9), ["one", "two three"]);
    }
}

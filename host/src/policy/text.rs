//! Words of a component on their way to people: never long, never more than one line, never an escape sequence.

use super::limits::DIAGNOSTIC_LINE_BYTES_MAX;

/// The text as one line that is safe to print: cut at [`DIAGNOSTIC_LINE_BYTES_MAX`], control characters escaped.
pub(super) fn line(text: &str) -> String {
    let mut end = text.len().min(DIAGNOSTIC_LINE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut line = String::with_capacity(end);
    for character in text[..end].chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    if end < text.len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_short_and_cannot_paint_a_terminal() {
        assert_eq!(line("plain, ünïcödé"), "plain, ünïcödé");
        assert_eq!(line("\u{1b}[31mred\nnext\u{7}"), "\\u{1b}[31mred\\nnext\\u{7}");
        let long = line(&"é".repeat(10_000));
        assert!(long.ends_with('…') && long.len() <= DIAGNOSTIC_LINE_BYTES_MAX + 3);
    }
}

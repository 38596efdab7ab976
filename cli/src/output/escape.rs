//! The one place where control characters from outside lose their power over a terminal.

/// Whether a character could move a cursor, change colours, reorder or hide text.
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
        )
}

/// Text with every harmful character spelled out, on one line.
pub(crate) fn for_people(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            _ if is_harmful(character) && u32::from(character) < 0x100 => {
                shown.push_str(&format!("\\x{:02x}", u32::from(character)));
            }
            _ if is_harmful(character) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(character))),
            _ => shown.push(character),
        }
    }
    shown
}

/// JSON text with every harmful character inside its strings escaped: the same document.
///
/// JSON itself escapes what is below a space; what is left (DEL, the C1 controls, marks of direction) occurs in strings
/// alone, where `\u` is always understood.
pub(crate) fn for_json(document: &str) -> String {
    let mut shown = String::with_capacity(document.len());
    for character in document.chars() {
        if character != '\n' && is_harmful(character) {
            shown.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_reaches_a_terminal_as_a_command() {
        assert_eq!(for_people("a\x1b[31mb\r\nc\td"), "a\\x1b[31mb\\r\\nc\\td");
        assert_eq!(for_people("\u{9b}2J\u{7f}"), "\\x9b2J\\x7f");
        assert_eq!(for_people("\u{202e}gnp.exe"), "\\u{202e}gnp.exe");
        assert_eq!(for_people("café – naïve"), "café – naïve");
    }

    #[test]
    fn a_document_says_the_same_after_escaping() {
        let value = serde_json::json!({"a": "x\u{1b}\u{7f}\u{9b}\u{202e}y", "b": [1, "é"]});
        let shown = for_json(&serde_json::to_string_pretty(&value).expect("it is JSON"));
        assert!(!shown.chars().any(|c| c != '\n' && is_harmful(c)), "{shown}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).expect("still JSON"),
            value
        );
    }
}

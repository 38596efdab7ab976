//! Colours, as marks in text.

use anstyle::{AnsiColor, Style as Ansi};

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What a piece of text is, rather than how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A heading or a name.
    Strong,
    /// Less important.
    Dim,
    /// A success.
    Good,
    /// A failure.
    Bad,
    /// Worth a look.
    Notice,
}

/// Ends a styled piece. Marks are characters without width, which [`super::escape`] keeps out of text from outside.
const END: char = '\u{206a}';

impl Style {
    const ALL: [Self; 5] = [Self::Strong, Self::Dim, Self::Good, Self::Bad, Self::Notice];

    const fn mark(self) -> char {
        match self {
            Self::Strong => '\u{206b}',
            Self::Dim => '\u{206c}',
            Self::Good => '\u{206d}',
            Self::Bad => '\u{206e}',
            Self::Notice => '\u{206f}',
        }
    }

    const fn ansi(self) -> Ansi {
        match self {
            Self::Strong => Ansi::new().bold(),
            Self::Dim => Ansi::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Notice => AnsiColor::Yellow.on_default(),
        }
    }

    /// The text between the marks of this style.
    pub(super) fn marked(self, text: &str) -> String {
        format!("{}{text}{END}", self.mark())
    }
}

/// Whether marks become colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colours {
    /// They become escapes.
    Shown,
    /// They are dropped.
    Dropped,
}

/// Text with its marks turned into escapes, or dropped. A piece that goes over several lines is styled line by line.
pub(super) fn resolve(text: &str, colours: Colours) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut open: Option<Style> = None;
    let reset = |style: Style| format!("{:#}", style.ansi());
    for character in text.chars() {
        let begun = Style::ALL.into_iter().find(|style| style.mark() == character);
        match (character, begun, open) {
            (_, Some(style), _) => {
                open = Some(style);
                if colours == Colours::Shown {
                    shown.push_str(&style.ansi().to_string());
                }
            }
            (END, None, style) => {
                if let (Some(style), Colours::Shown) = (style, colours) {
                    shown.push_str(&reset(style));
                }
                open = None;
            }
            ('\n', None, Some(style)) if colours == Colours::Shown => {
                shown.push_str(&format!("{}\n", reset(style)));
                open = None;
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// The style of a status, by what its policy says of it.
impl Style {
    /// The style of an ended or living entity's status.
    pub(crate) const fn of_status(terminal: bool, success: bool) -> Self {
        match (terminal, success) {
            (false, _) => Self::Notice,
            (true, true) => Self::Good,
            (true, false) => Self::Bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_escapes_or_nothing() {
        let text = format!("a {} c", Style::Bad.marked("b"));
        assert_eq!(resolve(&text, Colours::Dropped), "a b c");
        assert_eq!(resolve(&text, Colours::Shown), "a \u{1b}[1m\u{1b}[31mb\u{1b}[0m c");
        let over = Style::Dim.marked("x\ny");
        assert_eq!(resolve(&over, Colours::Shown), "\u{1b}[2mx\u{1b}[0m\ny");
    }
}

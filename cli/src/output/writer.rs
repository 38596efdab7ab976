//! The two writers: reports to standard output, everything else to standard error.

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use serde_json::Value;

use super::style::{ColourChoice, Colours, Style, resolve};
use super::{Page, Report, Text, escape};
use crate::errors::Failure;
use crate::exit::Exit;

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// One JSON document.
    Json,
}

/// Standard output and standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    form: Form,
    stdout: Colours,
    stderr: Colours,
}

impl Output {
    /// Writers with these colours; `NO_COLOR` is obeyed unless they are asked for.
    pub(crate) fn new(form: Form, choice: ColourChoice) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colours = |is_terminal: bool| match choice {
            ColourChoice::Always => Colours::Shown,
            ColourChoice::Auto if is_terminal && !plain => Colours::Shown,
            ColourChoice::Auto | ColourChoice::Never => Colours::Dropped,
        };
        Self {
            form,
            stdout: colours(std::io::stdout().is_terminal()),
            stderr: colours(std::io::stderr().is_terminal()),
        }
    }

    /// The form of reports.
    pub(crate) const fn form(&self) -> Form {
        self.form
    }

    /// Writes a report.
    pub(crate) fn report(&self, report: &impl Report, page: &Page) -> Exit {
        let written = match self.form {
            Form::Json => self.bytes(format!("{}\n", pretty(&report.json())).as_bytes()),
            Form::Text => {
                let text = report.text(page);
                if text.is_empty() { Ok(()) } else { self.text(&text) }
            }
        };
        self.ended(written, report.exit())
    }

    /// Writes a failure: words to standard error, and with `--json` its document to standard output.
    pub(crate) fn failure(&self, failure: &Failure) -> Exit {
        self.complain(failure);
        if self.form == Form::Json {
            let written = self.bytes(format!("{}\n", pretty(&failure.json())).as_bytes());
            return self.ended(written, failure.exit);
        }
        failure.exit
    }

    /// Tells a failure on standard error, and goes on.
    pub(crate) fn complain(&self, failure: &Failure) {
        let mut text = Text::styled(Style::Bad, "error:").and(" ").and(&failure.message);
        for cause in &failure.causes {
            text.line(Text::of("caused by: ").and(cause));
        }
        if let Some(hint) = failure.hints.first() {
            text.line(Text::styled(Style::Strong, "hint:").and(" ").and(hint));
        }
        self.note(&text);
    }

    /// Tells a warning on standard error.
    pub(crate) fn warn(&self, said: &str) {
        self.note(&Text::styled(Style::Notice, "warning:").and(" ").and(said));
    }

    /// Says something on standard error. That nobody listens there is no failure.
    pub(crate) fn note(&self, text: &Text) {
        let line = format!("{}\n", resolve(text.marked(), self.stderr));
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    /// Writes text for people to standard output.
    pub(crate) fn text(&self, text: &Text) -> std::io::Result<()> {
        self.bytes(format!("{}\n", resolve(text.marked(), self.stdout)).as_bytes())
    }

    /// Writes bytes to standard output at once. Only for what scripts read byte for byte.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    /// Writes a line that scripts read byte for byte; only a terminal gets it with control characters escaped.
    pub(crate) fn script_line(&self, line: &[u8]) -> std::io::Result<()> {
        if !std::io::stdout().is_terminal() {
            return self.bytes(line);
        }
        let text = String::from_utf8_lossy(line);
        let fields: Vec<String> = text
            .trim_end_matches('\n')
            .split('\t')
            .map(escape::for_people)
            .collect();
        self.bytes(format!("{}\n", fields.join("\t")).as_bytes())
    }

    /// How a command ends whose report was or was not written: a reader that went away is no error.
    pub(crate) fn ended(&self, written: std::io::Result<()>, exit: Exit) -> Exit {
        match written {
            Ok(()) => exit,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => exit,
            Err(error) => {
                self.complain(
                    &Failure::new(Exit::IO, "output", "cannot write to standard output").cause(error.to_string()),
                );
                Exit::IO
            }
        }
    }
}

/// A document as it is written: indented, harmless to a terminal.
pub(crate) fn pretty(document: &Value) -> String {
    let text = serde_json::to_string_pretty(document).expect("a value has string keys alone");
    escape::for_json(&text)
}

/// A document on one line.
pub(crate) fn compact(document: &Value) -> String {
    escape::for_json(&document.to_string())
}

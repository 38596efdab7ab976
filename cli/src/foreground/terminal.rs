//! The terminal of the foreground command.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;

use anyhow::{Context, Result};
use runwarden_host::process::Window;
use rustix::termios::{self, OptionalActions, Termios};

/// Which of this process's streams are terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    /// All three: the program gets a pseudo-terminal.
    AllTerminals,
    /// Not all, but people read standard error.
    StderrTerminal,
    /// A script reads standard error.
    Script,
}

impl Streams {
    /// Looks.
    pub(crate) fn found() -> Self {
        let stderr = std::io::stderr().is_terminal();
        match stderr && std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            true => Self::AllTerminals,
            false if stderr => Self::StderrTerminal,
            false => Self::Script,
        }
    }
}

/// The size of the terminal on standard output; none when there is none.
pub(crate) fn window() -> Option<Window> {
    let size = termios::tcgetwinsize(std::io::stdout().as_fd()).ok()?;
    Some(Window {
        rows: size.ws_row,
        columns: size.ws_col,
        width: size.ws_xpixel,
        height: size.ws_ypixel,
    })
}

/// The terminal passes every byte on as it is typed, for as long as this lives.
#[derive(Debug)]
pub(crate) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(crate) fn enter() -> Result<Self> {
        let stdin = std::io::stdin();
        let before = termios::tcgetattr(stdin.as_fd()).context("cannot read the terminal's modes")?;
        let mut raw = before.clone();
        raw.make_raw();
        termios::tcsetattr(stdin.as_fd(), OptionalActions::Now, &raw).context("cannot set the terminal's modes")?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // The terminal may be gone: then nobody is left to see it.
        let _ = termios::tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &self.before);
    }
}

/// One line of ours beside the program's output.
pub(crate) fn say(words: &str) {
    // A terminal that is gone needs no words.
    let _ = writeln!(std::io::stderr(), "runwarden: {words}");
}

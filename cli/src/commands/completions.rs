//! `completions`: what a shell reads to complete commands.

use clap_complete::Shell;
use serde_json::{Value, json};

use crate::errors::Outcome;
use crate::output::{Page, Report, Text};

/// Print the completions of a shell
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden completions bash > ~/.local/share/bash-completion/completions/runwarden
  runwarden completions zsh > ~/.zfunc/_runwarden
  runwarden completions fish > ~/.config/fish/completions/runwarden.fish";

/// A script.
pub(crate) struct Script {
    shell: Shell,
    script: String,
}

/// Writes the script.
pub(crate) fn execute(args: &Args) -> Outcome<Script> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::args::command(), "runwarden", &mut script);
    Ok(Script {
        shell: args.shell,
        script: String::from_utf8_lossy(&script).into_owned(),
    })
}

impl Report for Script {
    fn json(&self) -> Value {
        json!({"shell": self.shell.to_string(), "script": self.script})
    }

    fn text(&self, _: &Page) -> Text {
        Text::own(self.script.trim_end())
    }
}

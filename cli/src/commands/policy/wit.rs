//! `policy wit`: the interfaces that policies are built against.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::template::{self, Source};
use crate::errors::{Failure, Outcome};
use crate::output::{Page, Report, Text};

/// Write the interfaces that policies and handlers are built against
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The directory; it is made if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy wit wit

DIR holds the package runwarden:policy, DIR/deps what it and handlers need.";

/// The files as tools want them: one package in the directory, the others below `deps`.
const FILES: Source = Source { from: "wit", to: "" };

/// The files that were written.
pub(crate) struct Written(Vec<PathBuf>);

/// Writes them.
pub(crate) fn execute(args: &Args) -> Outcome<Written> {
    let mut files = Vec::new();
    for file in template::files(&[FILES]) {
        let path = args.directory.join(file.path);
        let directory = path.parent().unwrap_or(&args.directory);
        let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, file.text));
        written.map_err(|error| Failure::file("write", &path, &error))?;
        files.push(path);
    }
    Ok(Written(files))
}

impl Report for Written {
    fn json(&self) -> Value {
        json!({"files": self.0})
    }

    fn text(&self, _: &Page) -> Text {
        let mut text = Text::new();
        for file in &self.0 {
            text.line(Text::of(file.display().to_string()));
        }
        text
    }
}

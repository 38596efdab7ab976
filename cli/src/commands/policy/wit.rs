//! `policy wit`: the interfaces that policies are built against.

use std::path::PathBuf;

use serde_json::{Value, json};

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
const FILES: [(&str, &str); 7] = [
    ("lifecycle.wit", include_str!("../../../../wit/policy/lifecycle.wit")),
    ("guard.wit", include_str!("../../../../wit/policy/guard.wit")),
    ("execution.wit", include_str!("../../../../wit/policy/execution.wit")),
    ("worlds.wit", include_str!("../../../../wit/policy/worlds.wit")),
    ("deps/types/types.wit", include_str!("../../../../wit/types/types.wit")),
    ("deps/host/host.wit", include_str!("../../../../wit/host/host.wit")),
    (
        "deps/notify/notify.wit",
        include_str!("../../../../wit/notify/notify.wit"),
    ),
];

/// The files that were written.
pub(crate) struct Written(Vec<PathBuf>);

/// Writes them.
pub(crate) fn execute(args: &Args) -> Outcome<Written> {
    let mut files = Vec::new();
    for (name, text) in FILES {
        let path = args.directory.join(name);
        let directory = path.parent().unwrap_or(&args.directory);
        let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, text));
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_contract_is_written() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
        let mut found = Vec::new();
        for package in std::fs::read_dir(root).expect("the contract is there").flatten() {
            if !package.path().is_dir() {
                continue;
            }
            for file in std::fs::read_dir(package.path())
                .expect("a package is a directory")
                .flatten()
            {
                let is_policy = package.file_name() == "policy";
                let name = file.file_name().to_string_lossy().into_owned();
                let package = package.file_name().to_string_lossy().into_owned();
                found.push(if is_policy {
                    name
                } else {
                    format!("deps/{package}/{name}")
                });
            }
        }
        let mut written: Vec<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        found.sort();
        written.sort();
        assert_eq!(written, found);
    }
}

//! `policy new`: the beginning of a policy or handler, in a directory of its own.

use std::path::{Path, PathBuf};

use runwarden_host::model::{HANDLER_KIND, is_component_name};
use serde_json::{Value, json};

use super::language::{Language, Part};
use super::template::{File, Words, files};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};

/// Begin a policy or handler of your own
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Its name, and that of its directory: lower case, digits, `_` and `-`
    #[arg(value_name = "NAME")]
    name: String,
    /// The language: toml, rust, js, python, c
    #[arg(
        long = "lang",
        value_name = "LANG",
        value_enum,
        default_value = "toml",
        hide_possible_values = true,
        help_heading = "What is begun"
    )]
    language: Language,
    /// A handler, which says what is sent when something ends
    #[arg(long, help_heading = "What is begun")]
    handler: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy new post                      # a table, which needs no compiler
  runwarden policy new post --lang rust
  runwarden policy new mail --lang rust --handler
  runwarden policy new chat --lang js --handler

The project builds as it is, with the tools of its language and nothing of Runwarden's to be fetched;
its README says how to test, build, install and roll back.";

/// What was written.
pub(crate) struct Begun {
    directory: PathBuf,
    files: Vec<PathBuf>,
}

/// Writes.
pub(crate) fn execute(args: &Args) -> Outcome<Begun> {
    let part = if args.handler { Part::Handler } else { Part::Policy };
    let sources = args.language.sources(part)?;
    check_name(&args.name, part)?;
    let directory = PathBuf::from(&args.name);
    let words = Words::of(&args.name);
    let mut files = files(sources);
    for file in &mut files {
        file.text = words.put_into(&file.text);
        if file.path.ends_with("gitignore") {
            // Under its own name it would be in force among the templates.
            file.path.set_file_name(".gitignore");
        }
    }
    write(&directory, &files)?;
    Ok(Begun {
        directory,
        files: files.into_iter().map(|file| file.path).collect(),
    })
}

fn check_name(name: &str, part: Part) -> Outcome<()> {
    if !is_component_name(name) {
        let message = format!("`{name}` is no name: lower case, digits, `_` and `-`, a letter first, at most 64");
        return Err(Failure::usage(message));
    }
    if part == Part::Policy && name == HANDLER_KIND {
        let message = format!("`{name}` is what handlers are listed as: no entity is of that kind");
        return Err(Failure::usage(message));
    }
    Ok(())
}

/// Writes a project beside its place and moves it there: a directory that is there and holds something stays as it is, and
/// nothing is left half-written.
fn write(directory: &Path, files: &[File]) -> Outcome<()> {
    if std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(taken(directory));
    }
    // A name of its own: what a killed one left is in nobody's way.
    let unfinished = PathBuf::from(format!(".{}.new-{}", directory.display(), std::process::id()));
    std::fs::create_dir(&unfinished).map_err(|error| Failure::file("write", &unfinished, &error))?;
    let mut made = vec![unfinished.clone()];
    let written = fill(&unfinished, files, &mut made).and_then(|()| {
        std::fs::rename(&unfinished, directory).map_err(|error| match error.kind() {
            std::io::ErrorKind::DirectoryNotEmpty | std::io::ErrorKind::NotADirectory => taken(directory),
            _ => Failure::file("write", directory, &error),
        })
    });
    if written.is_err() {
        for path in made.iter().rev() {
            // What cannot be taken back stays; the failure that is told is the first one.
            let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir(path));
        }
    }
    written
}

/// Writes the files, and notes everything that was made, directories before what is in them.
fn fill(root: &Path, files: &[File], made: &mut Vec<PathBuf>) -> Outcome<()> {
    for file in files {
        let above: Vec<&Path> = file
            .path
            .ancestors()
            .skip(1)
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        for directory in above.into_iter().rev().map(|path| root.join(path)) {
            if !directory.is_dir() {
                std::fs::create_dir(&directory).map_err(|error| Failure::file("write", &directory, &error))?;
                made.push(directory);
            }
        }
        let path = root.join(&file.path);
        made.push(path.clone());
        std::fs::write(&path, &file.text).map_err(|error| Failure::file("write", &path, &error))?;
    }
    Ok(())
}

fn taken(directory: &Path) -> Failure {
    let message = format!("{} is there, and not empty", directory.display());
    Failure::new(Exit::CONFLICT, "exists", message).hint("choose another name, or another directory to stand in")
}

impl Begun {
    /// What to type next.
    fn next(&self) -> String {
        format!("runwarden policy build {}", self.directory.display())
    }
}

impl Report for Begun {
    fn json(&self) -> Value {
        json!({"directory": self.directory, "files": self.files, "next": self.next()})
    }

    fn text(&self, _: &Page) -> Text {
        let mut text = Text::styled(Style::Strong, self.directory.display().to_string());
        text = text.and(format!(": {} files; README.md says how it goes on", self.files.len()));
        text.line(Text::styled(Style::Dim, format!("next: {}", self.next())));
        text
    }
}

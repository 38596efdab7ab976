//! `policy build`: from a project to a component that may be installed.

use std::path::{Path, PathBuf};

use runwarden_host::model::{Described, RaisedLimits};
use runwarden_host::policy::Candidate;
use runwarden_host::verbs::examine_made;
use serde_json::{Value, json};

use super::language::{Built, Language};
use super::limits::{LimitArgs, options};
use super::test::CASES;
use crate::context::Context;
use crate::errors::{Failure, Outcome, finding_line};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text, size};

/// Build the policy or handler in a directory, and check it
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The directory of the project
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Its language, where that is not plain: toml, rust, js, python, c
    #[arg(
        long = "lang",
        value_name = "LANG",
        value_enum,
        hide_possible_values = true,
        help_heading = "What is built"
    )]
    language: Option<Language>,
    #[command(flatten)]
    limits: LimitArgs,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy build
  runwarden policy build ./post
  runwarden policy test ./post/post.wasm
  runwarden policy install ./post/post.wasm

The language is known by what lies there: lifecycle.toml (a table, which needs no compiler),
Cargo.toml, package.json, pyproject.toml or a Makefile (C). What the project's tools need is fetched
by npm, or by pip into .venv, where it is not there.
NAME.wasm is written into DIR once it has passed every check that `install` makes. What does not
change keeps its digest. No home is needed.";

/// What was built.
pub(crate) struct Made {
    path: PathBuf,
    size_bytes: usize,
    candidate: Candidate,
    warnings: Vec<String>,
    /// Limits that it does not keep.
    raised: RaisedLimits,
    /// There are cases to try it with.
    has_cases: bool,
}

/// Builds.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Made> {
    let project = args.directory.as_path();
    let language = args.language.map_or_else(|| Language::of(project), Ok)?;
    let Built { component, table } = language.build(project, &context.output)?;
    let raised = args.limits.raised().or(&language.raised());
    let candidate = examine_made(&context.config(), &component, &raised)?;
    let warnings = match table {
        None => candidate.findings.iter().map(finding_line).collect(),
        Some(table) => {
            if candidate.descriptor != Described::Policy(Box::new(table.descriptor)) {
                let message = "the component that was built does not say what the table says";
                return Err(Failure::new(Exit::FAULT, "fault", message));
            }
            table.warnings
        }
    };
    let path = project.join(format!("{}.wasm", candidate.descriptor.name()));
    write(&path, &component)?;
    Ok(Made {
        path,
        size_bytes: component.len(),
        candidate,
        warnings,
        raised,
        has_cases: project.join(CASES).is_file(),
    })
}

/// Writes a file whole: whoever reads it meanwhile reads the one before.
fn write(path: &Path, bytes: &[u8]) -> Outcome<()> {
    let unfinished = path.with_extension("wasm.new");
    let written = std::fs::write(&unfinished, bytes).and_then(|()| std::fs::rename(&unfinished, path));
    written.map_err(|error| {
        // What is left of it is in nobody's way; the failure that is told is the first one.
        let _ = std::fs::remove_file(&unfinished);
        Failure::file("write", path, &error)
    })
}

impl Made {
    /// What to type next.
    fn next(&self) -> String {
        let path = self.path.display();
        let path = if self.path.is_absolute() || self.path.starts_with(".") {
            path.to_string()
        } else {
            format!("./{path}")
        };
        let options = options(&self.raised);
        let verb = if self.has_cases { "test" } else { "install" };
        format!("runwarden policy {verb} {path}{options}")
    }
}

impl Report for Made {
    fn json(&self) -> Value {
        let descriptor = &self.candidate.descriptor;
        let exports = self.candidate.inspected.exports.iter();
        json!({
            "path": self.path,
            "kind": descriptor.kind(),
            "name": descriptor.name(),
            "version": descriptor.version(),
            "digest": self.candidate.digest,
            "size_bytes": self.size_bytes,
            "exports": exports.map(|export| format!("{}@{}", export.interface, export.version)).collect::<Vec<_>>(),
            "imports": self.candidate.inspected.imports,
            "warnings": self.warnings,
            "next": self.next(),
        })
    }

    fn text(&self, _: &Page) -> Text {
        let descriptor = &self.candidate.descriptor;
        let what = match descriptor {
            Described::Policy(descriptor) => format!(" for {}", descriptor.kind),
            Described::Handler(_) => " (a handler)".to_owned(),
        };
        let mut text = Text::styled(Style::Strong, descriptor.label()).and(what).and(format!(
            ": {}, {}",
            self.path.display(),
            size(u64::try_from(self.size_bytes).unwrap_or(u64::MAX))
        ));
        text.line(Text::of(format!("digest {}", self.candidate.digest)));
        for warning in &self.warnings {
            text.line(Text::of(warning));
        }
        text.line(Text::styled(Style::Dim, format!("next: {}", self.next())));
        text
    }
}

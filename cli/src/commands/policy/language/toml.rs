//! Tables: a policy that is data alone, without a compiler.

use std::path::Path;

use runwarden_host::model::{Authored, Problem, Severity, author};
use runwarden_host::policy::table;

use super::super::find::read;
use super::super::template::Source;
use super::{Built, Table};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;

/// The table.
pub(super) const MARK: &str = "lifecycle.toml";

/// What a new policy is made of.
pub(super) const POLICY: &[Source] = &[Source {
    from: "toml/policy",
    to: "",
}];

/// Far more than the largest table that passes the checks.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// That a table is no handler.
pub(super) fn no_handler() -> Failure {
    Failure::usage("a handler is a function, and a table has none").hint("--lang rust begins a handler in Rust")
}

/// Builds the project in a directory.
pub(super) fn build(project: &Path) -> Outcome<Built> {
    let path = project.join(MARK);
    let bytes = read(&path)?;
    let shown = path.strip_prefix(".").unwrap_or(&path).display().to_string();
    let unusable = |message: String| Failure::new(Exit::UNUSABLE, "table", message);
    if bytes.len() > TEXT_BYTES_MAX {
        let message = format!(
            "{shown} has {} bytes, at most {TEXT_BYTES_MAX} are admitted",
            bytes.len()
        );
        return Err(unusable(message));
    }
    let text = String::from_utf8(bytes).map_err(|_| unusable(format!("{shown} is not UTF-8")))?;
    let line = |problem: &Problem| told(&shown, problem);
    let Authored { descriptor, warnings } = author(&text).map_err(|problems| {
        let failure = unusable(format!("{shown} cannot be made a policy"));
        problems
            .iter()
            .fold(failure, |failure, problem| failure.cause(line(problem)))
    })?;
    Ok(Built {
        component: table::component(&descriptor),
        table: Some(Table {
            warnings: warnings.iter().map(line).collect(),
            descriptor,
        }),
    })
}

fn told(file: &str, problem: &Problem) -> String {
    let Problem {
        severity,
        line,
        column,
        message,
    } = problem;
    let doubt = match severity {
        Severity::Error => "",
        Severity::Warning => "warning: ",
        Severity::Note => "note: ",
    };
    format!("{file}:{line}:{column}: {doubt}{message}")
}

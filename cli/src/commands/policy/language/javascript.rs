//! JavaScript: npm fetches what package.json names and runs its `build` script.

use std::path::Path;

use super::super::template::Source;
use super::Built;
use super::project::{built, complete, made_of};
use super::tool::Tool;
use crate::errors::Outcome;
use crate::output::Output;

/// The manifest.
pub(super) const MARK: &str = "package.json";

/// What a new policy is made of.
pub(super) const POLICY: &[Source] = &made_of("js/policy", "js/kit");

/// What a new handler is made of.
pub(super) const HANDLER: &[Source] = &made_of("js/handler", "js/kit");

const NPM: Tool = Tool {
    program: "npm",
    install: "install Node with npm: https://nodejs.org",
};

/// Builds the project in a directory.
pub(super) fn build(project: &Path, output: &Output) -> Outcome<Built> {
    complete(project, &POLICY[1..])?;
    if !project.join("node_modules").is_dir() {
        NPM.run(
            &mut NPM.command(project, &["install", "--no-audit", "--no-fund"]),
            output,
        )?;
    }
    NPM.run(&mut NPM.command(project, &["run", "build"]), output)?;
    built(project)
}

//! Python: componentize-py, in the project's own virtual environment.

use std::path::Path;

use runwarden_host::model::{Limit, RaisedLimits};

use super::super::template::Source;
use super::Built;
use super::project::{COMPONENT, built, complete, made_of};
use super::tool::{Tool, environment};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::Output;

/// The manifest.
pub(super) const MARK: &str = "pyproject.toml";

/// What a new policy is made of.
pub(super) const POLICY: &[Source] = &made_of("python/policy", "python/kit");

/// What a new handler is made of.
pub(super) const HANDLER: &[Source] = &made_of("python/handler", "python/kit");

/// The module that becomes the component: the first of these that is there.
const MODULES: [&str; 2] = ["policy", "handler"];

/// What the world of every project is called.
const WORLD: [&str; 5] = ["--quiet", "--wit-path", "wit", "--world", "component"];

const COMPONENTIZE: Tool = Tool {
    program: ".venv/bin/componentize-py",
    install: "requirements.txt names componentize-py; remove .venv to have it made again",
};

/// A component carries the interpreter: 18 MB, and 20 s of processor time to compile with an optimised Runwarden.
pub(super) fn raised() -> RaisedLimits {
    [(Limit::ComponentSize, 32 << 20), (Limit::CompileTime, 300_000)]
        .into_iter()
        .collect()
}

/// Builds the project in a directory. The bindings are for the author's own tests and tools.
pub(super) fn build(project: &Path, output: &Output) -> Outcome<Built> {
    complete(project, &POLICY[1..])?;
    let module = MODULES
        .into_iter()
        .find(|module| project.join(module).with_extension("py").is_file());
    let Some(module) = module else {
        let message = format!("{} has neither policy.py nor handler.py", project.display());
        return Err(Failure::new(Exit::UNUSABLE, "no_project", message));
    };
    environment(project, output)?;
    let componentize = |arguments: &[&str]| {
        let mut command = COMPONENTIZE.command(project, &[&WORLD, arguments].concat());
        COMPONENTIZE.run(&mut command, output)
    };
    componentize(&["bindings", "build/bindings"])?;
    let paths = ["--python-path", ".", "--python-path", "kit"];
    componentize(
        &[
            &["componentize", "--stub-wasi", "--output", COMPONENT],
            &paths[..],
            &[module],
        ]
        .concat(),
    )?;
    built(project)
}

//! Python: componentize-py, in the project's own virtual environment.

use std::path::Path;

use runwarden_host::model::{Limit, RaisedLimits};

use super::super::template::Source;
use super::Built;
use super::project::{COMPONENT, built, complete, made_of};
use super::tool::{Tool, environment};
use crate::errors::Outcome;
use crate::output::Output;

/// The module that becomes the component: the first of these that is there.
pub(super) const MARKS: [&str; 2] = ["policy.py", "handler.py"];

/// What a new policy is made of.
pub(super) const POLICY: &[Source] = &made_of("python/policy", "python/kit");

/// What a new handler is made of.
pub(super) const HANDLER: &[Source] = &made_of("python/handler", "python/kit");

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
    let [policy, handler] = MARKS;
    let source = if project.join(policy).is_file() {
        policy
    } else {
        handler
    };
    let module = source.trim_end_matches(".py");
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

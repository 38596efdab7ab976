//! C: the project's own Makefile, with the compiler and the tools that requirements.txt names.

use std::path::Path;

use super::super::template::Source;
use super::Built;
use super::project::{built, complete, made_of};
use super::tool::{Tool, environment};
use crate::errors::Outcome;
use crate::output::Output;

/// The source, of a policy or of a handler. A Makefile lies beside much that is not C.
pub(super) const MARKS: [&str; 2] = ["policy.c", HANDLER_SOURCE];

const HANDLER_SOURCE: &str = "handler.c";

/// What a new policy is made of.
pub(super) const POLICY: &[Source] = &with_library(made_of("c/policy", "c/kit/policy"));

/// What a new handler is made of.
pub(super) const HANDLER: &[Source] = &with_library(made_of("c/handler", "c/kit/handler"));

/// What the bindings want of a C library comes with them.
const fn with_library([own, kit, contract]: [Source; 3]) -> [Source; 4] {
    let library = Source {
        from: "c/kit/libc",
        to: "kit/libc",
    };
    [own, kit, library, contract]
}

const MAKE: Tool = Tool {
    program: "make",
    install: "install make: apt-get install make",
};

/// Builds the project in a directory.
pub(super) fn build(project: &Path, output: &Output) -> Outcome<Built> {
    let is_handler = project.join(HANDLER_SOURCE).is_file();
    complete(project, if is_handler { &HANDLER[1..] } else { &POLICY[1..] })?;
    environment(project, output)?;
    MAKE.run(&mut MAKE.command(project, &["build/component.wasm"]), output)?;
    built(project)
}

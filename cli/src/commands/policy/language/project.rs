//! Projects whose own build script makes the component: what this program gives them, and where they leave it.

use std::path::Path;

use super::super::find::read;
use super::super::template::{Source, files};
use super::Built;
use crate::errors::{Failure, Outcome};

/// Where a project's own build leaves the component.
pub(super) const COMPONENT: &str = "build/component.wasm";

/// What a project is made of: its own files, what is written for its language, and the contract.
pub(super) const fn made_of(own: &'static str, kit: &'static str) -> [Source; 3] {
    [
        Source { from: own, to: "" },
        Source { from: kit, to: "kit" },
        Source { from: "wit", to: "wit" },
    ]
}

/// Writes what is not there of the files that came with a project; what is there is the author's. A project need not keep
/// what any Runwarden of its version can write.
pub(super) fn complete(project: &Path, sources: &[Source]) -> Outcome<()> {
    for file in files(sources) {
        let path = project.join(&file.path);
        if path.exists() {
            continue;
        }
        let directory = path.parent().unwrap_or(project);
        let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, &file.text));
        written.map_err(|error| Failure::file("write", &path, &error))?;
    }
    let directory = project.join("build");
    std::fs::create_dir_all(&directory).map_err(|error| Failure::file("write", &directory, &error))
}

/// What the project's build left.
pub(super) fn built(project: &Path) -> Outcome<Built> {
    Ok(Built {
        component: read(&project.join(COMPONENT))?,
        table: None,
    })
}

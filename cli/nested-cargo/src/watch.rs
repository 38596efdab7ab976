//! Tells the outer cargo when the build script must run again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::dep_info;

/// Files of the workspace's root that change what a build gives.
const OF_THE_ROOT: &[&str] = &["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo/config.toml"];

/// Watches what the artefacts were made of, the manifests above those files, and the root's files.
pub(crate) fn artefacts(root: &Path, artefacts: &[PathBuf], extra: &[&Path]) -> Result<(), Error> {
    let mut watched: BTreeSet<PathBuf> = extra.iter().map(PathBuf::from).collect();
    for artefact in artefacts {
        let path = artefact.with_extension("d");
        let text = std::fs::read_to_string(&path).map_err(|source| Error::Io {
            operation: format!("read {}", path.display()),
            source,
        })?;
        watched.extend(dep_info::sources(&text));
    }
    let manifests: Vec<PathBuf> = watched.iter().filter_map(|file| manifest_of(file)).collect();
    watched.extend(manifests);
    let of_the_root = OF_THE_ROOT.iter().map(|name| root.join(name));
    watched.extend(of_the_root.filter(|path| path.exists()));
    watched.iter().for_each(|path| watch(path));
    Ok(())
}

/// The directory of the workspace that the build script's package belongs to.
pub(crate) fn root(package: &Path) -> PathBuf {
    let declares = |directory: &&Path| {
        let manifest = std::fs::read_to_string(directory.join("Cargo.toml"));
        manifest.is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
    };
    package.ancestors().find(declares).unwrap_or(package).to_owned()
}

fn manifest_of(file: &Path) -> Option<PathBuf> {
    let candidates = file.ancestors().skip(1);
    candidates
        .map(|directory| directory.join("Cargo.toml"))
        .find(|manifest| manifest.exists())
}

#[expect(clippy::print_stdout, reason = "this is how a build script talks to cargo")]
fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

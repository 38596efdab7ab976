//! Builds the shim for the same target, so that the command can carry it, and packs what new projects are made of.

use std::path::{Path, PathBuf};

fn main() {
    pack();
    let build = nested_cargo::Build {
        packages: &["runwarden-shim"],
        target: None,
        profile: "shim",
        envs: &[],
        watch: &[Path::new("build.rs")],
    };
    match build.run() {
        Ok(artefacts) => {
            let shim = artefacts.first().expect("one artefact for each package");
            println!("cargo::rustc-env=RUNWARDEN_SHIM={}", shim.display());
        }
        Err(error) => nested_cargo::fail(&error),
    }
}

/// What is packed: a directory, and where its files are in the archive.
const PACKED: &[(&str, &str)] = &[
    ("templates", ""),
    ("../policies/kit/src", "kit/src"),
    ("../wit/policy", "wit"),
    ("../wit/types", "wit/deps/types"),
    ("../wit/host", "wit/deps/host"),
    ("../wit/notify", "wit/deps/notify"),
];

/// Writes every file, its name and its length before it, as one compressed archive. Small numbers cost little of it: what
/// the level costs is time at the build.
fn pack() {
    const LEVEL: u8 = 10;
    let mut archive = Vec::new();
    for (directory, below) in PACKED {
        println!("cargo::rerun-if-changed={directory}");
        let directory = Path::new(directory);
        for path in files(directory) {
            let inside = path.strip_prefix(directory).expect("it was found there");
            let name = Path::new(below).join(inside);
            let name = name.to_str().expect("templates have plain names");
            let content = std::fs::read(&path).expect("a template can be read");
            for part in [name.as_bytes(), &content] {
                let length = u32::try_from(part.len()).expect("a template is small");
                archive.extend(length.to_le_bytes());
                archive.extend(part);
            }
        }
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("templates.bin");
    let packed = miniz_oxide::deflate::compress_to_vec(&archive, LEVEL);
    std::fs::write(out, packed).expect("write the archive");
}

/// Every file below a directory, sorted.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("templates are there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

//! Builds the shim for the same target, so that the command can carry it.

use std::path::Path;

fn main() {
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

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::environment::is_removed;
use crate::{Error, watch};

/// What the inner cargo is to build: one artefact for each package.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// Packages of the workspace. For a `wasm32` target each is a `cdylib`, else each has a binary of its own name.
    pub packages: &'a [&'a str],
    /// The target's triple; none is the one that the outer cargo builds for.
    pub target: Option<&'a str>,
    /// A profile of the workspace.
    pub profile: &'a str,
    /// Variables for the inner cargo.
    pub envs: &'a [(&'a str, &'a str)],
    /// Paths that make the build script run again, beside what the artefacts are made of.
    pub watch: &'a [&'a Path],
}

impl Build<'_> {
    /// Builds, tells the outer cargo what to watch, and gives the artefacts in the order of the packages. Blocks until
    /// the inner cargo has ended; a second call with nothing changed is quick.
    ///
    /// # Errors
    /// When the target is not installed, the inner cargo fails, or this is not a build script.
    pub fn run(&self) -> Result<Vec<PathBuf>, Error> {
        let target = match self.target {
            Some(target) => target.to_owned(),
            None => variable("TARGET")?.to_string_lossy().into_owned(),
        };
        require_target(&target)?;
        let root = watch::root(Path::new(&variable("CARGO_MANIFEST_DIR")?));
        let directory = PathBuf::from(variable("OUT_DIR")?).join("nested");
        let output = start(&mut self.command(&root, &directory, &target)?)?;
        if !output.status.success() {
            return Err(Error::Failed {
                status: output.status,
                output: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
            });
        }
        let artefacts = self.artefacts(&directory, &target)?;
        watch::artefacts(&root, &artefacts, self.watch)?;
        Ok(artefacts)
    }

    fn command(&self, root: &Path, directory: &Path, target: &str) -> Result<Command, Error> {
        let mut command = Command::new(variable("CARGO")?);
        command.current_dir(root).arg("build");
        command.arg("--manifest-path").arg(root.join("Cargo.toml"));
        command.arg("--target-dir").arg(directory);
        command.args(["--target", target, "--profile", self.profile]);
        if root.join("Cargo.lock").exists() {
            // The outer cargo has brought it up to date; the inner one must not write it.
            command.arg("--locked");
        }
        for package in self.packages {
            command.args(["--package", package]);
        }
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_removed) {
                command.env_remove(name);
            }
        }
        if self.target.is_some() {
            // Set, so that flags meant for another target do not come back from a configuration file.
            command.env("CARGO_ENCODED_RUSTFLAGS", reproducible_flags(root));
        }
        // A build directory that a configuration file shares between builds is locked by the outer cargo.
        command.env("CARGO_BUILD_BUILD_DIR", directory);
        command.envs(self.envs.iter().copied());
        Ok(command)
    }

    fn artefacts(&self, directory: &Path, target: &str) -> Result<Vec<PathBuf>, Error> {
        let profile = match self.profile {
            "dev" | "test" => "debug",
            "bench" => "release",
            profile => profile,
        };
        let directory = directory.join(target).join(profile);
        let paths = self.packages.iter().map(|package| {
            let path = directory.join(file_name(package, target));
            if path.exists() {
                Ok(path)
            } else {
                Err(Error::ArtefactMissing { path })
            }
        });
        paths.collect()
    }
}

fn file_name(package: &str, target: &str) -> String {
    if target.starts_with("wasm32") {
        format!("{}.wasm", package.replace('-', "_"))
    } else if target.contains("windows") {
        format!("{package}.exe")
    } else {
        package.to_owned()
    }
}

/// Without the paths of this machine the same sources give the same bytes, and so the same digest, everywhere.
fn reproducible_flags(root: &Path) -> OsString {
    let mut flags = OsString::new();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    if let Some(cargo_home) = cargo_home {
        flags.push("--remap-path-prefix=");
        flags.push(cargo_home);
        flags.push("=/cargo\u{1f}");
    }
    flags.push("--remap-path-prefix=");
    flags.push(root);
    flags.push("=/runwarden");
    flags
}

/// Asks the compiler where the target's standard library would be.
fn require_target(target: &str) -> Result<(), Error> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let mut command = Command::new(rustc);
    let output = start(command.args(["--print", "target-libdir", "--target", target]))?;
    let directory = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && Path::new(&directory).is_dir() {
        Ok(())
    } else {
        Err(Error::TargetMissing {
            target: target.to_owned(),
        })
    }
}

fn start(command: &mut Command) -> Result<Output, Error> {
    command.output().map_err(|source| Error::Io {
        operation: format!("start {}", Path::new(command.get_program()).display()),
        source,
    })
}

fn variable(variable: &'static str) -> Result<OsString, Error> {
    std::env::var_os(variable).ok_or(Error::NotABuildScript { variable })
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_component_is_named_like_a_library_and_a_binary_like_its_package() {
        let check = |target, expected| assert_eq!(file_name("a-b", target), expected);
        check("wasm32-unknown-unknown", "a_b.wasm");
        check("x86_64-unknown-linux-gnu", "a-b");
        check("x86_64-pc-windows-msvc", "a-b.exe");
    }
}

//! Homes to measure in, and the programs measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use runwarden_host::policy::Limits;
use runwarden_host::store::OpenMode;
use runwarden_host::{Clock, Config, Host};
use tempfile::TempDir;

/// A home that is removed at the end.
#[derive(Debug)]
pub struct Home {
    directory: TempDir,
}

impl Home {
    /// A home that is not there yet.
    ///
    /// # Errors
    /// The temporary directory cannot be made.
    pub fn new() -> Result<Self> {
        // Beside the build's output: a temporary directory may be in memory, where nothing is ever made durable.
        let base = own_directory()?;
        let directory = tempfile::Builder::new().prefix("home-").tempdir_in(base)?;
        Ok(Self { directory })
    }

    /// Where the home is.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Where its database is.
    pub fn database(&self) -> PathBuf {
        self.path().join("state.db")
    }

    /// Opens it, with the bundled policies, as the command does.
    ///
    /// # Errors
    /// The store cannot be made.
    pub fn open(&self) -> Result<Host> {
        Ok(Host::create(self.config())?)
    }

    /// What a host is opened with that starts nothing.
    pub fn config(&self) -> Config {
        config(self.path())
    }

    /// The command in this home, with no streams of ours.
    ///
    /// # Errors
    /// The command is not built and cannot be.
    pub fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(program()?);
        command.env_clear().arg("--home").arg(self.path()).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    }
}

fn config(home: PathBuf) -> Config {
    Config {
        home,
        database: None,
        limits: Limits::DEFAULT,
        clock: Clock::System,
        compiler: None,
        program: PathBuf::new(),
        shim: &[],
        variable: |_| None,
    }
}

/// The library on a home that is there.
///
/// # Errors
/// Its store cannot be opened.
pub fn library(home: PathBuf) -> Result<Host> {
    Ok(Host::open(config(home), OpenMode::Existing)?)
}

/// The `runwarden` built with this program; it is built when it is missing.
///
/// # Errors
/// It is not there and cannot be built.
pub fn program() -> Result<PathBuf> {
    let path = own_directory()?.join("runwarden");
    if path.exists() {
        return Ok(path);
    }
    let mut build = Command::new("cargo");
    build.args(["build", "-p", "runwarden"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).spawn()?.wait()?;
    ensure!(
        built.success() && path.exists(),
        "cargo did not make {}",
        path.display()
    );
    Ok(path)
}

/// Another program of this package.
///
/// # Errors
/// It is not built.
pub fn sibling(name: &str) -> Result<PathBuf> {
    let path = own_directory()?.join(name);
    let how = "`cargo build --release -p runwarden-benches` makes it";
    ensure!(path.exists(), "{} is not there: {how}", path.display());
    Ok(path)
}

fn own_directory() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    own.parent().map(Path::to_owned).context("a program is in a directory")
}

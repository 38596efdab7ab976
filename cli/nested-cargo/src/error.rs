use std::fmt;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why there are no artefacts.
#[derive(Debug)]
pub enum Error {
    /// The standard library of the target is not installed.
    TargetMissing {
        /// The target's triple.
        target: String,
    },
    /// A variable that cargo sets for build scripts is not there.
    NotABuildScript {
        /// The variable.
        variable: &'static str,
    },
    /// A program could not be started, or a file not be read.
    Io {
        /// What was tried.
        operation: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The inner cargo failed.
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        output: String,
    },
    /// The inner cargo succeeded and did not leave the artefact.
    ArtefactMissing {
        /// Where it should be.
        path: PathBuf,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TargetMissing { target } => write!(formatter, "run `rustup target add {target}`"),
            Self::NotABuildScript { variable } => {
                write!(formatter, "{variable} is not set: this is not a build script")
            }
            Self::Io { operation, .. } => write!(formatter, "cannot {operation}"),
            Self::Failed { status, output } => {
                write!(formatter, "the nested cargo ended with {status}\n{output}")
            }
            Self::ArtefactMissing { path } => {
                write!(formatter, "the nested cargo left no {}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Ends the build script so that the outer cargo shows the error. A missing target is one line and nothing else.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "this is how a build script talks to cargo, and ends"
)]
pub fn fail(error: &Error) -> ! {
    if let Error::TargetMissing { .. } = error {
        // Cargo fails the build for this line alone, without a dump of what the script said.
        println!("cargo::error={error}");
        std::process::exit(0);
    }
    eprintln!("error: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        eprintln!("caused by: {source}");
        cause = source.source();
    }
    std::process::exit(1);
}

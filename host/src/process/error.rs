use std::io;
use std::path::PathBuf;

use runwarden_shim::Malformed;
use runwarden_shim::message::Stage;

/// What can go wrong between the host and the operating system.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The command cannot be given to any process; found before anything was created.
    #[error("{what} {why}")]
    InvalidCommand {
        /// Which part.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file of a run directory, or of the cache, could not be used.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A system call that needs no file failed.
    #[error("cannot {action}")]
    System {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The exit file is there but is not one.
    #[error("{} is not an exit record", path.display())]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The shim refused to hold a worker; nothing was executed and nothing will be.
    #[error("the start was refused at stage `{}`", stage.text())]
    StartRefused {
        /// The step that failed.
        stage: Stage,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The shim ended without an answer.
    #[error("the shim ended without an answer")]
    ShimGone,
    /// The shim gave no answer in time.
    #[error("the shim gave no answer within {waited_ms} ms")]
    ShimSilent {
        /// How long was waited.
        waited_ms: u64,
    },
    /// The shim said something that does not belong here.
    #[error("the shim gave an answer that does not belong here")]
    Protocol {
        /// What did not fit.
        #[source]
        source: Malformed,
    },
}

impl ProcessError {
    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }

    pub(super) fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            action,
            source: source.into(),
        }
    }
}

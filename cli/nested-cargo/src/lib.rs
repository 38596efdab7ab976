//! Runs cargo from a build script, for packages of the same workspace and another target or profile.
//!
//! The inner cargo gets a target directory of its own below `OUT_DIR`, so it never waits for the lock that the outer
//! one holds, and none of the outer build's compiler settings. It shares the outer jobserver. What it read is
//! reported to the outer cargo, so that a build script runs again exactly when one of those files changed.
//!
//! ```no_run
//! let build = nested_cargo::Build {
//!     packages: &["guest"],
//!     target: Some("wasm32-unknown-unknown"),
//!     profile: "guest",
//!     envs: &[],
//!     watch: &[],
//! };
//! match build.run() {
//!     Ok(artefacts) => assert_eq!(artefacts.len(), 1),
//!     Err(error) => nested_cargo::fail(&error),
//! }
//! ```

mod build;
mod dep_info;
mod environment;
mod error;
mod watch;

pub use build::Build;
pub use error::{Error, fail};

//! The names of the files in a run directory, and how much of them is reserved before a run starts.

/// Locked (`flock`) by the shim for as long as it lives.
pub const LOCK: &str = "lock";
/// The stop file: [`crate::slot::COUNT`] slots of [`crate::slot::BYTES`] bytes.
pub const STOP: &str = "stop";
/// Who below the shim is of another run: lines of [`crate::spared`].
pub const SPARED: &str = "spared";
/// How the run ended, as JSON; appears complete or not at all.
pub const EXIT: &str = "exit.json";
/// The two reserved files that become [`EXIT`] by renaming, used in turn.
pub const EXIT_RESERVES: [&str; 2] = ["exit.tmp", "exit2.tmp"];
/// Size of each reserve, and so the limit of the exit file.
pub const EXIT_BYTES: usize = 4096;
/// What the worker wrote to standard output.
pub const STDOUT_LOG: &str = "stdout.log";
/// What the worker wrote to standard error.
pub const STDERR_LOG: &str = "stderr.log";
/// What the worker wrote to its pseudo-terminal.
pub const OUTPUT_LOG: &str = "output.log";
/// In which order, and when, the logs grew: records of [`crate::order`].
pub const ORDER_LOG: &str = "order.log";
/// Output of the finishing command.
pub const FINISH_LOG: &str = "finish.log";
/// The description of the run, written by the host.
pub const RUN: &str = "run.json";
/// The directory a program may leave evidence in.
pub const ARTIFACTS: &str = "artifacts";

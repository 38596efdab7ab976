//! What tells a command to stop that goes on until it is told.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::errors::{Failure, Outcome};
use crate::exit::Exit;

/// Ctrl-C and TERM, watched.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Watches them from here on; inside a runtime.
    pub(crate) fn watch() -> Outcome<Self> {
        let watch = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(Exit::IO, "system", "cannot watch signals").cause(error.to_string()))
        };
        Ok(Self {
            interrupt: watch(SignalKind::interrupt())?,
            terminate: watch(SignalKind::terminate())?,
        })
    }

    /// The next of them. Nothing is lost when the answer is not waited for.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

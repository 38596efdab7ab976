//! The signals that the foreground command acts on.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal, by what it means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Ctrl-C.
    Interrupt,
    /// We are told to end.
    Terminate,
    /// The terminal went away.
    Hangup,
    /// The terminal has another size.
    Window,
}

/// The signals listened to.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    window: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            window: listen(SignalKind::window_change())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Received {
        tokio::select! {
            _ = self.interrupt.recv() => Received::Interrupt,
            _ = self.terminate.recv() => Received::Terminate,
            _ = self.hangup.recv() => Received::Hangup,
            _ = self.window.recv() => Received::Window,
        }
    }
}

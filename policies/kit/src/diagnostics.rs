//! Words for the host's log, and the last words before a trap.

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something is wrong.
    Error,
    /// Something may be wrong.
    Warn,
    /// Worth knowing.
    Info,
    /// For the author.
    Debug,
}

/// Adds a line to the host's log; outside a component it does nothing. Over-long text is cut by the host.
pub fn log(level: Level, message: &str) {
    let level = match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
    };
    send_log(level, message);
}

/// From now on a panic tells the host its message and place before the trap: a component has no panic payload.
#[cfg(target_arch = "wasm32")]
pub fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("a panic without a message");
        let (file, line, column) = match info.location() {
            Some(place) => (place.file(), place.line(), place.column()),
            None => ("", 0, 0),
        };
        host::report_panic(message, file, i64::from(line), i64::from(column));
    }));
}

/// Outside a component the standard hook is kept.
#[cfg(not(target_arch = "wasm32"))]
pub fn report_panics() {}

#[cfg(target_arch = "wasm32")]
fn send_log(level: &str, message: &str) {
    host::log(level, message);
}

#[cfg(not(target_arch = "wasm32"))]
fn send_log(_level: &str, _message: &str) {}

#[cfg(target_arch = "wasm32")]
use crate::bindings::lifecycle_policy::runwarden::host::diagnostics as host;

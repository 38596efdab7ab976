//! The one interface that a component of this line may import.

use wasmtime::component::{HasSelf, Linker};

use super::bindings::runwarden::host::diagnostics;
use crate::policy::instance::CallState;

/// Gives components of this line what they may import.
pub(super) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    diagnostics::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)
}

impl diagnostics::Host for CallState {
    fn log(&mut self, level: String, message: String) {
        self.note(&level, &message);
    }

    fn report_panic(&mut self, message: String, file: String, line: i64, column: i64) {
        self.panicked(&message, &file, line, column);
    }
}

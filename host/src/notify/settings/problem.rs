//! What is wrong with settings, told with a code that stays.

use crate::model::{Layer, NotifyDiagnostic, nearest};

/// One thing that is wrong, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Stable words joined by underscores.
    pub code: String,
    /// For people. It names keys and never repeats a value that might be a secret.
    pub message: String,
}

impl Problem {
    /// A problem.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }

    /// The same as an entity keeps it.
    pub fn diagnostic(&self, handler: Option<&str>, layer: Layer) -> NotifyDiagnostic {
        NotifyDiagnostic {
            code: self.code.clone(),
            handler: handler.map(str::to_owned),
            layer,
            message: self.message.clone(),
        }
    }
}

/// A key that nothing reads, with the one that was probably meant.
pub(super) fn unknown_key(code: &str, at: &str, key: &str, known: &[&str]) -> Problem {
    let meant = match nearest(key, known.iter().copied()) {
        Some(other) => format!("did you mean `{other}`?"),
        None => format!("known are {}", known.join(", ")),
    };
    Problem::new(code, format!("`{key}` is no key of {at}: {meant}"))
}

use super::texts;
use crate::{HandlerDescriptor, Parameter};

/// A handler without parameters that reaches nothing yet.
pub fn handler(name: &str, version: &str, summary: &str) -> HandlerDescriptor {
    HandlerDescriptor {
        name: name.to_owned(),
        version: version.to_owned(),
        summary: summary.to_owned(),
        config: Vec::new(),
        transports: Vec::new(),
        ext: Vec::new(),
    }
}

/// What takes rows adds them to those that are there.
impl HandlerDescriptor {
    /// Admits destinations of these transports: exec, webhook, file.
    #[must_use]
    pub fn transports(mut self, words: &[&str]) -> Self {
        self.transports.extend(texts(words));
        self
    }

    /// Adds parameters that a binding may configure.
    #[must_use]
    pub fn parameters(mut self, rows: impl IntoIterator<Item = Parameter>) -> Self {
        self.config.extend(rows);
        self
    }
}

use super::texts;
use crate::Edge;

/// A move that everybody may make.
pub fn edge(from: &str, to: &str) -> Edge {
    Edge {
        from: from.to_owned(),
        to: to.to_owned(),
        actors: Vec::new(),
        required_patch: Vec::new(),
        required_guards: Vec::new(),
        guarded: false,
        ext: Vec::new(),
    }
}

/// Moves from one status to each of several, open to everybody.
pub fn edges(from: &str, targets: &[&str]) -> Vec<Edge> {
    targets.iter().map(|to| edge(from, to)).collect()
}

impl Edge {
    /// Admits these actor kinds alone.
    #[must_use]
    pub fn only(mut self, actors: &[&str]) -> Self {
        self.actors = texts(actors);
        self
    }

    /// The command must patch these fields.
    #[must_use]
    pub fn patching(mut self, fields: &[&str]) -> Self {
        self.required_patch = texts(fields);
        self
    }

    /// The command must guard these fields, or bring an expected version.
    #[must_use]
    pub fn guarding(mut self, fields: &[&str]) -> Self {
        self.required_guards = texts(fields);
        self
    }

    /// The policy's guard function is asked before the write.
    #[must_use]
    pub fn guarded(mut self) -> Self {
        self.guarded = true;
        self
    }
}

//! Who asks for a change.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of actor (SEMANTICS: a transition). An edge may admit only some of them.
pub const ACTOR_KINDS: [&str; 7] = [
    "executor",
    "agent",
    "admin",
    "system",
    "scheduler",
    "operator",
    "webhook",
];

/// Who asks for a change: a kind out of [`ACTOR_KINDS`] and a name that is never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// One of [`ACTOR_KINDS`].
    pub kind: String,
    /// Which one of that kind.
    pub id: String,
}

impl Actor {
    /// An actor; validity is judged with the command that carries it.
    pub fn new(kind: &str, id: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            id: id.to_owned(),
        }
    }

    /// The host itself, in the part named.
    pub fn system(part: &str) -> Self {
        Self::new("system", part)
    }

    /// What is wrong with this actor, in words; none when nothing is.
    pub fn problem(&self) -> Option<String> {
        if !ACTOR_KINDS.contains(&self.kind.as_str()) {
            return Some(format!(
                "actor kind `{}` is not one of {}",
                self.kind,
                ACTOR_KINDS.join(", ")
            ));
        }
        self.id.trim().is_empty().then(|| "the actor's id is empty".to_owned())
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.id)
    }
}

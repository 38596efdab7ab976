//! Names: ids, references, event ids.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The shortest prefix of an id that may stand for it.
pub const PREFIX_CHARS_MIN: usize = 4;

/// The longest id a user may give.
const ID_CHARS_MAX: usize = 128;

/// Letters of generated ids: lower case and digits without look-alikes (no 0, 1, i, l, o, u).
const ALPHABET: &[u8; 30] = b"23456789abcdefghjkmnpqrstvwxyz";

/// Length of generated ids: 30^10 values, so that a store of a million ids meets one collision in a thousand draws of
/// a million; a collision is found by the store's unique index and drawn again.
const GENERATED_CHARS: usize = 10;

/// Why a text is no id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Empty or longer than 128 characters.
    #[error("an id has 1 to {ID_CHARS_MAX} characters, `{0}` has {length}", length = .0.chars().count())]
    Length(String),
    /// A character outside `A-Z a-z 0-9 . _ -`.
    #[error("an id is made of letters, digits, `.`, `_` and `-`; `{id}` has {found:?}")]
    Character {
        /// The id given.
        id: String,
        /// The first character that does not fit.
        found: char,
    },
    /// Begins with something other than a letter or digit.
    #[error("an id begins with a letter or digit; `{0}` does not")]
    Start(String),
}

/// Judges an id that a user gave.
///
/// # Errors
/// [`IdError`] says what does not fit.
pub fn validate_id(id: &str) -> Result<(), IdError> {
    if id.is_empty() || id.chars().count() > ID_CHARS_MAX {
        return Err(IdError::Length(id.to_owned()));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if let Some(found) = id.chars().find(|c| !fits(*c)) {
        return Err(IdError::Character {
            id: id.to_owned(),
            found,
        });
    }
    match id.chars().next() {
        Some(first) if first.is_ascii_alphanumeric() => Ok(()),
        _ => Err(IdError::Start(id.to_owned())),
    }
}

/// An id made from random bytes: short, lower case, told apart by its first characters.
pub fn generate_id(entropy: [u8; 16]) -> String {
    let mut value = u128::from_le_bytes(entropy);
    let base = ALPHABET.len() as u128;
    (0..GENERATED_CHARS)
        .map(|_| {
            let index = usize::try_from(value % base).unwrap_or(0);
            value /= base;
            char::from(ALPHABET[index])
        })
        .collect()
}

/// A kind and an id, written `kind/id`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Reference {
    /// The entity's kind.
    pub kind: String,
    /// The entity's id, unique in the store whatever the kind.
    pub id: String,
}

impl Reference {
    /// The reference of an entity.
    pub fn new(kind: &str, id: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            id: id.to_owned(),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}

/// The id of one history row, which is the id of the event it made, if it made one: `STORE:ID:VERSION`.
///
/// It is known before the write (the version a write will have is known), costs no column and no index, and is unique
/// among stores because each has a random name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(String);

impl EventId {
    /// The id of the history row that gives entity `id` its version `version`.
    pub fn new(store: &str, id: &str, version: i64) -> Self {
        use fmt::Write as _;
        const VERSION_CHARS: usize = 20;
        let mut text = String::with_capacity(store.len() + id.len() + VERSION_CHARS + 2);
        write!(text, "{store}:{id}:{version}").expect("writing to a string cannot fail");
        Self(text)
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the entity whose event it is: ids hold no colon.
    pub fn entity_id(&self) -> &str {
        self.0.split(':').nth(1).unwrap_or_default()
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind a word means: itself when it is known, or the known kind of which it is the plural.
pub fn singular<'a>(word: &'a str, known: &[impl AsRef<str>]) -> Option<&'a str> {
    let is_known = |candidate: &str| known.iter().any(|kind| kind.as_ref() == candidate);
    let stems = [Some(word), word.strip_suffix('s'), word.strip_suffix("es")];
    stems.into_iter().flatten().find(|stem| is_known(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_judged_by_length_characters_and_start() {
        for good in ["a", "7", "nightly-build.2", "A_b-c.d", &"x".repeat(128)] {
            assert_eq!(validate_id(good), Ok(()), "{good}");
        }
        for bad in ["", ".a", "-a", "a/b", "a b", "a\n", "é", &"x".repeat(129)] {
            assert!(validate_id(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_generated_id_is_a_valid_id_and_differs_with_its_entropy() {
        let (one, two) = (generate_id([7; 16]), generate_id([8; 16]));
        assert_ne!(one, two);
        for id in [one, two, generate_id([0; 16]), generate_id([255; 16])] {
            assert_eq!(validate_id(&id), Ok(()));
            assert_eq!(id.len(), GENERATED_CHARS);
        }
    }

    #[test]
    fn plurals_are_understood_only_of_known_kinds() {
        let known = ["session", "play", "dispatch", "schedule_run"];
        assert_eq!(singular("sessions", &known), Some("session"));
        assert_eq!(singular("dispatches", &known), Some("dispatch"));
        assert_eq!(singular("play", &known), Some("play"));
        assert_eq!(singular("shows", &known), None);
        assert_eq!(singular("", &known), None);
    }
}

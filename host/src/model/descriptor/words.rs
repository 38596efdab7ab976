//! Words of a descriptor that are one of a few.

use serde::{Deserialize, Serialize};

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// A whole number of 64 bits.
    Integer,
    /// Any number.
    Number,
    /// Text.
    Text,
    /// True or false.
    Boolean,
    /// A moment, kept as milliseconds since the epoch.
    Timestamp,
    /// Any JSON value.
    Json,
}

impl FieldKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Integer,
        Self::Number,
        Self::Text,
        Self::Boolean,
        Self::Timestamp,
        Self::Json,
    ];

    /// The kind in a sentence such as "takes …".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::Boolean => "true or false",
            Self::Timestamp => "a time (RFC 3339, or milliseconds since the epoch)",
            Self::Json => "any JSON value",
        }
    }

    /// The word that a descriptor says it with.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Text => "text",
            Self::Boolean => "boolean",
            Self::Timestamp => "timestamp",
            Self::Json => "json",
        }
    }

    /// The kind named by a descriptor's word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// Whether a write of the status an entity already has is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SameStatus {
    /// Allowed: it refreshes the reason and adds history.
    Append,
    /// Rejected.
    Reject,
}

impl SameStatus {
    /// The word that a descriptor says it with.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Reject => "reject",
        }
    }

    /// What a descriptor's word says.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Append, Self::Reject]
            .into_iter()
            .find(|known| known.word() == word)
    }
}

/// Whether a kill reaches what is linked below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cascade {
    /// Only with `--recursive`.
    Recursive,
    /// Always.
    Always,
}

impl Cascade {
    /// The word that a descriptor says it with.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Recursive => "recursive",
            Self::Always => "always",
        }
    }

    /// What a descriptor's word says.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Recursive, Self::Always]
            .into_iter()
            .find(|known| known.word() == word)
    }
}

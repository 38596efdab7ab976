//! What is told of an end, and to whom: the settings that an entity keeps, and where a binding's destinations lead.
//!
//! An operator's settings fix what a plan may reach (SEMANTICS 3): a handler names destinations, and never supplies a
//! program, an address or a path.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DurationMs, Fields, Tags};

/// How long one attempt of a delivery may take when a destination does not say.
pub const TIMEOUT_DEFAULT: DurationMs = DurationMs::from_ms(10_000);

/// The longest that one attempt may take.
pub const TIMEOUT_MAX: DurationMs = DurationMs::from_ms(300_000);

/// What is added to a transport's time limit for the lease of a claim: whoever holds it has time to write the outcome.
pub const CLAIM_MARGIN: DurationMs = DurationMs::from_ms(5_000);

/// Where a value of the settings came from; earlier ones decide before later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Given with the run.
    Run,
    /// `.runwarden/settings.toml` of the working directory or of a directory above it.
    Project,
    /// The user's own settings file.
    Global,
    /// A binding in the store.
    Store,
}

impl Layer {
    /// Its word: run, project, global or store.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Project => "project",
            Self::Global => "global",
            Self::Store => "store",
        }
    }
}

/// The notify settings of an entity: resolved when it was created, and what every later process uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NotifySettings {
    /// The handlers that are told, in order of their names.
    pub handlers: Vec<BoundHandler>,
    /// Tags that envelopes carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata_tags: Vec<String>,
    /// What was asked for and refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<NotifyDiagnostic>,
}

impl NotifySettings {
    /// As an entity keeps it: null when there is nothing to say.
    pub fn stored(&self) -> Value {
        if self.handlers.is_empty() && self.metadata_tags.is_empty() && self.diagnostics.is_empty() {
            return Value::Null;
        }
        serde_json::to_value(self).expect("settings have string keys alone")
    }

    /// What an entity keeps; none when it keeps nothing, or what an older version wrote and this one cannot read.
    pub fn of_stored(stored: &Value) -> Option<Self> {
        Self::deserialize(stored).ok()
    }
}

/// The tags that an entity's stored settings let out, with their values.
pub fn let_out(stored: &Value, tags: &Tags) -> Tags {
    let names = stored["metadata_tags"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let named = names.iter().filter_map(Value::as_str);
    named
        .filter_map(|name| tags.get_key_value(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A handler with what it is bound to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundHandler {
    /// The binding's name.
    pub name: String,
    /// Where it was configured.
    pub layer: Layer,
    /// `name@version` of its component, for people.
    pub component: String,
    /// SHA-256 of its component, in hexadecimal.
    pub digest: String,
    /// Its configuration: fits the component's parameters, defaults not filled in.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub config: Fields,
    /// Which events it is told.
    #[serde(default)]
    pub filter: EventFilter,
    /// What its plans may name.
    pub destinations: BTreeMap<String, Destination>,
}

/// Which events a handler is told: an empty list admits all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventFilter {
    /// Kinds of entities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Statuses entered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<String>,
}

impl EventFilter {
    /// Whether it admits an entity of that kind that entered that status.
    pub fn admits(&self, kind: &str, status: &str) -> bool {
        let within = |list: &[String], word: &str| list.is_empty() || list.iter().any(|listed| listed == word);
        within(&self.kinds, kind) && within(&self.statuses, status)
    }
}

/// Something in the settings that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifyDiagnostic {
    /// Stable words joined by underscores.
    pub code: String,
    /// The handler it concerns, when it concerns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Where it was found.
    pub layer: Layer,
    /// What was wrong and what to write instead.
    pub message: String,
}

/// Where a binding's dispatches go. Secrets are named, never held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// How it is reached.
    #[serde(flatten)]
    pub transport: Transport,
    /// How long one attempt may take.
    pub timeout_ms: DurationMs,
}

/// How a destination is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "transport", rename_all = "snake_case")]
pub enum Transport {
    /// A program, started without a shell.
    Exec {
        /// Program and arguments; an argument that is `{payload}` is replaced by the body.
        argv: Vec<String>,
        /// Names of environment variables it gets beside the documented ones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        env: Vec<String>,
    },
    /// An HTTPS POST, signed as Standard Webhooks says.
    Webhook {
        /// Where to.
        url: Source,
        /// Signing secrets; the first signs, all of them sign while keys are rotated. None: unsigned.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<SecretReference>,
        /// Loopback, private and link-local addresses may be reached, and plain HTTP to them.
        #[serde(default)]
        allow_private: bool,
        /// A PEM file of certificate authorities trusted instead of the machine's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ca_file: Option<String>,
    },
    /// One JSON line appended to a file.
    File {
        /// The file.
        path: String,
    },
}

impl Transport {
    /// Its word: exec, webhook or file.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Exec { .. } => "exec",
            Self::Webhook { .. } => "webhook",
            Self::File { .. } => "file",
        }
    }
}

/// A value that is given, or that is read where and when it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The value itself.
    Given(String),
    /// An environment variable that holds it.
    Env(String),
    /// A file that holds it.
    File(String),
}

/// Where a secret is read when it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretReference {
    /// An environment variable.
    Env(String),
    /// A file.
    File(String),
}

impl SecretReference {
    /// The variable, when it is one.
    pub const fn variable(&self) -> Option<&String> {
        match self {
            Self::Env(name) => Some(name),
            Self::File(_) => None,
        }
    }

    /// The file, when it is one.
    pub const fn file(&self) -> Option<&String> {
        match self {
            Self::Env(_) => None,
            Self::File(path) => Some(path),
        }
    }
}

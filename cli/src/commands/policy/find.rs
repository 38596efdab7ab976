//! From a word to the component it means.

use std::path::Path;
use std::sync::Arc;

use runwarden_host::model::{Described, Entity, HANDLER_KIND, HandlerDescriptor, Lifecycle, RaisedLimits};
use runwarden_host::policy::{Inspected, Limits, inspect, select};
use runwarden_host::store::ComponentRecord;
use runwarden_host::verbs::{examine, limits_for};
use runwarden_host::{Error, Host};

use super::limits::LimitArgs;
use crate::errors::{Failure, Outcome, finding_line};

/// What a component says of itself.
pub(super) enum Says {
    /// A policy's graph.
    Policy(Arc<Lifecycle>),
    /// A handler's descriptor.
    Handler(Arc<HandlerDescriptor>),
}

/// A policy or handler, installed or in a file.
pub(super) struct Subject {
    /// What it says of itself.
    pub(super) says: Says,
    /// SHA-256 in hexadecimal.
    pub(super) digest: String,
    /// Its size.
    pub(super) size_bytes: usize,
    /// What it shows from outside.
    pub(super) inspected: Inspected,
    /// What is doubtful about it.
    pub(super) warnings: Vec<String>,
    /// What it may use.
    pub(super) limits: Limits,
    /// Which of that is raised for it.
    pub(super) raised: RaisedLimits,
}

impl Subject {
    /// The kind that a policy is for, or what a handler is listed as.
    pub(super) fn kind(&self) -> &str {
        match &self.says {
            Says::Policy(lifecycle) => lifecycle.kind(),
            Says::Handler(_) => HANDLER_KIND,
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        match &self.says {
            Says::Policy(lifecycle) => &lifecycle.descriptor().name,
            Says::Handler(descriptor) => &descriptor.name,
        }
    }

    /// Its version.
    pub(super) fn version(&self) -> &str {
        match &self.says {
            Says::Policy(lifecycle) => &lifecycle.descriptor().version,
            Says::Handler(descriptor) => &descriptor.version,
        }
    }

    /// What it is.
    pub(super) fn summary(&self) -> &str {
        match &self.says {
            Says::Policy(lifecycle) => &lifecycle.descriptor().summary,
            Says::Handler(descriptor) => &descriptor.summary,
        }
    }

    /// A policy's graph.
    ///
    /// # Errors
    /// It is a handler.
    pub(super) fn lifecycle(&self) -> Outcome<&Arc<Lifecycle>> {
        match &self.says {
            Says::Policy(lifecycle) => Ok(lifecycle),
            Says::Handler(descriptor) => {
                let label = descriptor.label();
                Err(
                    Failure::usage(format!("{label} is a handler: it has no statuses to draw"))
                        .hint(format!("`runwarden policy show {label}` says what it is")),
                )
            }
        }
    }
}

/// The component that a word means: a file, a kind (the active policy), `NAME@V`, a handler's name, or a digest prefix.
/// Limits can be raised for a file.
pub(super) fn component(host: &Host, word: &str, raised: &RaisedLimits) -> Outcome<Subject> {
    match candidate(host, word, raised)? {
        Found::File(bytes) => in_bytes(host, &bytes, raised),
        Found::Installed(digest) => by_digest(host, &digest, word),
    }
}

/// Where the component is that a word means.
pub(super) enum Found {
    /// In a file, with these bytes.
    File(Vec<u8>),
    /// In the store, under this digest.
    Installed(String),
}

/// Whether a word is the path of a component.
fn is_file(word: &str) -> bool {
    word.contains('/') || Path::new(word).extension().is_some_and(|ending| ending == "wasm")
}

/// One of several components, of which only files can have raised limits.
pub(super) fn one_of_several(host: &Host, word: &str, limits: &LimitArgs) -> Outcome<Subject> {
    let raised = if is_file(word) {
        limits.raised()
    } else {
        RaisedLimits::default()
    };
    component(host, word, &raised)
}

/// The same, not looked into yet.
pub(super) fn candidate(host: &Host, word: &str, raised: &RaisedLimits) -> Outcome<Found> {
    if is_file(word) {
        return Ok(Found::File(read(Path::new(word))?));
    }
    if !raised.is_empty() {
        let message = format!("{word} is installed: limits are raised for a file, when it is installed or looked at");
        return Err(Failure::usage(message).hint("`runwarden policy install FILE` raises them, also for what is there"));
    }
    Ok(Found::Installed(installed(host, word)?))
}

/// The policy that an entity is pinned to.
pub(super) fn of_entity(host: &Host, entity: &Entity) -> Outcome<Subject> {
    by_digest(host, &entity.policy.digest, &entity.policy.digest)
}

/// The digest of the installed component that a word means.
fn installed(host: &Host, word: &str) -> Outcome<String> {
    let kinds = host.kinds()?;
    let components = host.store().components()?;
    let (name, version) = word
        .split_once('@')
        .map_or((word, None), |(name, version)| (name, Some(version)));
    let kind = runwarden_host::model::singular(name, &kinds);
    if let (Some(kind), None) = (kind, version) {
        return Ok(host.active_policy(kind)?.pin.digest);
    }
    let words = match (kind, version) {
        (Some(kind), Some(version)) => format!("{kind}@{version}"),
        _ => word.to_owned(),
    };
    let found = select(&components, &words).first().map(|record| record.digest.clone());
    let found = found.or_else(|| of_kind(&components, kind?, version?));
    found.ok_or_else(|| unknown(word, &kinds, &components))
}

/// The newest version of a kind's policies, whatever their names.
fn of_kind(components: &[ComponentRecord], kind: &str, version: &str) -> Option<String> {
    let mut names: Vec<&str> = components
        .iter()
        .filter(|c| c.kind == kind)
        .map(|c| c.name.as_str())
        .collect();
    names.dedup();
    let found = names
        .into_iter()
        .find_map(|name| select(components, &format!("{name}@{version}")).first().copied());
    found.map(|record| record.digest.clone())
}

fn unknown(word: &str, kinds: &[String], components: &[ComponentRecord]) -> Failure {
    let mut failure = Failure::from(Error::UnknownPolicy { word: word.to_owned() });
    let name = word.split('@').next().unwrap_or(word);
    let versions: Vec<String> = components
        .iter()
        .filter(|component| component.kind == name || component.name == name)
        .map(|component| format!("{}@{}", component.name, component.version))
        .collect();
    failure.hints.insert(
        0,
        match versions.as_slice() {
            [] => format!(
                "the kinds are {}; a file is given by its path, ./{word}",
                kinds.join(", ")
            ),
            versions => format!("installed are {}", versions.join(", ")),
        },
    );
    failure
}

fn by_digest(host: &Host, digest: &str, word: &str) -> Outcome<Subject> {
    let unknown = || Error::UnknownPolicy { word: word.to_owned() };
    let says = match host.policies().lifecycle(digest)? {
        Some(lifecycle) => Says::Policy(lifecycle),
        None => Says::Handler(host.policies().handler(digest)?.ok_or_else(unknown)?),
    };
    let bytes = host.store().component_bytes(digest)?.ok_or_else(unknown)?;
    let limits = host.policies().limits_of(digest)?;
    let inspected = inspect(&bytes, limits)?;
    Ok(Subject {
        says,
        digest: digest.to_owned(),
        size_bytes: bytes.len(),
        inspected,
        warnings: Vec::new(),
        limits,
        raised: host.store().raised_limits(digest)?,
    })
}

fn in_bytes(host: &Host, bytes: &[u8], raised: &RaisedLimits) -> Outcome<Subject> {
    let candidate = examine(host, bytes, raised)?;
    let (limits, raised) = limits_for(host, &candidate.digest, raised)?;
    Ok(Subject {
        says: match candidate.descriptor {
            Described::Policy(descriptor) => Says::Policy(Arc::new(Lifecycle::new(*descriptor))),
            Described::Handler(descriptor) => Says::Handler(Arc::new(descriptor)),
        },
        digest: candidate.digest,
        size_bytes: bytes.len(),
        inspected: candidate.inspected,
        warnings: candidate.warnings.iter().map(finding_line).collect(),
        limits,
        raised,
    })
}

/// The bytes of a component's file.
pub(super) fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|error| Failure::file("read", path, &error))
}

//! From a word to the component it means.

use std::path::Path;
use std::sync::Arc;

use runwarden_host::model::{Described, Entity, Finding, HANDLER_KIND, HandlerDescriptor, Lifecycle, RaisedLimits};
use runwarden_host::policy::{Inspected, Limits, findings, inspect, select};
use runwarden_host::provenance::{KeyId, PublicKey};
use runwarden_host::store::ComponentRecord;
use runwarden_host::verbs::{examine, limits_for, trust};
use runwarden_host::{Error, Host};
use serde_json::{Value, json};

use super::limits::LimitArgs;
use crate::errors::{Failure, Outcome};
use crate::notify::files;

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
    pub(super) findings: Vec<Finding>,
    /// What it may use.
    pub(super) limits: Limits,
    /// Which of that is raised for it.
    pub(super) raised: RaisedLimits,
    /// Who signed it, of what is installed.
    pub(super) signers: Vec<Signer>,
}

/// Who signed a component.
#[derive(Clone, Debug)]
pub(super) struct Signer {
    /// Whose key it is, if the settings know it.
    pub(super) name: Option<String>,
    /// The key.
    pub(super) key: PublicKey,
}

impl Signer {
    /// Who signed each installed component, by digest, with the names that the settings give.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) fn all(host: &Host) -> Outcome<Vec<(String, Self)>> {
        let signatures = host.store().signatures()?;
        // Names are for people: without settings that can be read, the keys are shown.
        let trust = trust(&files()).map(|(trust, _)| trust).unwrap_or_default();
        let named = signatures.into_iter().map(|(digest, signed)| {
            let key = PublicKey {
                id: KeyId(signed.key_id),
                bytes: signed.public_key,
            };
            let name = trust.signer(&key.bytes).map(str::to_owned);
            (digest, Self { name, key })
        });
        Ok(named.collect())
    }

    /// The name, else the key.
    pub(super) fn words(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("key {}", self.key.id))
    }

    /// As JSON.
    pub(super) fn json(&self) -> Value {
        json!({"name": self.name, "key_id": self.key.id.to_string(), "key": self.key.to_setting()})
    }
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

    /// The interfaces it exports, with their versions.
    pub(super) fn exports(&self) -> Vec<String> {
        let exports = self.inspected.exports.iter();
        exports
            .map(|export| format!("{}@{}", export.interface, export.version))
            .collect()
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
    only_for_files(word, raised)?;
    Ok(Found::Installed(installed(host, word)?))
}

/// Limits are raised for a file: those of what is installed were, when it was.
///
/// # Errors
/// Some are raised.
pub(super) fn only_for_files(word: &str, raised: &RaisedLimits) -> Outcome<()> {
    if raised.is_empty() {
        return Ok(());
    }
    let message = format!("{word} is installed: limits are raised for a file, when it is installed or looked at");
    Err(Failure::usage(message).hint("`runwarden policy install FILE` raises them, also for what is there"))
}

/// Whether a word is the path of a file, and not a name of what is installed.
pub(super) fn is_file(word: &str) -> bool {
    word.contains('/') || Path::new(word).extension().is_some_and(|ending| ending == "wasm")
}

/// The bytes of the installed component that a word means, and the limits that are raised for it.
pub(super) fn installed_bytes(host: &Host, word: &str) -> Outcome<(Vec<u8>, RaisedLimits)> {
    let digest = installed(host, word)?;
    let bytes = host.store().component_bytes(&digest)?;
    let bytes = bytes.ok_or_else(|| Error::UnknownPolicy { word: word.to_owned() })?;
    Ok((bytes, host.store().raised_limits(&digest)?))
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
    let described = match &says {
        Says::Policy(lifecycle) => Described::Policy(Box::new(lifecycle.descriptor().clone())),
        Says::Handler(descriptor) => Described::Handler((**descriptor).clone()),
    };
    let signers = Signer::all(host)?.into_iter();
    let signers = signers.filter(|(signed, _)| signed == digest).map(|(_, signer)| signer);
    Ok(Subject {
        says,
        digest: digest.to_owned(),
        size_bytes: bytes.len(),
        findings: findings(&described, &inspected),
        inspected,
        limits,
        raised: host.store().raised_limits(digest)?,
        signers: signers.collect(),
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
        findings: candidate.findings,
        limits,
        raised,
        signers: Vec::new(),
    })
}

/// The bytes of a component's file.
pub(super) fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|error| Failure::file("read", path, &error))
}

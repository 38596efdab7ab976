//! The policies and handlers that ship with this binary, as what a store is to be given.

use serde_json::json;

use crate::model::{AdminEvent, Described, Fields, HANDLER_KIND, RaisedLimits, Timestamp};
use crate::policy::{exported, sha256_hex, version_key};
use crate::store::{Activation, Component, ComponentRecord, Installation, StoreError};

/// What a store with these components lacks of what ships. A bundled policy becomes the one in force where its kind has
/// none, or where the one in force is an older bundled one of the same name. A handler is never in force: it is bound.
///
/// # Errors
/// A descriptor that ships cannot be read: the build is broken.
pub(crate) fn missing(present: &[ComponentRecord], now: Timestamp) -> Result<Installation, StoreError> {
    let components: Vec<Component> = runwarden_bundled::POLICIES
        .iter()
        .chain(runwarden_bundled::HANDLERS)
        .filter(|bundled| !present.iter().any(|record| record.digest == bundled.digest))
        .map(|bundled| component(bundled, now))
        .collect::<Result<_, StoreError>>()?;
    Ok(Installation {
        activations: activations(present, &components, now),
        events: components.iter().map(|component| installed(component, now)).collect(),
        components,
    })
}

fn component(bundled: &runwarden_bundled::Bundled, now: Timestamp) -> Result<Component, StoreError> {
    let read = if bundled.kind == HANDLER_KIND {
        serde_json::from_str(bundled.descriptor).map(Described::Handler)
    } else {
        serde_json::from_str(bundled.descriptor).map(Described::Policy)
    };
    let descriptor = read.map_err(|error| StoreError::Failed {
        doing: "reading a bundled descriptor",
        source: Box::new(error),
    })?;
    let bytes = bundled.component();
    debug_assert_eq!(
        sha256_hex(&bytes),
        bundled.digest,
        "the build script computed the digest"
    );
    let record = ComponentRecord {
        digest: bundled.digest.to_owned(),
        kind: descriptor.kind().to_owned(),
        name: descriptor.name().to_owned(),
        version: descriptor.version().to_owned(),
        source: "bundled".to_owned(),
        exports: exported(&bytes).unwrap_or_default(),
        size_bytes: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        installed_at: now,
        active: false,
        in_use: 0,
        raised: RaisedLimits::default(),
    };
    Ok(Component {
        record,
        descriptor: descriptor.canonical(),
        bytes,
        signatures: Vec::new(), // they came with the program
    })
}

/// The newest bundled version of each kind, unless an operator chose another policy.
fn activations(present: &[ComponentRecord], missing: &[Component], now: Timestamp) -> Vec<Activation> {
    let mut newest: Vec<&ComponentRecord> = Vec::new();
    for component in missing {
        let record = &component.record;
        if record.kind == HANDLER_KIND {
            continue;
        }
        match newest.iter_mut().find(|other| other.kind == record.kind) {
            Some(other) if is_newer(&record.version, &other.version) => *other = record,
            Some(_) => {}
            None => newest.push(record),
        }
    }
    let in_force = |record: &&ComponentRecord| {
        let active = present.iter().find(|other| other.kind == record.kind && other.active);
        active.is_none_or(|active| {
            active.source == "bundled" && active.name == record.name && is_newer(&record.version, &active.version)
        })
    };
    let activation = |record: &ComponentRecord| Activation {
        kind: record.kind.clone(),
        digest: record.digest.clone(),
        parameters: Fields::new(),
        at: now,
        actor: "system:bundled".to_owned(),
        reason: "shipped with runwarden".to_owned(),
    };
    newest.into_iter().filter(in_force).map(activation).collect()
}

fn installed(component: &Component, now: Timestamp) -> AdminEvent {
    let record = &component.record;
    AdminEvent {
        id: 0,
        at: now,
        action: "policy_installed".to_owned(),
        target: Some(record.digest.clone()),
        actor: "system:bundled".to_owned(),
        details: json!({"kind": record.kind, "name": record.name, "version": record.version, "source": record.source}),
    }
}

/// Whether a version is newer than another, by its numbers.
fn is_newer(version: &str, than: &str) -> bool {
    version_key(version) > version_key(than)
}

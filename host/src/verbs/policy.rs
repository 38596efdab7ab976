//! Installing, activating, rolling back and removing policies.

use serde_json::{Value, json};

use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{
    Actor, AdminEvent, Described, Fields, HANDLER_KIND, Invalid, Lifecycle, RaisedLimits, check_given, coerce,
};
use crate::policy::{Candidate, select};
use crate::provenance::Trust;
use crate::store::{Activation, Component, ComponentRecord};
use crate::verbs::examine::{examine, limits_for};
use crate::verbs::needed::uses;
use crate::verbs::provenance::{Offer, verified, vouched};

/// A component that was installed.
#[derive(Debug)]
pub struct Installed {
    /// What was checked.
    pub candidate: Candidate,
    /// It was there already.
    pub was_present: bool,
    /// It is now in force.
    pub activated: bool,
}

/// How a component is to be installed.
#[derive(Clone, Debug, Default)]
pub struct Installing {
    /// Limits that are raised for it alone. Those that it was installed with before stay, where these name none.
    pub raised: RaisedLimits,
    /// How it is to be put in force, if it is.
    pub activating: Option<Activating>,
}

/// Checks a component and adds it to the store with its signatures, in one commit, and makes it the one in force when
/// asked. One that is there already gets the signatures.
///
/// # Errors
/// It is not vouched for or unusable (every problem is told), a limit cannot be raised that far, or the store failed:
/// nothing was written, what was in force stays.
pub fn install(
    host: &Host,
    offer: &Offer<'_>,
    installing: &Installing,
    trust: &Trust,
    actor: &Actor,
) -> Result<Installed, Error> {
    host.ensure_bundled()?;
    let signatures = verified(host, offer, trust)?;
    let candidate = examine(host, offer.bytes, &installing.raised)?;
    let (_, raised) = limits_for(host, &candidate.digest, &installing.raised)?;
    let descriptor = &candidate.descriptor;
    let present = host.store().components()?;
    let was_present = present.iter().any(|record| record.digest == candidate.digest);
    let exports = &candidate.inspected.exports;
    let record = ComponentRecord {
        digest: candidate.digest.clone(),
        kind: descriptor.kind().to_owned(),
        name: descriptor.name().to_owned(),
        version: descriptor.version().to_owned(),
        source: "installed".to_owned(),
        exports: exports
            .iter()
            .map(|export| format!("{}@{}", export.interface, export.version))
            .collect(),
        size_bytes: i64::try_from(offer.bytes.len()).unwrap_or(i64::MAX),
        installed_at: host.now(),
        active: false,
        in_use: 0,
        raised,
    };
    let mut details =
        json!({"kind": record.kind, "name": record.name, "version": record.version, "source": record.source});
    let signers = signatures.iter().filter_map(|signed| trust.signer(&signed.public_key));
    let signers: Vec<&str> = signers.collect();
    if !signers.is_empty() {
        details["signed_by"] = json!(signers);
    }
    if !record.raised.is_empty() {
        details["limits"] = json!(record.raised);
    }
    let mut events = vec![event(host, "policy_installed", &record.digest, actor, details)];
    let mut activations = Vec::new();
    if let Some(activating) = &installing.activating {
        let Described::Policy(descriptor) = descriptor else {
            return Err(never_in_force(&record).into());
        };
        let lifecycle = Lifecycle::new((**descriptor).clone());
        let activation = activation(host, &lifecycle, &record.digest, activating, actor)?;
        events.push(activated_event(host, &activation, actor));
        activations.push(activation);
    }
    let component = Component {
        record,
        descriptor: descriptor.canonical(),
        bytes: offer.bytes.to_vec(),
        signatures,
    };
    crash::point("install.checked");
    host.store().install(&[component], &activations, &events)?;
    crash::point("install.committed");
    host.policies().keep(&candidate.digest, &candidate.code);
    Ok(Installed {
        candidate,
        was_present,
        activated: installing.activating.is_some(),
    })
}

/// How a component is to be put in force.
#[derive(Clone, Debug, Default)]
pub struct Activating {
    /// Parameters set.
    pub parameters: Fields,
    /// Why.
    pub reason: String,
}

/// Puts an installed component in force for entities created later; existing ones keep their pin.
///
/// # Errors
/// None is meant by the words, it is not vouched for, a parameter does not fit, or the store failed: nothing was written.
pub fn activate(
    host: &Host,
    words: &str,
    activating: &Activating,
    trust: &Trust,
    actor: &Actor,
) -> Result<ComponentRecord, Error> {
    host.ensure_bundled()?;
    let record = policy_meant(host, words)?;
    vouched(host, &record, trust)?;
    put_in_force(host, &record, activating, actor)?;
    Ok(record)
}

/// The installed policy that words mean: the newest of several.
pub(super) fn policy_meant(host: &Host, words: &str) -> Result<ComponentRecord, Error> {
    let components = host.store().components()?;
    let unknown = || Error::UnknownPolicy { word: words.to_owned() };
    let record = select(&components, words)
        .first()
        .copied()
        .cloned()
        .ok_or_else(unknown)?;
    if record.kind == HANDLER_KIND {
        return Err(never_in_force(&record).into());
    }
    Ok(record)
}

/// That a handler has no kind of entity for which it could be in force.
fn never_in_force(record: &ComponentRecord) -> Invalid {
    let label = format!("{}@{}", record.name, record.version);
    let message = format!("{label} is a handler: it is bound, not put in force");
    let hint = format!("`runwarden notify add NAME --component {label}` binds it");
    Invalid::new("handler", message, Some(hint))
}

/// Puts back in force what was before the present policy of a kind. Doing it twice goes forth again.
///
/// # Errors
/// The kind has no earlier policy, that is not vouched for, or the store failed: nothing was written.
pub fn rollback(host: &Host, kind: &str, reason: &str, trust: &Trust, actor: &Actor) -> Result<ComponentRecord, Error> {
    host.ensure_bundled()?;
    let activations = host.store().activations(kind)?;
    let Some(current) = activations.first() else {
        return Err(Error::UnknownKind {
            kind: kind.to_owned(),
            known: host.kinds()?,
        });
    };
    let components = host.store().components()?;
    // The same component with other parameters is another policy.
    let earlier = activations
        .iter()
        .find(|earlier| (&earlier.digest, &earlier.parameters) != (&current.digest, &current.parameters));
    let before = earlier.and_then(|earlier| {
        let record = components.iter().find(|record| record.digest == earlier.digest)?;
        Some((record, earlier.parameters.clone()))
    });
    let Some((record, parameters)) = before else {
        let message = format!("{kind} has no earlier policy to go back to");
        return Err(Invalid::new(
            "policy",
            message,
            Some("`runwarden policy ls` shows what is installed".to_owned()),
        )
        .into());
    };
    vouched(host, record, trust)?;
    put_in_force(
        host,
        record,
        &Activating {
            parameters,
            reason: reason.to_owned(),
        },
        actor,
    )?;
    Ok(record.clone())
}

fn put_in_force(host: &Host, record: &ComponentRecord, activating: &Activating, actor: &Actor) -> Result<(), Error> {
    let unknown = || Error::UnknownPolicy {
        word: record.digest.clone(),
    };
    let lifecycle = host.policies().lifecycle(&record.digest)?.ok_or_else(unknown)?;
    let activation = activation(host, &lifecycle, &record.digest, activating, actor)?;
    if host
        .store()
        .activate(&activation, &activated_event(host, &activation, actor))?
    {
        return Ok(());
    }
    Err(unknown())
}

/// Removes a component that nothing needs: a policy that no entity is pinned to and that is not in force, a handler that
/// no binding means and that no entity that can still end, and no event that is still to be told, was bound to.
///
/// # Errors
/// None is meant by the words, it is in use, or the store failed: nothing was written.
pub fn remove(host: &Host, words: &str, actor: &Actor) -> Result<ComponentRecord, Error> {
    let components = host.store().components()?;
    let found = select(&components, words);
    let record = match found.as_slice() {
        [] => return Err(Error::UnknownPolicy { word: words.to_owned() }),
        [record] => (*record).clone(),
        several => {
            let candidates = several
                .iter()
                .map(|record| format!("{}@{}", record.name, record.version))
                .collect();
            return Err(Error::Ambiguous {
                word: words.to_owned(),
                candidates,
            });
        }
    };
    let uses = uses(host, &record)?;
    if !uses.is_empty() {
        let digest = record.digest;
        return Err(Error::InUse { digest, uses });
    }
    let details = json!({"kind": record.kind, "name": record.name, "version": record.version});
    let event = event(host, "policy_removed", &record.digest, actor, details);
    if host.store().remove_component(&record.digest, &event)? {
        return Ok(record);
    }
    // Somebody pinned an entity to it meanwhile, put it in force, or removed it.
    Err(Error::InUse {
        digest: record.digest,
        uses: Vec::new(),
    })
}

fn activation(
    host: &Host,
    lifecycle: &Lifecycle,
    digest: &str,
    activating: &Activating,
    actor: &Actor,
) -> Result<Activation, Error> {
    Ok(Activation {
        kind: lifecycle.kind().to_owned(),
        digest: digest.to_owned(),
        parameters: set_parameters(lifecycle, &activating.parameters)?,
        at: host.now(),
        actor: actor.to_string(),
        reason: activating.reason.clone(),
    })
}

/// Parameters as given, in the form in which they are kept.
pub(super) fn set_parameters(lifecycle: &Lifecycle, given: &Fields) -> Result<Fields, Error> {
    let declared = &lifecycle.descriptor().parameters;
    if let Some(finding) = check_given(declared, given).first() {
        let message = format!("parameter `{}` {}", finding.place, finding.message);
        let hint = "`runwarden policy show` lists a policy's parameters; `policy activate --set K=V` sets them";
        return Err(Invalid::new("parameter", message, Some(hint.to_owned())).into());
    }
    let mut parameters = Fields::new();
    for parameter in declared {
        let Some(value) = given.get(&parameter.name) else {
            continue;
        };
        let value = coerce(&parameter.name, parameter.kind, value)
            .map_err(|problem| Invalid::new("parameter", problem.to_string(), None))?;
        parameters.insert(parameter.name.clone(), value);
    }
    Ok(parameters)
}

fn activated_event(host: &Host, activation: &Activation, actor: &Actor) -> AdminEvent {
    let details = json!({
        "kind": activation.kind,
        "parameters": activation.parameters,
        "reason": activation.reason,
    });
    event(host, "policy_activated", &activation.digest, actor, details)
}

/// An audit row about a component.
pub(super) fn event(host: &Host, action: &str, digest: &str, actor: &Actor, details: Value) -> AdminEvent {
    AdminEvent {
        id: 0,
        at: host.now(),
        action: action.to_owned(),
        target: Some(digest.to_owned()),
        actor: actor.to_string(),
        details,
    }
}

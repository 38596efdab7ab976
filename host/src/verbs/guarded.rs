//! Asking a guard, and keeping what it was asked and what it said.

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{Entity, Fields, Found, Lifecycle, Refusal, Transition, filled};
use crate::policy::{GuardRequest, Surroundings};
use crate::store::{HistoryQuery, Scope};
use crate::verbs::kept::{self, KeptGuard};

/// What a guard said, and what is kept of the call.
pub(super) struct Guarded {
    /// None when it admits.
    pub(super) refusal: Option<Refusal>,
    /// Component, request and decision.
    pub(super) record: Value,
}

/// Asks the guard; one that fails refuses.
pub(super) fn ask_guard(
    host: &Host,
    lifecycle: &Lifecycle,
    entity: &Entity,
    command: &Transition,
) -> Result<Guarded, Error> {
    let surroundings = surroundings(host, lifecycle, entity)?;
    let request = GuardRequest {
        entity,
        target: &command.target,
        reason: &command.reason,
        actor: &command.actor,
        patch: &command.patch,
        guards: &command.guards,
        overridden: command.overriding.is_some(),
        surroundings: &surroundings,
    };
    let refused = match host.policies().guard(&entity.policy, request) {
        Ok(answer) => answer,
        Err(fault) => Some(("policy_fault".to_owned(), fault.to_string())),
    };
    let decision = match &refused {
        None => json!({"admitted": true}),
        Some((code, message)) => json!({"admitted": false, "code": code, "message": message}),
    };
    let asked = KeptGuard::of(&request, &lifecycle.descriptor().reads);
    Ok(Guarded {
        record: kept::call(&entity.policy.digest, kept::to_value(&asked), decision),
        refusal: refused.map(|(code, message)| Refusal {
            found: Found::of(entity),
            code,
            message,
        }),
    })
}

/// What functions of its policy may see beside the entity, with the parameters in force for it.
pub(crate) fn surroundings(host: &Host, lifecycle: &Lifecycle, entity: &Entity) -> Result<Surroundings, Error> {
    let parameters = filled(&lifecycle.descriptor().parameters, &entity.policy.parameters);
    surroundings_under(host, lifecycle, entity, parameters)
}

/// What functions of a policy may see beside an entity: what its descriptor asked for, as it is at one moment. The
/// entity and its history are those of its version, which the write repeats; what was written to it since is left out.
pub(super) fn surroundings_under(
    host: &Host,
    lifecycle: &Lifecycle,
    entity: &Entity,
    parameters: Fields,
) -> Result<Surroundings, Error> {
    let reads = &lifecycle.descriptor().reads;
    let children = if reads.children {
        host.store().linked(entity, Scope::Children)?
    } else {
        Vec::new()
    };
    let rows = usize::try_from(reads.history).unwrap_or(0);
    let mut history = Vec::new();
    if rows > 0 {
        let id = Some(entity.reference.id.clone());
        history = host.store().history(&HistoryQuery {
            id,
            newest: Some(rows),
            ..HistoryQuery::default()
        })?;
        history.retain(|row| row.version <= entity.version);
        history.reverse();
    }
    Ok(Surroundings {
        now: host.now(),
        parameters,
        children,
        history,
    })
}

//! The inventory by hand: what runs elsewhere is registered, so that it is known of, and released when it is over. Whether
//! it lives is never judged from here.

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::{Host, entropy};
use crate::model::{
    Actor, AdminEvent, Containment, Entity, Place, Runtime, RuntimeKind, RuntimeState, SeenGone, Sight, Timestamp,
};
use crate::store::{RuntimeAdded, RuntimeUpdate};
use crate::verbs::view::runtime_json;
use crate::verbs::why::look;

/// States from which a runtime can be released.
const NOT_STOPPED: [RuntimeState; 5] = [
    RuntimeState::Starting,
    RuntimeState::Running,
    RuntimeState::Stopping,
    RuntimeState::Lingering,
    RuntimeState::Lost,
];

/// Something that runs elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Where: a container, ssh, or other. Processes of this machine are registered by running them.
    pub kind: RuntimeKind,
    /// On which machine.
    pub host: String,
    /// What it is called there; never taken for a process number.
    pub handle: String,
    /// What its program needs to take up its work again; kept, never shown.
    pub resume_token: Option<String>,
    /// Who says so.
    pub actor: Actor,
}

/// How a registration came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Registered {
    /// It is in the inventory.
    New(Box<Runtime>),
    /// The entity has ended: nothing is registered for it.
    Ended,
    /// The entity has this runtime, which is not stopped.
    InUse(i64),
}

/// Registers what runs elsewhere for an entity.
///
/// # Errors
/// The store failed, or the entity was removed meanwhile: nothing was written.
pub fn register(host: &Host, entity: &Entity, asked: &Registration) -> Result<Registered, Error> {
    debug_assert_ne!(
        asked.kind,
        RuntimeKind::Local,
        "processes of this machine are known by their identity"
    );
    let mut runtime = runtime(entity, asked, host.now());
    runtime.attempt_token = entropy()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let event = AdminEvent {
        id: 0,
        at: host.now(),
        action: "runtime_registered".to_owned(),
        target: Some(entity.reference.to_string()),
        actor: asked.actor.to_string(),
        details: json!({
            "kind": asked.kind.word(),
            "host": asked.host,
            "handle": asked.handle,
            "resume_token": asked.resume_token.is_some(),
        }),
    };
    Ok(match host.store().add_runtime(&runtime, &event)? {
        RuntimeAdded::New(id) => {
            host.wake();
            Registered::New(Box::new(Runtime { id, ..runtime }))
        }
        RuntimeAdded::OwnerMissing => return Err(host.not_found(&entity.reference.to_string())),
        RuntimeAdded::OwnerEnded => Registered::Ended,
        RuntimeAdded::InUse(other) => Registered::InUse(other),
    })
}

fn runtime(entity: &Entity, asked: &Registration, now: Timestamp) -> Runtime {
    Runtime {
        id: 0,
        owner: entity.reference.clone(),
        kind: asked.kind,
        state: RuntimeState::Running,
        stop_unconfirmed: false,
        place: Place {
            host: asked.host.clone(),
            ..Place::default()
        },
        worker: None,
        shim: None,
        attempt_token: String::new(),
        level: None,
        containment: Containment::None,
        process_group: None,
        cgroup: None,
        cwd: None,
        run_dir: None,
        remote_handle: Some(asked.handle.clone()),
        resume_token: asked.resume_token.clone(),
        stop_intent: None,
        created_at: now,
        updated_at: now,
    }
}

/// How a release came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Released {
    /// It counts as stopped from now on, by the operator's word.
    Done(Box<Runtime>),
    /// It was stopped before; nothing was changed.
    Unchanged(Box<Runtime>),
    /// It is of this machine, and a word is not enough.
    Refused {
        /// The runtime.
        runtime: Box<Runtime>,
        /// Why not.
        why: &'static str,
    },
    /// No runtime has that number.
    Unknown,
}

/// Takes an operator's word that a runtime is over. Its resume token is kept.
///
/// # Errors
/// The store failed: nothing was written.
pub fn release(host: &Host, id: i64, actor: &Actor) -> Result<Released, Error> {
    let Some(runtime) = host.store().runtime(id)? else {
        return Ok(Released::Unknown);
    };
    let runtime = Box::new(runtime);
    if runtime.is_stopped() {
        return Ok(Released::Unchanged(runtime));
    }
    if let Some(why) = needs_proof(host, &runtime)? {
        return Ok(Released::Refused { runtime, why });
    }
    let event = AdminEvent {
        id: 0,
        at: host.now(),
        action: "runtime_released".to_owned(),
        target: Some(runtime.owner.to_string()),
        actor: actor.to_string(),
        details: json!({
            "runtime": id,
            "kind": runtime.kind.word(),
            "host": runtime.place.host,
            "handle": runtime.remote_handle,
            "previous_state": runtime.state.word(),
        }),
    };
    let update = RuntimeUpdate {
        id,
        only_from: NOT_STOPPED.to_vec(),
        state: Some(RuntimeState::Stopped),
        at: host.now(),
        ..RuntimeUpdate::default()
    };
    host.store().record(&[event], &[update])?;
    host.wake();
    Ok(Released::Done(Box::new(host.store().runtime(id)?.unwrap_or(*runtime))))
}

/// Why a word does not do for a runtime; none when it does. What is of this machine can be looked at: it counts as stopped
/// when it was seen to be, or when its boot is over and its end is known.
fn needs_proof(host: &Host, runtime: &Runtime) -> Result<Option<&'static str>, Error> {
    if runtime.kind != RuntimeKind::Local {
        return Ok(None);
    }
    let has_ended = host.store().load(&runtime.owner.id)?.is_none_or(|owner| owner.terminal);
    Ok(match look(host, runtime)? {
        Sight::Gone(SeenGone::EarlierBoot) if has_ended => None,
        Sight::Gone(_) => Some("its end is not recorded"),
        Sight::Held(_) | Sight::Unheld(_) => Some("its processes are alive"),
        Sight::Nothing | Sight::Unjudged(..) => Some("it may be alive"),
    })
}

/// The JSON document of a row of the inventory.
pub fn inventory_json(runtime: &Runtime) -> Value {
    let mut document = runtime_json(runtime);
    document["ref"] = json!(runtime.owner.to_string());
    document["created_at"] = json!(runtime.created_at.to_rfc3339());
    document["updated_at"] = json!(runtime.updated_at.to_rfc3339());
    document
}

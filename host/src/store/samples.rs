//! Records for tests: small, valid, and different where the caller says so.

use serde_json::{Value, json};

use super::{
    Activation, Component, ComponentRecord, EffectSet, Installation, NewRun, ShadowSeen, Store, StoreError, Successor,
    Work, Worker,
};
use crate::model::{
    Actor, AdminEvent, Change, Containment, Destination, Dispatch, DurationMs, Entity, Event, EventId, Fields,
    HistoryRow, NewDispatch, NewEntity, Place, Planned, PolicyPin, ProcessIdentity, QUEUE_DEFAULT, Queued,
    RaisedLimits, Reason, Reference, Runtime, RuntimeKind, RuntimeState, Stage, StopIntent, Structural,
    TIMEOUT_DEFAULT, Tags, Timestamp, Transport, sha256_hex,
};

/// The digest of the component that [`component`] makes.
pub const DIGEST: &str = "7a3f000000000000000000000000000000000000000000000000000000000001";

/// A moment some milliseconds after a fixed one.
pub const fn moment(ms: i64) -> Timestamp {
    Timestamp::from_ms(1_700_000_000_000 + ms)
}

/// A component for `kind`.
pub fn component(kind: &str, digest: &str) -> Component {
    let record = ComponentRecord {
        digest: digest.to_owned(),
        kind: kind.to_owned(),
        name: format!("{kind}-policy"),
        version: "1.0.0".to_owned(),
        source: "bundled".to_owned(),
        exports: vec!["runwarden:policy/lifecycle@0.1.0".to_owned()],
        size_bytes: 4,
        installed_at: moment(0),
        active: false,
        in_use: 0,
        raised: RaisedLimits::default(),
    };
    Component {
        record,
        descriptor: format!("{{\"kind\":\"{kind}\"}}"),
        bytes: b"\0asm".to_vec(),
        signatures: Vec::new(),
    }
}

/// That a component becomes the active one of `kind`.
pub fn activation(kind: &str, digest: &str) -> Activation {
    Activation {
        kind: kind.to_owned(),
        digest: digest.to_owned(),
        parameters: Fields::new(),
        at: moment(1),
        actor: "operator:tests".to_owned(),
        reason: "wanted".to_owned(),
    }
}

/// Installs the component of [`DIGEST`], active for `run`.
///
/// # Errors
/// What the store reports.
pub fn install(store: &dyn Store) -> Result<(), StoreError> {
    let Installation {
        components,
        activations,
        events,
    } = installation();
    store.install(&components, &activations, &events)
}

/// The component of [`DIGEST`], and that it is in force.
pub fn installation() -> Installation {
    Installation {
        components: vec![component("run", DIGEST)],
        activations: vec![activation("run", DIGEST)],
        events: Vec::new(),
    }
}

/// The pin to the component of [`DIGEST`].
pub fn pin() -> PolicyPin {
    PolicyPin {
        name: "run-policy".to_owned(),
        version: "1.0.0".to_owned(),
        digest: DIGEST.to_owned(),
        parameters: Fields::new(),
    }
}

/// A new entity in status `running`, with its first history row, to be changed at will before it is created.
pub fn new_entity(store: &dyn Store, kind: &str, id: &str) -> NewEntity {
    let reason = Reason::code("run.started.ok")
        .summary("asked for")
        .evidence(json!({"from": "tests"}));
    let entity = Entity {
        row: 0,
        reference: Reference::new(kind, id),
        name: None,
        status: "running".to_owned(),
        terminal: false,
        success: false,
        version: 1,
        reason: reason.clone(),
        policy: pin(),
        fields: Fields::new(),
        structural: Structural::default(),
        tags: Tags::new(),
        unique_key: None,
        fence: 0,
        queued: None,
        root: None,
        generation: 0,
        chain_parent: None,
        notify: Value::Null,
        created_at: moment(10),
        updated_at: moment(10),
    };
    let row = HistoryRow {
        id: EventId::new(store.name(), id, 1),
        reference: entity.reference.clone(),
        previous_status: None,
        status: entity.status.clone(),
        reason,
        actor: Actor::new("operator", "tests"),
        at: moment(10),
        version: 1,
        policy_digest: DIGEST.to_owned(),
        metadata: Value::Null,
        guarded: Value::Null,
    };
    NewEntity {
        entity,
        row,
        event: None,
        planned: Planned::default(),
        admin: Vec::new(),
        parents: Vec::new(),
        key: None,
    }
}

/// A dispatch of status `pending`, due at `moment(10)`, of an event or sent by somebody; its key is its id.
pub fn new_dispatch(store: &dyn Store, id: &str, event_id: Option<&EventId>) -> NewDispatch {
    let NewEntity {
        mut entity, mut row, ..
    } = new_entity(store, "dispatch", id);
    "pending".clone_into(&mut entity.status);
    "pending".clone_into(&mut row.status);
    entity.structural.attempt = Some(0);
    entity.structural.next_attempt_at = Some(moment(10));
    NewDispatch {
        entity,
        row,
        dispatch: Dispatch {
            event_id: event_id.cloned(),
            handler: event_id.map(|_| "tell".to_owned()),
            destination: "there".to_owned(),
            target: target("/there"),
            target_digest: target_digest("/there"),
            body: format!("{{\"id\":\"{id}\"}}").into_bytes(),
            dedup_key: id.to_owned(),
            deadline: None,
            wants_acknowledgement: false,
        },
    }
}

/// A destination: the file of that path.
pub fn target(path: &str) -> Destination {
    Destination {
        transport: Transport::File { path: path.to_owned() },
        timeout_ms: TIMEOUT_DEFAULT,
    }
}

/// The digest of [`target`].
pub fn target_digest(path: &str) -> String {
    sha256_hex(json!(target(path)).to_string().as_bytes())
}

/// A change of `entity` to `status`, without anything beside it.
pub fn change(store: &dyn Store, entity: &Entity, status: &str) -> EffectSet {
    let mut after = entity.clone();
    status.clone_into(&mut after.status);
    after.version += 1;
    after.updated_at = moment(20 + after.version);
    after.reason = Reason::code("run.changed.ok");
    let row = HistoryRow {
        id: EventId::new(store.name(), &after.reference.id, after.version),
        reference: after.reference.clone(),
        previous_status: Some(entity.status.clone()),
        status: after.status.clone(),
        reason: after.reason.clone(),
        actor: Actor::system("tests"),
        at: after.updated_at,
        version: after.version,
        policy_digest: after.policy.digest.clone(),
        metadata: json!({"n": after.version}),
        guarded: json!({"component": "c", "decision": {"admitted": true}}),
    };
    let change = Change {
        after,
        expected_version: entity.version,
        row,
        event: None,
        planned: Planned::default(),
        admin: Vec::new(),
        key: None,
    };
    EffectSet {
        change,
        runtimes: Vec::new(),
        destination: None,
        successor: None,
        shadow: ShadowSeen::Unasked,
    }
}

/// A change of `entity` that ends it, with its event.
pub fn ending(store: &dyn Store, entity: &Entity, success: Success) -> EffectSet {
    let mut effects = change(
        store,
        entity,
        if success == Success::Yes { "completed" } else { "failed" },
    );
    let after = &mut effects.change.after;
    after.terminal = true;
    after.success = success == Success::Yes;
    after.unique_key = None;
    if let Some(queued) = &mut after.queued {
        queued.stage = None;
    }
    after.structural.ended_at = Some(after.updated_at);
    let id = effects.change.row.id.clone();
    effects.change.event = Some(Event {
        envelope: json!({"event_id": id, "status": after.status}),
        id,
    });
    effects
}

/// Leased work that is ready in the queue of those who name none, to be changed at will before it is created.
pub fn new_queued(store: &dyn Store, id: &str) -> NewEntity {
    let mut new = new_entity(store, "job", id);
    new.entity.queued = Some(Queued {
        queue: QUEUE_DEFAULT.to_owned(),
        priority: 0,
        stage: Some(Stage::Ready),
    });
    new
}

/// The work of what waits for a worker, and for the end of these.
pub fn new_work(owner: &Reference, after: &[&Entity]) -> NewRun {
    NewRun {
        runtime: None,
        directories: Vec::new(),
        after: after.iter().map(|awaited| awaited.reference.clone()).collect(),
        ..new_run(owner)
    }
}

/// A change of leased work to a stage, due then.
pub fn staged(store: &dyn Store, entity: &Entity, stage: Stage, due_at: Option<Timestamp>) -> EffectSet {
    let mut effects = change(store, entity, stage.word());
    let after = &mut effects.change.after;
    after.structural.next_attempt_at = due_at;
    if let Some(queued) = &mut after.queued {
        queued.stage = Some(stage);
    }
    effects
}

/// That `holder` takes leased work until then.
pub fn taking(store: &dyn Store, entity: &Entity, holder: &str, until: Timestamp) -> EffectSet {
    let mut effects = staged(store, entity, Stage::Active, None);
    let after = &mut effects.change.after;
    after.fence += 1;
    after.structural.leased_by = Some(holder.to_owned());
    after.structural.lease_expires_at = Some(until);
    effects
}

/// The attempt of that id that follows leased work.
pub fn successor(store: &dyn Store, before: &Entity, id: &str) -> Successor {
    let mut new = new_queued(store, id);
    let entity = &mut new.entity;
    entity.queued.clone_from(&before.queued);
    if let Some(queued) = &mut entity.queued {
        queued.stage = Some(Stage::Ready);
    }
    entity.tags.clone_from(&before.tags);
    entity.unique_key.clone_from(&before.unique_key);
    entity.chain_parent = Some(before.reference.id.clone());
    entity.generation = before.generation + 1;
    Successor { new: Box::new(new) }
}

/// A worker that is at work.
pub fn worker(holder: &str) -> Worker {
    Worker {
        holder: holder.to_owned(),
        name: "w".to_owned(),
        place: Place::default(),
        identity: ProcessIdentity {
            pid: 7,
            start_ticks: Some(8),
            pidfs_inode: None,
            pidfs_handle: Some(vec![9]),
        },
        slots: 2,
        queues: vec!["night".to_owned()],
        started_at: moment(1),
        heartbeat_at: moment(2),
        stopped_at: None,
    }
}

/// Whether an end is a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Success {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// The runtime row and work of a new run.
pub fn new_run(owner: &Reference) -> NewRun {
    NewRun {
        runtime: Some(new_runtime(owner)),
        work: Work(json!({"argv": ["true", owner.id]})),
        directories: vec![format!("/own/{}", owner.id).into_bytes()],
        lease: None,
        after: Vec::new(),
    }
}

/// The runtime row of a run that is being started.
pub fn new_runtime(owner: &Reference) -> Runtime {
    Runtime {
        id: 0,
        owner: owner.clone(),
        kind: RuntimeKind::Local,
        state: RuntimeState::Starting,
        stop_unconfirmed: false,
        place: Place::default(),
        worker: None,
        shim: None,
        attempt_token: format!("token-{}", owner.id),
        level: None,
        containment: Containment::Subreaper,
        process_group: None,
        cgroup: None,
        cwd: Some(b"/tmp/\xff".to_vec()),
        run_dir: None,
        remote_handle: None,
        resume_token: None,
        stop_intent: None,
        created_at: moment(10),
        updated_at: moment(10),
    }
}

/// That somebody wants a run stopped.
pub fn stop_intent(note: &str) -> StopIntent {
    StopIntent {
        actor: Actor::new("operator", "tests"),
        note: Some(note.to_owned()),
        grace: DurationMs::from_ms(10_000),
        at: moment(15),
    }
}

/// An audit row.
pub fn admin_event(action: &str, target: &str) -> AdminEvent {
    AdminEvent {
        id: 0,
        at: moment(30),
        action: action.to_owned(),
        target: Some(target.to_owned()),
        actor: "tests".to_owned(),
        details: json!({"why": action}),
    }
}

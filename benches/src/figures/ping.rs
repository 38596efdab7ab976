//! A kind of two statuses that go into each other for ever: transitions, and nothing but transitions.

use anyhow::{Context as _, Result};
use runwarden_host::Host;
use runwarden_host::model::{Actor, Create, Entity, Fields, RaisedLimits, Reason, Transition};
use runwarden_host::store::{Activation, Component, ComponentRecord};
use runwarden_host::verbs::{IdChoice, TransitionOutcome, create, transition};
use serde_json::{Value, json};

/// Made up: the component is never called.
const DIGEST: &str = "b1b1000000000000000000000000000000000000000000000000000000000000";

fn descriptor() -> Value {
    let status = |name: &str, code: Option<&str>| {
        json!({"name": name, "summary": "", "initial": code.is_some(), "creation_code": code, "terminal": false,
               "success": false, "announced": false, "ext": []})
    };
    let edge = |from: &str, to: &str| {
        json!({"from": from, "to": to, "actors": [], "required_patch": [], "required_guards": [], "guarded": false,
               "ext": []})
    };
    json!({
        "kind": "ping", "name": "ping", "version": "1.0.0", "summary": "",
        "statuses": [status("left", Some("ping.made")), status("right", None)],
        "edges": [edge("left", "right"), edge("right", "left")],
        "same_status": "append", "fields": [],
        "reason_codes": [{"code": "ping.made", "summary": ""}, {"code": "ping.moved", "summary": ""}],
        "emits_events": false, "measures_end": false, "execution": null, "verdicts": [], "kill": [], "lease": null,
        "delivery": null, "retry": null, "health": [], "parameters": [],
        "reads": {"children": false, "history": 0, "tags": false, "last_output_bytes": 0, "ext": []}, "ext": [],
    })
}

/// Installs the kind.
pub(super) fn install(host: &Host) -> Result<()> {
    install_as(host, DIGEST, &[])
}

/// Installs the kind with a component of another: for calls, which look at the component alone.
pub(super) fn install_as(host: &Host, digest: &str, bytes: &[u8]) -> Result<()> {
    let record = ComponentRecord {
        digest: digest.to_owned(),
        kind: "ping".to_owned(),
        name: "ping".to_owned(),
        version: "1.0.0".to_owned(),
        source: "installed".to_owned(),
        exports: Vec::new(),
        size_bytes: 0,
        installed_at: host.now(),
        active: false,
        in_use: 0,
        raised: RaisedLimits::default(),
    };
    let activation = Activation {
        kind: "ping".to_owned(),
        digest: digest.to_owned(),
        parameters: Fields::new(),
        at: host.now(),
        actor: "bench".to_owned(),
        reason: "measured".to_owned(),
    };
    let component = Component {
        record,
        descriptor: descriptor().to_string(),
        bytes: bytes.to_vec(),
        signatures: Vec::new(),
    };
    Ok(host.store().install(&[component], &[activation], &[])?)
}

/// Makes one.
pub(super) fn make(host: &Host, id: &str) -> Result<Entity> {
    let command = Create::new("ping", id, Actor::new("operator", "bench"));
    Ok(create(host, &command, IdChoice::Given, None)?.entity)
}

/// The move to the other status.
pub(super) fn command(entity: &Entity) -> Transition {
    let target = if entity.status == "left" { "right" } else { "left" };
    Transition::new(target, Reason::code("ping.moved"), Actor::new("operator", "bench"))
}

/// Moves it to the other status.
pub(super) fn step(host: &Host, entity: &Entity) -> Result<Entity> {
    match transition(host, entity, &command(entity))? {
        TransitionOutcome::Applied { entity, .. } => Ok(*entity),
        _ => None.context("nobody else moves it"),
    }
}

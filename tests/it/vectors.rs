//! The reference system's behaviour as data, driven through the host library natively.

use runwarden_host::model::{Actor, Create, Entity, FieldKind, Override, Reason, Transition};
use runwarden_host::verbs::{Finished, IdChoice, TransitionOutcome, create, transition};
use runwarden_host::{Error, Host};
use serde_json::Value;

use crate::harness::{host, vectors};

/// An entity of the kind in that status, put there by an override where no edge leads there.
pub(crate) fn placed(host: &Host, kind: &str, status: &str) -> Entity {
    // The vectors hold the 1.x lifecycle of schedule_run.
    let policy = (kind == "schedule_run").then_some("schedule_run@1");
    let id = host.draw_id().expect("entropy");
    let made = create(
        host,
        &Create::new(kind, &id, Actor::new("operator", "test")),
        IdChoice::Drawn,
        policy,
    );
    let entity = made.expect("it can be created").entity;
    if entity.status == status {
        return entity;
    }
    let mut command = command(host, &entity, status, "operator");
    command.overriding = Some(overriding());
    match transition(host, &entity, &command).expect("an override is valid") {
        TransitionOutcome::Applied { entity, .. } => *entity,
        other => panic!("{kind} cannot be put into {status}: {other:?}"),
    }
}

fn overriding() -> Override {
    Override {
        actor: "test".to_owned(),
        justification: "put in place".to_owned(),
    }
}

fn command(host: &Host, entity: &Entity, target: &str, actor: &str) -> Transition {
    let lifecycle = host.lifecycle(entity).expect("it is pinned");
    let code = lifecycle
        .descriptor()
        .reason_codes
        .first()
        .map(|reason| reason.code.clone())
        .unwrap_or_default();
    Transition::new(target, Reason::code(&code), Actor::new(actor, "test"))
}

/// The word for how it came out, and whether it made an event.
fn outcome(host: &Host, row: &Value, actor: &str, column: &str) -> (&'static str, bool) {
    let text = |name: &str| row[name].as_str().unwrap_or_default();
    let entity = placed(host, text("entity"), text("from"));
    let mut command = command(host, &entity, text("to"), actor);
    if column.contains("override") {
        command.overriding = Some(overriding());
    }
    if column.contains("full") {
        let lifecycle = host.lifecycle(&entity).expect("it is pinned");
        command.expected_version = Some(entity.version);
        let edge = lifecycle.edge(text("from"), text("to"));
        for name in edge.map(|edge| edge.required_patch.clone()).unwrap_or_default() {
            let kind = lifecycle.field(&name).map(|field| field.kind);
            let value = if kind == Some(FieldKind::Text) {
                Value::from("x")
            } else {
                Value::from(1)
            };
            command.patch.insert(name, value);
        }
    }
    match transition(host, &entity, &command) {
        Ok(TransitionOutcome::Applied { event_id, .. }) => ("applied", event_id.is_some()),
        Ok(TransitionOutcome::Rejected(_)) => ("rejected", false),
        Ok(TransitionOutcome::Conflict(_)) => ("conflict", false),
        Err(Error::Invalid(_)) => ("invalid", false),
        Err(error) => panic!("{row}: {error}"),
    }
}

#[test]
fn every_pair_of_statuses_comes_out_as_recorded() {
    let home = tempfile::tempdir().expect("a directory");
    let host = host(home.path());
    let recorded = vectors("transitions.json");
    // An entity always has a status here: rows without one do not apply (exception 15).
    let rows = recorded["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .filter(|row| !row["from"].is_null());
    let mut judged = 0;
    for row in rows {
        let admitted = row["full"] != "invalid";
        let actors = row["actors"]
            .as_array()
            .and_then(|actors| actors.first())
            .and_then(Value::as_str);
        for column in ["plain", "full", "override", "full_override"] {
            // An actor that an edge does not admit is rejected, not invalid (exception 14).
            let expected = if admitted {
                row[column].as_str().unwrap_or_default()
            } else {
                "rejected"
            };
            let emits = if column.contains("override") {
                &row["override_emits"]
            } else {
                &row["emits"]
            };
            let (came_out, event) = outcome(&host, row, actors.unwrap_or("operator"), column);
            assert_eq!(came_out, expected, "{column} of {row}");
            if came_out == "applied" {
                assert_eq!(Some(event), emits.as_bool(), "the event of {column} of {row}");
            }
            judged += 1;
        }
    }
    assert!(judged >= 4 * 356, "{judged} outcomes");
}

#[test]
fn a_wait_line_is_the_recorded_one_byte_for_byte() {
    let recorded = vectors("wait_lines.json");
    for entry in recorded["lines"].as_array().expect("lines") {
        let outcome = &entry["outcome"];
        let text = |name: &str| outcome[name].as_str().unwrap_or_default().to_owned();
        let finished = Finished {
            id: text("run_id"),
            kind: "session".to_owned(),
            status: text("status"),
            reason: text("reason"),
            artifact_dir: outcome["artifact_dir"].as_str().map(|path| path.as_bytes().to_vec()),
            exit_code: outcome["exit_code"].as_i64(),
            success: false,
        };
        // A tab in a directory is percent-encoded here (exception 17): it would break the line.
        let raw = text("artifact_dir");
        let expected = entry["line"]
            .as_str()
            .expect("a line")
            .replace(&raw, &raw.replace('\t', "%09"));
        assert_eq!(String::from_utf8_lossy(&finished.line()), format!("{expected}\n"));
    }
}

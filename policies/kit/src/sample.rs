//! What a host would ask, for an author's own tests: each begins plain, and a test changes what it is about.
//!
//! ```
//! use runwarden_kit::sample;
//!
//! let mut request = sample::request("proposed", "approved", "operator:ann");
//! request.entity.fields = vec![runwarden_kit::NamedJson::new("cost", "12")];
//! request.surroundings.history = vec![sample::row("proposed", "operator:bob")];
//! ```

use crate::{Actor, Child, Ending, Entity, HistoryRow, NamedJson, Observation, Reason, Request, Surroundings};

/// When everything here happens, in milliseconds since the epoch.
pub const NOW_MS: i64 = 1_767_225_600_000;

/// An entity of a kind of no importance in this status, without fields or tags.
pub fn entity(status: &str) -> Entity {
    Entity {
        kind: "sample".to_owned(),
        id: "one".to_owned(),
        status: status.to_owned(),
        version: 1,
        reason: reason(),
        fields: Vec::new(),
        tags: Vec::new(),
        created_at: NOW_MS,
        updated_at: NOW_MS,
        root: "one".to_owned(),
        generation: 0,
        chain_parent: None,
        ext: Vec::new(),
    }
}

/// Nothing beside the entity, at [`NOW_MS`].
pub fn surroundings() -> Surroundings {
    Surroundings {
        now: NOW_MS,
        parameters: Vec::new(),
        children: Vec::new(),
        history: Vec::new(),
        ext: Vec::new(),
    }
}

/// What a guard is asked when this actor, `KIND:ID`, wants to move an entity.
pub fn request(from: &str, to: &str, actor: &str) -> Request {
    Request {
        entity: entity(from),
        target: to.to_owned(),
        reason: reason(),
        actor: self::actor(actor),
        patch: Vec::new(),
        guards: Vec::new(),
        overridden: false,
        surroundings: surroundings(),
        ext: Vec::new(),
    }
}

/// What a verdict is asked when a program exits with this code after a second, at its only attempt, with this as the end
/// of its output.
pub fn ending(status: &str, exit_code: i64, last_output: &str) -> Ending {
    Ending {
        entity: entity(status),
        exit_code: Some(exit_code),
        signal: None,
        cause: "exit".to_owned(),
        stop_intent: None,
        started_at: NOW_MS - 1_000,
        ended_at: NOW_MS,
        duration: 1_000,
        usage: None,
        attempt: 1,
        attempts_left: 0,
        artifacts: Vec::new(),
        evidence_wanted: false,
        artifacts_missing: Vec::new(),
        last_output: last_output.as_bytes().to_vec(),
        by_table: None,
        surroundings: surroundings(),
        ext: Vec::new(),
    }
}

/// What is seen of an entity whose process is this: alive, gone, unknown or none; quiet for so many milliseconds.
pub fn observation(status: &str, process: &str, quiet_ms: i64) -> Observation {
    Observation {
        entity: entity(status),
        process: process.to_owned(),
        last_activity_at: NOW_MS - quiet_ms,
        messages: 0,
        has_artifacts: false,
        has_stale_locks: false,
        spawn_kind: "agent".to_owned(),
        surroundings: surroundings(),
        ext: Vec::new(),
    }
}

/// A row of history: this actor, `KIND:ID`, wrote this status.
pub fn row(status: &str, actor: &str) -> HistoryRow {
    HistoryRow {
        previous_status: Some(status.to_owned()),
        status: status.to_owned(),
        version: 1,
        reason: reason(),
        actor: self::actor(actor),
        at: NOW_MS,
        ext: Vec::new(),
    }
}

/// The row of a creation.
pub fn created(status: &str, actor: &str) -> HistoryRow {
    HistoryRow {
        previous_status: None,
        ..row(status, actor)
    }
}

/// A run linked below the entity: it goes on, or has ended with or without success.
pub fn child(status: &str, success: Option<bool>) -> Child {
    Child {
        kind: "run".to_owned(),
        id: "below".to_owned(),
        status: status.to_owned(),
        terminal: success.is_some(),
        success: success == Some(true),
        ext: Vec::new(),
    }
}

/// Fields, parameters or a patch: names with their values as JSON text.
pub fn values(pairs: &[(&str, &str)]) -> Vec<NamedJson> {
    pairs.iter().map(|(name, json)| NamedJson::new(name, json)).collect()
}

fn actor(words: &str) -> Actor {
    let (kind, id) = words.split_once(':').unwrap_or((words, "somebody"));
    Actor {
        kind: kind.to_owned(),
        id: id.to_owned(),
    }
}

fn reason() -> Reason {
    Reason {
        code: "sample.reason.ok".to_owned(),
        summary: None,
        evidence: Vec::new(),
    }
}

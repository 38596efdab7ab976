//! Components that were built with a released WIT: they load, and they answer what they always answered.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use runwarden_test_guests::Mode;
use serde_json::{Value, json};

use super::fake::Components;
use super::guests::{UNHURRIED, problems};
use super::handlers::{envelope, gong};
use crate::model::{
    Actor, BoundHandler, Create, DurationMs, Entity, Fields, PlannedDispatch, PolicyPin, ProcessSeen, Reason, Signs,
    Timestamp, create,
};
use crate::policy::{
    Candidate, GuardRequest, HealthRequest, Policies, PolicyFault, Surroundings, VerdictRequest, compile_here, prepare,
};

/// A golden component, admitted and installed.
struct Golden {
    candidate: Candidate,
    policies: Policies,
    _cache: tempfile::TempDir,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/golden/0.1.0")
}

impl Golden {
    fn new(name: &str) -> Self {
        let bytes = fs::read(directory().join(name).with_extension("wasm")).unwrap();
        let candidate = prepare(&bytes, UNHURRIED, compile_here).unwrap();
        let mut store = Components::default();
        store.add(&candidate.digest, &candidate.descriptor.canonical(), bytes);
        let cache = tempfile::tempdir().unwrap();
        Self {
            policies: Policies::new(Arc::new(store.into_store()), cache.path(), UNHURRIED),
            candidate,
            _cache: cache,
        }
    }

    /// What is compared: everything it says and answers, and nothing of how it was built.
    fn said(&self, answers: &Value) -> Value {
        let inspected = &self.candidate.inspected;
        let exports: Vec<String> = inspected
            .exports
            .iter()
            .map(|export| format!("{}@{}", export.interface, export.version))
            .collect();
        let descriptor: Value = serde_json::from_str(&self.candidate.descriptor.canonical()).unwrap();
        json!({"digest": self.candidate.digest, "exports": exports, "descriptor": descriptor, "answers": answers})
    }

    fn pin(&self) -> PolicyPin {
        PolicyPin {
            name: "golden".to_owned(),
            version: "0.1.0".to_owned(),
            digest: self.candidate.digest.clone(),
            parameters: Fields::new(),
        }
    }

    fn entity(&self, id: &str) -> Entity {
        let lifecycle = self.policies.lifecycle(&self.candidate.digest).unwrap().unwrap();
        let mut command = Create::new(lifecycle.kind(), id, Actor::new("system", "test"));
        let initial = lifecycle.descriptor().statuses.iter().find(|status| status.initial);
        command.reason.code = initial.unwrap().creation_code.clone().unwrap();
        create(&lifecycle, &self.pin(), &command, "store", Timestamp::from_ms(1_000))
            .unwrap()
            .entity
    }

    /// Whether a review may be waived when so many others have approved.
    fn guard(&self, approved: usize) -> Value {
        let child = |number| Entity {
            terminal: true,
            success: true,
            ..self.entity(&format!("child-{number}"))
        };
        let surroundings = Surroundings {
            parameters: Fields::from_iter([("quorum".to_owned(), json!(2))]),
            children: (0..approved).map(child).collect(),
            ..Surroundings::default()
        };
        let asked = GuardRequest {
            entity: &self.entity("e-1"),
            target: "waived",
            reason: &Reason::code("review.waived.quorum"),
            actor: &Actor::new("operator", "test"),
            patch: &Fields::new(),
            guards: &Fields::new(),
            overridden: false,
            surroundings: &surroundings,
        };
        shown(self.policies.guard(&self.pin(), asked).map(|refusal| json!(refusal)))
    }

    fn verdict(&self, last_output: &[u8]) -> Value {
        let asked = VerdictRequest {
            entity: &self.entity("e-1"),
            exit_code: Some(0),
            signal: None,
            cause: "exit",
            stop_intent: None,
            started_at: Timestamp::from_ms(1_000),
            ended_at: Timestamp::from_ms(3_000),
            duration: DurationMs::from_ms(2_000),
            usage: Some((1, 2, 3)),
            artifacts: &[("log".to_owned(), "a.txt".to_owned())],
            evidence_wanted: true,
            artifacts_missing: &["b.txt".to_owned()],
            last_output,
            by_table: None,
            of_row: None,
            surroundings: &Surroundings::default(),
        };
        let judged = self.policies.verdict(&self.pin(), &asked);
        shown(judged.map(|judged| json!([judged.outcome.status, judged.outcome.code, judged.summary, judged.patch])))
    }

    fn assess(&self, process: ProcessSeen, messages: i64) -> Value {
        let signs = Signs {
            process,
            last_activity_at: Timestamp::from_ms(1_000),
            messages,
            has_artifacts: false,
            has_stale_locks: false,
            spawn_kind: "agent".to_owned(),
        };
        let surroundings = Surroundings {
            now: Timestamp::from_ms(86_400_000),
            ..Surroundings::default()
        };
        let asked = HealthRequest {
            entity: &self.entity("e-1"),
            signs: &signs,
            surroundings: &surroundings,
        };
        let health = self.policies.assess(&self.pin(), asked);
        shown(health.map(|health| json!([health.level.word(), health.message])))
    }

    fn plan(&self) -> Value {
        let handler = BoundHandler {
            digest: self.candidate.digest.clone(),
            ..gong(Mode::Honest)
        };
        let planned = self.policies.plan(&handler, &envelope(), Duration::from_secs(60));
        let dispatch = |dispatch: &PlannedDispatch| {
            let body = String::from_utf8_lossy(&dispatch.body);
            json!([
                dispatch.destination,
                dispatch.dedup_key,
                body,
                dispatch.deadline.map(Timestamp::as_ms)
            ])
        };
        shown(planned.map(|planned| planned.iter().map(dispatch).collect()))
    }
}

/// An answer, or the kind of the fault: a fault's words may become better.
fn shown(answer: Result<Value, PolicyFault>) -> Value {
    match answer {
        Ok(answer) => answer,
        Err(fault) => {
            let debug = format!("{fault:?}");
            json!({"fault": debug.split([' ', '{']).next()})
        }
    }
}

/// Where a value differs from what is expected. Descriptors may say more than they did: what a later host fills in.
fn differences(place: &str, expected: &Value, found: &Value) -> Vec<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let inner =
                |(key, value)| differences(&format!("{place}.{key}"), value, found.get(key).unwrap_or(&Value::Null));
            expected.iter().flat_map(inner).collect()
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let pairs = expected.iter().zip(found).enumerate();
            pairs
                .flat_map(|(index, (one, other))| differences(&format!("{place}[{index}]"), one, other))
                .collect()
        }
        _ if expected == found => Vec::new(),
        _ => vec![format!("{place}: {expected} became {found}")],
    }
}

#[track_caller]
fn check(name: &str, answers: impl FnOnce(&Golden) -> Value) {
    let golden = Golden::new(name);
    let said = golden.said(&answers(&golden));
    let path = directory().join(name).with_extension("json");
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let expected: Value = serde_json::from_str(&expected).unwrap_or_default();
    let differences = differences(name, &expected, &said);
    assert!(differences.is_empty(), "{}\nit says {said:#}", differences.join("\n"));
}

#[test]
fn a_table_says_what_it_said() {
    check("deliveries", |_| json!({}));
    check("leases", |_| json!({}));
}

#[test]
fn a_policy_of_every_part_answers_what_it_answered() {
    check("every_part", |golden| {
        json!({
            "guard": [golden.guard(0), golden.guard(1), golden.guard(2)],
            "verdict": [golden.verdict(b"LGTM\n"), golden.verdict(b"\xff no\n")],
            "assess": [golden.assess(ProcessSeen::Alive, 0), golden.assess(ProcessSeen::Alive, -1)],
        })
    });
}

#[test]
fn a_handler_plans_what_it_planned() {
    check("handler", |golden| json!({"plan": golden.plan()}));
}

/// A golden component as a toolchain of another release would have made it: names and versions are all that differ.
fn renamed(name: &str, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len(), "the sections of the component keep their sizes");
    let mut bytes = fs::read(directory().join(name).with_extension("wasm")).unwrap();
    let places: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(from.as_bytes()))
        .collect();
    assert!(!places.is_empty(), "{from} stands nowhere in {name}");
    for place in places {
        bytes[place..place + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

#[test]
fn a_component_of_a_later_line_is_told_so_for_each_interface_in_plain_words() {
    let found = problems(&renamed("every_part", "@0.1.0", "@0.2.0"));
    let later = "WIT 0.2.0: this runwarden speaks 0.1.x; use a later runwarden, or build against the files that \
                 `runwarden policy wit DIR` writes";
    let places = [
        "imports.runwarden:types/types@0.2.0",
        "imports.runwarden:host/diagnostics@0.2.0",
        "exports.runwarden:policy/lifecycle@0.2.0",
        "exports.runwarden:policy/guard@0.2.0",
        "exports.runwarden:policy/execution@0.2.0",
        "exports.runwarden:policy/health@0.2.0",
        "exports.runwarden:policy/migrate@0.2.0",
    ];
    for place in places {
        let message = found
            .iter()
            .find(|(found, _)| found == place)
            .map(|(_, message)| message.as_str());
        assert_eq!(message, Some(later), "{place}: {found:?}");
    }
    assert_eq!(found.len(), places.len(), "{found:?}");
}

#[test]
fn a_component_of_a_later_version_of_the_line_loads() {
    let candidate = prepare(&renamed("every_part", "@0.1.0", "@0.1.9"), UNHURRIED, compile_here).unwrap();
    assert_eq!(candidate.inspected.unknown, [""; 0]);
    assert!(candidate.inspected.exports("guard"));
}

#[test]
fn an_optional_interface_of_a_later_version_is_noted_and_never_asked() {
    let bytes = renamed(
        "every_part",
        "runwarden:policy/migrate@0.1.0",
        "runwarden:policy/oracles@0.1.9",
    );
    let candidate = prepare(&bytes, UNHURRIED, compile_here).unwrap();
    let notes: Vec<(&str, &str)> = candidate
        .findings
        .iter()
        // What a later host finds doubtful in its descriptor is not meant.
        .filter(|finding| finding.place.starts_with("exports"))
        .map(|finding| (finding.place.as_str(), finding.message.as_str()))
        .collect();
    let note = "not known to this runwarden, which never asks it: a later one may";
    assert_eq!(notes, [("exports.runwarden:policy/oracles@0.1.9", note)]);
}

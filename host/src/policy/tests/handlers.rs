//! Handlers: those that ship, and one that misbehaves in every way. Each fails its own call, and nothing else.

use std::sync::OnceLock;
use std::time::Duration;

use runwarden_test_guests::{Mode, hostile_handler};
use serde_json::{Value, json};

use super::compiled::compiled;
use super::fake::Components;
use super::guests::{digest, fault, problems};
use crate::model::{BoundHandler, Destination, EventFilter, Layer, PlannedDispatch, TIMEOUT_DEFAULT, Transport};
use crate::policy::{Limits, Policies, PolicyFault, prepare};

/// More than any plan takes, on a machine that is as busy as it may be.
const LONG: Duration = Duration::from_secs(60);

pub(super) struct Installed {
    policies: Policies,
    _cache: tempfile::TempDir,
}

impl Installed {
    fn new(modes: &[Mode]) -> Self {
        let patient = Limits {
            wall: LONG,
            ..Limits::DEFAULT
        };
        Self::within(modes, patient)
    }

    fn within(modes: &[Mode], limits: Limits) -> Self {
        let components = modes.iter().map(|mode| (digest(*mode), hostile_handler(*mode)));
        Self::of(components.collect(), limits)
    }

    /// Components by their digests, whatever they are, as if they had said of themselves what the honest handler says.
    pub(super) fn of(components: Vec<(String, Vec<u8>)>, limits: Limits) -> Self {
        static HONEST: OnceLock<String> = OnceLock::new();
        let honest = HONEST.get_or_init(|| {
            let candidate = prepare(&hostile_handler(Mode::Honest), Limits::DEFAULT, compiled).unwrap();
            candidate.descriptor.canonical()
        });
        let mut store = Components::default();
        for bundled in runwarden_bundled::HANDLERS.iter().chain(runwarden_bundled::POLICIES) {
            store.add(bundled.digest, bundled.descriptor, bundled.component());
        }
        store.add("damaged", "{}", Vec::new());
        let cache = tempfile::tempdir().unwrap();
        let policies = store.installed(components, honest, (cache.path(), limits));
        Self {
            policies,
            _cache: cache,
        }
    }

    fn plan(&self, mode: Mode) -> Result<Vec<PlannedDispatch>, PolicyFault> {
        self.plan_by(digest(mode))
    }

    /// Asks the handler of a digest.
    pub(super) fn plan_by(&self, digest: String) -> Result<Vec<PlannedDispatch>, PolicyFault> {
        let handler = BoundHandler {
            digest,
            ..gong(Mode::Honest)
        };
        self.policies.plan(&handler, &envelope(), LONG)
    }

    /// Why the answer of a mode cannot be used.
    fn bad(&self, mode: Mode) -> String {
        match self.plan(mode) {
            Err(PolicyFault::BadAnswer {
                why,
                function: "notifier.plan",
                ..
            }) => why,
            other => panic!("{mode:?}: {other:?}"),
        }
    }
}

pub(super) fn envelope() -> Value {
    json!({
        "schema": "runwarden.run-terminal",
        "schema_version": 1,
        "event_id": "store:r-1:2",
        "entity": {"kind": "run", "id": "r-1"},
        "status": "failed",
        "success": false,
        "reason": {"code": "run.failed.nonzero_exit", "summary": null},
        "occurred_at": "1970-01-01T00:00:01Z",
    })
}

fn to_file(path: &str) -> Destination {
    Destination {
        transport: Transport::File { path: path.to_owned() },
        timeout_ms: TIMEOUT_DEFAULT,
    }
}

/// The hostile handler of a mode, bound to two files.
pub(super) fn gong(mode: Mode) -> BoundHandler {
    BoundHandler {
        name: "bell".to_owned(),
        layer: Layer::Global,
        component: "gong@1.0.0".to_owned(),
        digest: digest(mode),
        config: serde_json::Map::new(),
        filter: EventFilter::default(),
        destinations: [("a".to_owned(), to_file("/a")), ("b".to_owned(), to_file("/b"))].into(),
    }
}

#[test]
fn every_handler_that_ships_sends_the_envelope_as_it_is_to_every_destination() {
    let installed = Installed::new(&[]);
    for bundled in runwarden_bundled::HANDLERS {
        let handler = BoundHandler {
            component: format!("{}@{}", bundled.name, bundled.version),
            digest: bundled.digest.to_owned(),
            config: [("deadline_ms".to_owned(), json!(60_000))].into_iter().collect(),
            ..gong(Mode::Honest)
        };
        let planned = installed.policies.plan(&handler, &envelope(), LONG).unwrap();
        let expected = |destination: &str, place: usize| PlannedDispatch {
            destination: destination.to_owned(),
            body: envelope().to_string().into_bytes(),
            dedup_key: format!("store:r-1:2/bell/{place}"),
            deadline: Some(crate::model::Timestamp::from_ms(61_000)),
            wants_acknowledgement: false,
        };
        assert_eq!(planned, [expected("a", 0), expected("b", 1)], "{}", bundled.name);
    }
}

#[test]
fn a_handler_is_told_the_event_its_configuration_and_the_names_of_its_destinations() {
    let planned = Installed::new(&[Mode::PlanTells]).plan(Mode::PlanTells).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&planned[0].body),
        r#""bell: 3, a b; store:r-1:2 runwarden.run-terminal run/r-1 failed false run.failed.nonzero_exit 1000""#
    );
}

#[test]
fn what_was_configured_goes_before_the_default() {
    let mut handler = gong(Mode::PlanTells);
    handler.config.insert("strokes".to_owned(), json!(12.0));
    let planned = Installed::new(&[Mode::PlanTells])
        .policies
        .plan(&handler, &envelope(), LONG)
        .unwrap();
    assert!(String::from_utf8_lossy(&planned[0].body).starts_with(r#""bell: 12, a b;"#));
}

#[test]
fn each_way_to_fail_in_a_plan_is_a_fault_of_its_own_and_costs_its_limit() {
    let modes = [
        Mode::PlanLoops,
        Mode::PlanTakesMemory,
        Mode::PlanAnswersAMillion,
        Mode::PlanPanics,
        Mode::PlanRecurses,
        Mode::PlanFaults,
        Mode::Honest,
    ];
    let installed = Installed::new(&modes);
    let fault = |mode| installed.plan(mode).unwrap_err();
    assert!(matches!(
        fault(Mode::PlanLoops),
        PolicyFault::OutOfFuel {
            function: "notifier.plan",
            ..
        }
    ));
    assert!(matches!(fault(Mode::PlanTakesMemory), PolicyFault::OutOfMemory { .. }));
    let million = fault(Mode::PlanAnswersAMillion);
    assert!(
        matches!(million, PolicyFault::OutOfMemory { .. } | PolicyFault::OutOfFuel { .. }),
        "{million:?}"
    );
    assert!(matches!(fault(Mode::PlanRecurses), PolicyFault::Trapped { .. }));
    let PolicyFault::Trapped { message, .. } = fault(Mode::PlanPanics) else {
        panic!("a panic is a trap")
    };
    assert!(message.starts_with("the gong is cracked for r-1 at "), "{message}");
    assert!(matches!(fault(Mode::PlanFaults), PolicyFault::Reported { code, .. } if &*code == "no_mallet"));
    assert_eq!(installed.plan(Mode::Honest).unwrap().len(), 1);
}

#[test]
fn an_answer_that_may_not_be_carried_out_is_no_plan() {
    let modes = [
        (Mode::PlanAnswersTooMany, "65 dispatches, at most 64"),
        (
            Mode::PlanNamesAnother,
            "dispatch 1: its binding has no destination `\\u{1b}[31mroot`",
        ),
        (Mode::PlanIsEnormous, "at most 262144 are admitted"),
        (
            Mode::PlanBodyIsEmpty,
            "dispatch 1: its body cannot be sent: it is empty",
        ),
        (Mode::PlanBodyIsTwoLines, "not one line of JSON"),
        (Mode::PlanDeadlineIsPast, "it is before the event"),
        (Mode::PlanDeadlineIsNever, "more than 366 days"),
        (Mode::PlanRepeatsAKey, "dispatch 1 has the key of another"),
        (Mode::PlanForgesAKey, "`../other/1` is no key"),
        (Mode::PlanTakesAPlace, "dispatch 1 has the key of another"),
        (Mode::PlanIsCritical, "critical extension `from-the-future`"),
    ];
    let installed = Installed::new(&modes.map(|(mode, _)| mode));
    for (mode, words) in modes {
        let why = installed.bad(mode);
        assert!(why.contains(words), "{mode:?}: {why}");
    }
}

#[test]
fn a_plan_takes_no_longer_than_what_is_left() {
    let limits = Limits {
        fuel: u64::MAX,
        ..Limits::DEFAULT
    };
    let installed = Installed::within(&[Mode::PlanLoops], limits);
    let limit_of = |left: Duration| match installed.policies.plan(&gong(Mode::PlanLoops), &envelope(), left) {
        Err(PolicyFault::OutOfTime { limit_ms, .. }) => limit_ms,
        other => panic!("{other:?}"),
    };
    assert_eq!(limit_of(Duration::from_millis(30)), 30);
    assert_eq!(limit_of(Duration::ZERO), 0);
    assert_eq!(limit_of(LONG), 250, "never longer than any call");
}

#[test]
fn a_digest_is_a_handlers_or_a_policys_and_never_both() {
    let installed = Installed::new(&[]);
    let policies = &installed.policies;
    for bundled in runwarden_bundled::HANDLERS {
        assert!(policies.handler(bundled.digest).unwrap().is_some());
        assert!(policies.lifecycle(bundled.digest).unwrap().is_none());
    }
    let policy = &runwarden_bundled::POLICIES[0];
    assert!(policies.handler(policy.digest).unwrap().is_none());
    assert!(policies.lifecycle(policy.digest).unwrap().is_some());
    assert!(policies.handler("nowhere").unwrap().is_none());
    assert!(policies.handler("damaged").is_err() && policies.lifecycle("damaged").is_err());
    let mut handler = gong(Mode::Honest);
    handler.digest = policy.digest.to_owned();
    let fault = policies.plan(&handler, &envelope(), LONG);
    assert!(matches!(fault, Err(PolicyFault::NotLoadable { .. })), "{fault:?}");
}

#[test]
fn an_envelope_that_is_not_complete_is_told_to_nobody() {
    let installed = Installed::new(&[Mode::Honest]);
    for missing in [
        "event_id",
        "schema",
        "entity",
        "status",
        "success",
        "reason",
        "occurred_at",
    ] {
        let mut envelope = envelope();
        envelope.as_object_mut().unwrap().remove(missing);
        let fault = installed.policies.plan(&gong(Mode::Honest), &envelope, LONG);
        assert!(matches!(fault, Err(PolicyFault::Store { .. })), "{missing}: {fault:?}");
    }
}

#[test]
fn a_handler_is_admitted_as_one_and_its_problems_are_told_in_their_places() {
    let candidate = prepare(&hostile_handler(Mode::Honest), Limits::DEFAULT, compiled).unwrap();
    assert_eq!(
        (candidate.descriptor.kind(), candidate.descriptor.label()),
        ("handler", "gong@1.0.0".to_owned())
    );
    assert_eq!(candidate.findings, []);
    let places = |mode| -> Vec<String> {
        let found = problems(&hostile_handler(mode));
        found.into_iter().map(|(place, _)| place).collect()
    };
    assert_eq!(
        places(Mode::HandlerHasProblems),
        ["version", "transports[3]", "config[1]"]
    );
    assert_eq!(places(Mode::HandlerIsNoJson), ["config.strokes"]);
    assert!(matches!(
        fault(&hostile_handler(Mode::HandlerLoops), Limits::DEFAULT),
        PolicyFault::OutOfFuel {
            function: "notifier.describe",
            ..
        }
    ));
}

#[test]
fn a_component_is_a_policy_or_a_handler_and_not_both() {
    let text = r#"(component
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (instance $n (export "describe" (func $f)))
        (export "runwarden:notify/notifier@0.1.0" (instance $n))
        (export "runwarden:policy/lifecycle@0.1.0" (instance $n)))"#;
    let found = problems(&wat::parse_str(text).unwrap());
    assert_eq!(found[0].0, "exports");
    assert!(found[0].1.contains("a policy and a handler at once"), "{found:?}");
}

//! Installed guests, and what they are asked.

use std::sync::OnceLock;
use std::time::Duration;

use runwarden_test_guests::{Mode, hostile};
use serde_json::json;

use super::compiled::compiled;
use super::fake::Components;
use crate::model::{
    Actor, Create, Described, Entity, Fields, Health, Lifecycle, Outcome, PolicyPin, ProcessSeen, Reason, Signs,
    Timestamp, create,
};
use crate::policy::{
    Candidate, GuardRequest, HealthRequest, InstallError, Judged, Limits, Policies, PolicyFault, Surroundings,
    VerdictRequest, prepare,
};

/// The limits, with time for a machine that does much else: fuel decides, and says the same however busy it is.
pub(super) const UNHURRIED: Limits = Limits {
    wall: Duration::from_secs(60),
    ..Limits::DEFAULT
};

/// What `prepare` made of the hostile guest in a mode.
pub(super) fn prepared(mode: Mode) -> Result<Candidate, InstallError> {
    prepare(&hostile(mode), UNHURRIED, compiled)
}

/// The place and message of every problem; a fault is not among them.
pub(super) fn problems(bytes: &[u8]) -> Vec<(String, String)> {
    match prepare(bytes, UNHURRIED, compiled) {
        Err(InstallError::Unusable(findings)) => findings.into_iter().map(|f| (f.place, f.message)).collect(),
        other => panic!("{other:?}"),
    }
}

/// The fault of a check that failed in a call.
pub(super) fn fault(bytes: &[u8], limits: Limits) -> PolicyFault {
    match prepare(bytes, limits, compiled) {
        Err(InstallError::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

/// The policies of a store that holds the hostile guest in every mode, each under its own digest.
pub(super) struct Installed {
    pub(super) policies: Policies,
    _cache: tempfile::TempDir,
}

impl Installed {
    pub(super) fn new(modes: &[Mode]) -> Self {
        Self::within(modes, UNHURRIED)
    }

    pub(super) fn within(modes: &[Mode], limits: Limits) -> Self {
        let components = modes.iter().map(|mode| (digest(*mode), hostile(*mode)));
        Self::of(components.collect(), limits)
    }

    /// Components by their digests, whatever they are, as if they had said of themselves what the honest guest says.
    pub(super) fn of(components: Vec<(String, Vec<u8>)>, limits: Limits) -> Self {
        static HONEST: OnceLock<String> = OnceLock::new();
        let honest = HONEST.get_or_init(|| prepared(Mode::Honest).unwrap().descriptor.canonical());
        let (store, cache) = (Components::default(), tempfile::tempdir().unwrap());
        let policies = store.installed(components, honest, (cache.path(), limits));
        Self {
            policies,
            _cache: cache,
        }
    }

    /// Asks the guard of a mode whether a gadget may be held.
    pub(super) fn guard(&self, mode: Mode) -> Result<Option<(String, String)>, PolicyFault> {
        self.guard_under(&pin(mode))
    }

    /// Asks the guard of a pinned policy.
    pub(super) fn guard_under(&self, pin: &PolicyPin) -> Result<Option<(String, String)>, PolicyFault> {
        let entity = self.gadget(pin);
        let nothing = Fields::new();
        let asked = GuardRequest {
            entity: &entity,
            target: "held",
            reason: &Reason::code("gadget.held.asked"),
            actor: &Actor::new("operator", "test"),
            patch: &nothing,
            guards: &nothing,
            overridden: false,
            surroundings: &Surroundings::default(),
        };
        self.policies.guard(pin, asked)
    }

    /// Asks the verdict function of a mode what exit code 7 means.
    pub(super) fn verdict(&self, mode: Mode) -> Result<Judged, PolicyFault> {
        self.verdict_under(&pin(mode))
    }

    /// Asks the verdict function of a pinned policy.
    pub(super) fn verdict_under(&self, pin: &PolicyPin) -> Result<Judged, PolicyFault> {
        let entity = self.gadget(pin);
        let by_table = Outcome {
            status: "spoiled".to_owned(),
            code: "gadget.spoiled.bad".to_owned(),
        };
        let asked = VerdictRequest {
            entity: &entity,
            exit_code: Some(7),
            signal: None,
            cause: "exit",
            stop_intent: Some("gadget.spoiled.bad"),
            started_at: Timestamp::from_ms(1_000),
            ended_at: Timestamp::from_ms(3_000),
            duration: crate::model::DurationMs::from_ms(2_000),
            usage: Some((1, 2, 3)),
            artifacts: &[("log".to_owned(), "a.txt".to_owned())],
            evidence_wanted: false,
            artifacts_missing: &[],
            last_output: b"bye\n",
            by_table: Some(&by_table),
            of_row: None,
            surroundings: &Surroundings::default(),
        };
        self.policies.verdict(pin, &asked)
    }

    /// Asks the health function of a mode.
    pub(super) fn assess(&self, mode: Mode) -> Result<Health, PolicyFault> {
        self.assess_under(&pin(mode))
    }

    /// Asks the health function of a pinned policy.
    pub(super) fn assess_under(&self, pin: &PolicyPin) -> Result<Health, PolicyFault> {
        let entity = self.gadget(pin);
        let signs = Signs {
            process: ProcessSeen::Alive,
            last_activity_at: Timestamp::from_ms(1_000),
            messages: 0,
            has_artifacts: false,
            has_stale_locks: false,
            spawn_kind: "agent".to_owned(),
        };
        let asked = HealthRequest {
            entity: &entity,
            signs: &signs,
            surroundings: &Surroundings::default(),
        };
        self.policies.assess(pin, asked)
    }

    /// An entity as the honest guest has it; which policy it is pinned to, no call looks at.
    fn gadget(&self, pin: &PolicyPin) -> Entity {
        static HONEST: OnceLock<Lifecycle> = OnceLock::new();
        let lifecycle = HONEST.get_or_init(|| {
            let Described::Policy(descriptor) = prepared(Mode::Honest).unwrap().descriptor else {
                panic!("the guest is a policy")
            };
            Lifecycle::new(*descriptor)
        });
        let mut command = Create::new("gadget", "g1", Actor::new("system", "test"));
        command.reason.code = "gadget.working.made".to_owned();
        let new = create(lifecycle, pin, &command, "store", Timestamp::from_ms(1_000)).unwrap();
        let mut entity = new.entity;
        entity.set_field("note", &json!("new"));
        entity
    }
}

/// The digest a mode is installed under: its name says more than its hash.
pub(super) fn digest(mode: Mode) -> String {
    format!("{:064}", mode as u8)
}

fn pin(mode: Mode) -> PolicyPin {
    pin_to(digest(mode))
}

/// The pin of gadgets under the component of a digest.
pub(super) fn pin_to(digest: String) -> PolicyPin {
    PolicyPin {
        name: "gadget".to_owned(),
        version: "1.0.0".to_owned(),
        digest,
        parameters: Fields::new(),
    }
}

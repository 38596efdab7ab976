//! The reference's recorded cases of health, put to the components that ship.

use std::sync::Arc;

use serde_json::Value;

use super::fake::Components;
use super::guests::UNHURRIED;
use crate::model::{
    Actor, Create, Entity, Fields, Lifecycle, PolicyPin, ProcessSeen, Reason, Signs, Timestamp, create, sha256_hex,
};
use crate::policy::{HealthRequest, Policies, Surroundings};

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

const NO_STATUS: &str = "a status is never null or empty here";

/// Every recorded case through every bundled component that exports `health`. The column `staleness_check` is not adopted:
/// nothing here sweeps by age (SEMANTICS 10.19).
#[test]
fn every_recorded_case_is_judged_by_the_components_as_recorded() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/health.json");
    let text = std::fs::read_to_string(path).unwrap();
    let vectors: Value = serde_json::from_str(&text).unwrap();
    let cases = vectors["vectors"].as_array().unwrap();
    for kind in ["run", "session", "invocation"] {
        let judged = Judge::of(kind);
        let (mut put, mut left) = (0, 0);
        for case in cases {
            let Some(status) = case["status"].as_str().filter(|status| !status.is_empty()) else {
                left += 1; // NO_STATUS
                continue;
            };
            assert_eq!(judged.level(status, case), case["health"], "{kind}: {case}");
            put += 1;
        }
        assert_eq!((put, left), (708, 12), "{NO_STATUS}");
    }
}

/// A bundled component, and an entity to ask it about.
struct Judge {
    policies: Policies,
    entity: Entity,
    lifecycle: Arc<Lifecycle>,
    _cache: tempfile::TempDir,
}

impl Judge {
    fn of(kind: &str) -> Self {
        let bundled = runwarden_bundled::POLICIES
            .iter()
            .find(|policy| policy.kind == kind)
            .unwrap();
        let mut store = Components::default();
        store.add(bundled.digest, bundled.descriptor, bundled.component());
        assert_eq!(bundled.digest, sha256_hex(&bundled.component()));
        let cache = tempfile::tempdir().unwrap();
        let policies = Policies::new(Arc::new(store.into_store()), cache.path(), UNHURRIED);
        let lifecycle = policies.lifecycle(bundled.digest).unwrap().unwrap();
        let pin = PolicyPin {
            name: bundled.name.to_owned(),
            version: bundled.version.to_owned(),
            digest: bundled.digest.to_owned(),
            parameters: Fields::new(),
        };
        let mut command = Create::new(kind, "one", Actor::new("system", "test"));
        command.reason = Reason::code("run.started.ok");
        let made = create(&lifecycle, &pin, &command, "store", Timestamp::from_ms(0)).unwrap();
        Self {
            policies,
            entity: made.entity,
            lifecycle,
            _cache: cache,
        }
    }

    fn level(&self, status: &str, case: &Value) -> &'static str {
        let mut entity = self.entity.clone();
        entity.enter(&self.lifecycle, status);
        let idle_ms = case["idle_seconds"].as_i64().unwrap() * 1_000;
        let signs = Signs {
            process: match case["process_alive"].as_bool() {
                Some(true) => ProcessSeen::Alive,
                Some(false) => ProcessSeen::Gone,
                None => ProcessSeen::Unknown,
            },
            last_activity_at: Timestamp::from_ms(NOW.as_ms() - idle_ms),
            messages: case["message_count"].as_i64().unwrap(),
            has_artifacts: case["has_artifacts"] == true,
            has_stale_locks: case["has_stale_locks"] == true,
            spawn_kind: case["kind"].as_str().unwrap_or("agent").to_owned(),
        };
        let asked = HealthRequest {
            entity: &entity,
            signs: &signs,
            surroundings: &Surroundings {
                now: NOW,
                ..Surroundings::default()
            },
        };
        self.policies.assess(&entity.policy, asked).unwrap().level.word()
    }
}

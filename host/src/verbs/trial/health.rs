//! `[[health]]`: how an entity is.

use jiff::SignedDuration;

use super::cases::{NOW, Tester};
use super::expect::{Came, Expected};
use super::moves::entity;
use crate::model::{DurationMs, Entity, Fields, Function, ProcessSeen, Signs, Tags, Timestamp, by_thresholds};
use crate::policy::HealthRequest;

/// What is seen of an entity, and how it is to be.
#[derive(Clone, Debug)]
pub(super) struct HealthCase {
    pub(super) status: String,
    pub(super) process: &'static str,
    /// Since the last sign of life.
    pub(super) quiet: Option<DurationMs>,
    pub(super) messages: i64,
    pub(super) has_artifacts: bool,
    pub(super) has_stale_locks: bool,
    pub(super) spawn_kind: Option<String>,
    pub(super) fields: Fields,
    pub(super) tags: Tags,
    pub(super) expected: Expected,
}

impl HealthCase {
    /// Nothing is seen of an entity.
    pub(super) fn quiet(status: &str) -> Self {
        Self {
            status: status.to_owned(),
            process: "none",
            quiet: None,
            messages: 0,
            has_artifacts: false,
            has_stale_locks: false,
            spawn_kind: None,
            fields: Fields::new(),
            tags: Tags::new(),
            expected: Expected::default(),
        }
    }

    pub(super) fn described(&self) -> String {
        let process = match self.process {
            "none" => "no process",
            "alive" => "its process alive",
            "gone" => "its process gone",
            _ => "its process unknown",
        };
        let quiet = self
            .quiet
            .map(|quiet| format!(", quiet for {:#}", SignedDuration::from_millis(quiet.as_ms())));
        format!("{}, {process}{}", self.status, quiet.unwrap_or_default())
    }

    pub(super) fn asked(&self, tester: &Tester<'_>) -> Result<Came, String> {
        let lifecycle = tester.lifecycle();
        let entity = self.entity(tester)?;
        let signs = self.signs(&entity);
        if tester.exported.contains(&Function::Health) {
            let asked = HealthRequest {
                entity: &entity,
                signs: &signs,
                surroundings: &tester.surroundings(),
            };
            return Ok(match tester.ready.assess(asked) {
                Ok(health) => Came::new(health.level.word(), None, health.message),
                Err(fault) => Came::new("unknown", None, fault.to_string()),
            });
        }
        let judged = by_thresholds(lifecycle, &entity, &signs, NOW);
        let health = judged.ok_or("the policy has neither a health function nor thresholds for it")?;
        Ok(Came::new(health.level.word(), None, health.message))
    }

    pub(super) fn entity(&self, tester: &Tester<'_>) -> Result<Entity, String> {
        entity(tester, &self.status, (&self.fields, &self.tags), NOW)
    }

    pub(super) fn signs(&self, entity: &Entity) -> Signs {
        let quiet = self.quiet.map_or(0, DurationMs::as_ms);
        Signs {
            process: match (self.process, entity.terminal) {
                ("alive", _) => ProcessSeen::Alive,
                // What has ended was seen to, unless the inventory says otherwise.
                ("gone", true) if !self.has_stale_locks => ProcessSeen::Ended,
                ("gone", _) => ProcessSeen::Gone,
                ("unknown", _) => ProcessSeen::Unknown,
                _ => ProcessSeen::None,
            },
            last_activity_at: Timestamp::from_ms(NOW.as_ms().saturating_sub(quiet)),
            messages: self.messages,
            has_artifacts: self.has_artifacts,
            has_stale_locks: self.has_stale_locks,
            spawn_kind: self.spawn_kind.clone().unwrap_or_else(|| "agent".to_owned()),
        }
    }
}

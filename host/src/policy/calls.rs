//! The calls into a component: one fresh store each.

use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use super::bindings::exports::runwarden::policy::{execution, guard, health, lifecycle};
use super::bindings::runwarden::types::types as shared;
use super::convert;
use super::fault::PolicyFault;
use super::instance::{CallState, classify, store};
use super::limits::Limits;
use crate::model::{Actor, DurationMs, Entity, Fields, HistoryRow, Lifecycle, Outcome, Reason, Timestamp};

/// A component ready to be called.
pub(super) struct Callable<'a> {
    /// `name@version`, for messages.
    pub(super) label: &'a str,
    pub(super) pre: &'a InstancePre<CallState>,
    pub(super) limits: Limits,
}

/// What a call may see beside the entity.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The time of the command.
    pub now: Timestamp,
    /// Parameters in force.
    pub parameters: Fields,
    /// Entities linked below, if the descriptor asked for them.
    pub children: Vec<Entity>,
    /// Newest history rows first, as many as the descriptor asked for.
    pub history: Vec<HistoryRow>,
}

impl Surroundings {
    fn shown(&self) -> shared::Surroundings {
        shared::Surroundings {
            now: self.now.as_ms(),
            parameters: convert::named(&self.parameters),
            children: self.children.iter().map(convert::child).collect(),
            history: self.history.iter().map(convert::history_row).collect(),
            ext: Vec::new(),
        }
    }
}

/// What a guard is asked.
#[derive(Clone, Copy, Debug)]
pub struct GuardRequest<'a> {
    /// The entity as read.
    pub entity: &'a Entity,
    /// The status asked for.
    pub target: &'a str,
    /// Why.
    pub reason: &'a Reason,
    /// Who.
    pub actor: &'a Actor,
    /// Fields set.
    pub patch: &'a Fields,
    /// Fields guarded.
    pub guards: &'a Fields,
    /// An operator overrides the graph.
    pub overridden: bool,
    /// What it may see.
    pub surroundings: &'a Surroundings,
}

/// What a verdict function is asked.
#[derive(Clone, Debug)]
pub struct VerdictRequest<'a> {
    /// The entity as read.
    pub entity: &'a Entity,
    /// The exit code.
    pub exit_code: Option<i64>,
    /// The signal.
    pub signal: Option<i64>,
    /// The cause's word.
    pub cause: &'a str,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How long it ran.
    pub duration: DurationMs,
    /// Processor time in user and system mode, in milliseconds, and the largest resident size in bytes.
    pub usage: Option<(i64, i64, i64)>,
    /// Kind and location of what it left.
    pub artifacts: &'a [(String, String)],
    /// Evidence was wanted.
    pub evidence_wanted: bool,
    /// Expected patterns that matched nothing.
    pub artifacts_missing: &'a [String],
    /// The end of its output.
    pub last_output: &'a [u8],
    /// What the table says.
    pub by_table: Option<&'a Outcome>,
    /// What it may see.
    pub surroundings: &'a Surroundings,
}

/// What a verdict function answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The outcome.
    pub outcome: Outcome,
    /// In words.
    pub summary: Option<String>,
    /// Fields set.
    pub patch: Fields,
    /// Try again after this long.
    pub retry_after: Option<DurationMs>,
}

/// What is observed of an entity's health.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// The entity as read.
    pub entity: &'a Entity,
    /// alive, gone, unknown or none.
    pub process: &'a str,
    /// Newest sign of life.
    pub last_activity_at: Timestamp,
    /// Messages counted.
    pub messages: i64,
    /// It left an artifact.
    pub has_artifacts: bool,
    /// A runtime row says running, its process is positively gone.
    pub has_stale_locks: bool,
    /// How it was spawned.
    pub spawn_kind: &'a str,
    /// What it may see.
    pub surroundings: &'a Surroundings,
}

/// A health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessed {
    /// healthy, idle, unresponsive, stale, orphaned or zombie.
    pub level: String,
    /// In words.
    pub message: String,
}

/// The levels a health function may answer.
const LEVELS: [&str; 6] = ["healthy", "idle", "unresponsive", "stale", "orphaned", "zombie"];

impl Callable<'_> {
    /// The descriptor as the component gives it.
    pub(super) fn describe(&self) -> Result<lifecycle::Descriptor, PolicyFault> {
        const FUNCTION: &str = "lifecycle.describe";
        let indices = self.indices(FUNCTION, lifecycle::GuestIndices::new(self.pre))?;
        self.run(FUNCTION, |store, instance| {
            indices.load(&mut *store, instance)?.call_describe(store)
        })
    }

    /// Asks the guard: none when it admits, else its code and words.
    pub(super) fn guard(
        &self,
        lifecycle: &Lifecycle,
        asked: GuardRequest<'_>,
    ) -> Result<Option<(String, String)>, PolicyFault> {
        const FUNCTION: &str = "guard.evaluate";
        let indices = self.indices(FUNCTION, guard::GuestIndices::new(self.pre))?;
        let request = guard::Request {
            entity: convert::entity(asked.entity, &lifecycle.descriptor().reads),
            target: asked.target.to_owned(),
            reason: convert::reason(asked.reason),
            actor: convert::actor(asked.actor),
            patch: convert::named(asked.patch),
            guards: convert::named(asked.guards),
            overridden: asked.overridden,
            surroundings: asked.surroundings.shown(),
            ext: Vec::new(),
        };
        let answer = self.run(FUNCTION, |store, instance| {
            indices.load(&mut *store, instance)?.call_evaluate(store, &request)
        })?;
        let decision = answer.map_err(|fault| self.reported(FUNCTION, fault))?;
        self.refuse_critical(FUNCTION, &decision.ext)?;
        if decision.admitted {
            return Ok(None);
        }
        let code = if decision.code.is_empty() {
            "guard".to_owned()
        } else {
            decision.code
        };
        Ok(Some((code, decision.message)))
    }

    /// Asks what an ending means. The answer is an edge the policy declared, or a fault.
    pub(super) fn verdict(&self, lifecycle: &Lifecycle, asked: &VerdictRequest<'_>) -> Result<Judged, PolicyFault> {
        const FUNCTION: &str = "execution.verdict";
        let indices = self.indices(FUNCTION, execution::GuestIndices::new(self.pre))?;
        let ending = ending(lifecycle, asked);
        let answer = self.run(FUNCTION, |store, instance| {
            indices.load(&mut *store, instance)?.call_verdict(store, &ending)
        })?;
        let judgement = answer.map_err(|fault| self.reported(FUNCTION, fault))?;
        self.refuse_critical(FUNCTION, &judgement.ext)?;
        let bad = |why: String| PolicyFault::BadAnswer {
            policy: self.label.to_owned(),
            function: FUNCTION,
            why,
        };
        if lifecycle.edge(&asked.entity.status, &judgement.status).is_none() {
            return Err(bad(format!("no edge {} -> {}", asked.entity.status, judgement.status)));
        }
        if !lifecycle.admits_reason(&judgement.code) {
            return Err(bad(format!("reason code `{}` is not declared", judgement.code)));
        }
        let patch = convert::fields(judgement.patch).map_err(bad)?;
        if let Some(name) = patch.keys().find(|name| lifecycle.field(name).is_none()) {
            return Err(bad(format!("field `{name}` is not declared")));
        }
        Ok(Judged {
            outcome: Outcome {
                status: judgement.status,
                code: judgement.code,
            },
            summary: judgement.summary,
            patch,
            retry_after: judgement.retry_after.map(DurationMs::from_ms),
        })
    }

    /// Asks how an entity is.
    pub(super) fn assess(&self, lifecycle: &Lifecycle, seen: &Observed<'_>) -> Result<Assessed, PolicyFault> {
        const FUNCTION: &str = "health.assess";
        let indices = self.indices(FUNCTION, health::GuestIndices::new(self.pre))?;
        let observation = health::Observation {
            entity: convert::entity(seen.entity, &lifecycle.descriptor().reads),
            process: seen.process.to_owned(),
            last_activity_at: seen.last_activity_at.as_ms(),
            messages: seen.messages,
            has_artifacts: seen.has_artifacts,
            has_stale_locks: seen.has_stale_locks,
            spawn_kind: seen.spawn_kind.to_owned(),
            surroundings: seen.surroundings.shown(),
            ext: Vec::new(),
        };
        let answer = self.run(FUNCTION, |store, instance| {
            indices.load(&mut *store, instance)?.call_assess(store, &observation)
        })?;
        let assessment = answer.map_err(|fault| self.reported(FUNCTION, fault))?;
        if !LEVELS.contains(&assessment.level.as_str()) {
            let why = format!("`{}` is no level of health", assessment.level);
            return Err(PolicyFault::BadAnswer {
                policy: self.label.to_owned(),
                function: FUNCTION,
                why,
            });
        }
        Ok(Assessed {
            level: assessment.level,
            message: assessment.message,
        })
    }

    /// Runs one call in a store of its own.
    fn run<R>(
        &self,
        function: &'static str,
        call: impl FnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<R>,
    ) -> Result<R, PolicyFault> {
        let mut store = store(self.pre.engine(), self.label, self.limits);
        let answered = self
            .pre
            .instantiate(&mut store)
            .and_then(|instance| call(&mut store, &instance));
        answered.map_err(|error| classify(&store, function, &error))
    }

    fn indices<I>(&self, function: &'static str, found: wasmtime::Result<I>) -> Result<I, PolicyFault> {
        found.map_err(|error| PolicyFault::NotLoadable {
            policy: self.label.to_owned(),
            why: format!("{function} is not exported as WIT 0.1 has it: {error:#}"),
        })
    }

    fn reported(&self, function: &'static str, fault: shared::Fault) -> PolicyFault {
        PolicyFault::Reported {
            policy: self.label.to_owned(),
            function,
            code: fault.code,
            message: fault.message,
        }
    }

    /// An answer with a critical part that this host does not know must not be used in part.
    fn refuse_critical(&self, function: &'static str, ext: &[shared::ExtField]) -> Result<(), PolicyFault> {
        let Some(unknown) = ext.iter().find(|extension| extension.critical) else {
            return Ok(());
        };
        let why = format!("critical extension `{}` is not known to this host", unknown.key);
        Err(PolicyFault::BadAnswer {
            policy: self.label.to_owned(),
            function,
            why,
        })
    }
}

fn ending(lifecycle: &Lifecycle, asked: &VerdictRequest<'_>) -> execution::Ending {
    let artifacts = asked.artifacts.iter();
    execution::Ending {
        entity: convert::entity(asked.entity, &lifecycle.descriptor().reads),
        exit_code: asked.exit_code,
        signal: asked.signal,
        cause: asked.cause.to_owned(),
        stop_intent: None,
        started_at: asked.started_at.as_ms(),
        ended_at: asked.ended_at.as_ms(),
        duration: asked.duration.as_ms(),
        usage: asked.usage.map(|(user, system, max_resident_bytes)| execution::Usage {
            user,
            system,
            max_resident_bytes,
        }),
        attempt: asked.entity.structural.attempt.unwrap_or(1),
        attempts_left: 0,
        artifacts: artifacts
            .map(|(kind, location)| execution::Artifact {
                kind: kind.clone(),
                location: location.clone(),
            })
            .collect(),
        evidence_wanted: asked.evidence_wanted,
        artifacts_missing: asked.artifacts_missing.to_vec(),
        last_output: asked.last_output.to_vec(),
        by_table: asked.by_table.map(|o| execution::Outcome {
            status: o.status.clone(),
            code: o.code.clone(),
        }),
        surroundings: asked.surroundings.shown(),
        ext: Vec::new(),
    }
}

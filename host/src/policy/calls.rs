//! The calls into a component: one fresh store each, and no answer is taken as it comes.

use std::cell::Cell;

use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use super::answers::Answer;
use super::bindings::exports::runwarden::notify::notifier;
use super::bindings::exports::runwarden::policy::{execution, guard, health, lifecycle, migrate};
use super::bindings::runwarden::types::types as shared;
use super::convert;
use super::fault::PolicyFault;
use super::instance::{CallState, classify, classify_start, store};
use super::limits::Limits;
use super::text::line;
use crate::model::{
    Actor, Descriptor, DurationMs, Entity, Fields, Health, HistoryRow, Lifecycle, Outcome, Reason, Signs, Structural,
    Timestamp,
};

/// A component ready to be called.
pub(super) struct Callable<'a> {
    /// `name@version`, for messages.
    pub(super) label: &'a str,
    pub(super) pre: &'a InstancePre<CallState>,
    pub(super) limits: Limits,
    /// Fuel that the last call used.
    pub(super) spent: Cell<u64>,
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
    /// The reason code of a stop that was wanted before the end.
    pub stop_intent: Option<&'a str>,
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
    /// For the run of queued work: which start of that it was, and how many are left.
    pub of_row: Option<(i64, i64)>,
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

/// What a health function is asked.
#[derive(Clone, Copy, Debug)]
pub struct HealthRequest<'a> {
    /// The entity as read.
    pub entity: &'a Entity,
    /// What was observed of it.
    pub signs: &'a Signs,
    /// What it may see.
    pub surroundings: &'a Surroundings,
}

impl<'a> Callable<'a> {
    pub(super) fn new(label: &'a str, pre: &'a InstancePre<CallState>, limits: Limits) -> Self {
        Self {
            label,
            pre,
            limits,
            spent: Cell::new(0),
        }
    }

    /// Whether an instance can be made.
    pub(super) fn start(&self) -> Result<(), PolicyFault> {
        self.enter("instantiation", |_, _| Ok(())).map(drop)
    }

    /// Whether an exported interface has the functions and types of WIT 0.1; runs nothing but instantiation.
    pub(super) fn probe(&self, interface: &str) -> Result<(), PolicyFault> {
        let pre = self.pre;
        self.enter("instantiation", |store, instance| match interface {
            "runwarden:policy/lifecycle" => lifecycle::GuestIndices::new(pre)?.load(store, instance).map(drop),
            "runwarden:policy/guard" => guard::GuestIndices::new(pre)?.load(store, instance).map(drop),
            "runwarden:policy/execution" => execution::GuestIndices::new(pre)?.load(store, instance).map(drop),
            "runwarden:policy/health" => health::GuestIndices::new(pre)?.load(store, instance).map(drop),
            "runwarden:policy/migrate" => migrate::GuestIndices::new(pre)?.load(store, instance).map(drop),
            "runwarden:notify/notifier" => notifier::GuestIndices::new(pre)?.load(store, instance).map(drop),
            _ => Ok(()),
        })?;
        Ok(())
    }

    /// The descriptor as the component gives it.
    pub(super) fn describe(&self) -> Result<lifecycle::Descriptor, PolicyFault> {
        const FUNCTION: &str = "lifecycle.describe";
        let indices = || lifecycle::GuestIndices::new(self.pre);
        self.run(
            FUNCTION,
            |store, instance| indices()?.load(store, instance),
            |guest, store| guest.call_describe(store),
        )
    }

    /// Asks the guard: none when it admits, else its code and words.
    pub(super) fn guard(
        &self,
        lifecycle: &Lifecycle,
        asked: GuardRequest<'_>,
    ) -> Result<Option<(String, String)>, PolicyFault> {
        const FUNCTION: &str = "guard.evaluate";
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
        let indices = || guard::GuestIndices::new(self.pre);
        let answer = self.run(
            FUNCTION,
            |store, instance| indices()?.load(store, instance),
            |guest, store| guest.call_evaluate(store, &request),
        )?;
        self.answer(FUNCTION).decision(answer)
    }

    /// Asks what an ending means. The answer is an edge that the host can take, or a fault.
    pub(super) fn verdict(&self, lifecycle: &Lifecycle, asked: &VerdictRequest<'_>) -> Result<Judged, PolicyFault> {
        const FUNCTION: &str = "execution.verdict";
        let ending = ending(lifecycle, asked);
        let indices = || execution::GuestIndices::new(self.pre);
        let answer = self.run(
            FUNCTION,
            |store, instance| indices()?.load(store, instance),
            |guest, store| guest.call_verdict(store, &ending),
        )?;
        self.answer(FUNCTION).judgement(answer, lifecycle, &asked.entity.status)
    }

    /// Asks how an entity is.
    pub(super) fn assess(&self, lifecycle: &Lifecycle, asked: HealthRequest<'_>) -> Result<Health, PolicyFault> {
        const FUNCTION: &str = "health.assess";
        let signs = asked.signs;
        let observation = health::Observation {
            entity: convert::entity(asked.entity, &lifecycle.descriptor().reads),
            process: signs.process.word().to_owned(),
            last_activity_at: signs.last_activity_at.as_ms(),
            messages: signs.messages,
            has_artifacts: signs.has_artifacts,
            has_stale_locks: signs.has_stale_locks,
            spawn_kind: signs.spawn_kind.clone(),
            surroundings: asked.surroundings.shown(),
            ext: Vec::new(),
        };
        let indices = || health::GuestIndices::new(self.pre);
        let answer = self.run(
            FUNCTION,
            |store, instance| indices()?.load(store, instance),
            |guest, store| guest.call_assess(store, &observation),
        )?;
        self.answer(FUNCTION).assessment(answer)
    }

    /// Runs one call in a store of its own.
    pub(super) fn run<G, R>(
        &self,
        function: &'static str,
        load: impl FnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<G>,
        call: impl FnOnce(G, &mut Store<CallState>) -> wasmtime::Result<R>,
    ) -> Result<R, PolicyFault> {
        let (guest, mut store) = self.enter(function, load)?;
        let answered = call(guest, &mut store).map_err(|error| classify(&store, function, &error));
        let left = store.get_fuel().expect("the engine counts fuel");
        self.spent.set(self.limits.fuel.saturating_sub(left));
        answered
    }

    /// Makes an instance in a store of its own, and finds a function in it.
    fn enter<G>(
        &self,
        function: &'static str,
        load: impl FnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<G>,
    ) -> Result<(G, Store<CallState>), PolicyFault> {
        let mut store = store(self.pre.engine(), self.label, self.limits);
        let instance = self
            .pre
            .instantiate(&mut store)
            .map_err(|error| classify_start(&store, function, &error))?;
        let found = load(&mut store, &instance).map_err(|error| PolicyFault::NotLoadable {
            policy: self.label.to_owned(),
            why: line(&format!("{function} is not exported as WIT 0.1 has it: {error:#}")),
        })?;
        Ok((found, store))
    }

    pub(super) fn answer(&self, function: &'static str) -> Answer<'_> {
        Answer {
            policy: self.label,
            function,
            limit_bytes: self.limits.answer_bytes,
        }
    }
}

fn ending(lifecycle: &Lifecycle, asked: &VerdictRequest<'_>) -> execution::Ending {
    let artifacts = asked.artifacts.iter();
    let own = || attempts(lifecycle.descriptor(), &asked.entity.structural);
    let (attempt, attempts_left) = asked.of_row.unwrap_or_else(own);
    execution::Ending {
        entity: convert::entity(asked.entity, &lifecycle.descriptor().reads),
        exit_code: asked.exit_code,
        signal: asked.signal,
        cause: asked.cause.to_owned(),
        stop_intent: asked.stop_intent.map(str::to_owned),
        started_at: asked.started_at.as_ms(),
        ended_at: asked.ended_at.as_ms(),
        duration: asked.duration.as_ms(),
        usage: asked.usage.map(|(user, system, max_resident_bytes)| execution::Usage {
            user,
            system,
            max_resident_bytes,
        }),
        attempt,
        attempts_left,
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

/// Which start this was, and how many are left: work that is neither leased nor tried again has this one.
pub(super) fn attempts(descriptor: &Descriptor, structural: &Structural) -> (i64, i64) {
    let (made, most) = match (&descriptor.lease, &descriptor.retry) {
        (Some(rule), _) => (structural.lease_attempts, rule.attempts),
        (None, Some(rule)) => (structural.attempt, rule.attempts),
        (None, None) => (structural.attempt, 0),
    };
    let left = made.map_or(0, |made| most.saturating_sub(made).max(0));
    (made.unwrap_or(1), left)
}

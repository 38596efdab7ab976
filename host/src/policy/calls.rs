//! The calls into a component: one fresh store each, and no answer is taken as it comes.

use std::cell::Cell;

use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use super::answers::Answer;
use super::fault::{InstallError, PolicyFault};
use super::instance::{CallState, Linked, classify, classify_start, store};
use super::limits::Limits;
use super::line::Adapter;
use super::ready::Usage;
use super::text::line;
use crate::model::{
    Actor, Descriptor, DurationMs, Entity, Fields, HandlerDescriptor, Health, HistoryRow, Lifecycle, Mapped, Outcome,
    PolicyPin, Reason, Signs, Structural, Timestamp,
};

/// What is done before any function is called, for messages.
pub(super) const INSTANTIATION: &str = "instantiation";

/// The functions that are called, for messages.
pub(super) const DESCRIBE: &str = "lifecycle.describe";
pub(super) const DESCRIBE_HANDLER: &str = "notifier.describe";
pub(super) const GUARD: &str = "guard.evaluate";
pub(super) const VERDICT: &str = "execution.verdict";
pub(super) const ASSESS: &str = "health.assess";
pub(super) const MAP: &str = "migrate.map";
pub(super) const PLAN: &str = "notifier.plan";

/// A component ready to be called.
pub(super) struct Callable<'a> {
    /// `name@version`, for messages.
    pub(super) label: &'a str,
    pub(super) linked: &'a Linked,
    pub(super) limits: Limits,
    /// What the last call used.
    pub(super) used: Cell<Usage>,
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

/// What a mapping function is asked.
#[derive(Clone, Copy, Debug)]
pub struct MapRequest<'a> {
    /// The entity as read.
    pub entity: &'a Entity,
    /// The policy that it is under.
    pub from: &'a PolicyPin,
    /// What it may see.
    pub surroundings: &'a Surroundings,
}

impl<'a> Callable<'a> {
    pub(super) fn new(label: &'a str, linked: &'a Linked, limits: Limits) -> Self {
        Self {
            label,
            linked,
            limits,
            used: Cell::default(),
        }
    }

    /// Whether an instance can be made.
    pub(super) fn start(&self) -> Result<(), PolicyFault> {
        self.enter(INSTANTIATION, |_, _| Ok(())).map(drop)
    }

    /// Whether an exported interface has the functions and types of its WIT line; runs nothing but instantiation.
    pub(super) fn probe(&self, interface: &str) -> Result<(), PolicyFault> {
        (self.adapter().probe)(self, interface)
    }

    /// What a policy says of itself.
    pub(super) fn describe(&self) -> Result<Descriptor, InstallError> {
        (self.adapter().describe)(self)
    }

    /// What a handler says of itself.
    pub(super) fn describe_handler(&self) -> Result<HandlerDescriptor, InstallError> {
        (self.adapter().describe_handler)(self)
    }

    /// Asks the guard: none when it admits, else its code and words.
    pub(super) fn guard(
        &self,
        lifecycle: &Lifecycle,
        asked: GuardRequest<'_>,
    ) -> Result<Option<(String, String)>, PolicyFault> {
        let answer = (self.adapter().guard)(self, &lifecycle.descriptor().reads, asked)?;
        self.answer(GUARD).decision(answer)
    }

    /// Asks what an ending means. The answer is an edge that the host can take, or a fault.
    pub(super) fn verdict(&self, lifecycle: &Lifecycle, asked: &VerdictRequest<'_>) -> Result<Judged, PolicyFault> {
        let answer = (self.adapter().verdict)(self, lifecycle.descriptor(), asked)?;
        self.answer(VERDICT).judgement(answer, lifecycle, &asked.entity.status)
    }

    /// Asks how an entity is.
    pub(super) fn assess(&self, lifecycle: &Lifecycle, asked: HealthRequest<'_>) -> Result<Health, PolicyFault> {
        let answer = (self.adapter().assess)(self, &lifecycle.descriptor().reads, asked)?;
        self.answer(ASSESS).assessment(answer)
    }

    /// Asks where an entity of another policy goes. The answer is a status and fields of this one, or a fault.
    pub(super) fn map(&self, lifecycle: &Lifecycle, asked: MapRequest<'_>) -> Result<Mapped, PolicyFault> {
        let answer = (self.adapter().map)(self, &lifecycle.descriptor().reads, asked)?;
        self.answer(MAP).mapping(answer, lifecycle)
    }

    /// Runs one call in a store of its own, for an adapter.
    pub(super) fn run<G, R>(
        &self,
        function: &'static str,
        load: impl FnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<G>,
        call: impl FnOnce(G, &mut Store<CallState>) -> wasmtime::Result<R>,
    ) -> Result<R, PolicyFault> {
        let (guest, mut store) = self.enter(function, load)?;
        let answered = call(guest, &mut store).map_err(|error| classify(&store, function, &error));
        let left = store.get_fuel().expect("the engine counts fuel");
        self.used.set(Usage {
            fuel: self.limits.fuel.saturating_sub(left),
            memory_bytes: store.data().memory_bytes(),
        });
        answered
    }

    /// Makes an instance in a store of its own, and finds a function in it.
    pub(super) fn enter<G>(
        &self,
        function: &'static str,
        load: impl FnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<G>,
    ) -> Result<(G, Store<CallState>), PolicyFault> {
        let pre = self.pre();
        let mut store = store(pre.engine(), self.label, self.limits);
        let instance = pre
            .instantiate(&mut store)
            .map_err(|error| classify_start(&store, function, &error))?;
        let found = load(&mut store, &instance).map_err(|error| {
            let version = self.linked.line.version();
            PolicyFault::NotLoadable {
                policy: self.label.to_owned(),
                why: line(&format!("not as WIT {version} has it: {error:#}")),
            }
        })?;
        Ok((found, store))
    }

    /// The component with its import resolved.
    pub(super) const fn pre(&self) -> &'a InstancePre<CallState> {
        &self.linked.pre
    }

    pub(super) const fn adapter(&self) -> &'static Adapter {
        self.linked.line.adapter()
    }

    pub(super) fn answer(&self, function: &'static str) -> Answer<'_> {
        Answer {
            policy: self.label,
            function,
            limit_bytes: self.limits.answer_bytes,
        }
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

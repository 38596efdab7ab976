//! The parts that a component may export, one trait each. All are functions from record to record.

use crate::{
    Assessment, Binding, Decision, Descriptor, Ending, Entity, Envelope, Fault, HandlerDescriptor, Judgement, Mapping,
    Observation, PlannedDispatch, Request, Surroundings,
};

/// What every policy is: the table of its kind.
pub trait Policy {
    /// The whole table. Asked for at install only, twice, and the answers must be equal.
    fn describe() -> Descriptor;
}

/// Logic for edges that the table marks `guarded`.
pub trait Guard {
    /// Whether the write may happen. It may refuse what the table allows, never allow what the table forbids.
    ///
    /// # Errors
    /// A fault counts as a refusal.
    fn evaluate(request: Request) -> Result<Decision, Fault>;
}

/// Logic for endings that the verdict table cannot judge.
pub trait Execution {
    /// What the ending of a process means.
    ///
    /// # Errors
    /// After a fault the host writes the execution rule's `verdict_failed`, with the true exit code.
    fn verdict(ending: Ending) -> Result<Judgement, Fault>;
}

/// Logic for health beyond the thresholds of the table.
pub trait Health {
    /// How an entity is. The answer is shown and never stored.
    ///
    /// # Errors
    /// A fault is shown instead of the answer.
    fn assess(observation: Observation) -> Result<Assessment, Fault>;
}

/// Takes live entities over from another version of the policy.
pub trait Migrate {
    /// The status and patch with which an entity of `from_name@from_version` goes on under this version.
    ///
    /// # Errors
    /// A fault leaves the entity where it is.
    fn map(
        entity: Entity,
        from_name: String,
        from_version: String,
        surroundings: Surroundings,
    ) -> Result<Mapping, Fault>;
}

/// What a handler is: it plans what is sent when something ended.
pub trait Notifier {
    /// What the handler is and how it is configured. Asked for at install only.
    fn describe() -> HandlerDescriptor;

    /// Plans the dispatches for one event, and sends nothing.
    ///
    /// # Errors
    /// A fault leaves the event unacknowledged; the host asks again later.
    fn plan(envelope: Envelope, binding: Binding) -> Result<Vec<PlannedDispatch>, Fault>;
}

//! The rules, and nothing but the rules: no I/O, no clock, no waiting, no components.
//!
//! Every function here is total and deterministic: the same arguments give the same answer on every machine, which is
//! what lets `transition --dry-run`, replay, property tests and benchmarks call the very code that decides.

mod actor;
mod authoring;
mod bytes;
mod change;
mod check;
mod command;
mod creation;
mod decide;
mod descriptor;
mod diff;
mod digest;
mod dispatch;
mod duration;
mod end_seen;
mod ending;
mod entity;
mod envelope;
mod handler;
mod health;
mod id;
mod judging;
mod kill;
pub mod lease;
mod lifecycle;
mod limits;
mod measure;
mod migrate;
mod nearest;
mod notify;
pub mod outbox;
mod parameters;
mod queueing;
mod refusal;
mod repair;
mod resource;
mod retention;
mod runtime;
#[cfg(test)]
mod samples;
pub mod schedule;
mod signal;
mod stale;
mod time;
mod value;
#[cfg(test)]
mod vectors;
mod why;

pub use actor::{ACTOR_KINDS, Actor};
pub use authoring::{Authored, Problem, author};
pub use bytes::Bytes;
pub use change::{AdminEvent, Change, Event, HistoryRow, KeyUse, NewEntity};
pub use check::{Finding, Function, Severity, check, check_handler, check_policy, is_component_name};
pub use command::{Create, Override, Transition};
pub use creation::create;
pub use decide::{Conflict, Decision, Found, Invalid, Refusal, decide, validate};
pub use descriptor::{
    Cascade, DeliveryRule, Descriptor, Edge, ExecutionRule, Extension, Field, FieldKind, HealthThreshold, KillRow,
    LeaseRule, Migration, Outcome, Parameter, Reads, ReasonCode, RetrySchedule, SameStatus, Status, StatusMapping,
    VerdictRow,
};
pub use diff::{ChangeSort, DescriptorChange, Prospect, diff, prospect};
pub use digest::sha256_hex;
pub use dispatch::{DISPATCH_KIND, DestinationHealth, Dispatch, NewDispatch, OwedPlan, Planned, Sent};
pub use duration::parse_duration;
pub use end_seen::{EndSeen, IDENTITY_STAGE, spawn_outcome};
pub use ending::{Cause, Ended, Ending, Evidence, judge};
pub use entity::{Entity, Fields, PolicyPin, Reason, Structural, Tags};
pub use envelope::{EnvelopeContext, SCHEMA_STATUS, SCHEMA_TERMINAL, envelope, of as envelope_of};
pub use handler::{
    DEADLINE_MAX, Described, HANDLER_KIND, HandlerDescriptor, PLANNED_MAX, PlannedDispatch, TRANSPORTS, body_problem,
    check_config, deadline_problem, dedup_key, filled_config, is_dispatch_key,
};
pub use health::{Condition, Health, HealthLevel, ProcessSeen, Signs, by_thresholds, worst};
pub use id::{EventId, IdError, PREFIX_CHARS_MIN, Reference, generate_id, singular, validate_id};
pub use judging::{Answer, Difference, EXAMPLES_MAX, Group, Tally};
pub use kill::{
    Asked, KillNode, KillRefusal, KillSet, KillStep, PlannedKill, Reach, SeenGone, Standing, Unjudged, cascades,
    is_killed_by, plan_kill,
};
pub use lifecycle::{Cell, CellResult, Lifecycle};
pub use limits::{Limit, RaisedLimits};
pub use migrate::{
    Carried, MIGRATED, MapFunction, Mapped, MoveOrders, NewPolicy, NotMoved, Way, migrate, no_place, way,
};
pub use nearest::nearest;
pub use notify::{
    BoundHandler, CLAIM_MARGIN, Destination, EventFilter, Layer, NotifyDiagnostic, NotifySettings, SecretReference,
    Source, TIMEOUT_DEFAULT, TIMEOUT_MAX, Transport, let_out,
};
pub use parameters::{check_given, filled};
pub use queueing::{LeaseChange, LeaseStep, Lineage, QUEUE_DEFAULT, Queued, Queueing, Stage};
pub use refusal::{LATE_WRITE, late_write_event, lost_lease_event, rejection_event};
pub use repair::{Began, Carriers, Left, Observed, Recorded, Repair, Unseen, is_overdue, repair, repair_evidence};
pub use resource::{Extent, Protected, Resource, refusal as removal_refusal};
pub use retention::{
    Fate, Hold, LogUse, Retention, Shim, directory_fate, ended_at, hold, logs_over, record_fate, stray_fate,
};
pub use runtime::{Containment, Place, ProcessIdentity, Runtime, RuntimeKind, RuntimeState, StopIntent};
pub use signal::{SIGNALS, parse_signal, signal_name};
pub use stale::{Below, Candidate, STALE_AFTER, StaleVerdict, plan_stale};
pub use time::{DurationMs, Timestamp};
pub use value::{ValueError, coerce, json_equal};
pub use why::{Case, Explanation, Fact, LockSeen, Notice, Process, QueueSight, START_GRACE, ShimLock, Sight, explain};

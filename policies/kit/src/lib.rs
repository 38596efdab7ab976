//! Write a Runwarden policy or handler as a plain Rust type.
//!
//! A policy says what the statuses of one kind of work mean. Almost all of it is data, written as a table and
//! returned by [`Policy::describe`]; what a table cannot say goes into the optional [`Guard`], [`Execution`],
//! [`Health`] and [`Migrate`]. One [`export!`] line names the parts:
//!
//! ```
//! use runwarden_kit::table::{code, edges, field, policy, status};
//! use runwarden_kit::{Descriptor, Policy};
//!
//! struct Build;
//!
//! impl Policy for Build {
//!     fn describe() -> Descriptor {
//!         policy("build", "1.0.0", "A build of one commit.")
//!             .statuses([
//!                 status("running", "Compiles.").initial("build.started.ok"),
//!                 status("passed", "Green.").success(),
//!                 status("broken", "Red.").terminal(),
//!             ])
//!             .edges(edges("running", &["passed", "broken"]))
//!             .fields([field("commit", "text", "What is built.")])
//!             .codes([
//!                 code("build.started.ok", "Was started."),
//!                 code("build.passed.ok", "Every step succeeded."),
//!                 code("build.broken.step", "A step failed."),
//!             ])
//!     }
//! }
//!
//! runwarden_kit::export!(Build: policy);
//!
//! assert_eq!(runwarden_kit::check::problems(&Build::describe()), [""; 0]);
//! ```
//!
//! The macro exports functions for `wasm32` alone, so the logic is tested with plain `cargo test`; elsewhere it only
//! checks that every named part is implemented. The component is built with
//! `CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-component-ld cargo build --target wasm32-unknown-unknown`.
//! It imports nothing but the host's diagnostics ([`log`]), which also learn message and place of a panic before the trap.

#[doc(hidden)]
pub mod bindings;
pub mod check;
mod diagnostics;
mod export;
mod parts;
pub mod sample;
pub mod table;
mod values;

#[doc(hidden)]
pub use diagnostics::report_panics;
pub use diagnostics::{Level, log};
pub use parts::{Execution, Guard, Health, Migrate, Notifier, Policy};

pub use bindings::execution_policy::exports::runwarden::policy::execution::{Artifact, Ending, Judgement, Usage};
pub use bindings::guard_policy::exports::runwarden::policy::guard::{Decision, Request};
pub use bindings::handler::exports::runwarden::notify::notifier::{
    Binding, Descriptor as HandlerDescriptor, Envelope, PlannedDispatch,
};
pub use bindings::health_policy::exports::runwarden::policy::health::{Assessment, Observation};
pub use bindings::lifecycle_policy::exports::runwarden::policy::lifecycle::{
    DeliveryRule, Descriptor, Edge, ExecutionRule, Field, HealthThreshold, KillRow, LeaseRule, Migration, Reads,
    ReasonCode, RetrySchedule, Status, StatusMapping, VerdictRow,
};
pub use bindings::lifecycle_policy::runwarden::types::types::{
    Actor, Child, Entity, ExtField, Fault, HistoryRow, NamedJson, Outcome, Parameter, Reason, Surroundings, Tag,
};
pub use bindings::migrate_policy::exports::runwarden::policy::migrate::Mapping;

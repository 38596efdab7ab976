//! A component that can be asked: one that is installed, or one on trial before it is. Both are asked by the same code.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use wasmtime::Engine;

use super::calls::{Callable, GuardRequest, HealthRequest, Judged, MapRequest, VerdictRequest};
use super::engine::{engine, engine_apart};
use super::fault::PolicyFault;
use super::install::Candidate;
use super::instance::{Linked, link};
use super::limits::Limits;
use super::text::line;
use crate::model::{BoundHandler, Described, HandlerDescriptor, Health, Lifecycle, Mapped, PlannedDispatch};

/// A component that can be asked, with what it says of itself.
pub struct Ready<Said> {
    label: String,
    said: Arc<Said>,
    linked: Linked,
    limits: Limits,
    used: Cell<Usage>,
}

/// What one call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Fuel.
    pub fuel: u64,
    /// Linear memory of its instance at its largest: memory never shrinks.
    pub memory_bytes: usize,
}

/// A component on trial: checked as an installation checks it, in no store, and asked as the host asks what is installed.
pub enum Trial {
    /// A policy.
    Policy(Ready<Lifecycle>),
    /// A handler.
    Handler(Ready<HandlerDescriptor>),
}

impl<Said> Ready<Said> {
    pub(super) const fn new(label: String, said: Arc<Said>, linked: Linked, limits: Limits) -> Self {
        Self {
            label,
            said,
            linked,
            limits,
            used: Cell::new(Usage {
                fuel: 0,
                memory_bytes: 0,
            }),
        }
    }

    /// What it says of itself.
    pub const fn said(&self) -> &Arc<Said> {
        &self.said
    }

    /// What it may use in one call.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// What the last call used; nothing before the first.
    pub const fn used(&self) -> Usage {
        self.used.get()
    }

    /// The same, but that a call may take no longer than this.
    pub(super) fn within(mut self, wall: Duration) -> Self {
        self.limits.wall = self.limits.wall.min(wall);
        self
    }

    fn ask<Answer>(
        &self,
        call: impl FnOnce(&Callable<'_>, &Said) -> Result<Answer, PolicyFault>,
    ) -> Result<Answer, PolicyFault> {
        let callable = Callable::new(&self.label, &self.linked, self.limits);
        let answer = call(&callable, &self.said);
        self.used.set(callable.used.get());
        answer
    }
}

impl Ready<Lifecycle> {
    /// Asks the guard: none when it admits, else its code and words.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller refuses.
    pub fn guard(&self, asked: GuardRequest<'_>) -> Result<Option<(String, String)>, PolicyFault> {
        self.ask(|callable, lifecycle| callable.guard(lifecycle, asked))
    }

    /// Asks the verdict function what an ending means.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller writes the rule's "verdict failed".
    pub fn verdict(&self, asked: &VerdictRequest<'_>) -> Result<Judged, PolicyFault> {
        self.ask(|callable, lifecycle| callable.verdict(lifecycle, asked))
    }

    /// Asks the health function how an entity is.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller says that health is not known.
    pub fn assess(&self, asked: HealthRequest<'_>) -> Result<Health, PolicyFault> {
        self.ask(|callable, lifecycle| callable.assess(lifecycle, asked))
    }

    /// Asks the mapping function where an entity of another policy goes.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller leaves the entity where it is.
    pub fn map(&self, asked: MapRequest<'_>) -> Result<Mapped, PolicyFault> {
        self.ask(|callable, lifecycle| callable.map(lifecycle, asked))
    }
}

impl Ready<HandlerDescriptor> {
    /// Asks what is to be sent of an event.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller leaves the event owed to the binding.
    pub fn plan(&self, binding: &BoundHandler, envelope: &Value) -> Result<Vec<PlannedDispatch>, PolicyFault> {
        self.ask(|callable, descriptor| callable.plan(descriptor, binding, envelope))
    }
}

impl Candidate {
    /// The component, ready to be asked.
    ///
    /// # Errors
    /// Its code cannot be loaded: it was made by another version of the engine.
    pub fn on_trial(&self) -> Result<Trial, PolicyFault> {
        self.ready_in(engine())
    }

    /// The same in an engine of its own, to measure what the first call of a process costs. No clock ends its calls: fuel
    /// alone does.
    ///
    /// # Errors
    /// As [`Candidate::on_trial`].
    pub fn on_trial_cold(&self) -> Result<Trial, PolicyFault> {
        let apart = engine_apart();
        self.ready_in(
            apart
                .as_ref()
                .map_err(|error| wasmtime::Error::msg(format!("{error:#}"))),
        )
    }

    /// Its code, linked in this process's engine.
    pub(super) fn linked(&self) -> Result<Linked, PolicyFault> {
        self.linked_in(engine())
    }

    fn linked_in(&self, engine: Result<&Engine, wasmtime::Error>) -> Result<Linked, PolicyFault> {
        let linked = engine.and_then(|engine| link(&self.code.load_in(engine)?));
        linked.map_err(|error| PolicyFault::NotLoadable {
            policy: self.descriptor.label(),
            why: line(&format!("{error:#}")),
        })
    }

    fn ready_in(&self, engine: Result<&Engine, wasmtime::Error>) -> Result<Trial, PolicyFault> {
        let label = self.descriptor.label();
        let linked = self.linked_in(engine)?;
        Ok(match &self.descriptor {
            Described::Policy(descriptor) => {
                let lifecycle = Arc::new(Lifecycle::new((**descriptor).clone()));
                Trial::Policy(Ready::new(label, lifecycle, linked, self.limits))
            }
            Described::Handler(descriptor) => {
                Trial::Handler(Ready::new(label, Arc::new(descriptor.clone()), linked, self.limits))
            }
        })
    }
}

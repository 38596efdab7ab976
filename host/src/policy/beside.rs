//! Policies that are asked although no entity is pinned to them: candidates in files, and those that judge beside others.

use std::sync::Arc;
use std::time::Duration;

use super::calls::{GuardRequest, Judged, VerdictRequest};
use super::engine::engine;
use super::fault::PolicyFault;
use super::install::Candidate;
use super::registry::{Policies, Selected, lock};
use crate::model::{Described, Fields, Lifecycle, PolicyPin};

impl Policies {
    /// Makes a policy that was checked askable in this process, with the limits it was checked with, without installing it.
    /// None for a handler.
    ///
    /// # Errors
    /// Its code cannot be linked.
    pub fn take_in(&self, candidate: &Candidate) -> Result<Option<Selected>, PolicyFault> {
        let Described::Policy(descriptor) = &candidate.descriptor else {
            return Ok(None);
        };
        let pin = PolicyPin {
            name: descriptor.name.clone(),
            version: descriptor.version.clone(),
            digest: candidate.digest.clone(),
            parameters: Fields::new(),
        };
        let linked = candidate.linked()?;
        let lifecycle = Arc::new(Lifecycle::new((**descriptor).clone()));
        lock(&self.linked).insert(pin.digest.clone(), linked);
        lock(&self.tried).insert(pin.digest.clone(), candidate.limits);
        lock(&self.lifecycles).insert(pin.digest.clone(), Arc::clone(&lifecycle));
        Ok(Some(Selected { pin, lifecycle }))
    }

    /// Whether a component can be called without being compiled first.
    pub(crate) fn is_compiled(&self, digest: &str) -> bool {
        lock(&self.linked).contains_key(digest) || engine().is_ok_and(|engine| self.cache.holds(engine, digest))
    }

    /// Makes code that a component can be called with, and keeps it, unless it is kept.
    ///
    /// # Errors
    /// [`PolicyFault`]: it cannot be loaded.
    pub(crate) fn compile(&self, digest: &str) -> Result<(), PolicyFault> {
        self.linked(digest, digest).map(drop)
    }

    /// As [`Policies::guard`], in no more time than `wall`.
    ///
    /// # Errors
    /// [`PolicyFault`].
    pub(crate) fn guard_within(
        &self,
        wall: Duration,
        pin: &PolicyPin,
        asked: GuardRequest<'_>,
    ) -> Result<Option<(String, String)>, PolicyFault> {
        self.ready(pin)?.within(wall).guard(asked)
    }

    /// As [`Policies::verdict`], in no more time than `wall`.
    ///
    /// # Errors
    /// [`PolicyFault`].
    pub(crate) fn verdict_within(
        &self,
        wall: Duration,
        pin: &PolicyPin,
        asked: &VerdictRequest<'_>,
    ) -> Result<Judged, PolicyFault> {
        self.ready(pin)?.within(wall).verdict(asked)
    }
}

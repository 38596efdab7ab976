//! Which run a process really belongs to: the environment says, the tree of processes proves.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::error::Error;
use crate::host::Host;
use crate::model::{Entity, Runtime};
use crate::process::{Inside, Surroundings, is_inside};
use crate::verbs::identity;

/// What a claim to be inside a run comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Enclosing {
    /// This process descends from the run's shim, or is in the run's cgroup.
    Inside(Box<Entity>),
    /// It does not, or nobody can tell: the claim counts for nothing.
    Unproven,
}

/// Judges the claim of this process to be inside the run of that id: a variable may be inherited by what is outside (a
/// terminal multiplexer hands it to every later window).
///
/// # Errors
/// The store cannot be read.
pub fn enclosing(host: &Host, id: &str) -> Result<Enclosing, Error> {
    let Some(entity) = host.store().load(id)? else {
        return Ok(Enclosing::Unproven);
    };
    let runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
    let descends = |runtime: &Runtime| {
        let shim = identity::shim(runtime);
        shim.is_some_and(|shim| matches!(is_inside(&shim, host.place()), Inside::Yes))
    };
    // The only proof there is when the shim is gone, or when somebody put this process into the group.
    let around = Surroundings::here();
    let is_in_its_group = |runtime: &Runtime| {
        let group = runtime.cgroup.as_deref().map(OsStr::from_bytes);
        !runtime.is_stopped() && group.is_some_and(|group| around.is_in(group.as_ref()))
    };
    let inside = runtimes
        .iter()
        .any(|runtime| descends(runtime) || is_in_its_group(runtime));
    Ok(if inside {
        Enclosing::Inside(Box::new(entity))
    } else {
        Enclosing::Unproven
    })
}

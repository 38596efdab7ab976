//! Which run a process really belongs to: the environment says, the tree of processes proves.

use crate::error::Error;
use crate::host::Host;
use crate::model::Entity;
use crate::process::{Inside, is_inside};
use crate::verbs::identity;

/// What a claim to be inside a run comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Enclosing {
    /// This process descends from the run's shim.
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
    let shims = runtimes.iter().filter_map(identity::shim);
    let inside = shims
        .into_iter()
        .any(|shim| matches!(is_inside(&shim, host.place()), Inside::Yes));
    Ok(if inside {
        Enclosing::Inside(Box::new(entity))
    } else {
        Enclosing::Unproven
    })
}

//! The one coordinator of what died or fell silent: runs first, so that an end that left traces is a true end before a
//! lease is judged by it; then queued work. What was claimed to be delivered and was not is claimed again by whoever
//! delivers.

use crate::error::Error;
use crate::host::Host;
use crate::model::DurationMs;
use crate::verbs::lease::{Keeping, Kept, keep};
use crate::verbs::repair::{Act, Repaired, repair_all};

/// What was found, and done if that was asked for.
#[derive(Debug, Default)]
pub struct Reaped {
    /// Runs.
    pub repaired: Vec<Repaired>,
    /// Queued work.
    pub kept: Vec<Kept>,
}

/// Looks at everything that has not ended, and does what follows; each decision is written with what it acted on. `grace` is
/// from the lapse of a lease to the fence, in place of what the policies say.
///
/// # Errors
/// The store cannot be read. What fails for one is in the report.
pub fn reap(host: &Host, act: Act, grace: Option<DurationMs>) -> Result<Reaped, Error> {
    Ok(Reaped {
        repaired: repair_all(host, act)?,
        kept: keep(host, Keeping { grace, act })?,
    })
}

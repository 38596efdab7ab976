//! The reconciler: plans that are owed are made again, until each handler had its say.

use std::time::Duration;

use super::plan::{ask, failed, settings};
use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Event, Planned, outbox};
use crate::store::Owed;

/// One plan may take so long here: nobody's end waits for it.
const PLAN_MOST: Duration = Duration::from_secs(1);

/// How many plans are made between two looks at what else is due.
const PAGE: usize = 16;

/// Makes the plans that are due, a page of them; how many were made.
///
/// # Errors
/// The store failed.
pub(super) fn replan(host: &Host) -> Result<usize, Error> {
    let due = host.store().owed(host.now(), PAGE)?;
    let mut made = 0;
    for owed in due {
        made += usize::from(replan_one(host, &owed)?);
    }
    Ok(made)
}

/// Makes one plan; false when it failed again, or somebody else was faster.
fn replan_one(host: &Host, owed: &Owed) -> Result<bool, Error> {
    let settings = settings(&owed.settings).unwrap_or_default();
    let handler = settings
        .handlers
        .iter()
        .find(|handler| handler.name == owed.plan.handler);
    let Some(handler) = handler else {
        // Nothing was bound under that name: nothing is owed.
        return Ok(host.store().settle_owed(owed, &Planned::default(), &[])?);
    };
    let event = Event {
        id: owed.event_id.clone(),
        envelope: owed.envelope.clone(),
    };
    let mut planned = Planned::default();
    let mut audit = Vec::new();
    match ask(host, handler, &event, PLAN_MOST)? {
        Ok(dispatches) => planned.dispatches = dispatches,
        Err(fault) => {
            let tries = owed.plan.tries + 1;
            // A handler that stays broken is told once, and then only where its plan is owed.
            if owed.plan.error.is_none() {
                audit.push(failed(host, &owed.reference, handler, &owed.event_id, &fault));
            }
            planned.owed.push(outbox::replanned(
                &handler.name,
                tries,
                Some(fault.to_string()),
                host.now(),
            ));
        }
    }
    crash::point("replan.asked");
    let settled = host.store().settle_owed(owed, &planned, &audit)?;
    crash::point("replan.settled");
    if settled && !planned.dispatches.is_empty() {
        host.wake();
    }
    Ok(settled && planned.owed.is_empty())
}

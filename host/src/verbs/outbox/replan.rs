//! The reconciler: plans that are owed are made again, until each handler had its say.

use std::time::Duration;

use super::plan::{UNREADABLE, ask, failed};
use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Event, NotifySettings, Planned, Timestamp, outbox};
use crate::store::Owed;

/// One plan may take so long here: nobody's end waits for it.
const PLAN_MOST: Duration = Duration::from_secs(1);

/// How many plans are made between two looks at what else is due.
const PAGE: usize = 16;

/// What a page of plans came to.
#[derive(Debug)]
pub(super) struct Replanned {
    /// How many were made.
    pub(super) made: usize,
    /// Whether as many were due as are made at once: there may be more.
    pub(super) is_full: bool,
}

/// Makes the plans that were due at a moment, a page of them.
///
/// # Errors
/// The store failed.
pub(super) fn replan(host: &Host, before: Timestamp) -> Result<Replanned, Error> {
    let due = host.store().owed(before, PAGE)?;
    let is_full = due.len() == PAGE;
    let mut made = 0;
    for owed in due {
        made += usize::from(replan_one(host, &owed)?);
    }
    Ok(Replanned { made, is_full })
}

/// Makes one plan; false when it failed again, or somebody else was faster.
fn replan_one(host: &Host, owed: &Owed) -> Result<bool, Error> {
    let again = |error: String| Planned {
        owed: vec![outbox::replanned(
            &owed.plan.handler,
            owed.plan.tries + 1,
            Some(error),
            host.now(),
        )],
        ..Planned::default()
    };
    let Some(settings) = NotifySettings::of_stored(&owed.settings) else {
        let planned = again(UNREADABLE.to_owned());
        host.store().settle_owed(owed, &planned, &[])?;
        return Ok(false);
    };
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
    let mut audit = Vec::new();
    let planned = match ask(host, handler, &event, PLAN_MOST)? {
        Ok(dispatches) => Planned {
            dispatches,
            ..Planned::default()
        },
        Err(fault) => {
            // A handler that stays broken is told once, and then only where its plan is owed.
            if owed.plan.error.is_none() {
                audit.push(failed(host, &owed.reference, handler, &owed.event_id, &fault));
            }
            again(fault.to_string())
        }
    };
    crash::point("replan.asked");
    let settled = host.store().settle_owed(owed, &planned, &audit)?;
    crash::point("replan.settled");
    if settled && !planned.dispatches.is_empty() {
        host.wake();
    }
    Ok(settled && planned.owed.is_empty())
}

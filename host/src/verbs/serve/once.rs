//! One pass of everything, for whoever starts it now and then.

use super::parts::{outcome_of_keeping, outcome_of_repairs, outcome_of_retention, retention};
use super::pulse::Part;
use super::service::in_words;
use crate::error::Error;
use crate::host::Host;
use crate::model::{DurationMs, Protected};
use crate::verbs::outbox::{Bounds, Delivered, Extent, deliver};
use crate::verbs::prune::prune;
use crate::verbs::reap::reap;
use crate::verbs::repair::Act;
use crate::verbs::schedule::{FiredNow, fire_due};

/// What one pass came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// What was delivered.
    pub delivered: Delivered,
    /// Repairs that were carried out.
    pub repaired: usize,
    /// What was fired of schedules.
    pub fired: FiredNow,
    /// What was done that was due for queued work.
    pub kept: usize,
    /// Things that retention took away.
    pub pruned: usize,
    /// What failed, with the part that did: the others did their work.
    pub problems: Vec<(Part, String)>,
}

/// Does everything that a service does, once. What dies half-way is repaired first, so that its end is told in the same
/// pass. Harmless beside a service and beside another pass.
pub fn serve_once(host: &Host, protected: &[Protected], grace: Option<DurationMs>) -> Pass {
    let mut pass = Pass::default();
    if let Some(reaped) = pass.unless_failed(Part::Reaper, reap(host, Act::Do, grace)) {
        let (count, problems) = outcome_of_repairs(&reaped.repaired);
        pass.repaired = count;
        pass.tell(Part::Reaper, problems);
        let (count, problems) = outcome_of_keeping(&reaped.kept);
        pass.kept = count;
        pass.tell(Part::Keeper, problems);
    }
    if let Some(mut fired) = pass.unless_failed(Part::Scheduler, fire_due(host)) {
        pass.tell(Part::Scheduler, std::mem::take(&mut fired.problems));
        pass.fired = fired;
    }
    // What these ends tell is due.
    drop(host.take_enqueued());
    if let Some(delivered) = pass.unless_failed(Part::Deliverer, deliver(host, Extent::UntilEmpty, Bounds::STANDARD)) {
        pass.delivered = delivered;
    }
    if let Some(report) = pass.unless_failed(Part::Retention, prune(host, &retention(protected))) {
        let (count, problems) = outcome_of_retention(&report);
        pass.pruned = count;
        pass.tell(Part::Retention, problems);
    }
    pass.unless_failed(Part::Upkeep, host.store().upkeep().map_err(Error::from));
    pass
}

impl Pass {
    /// What a part came to, unless it failed, which is noted.
    fn unless_failed<T>(&mut self, part: Part, outcome: Result<T, Error>) -> Option<T> {
        match outcome {
            Ok(outcome) => Some(outcome),
            Err(error) => {
                self.tell(part, vec![in_words(&error)]);
                None
            }
        }
    }

    fn tell(&mut self, part: Part, problems: Vec<String>) {
        self.problems
            .extend(problems.into_iter().map(|problem| (part, problem)));
    }
}

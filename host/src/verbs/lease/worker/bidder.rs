//! Takes rows, starts their runs, sees them end, and gives back what it is told not to finish.

use super::keeper::{tell_failures, until_next};
use super::{Authority, Bidding, Done, Holding, Progress, Until, WorkerOptions, Working};
use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::lease::Begun;
use crate::model::{DurationMs, Entity, lost_lease_event};
use crate::process::is_served;
use crate::store::Worker;
use crate::verbs::lease::claim::{Taken, claim, is_held_under};
use crate::verbs::lease::end::{RowEnd, end_row, give_back, has_ended_with};
use crate::verbs::lease::judge::stop_run;
use crate::verbs::lease::keep::keep_moments;
use crate::verbs::lease::start::{Started, start};
use crate::verbs::lease::terms::Row;
use crate::verbs::repair::repair;
use crate::verbs::schedule::fire_due;
use crate::verbs::side_by_side::side_by_side;
use crate::wake::POLL;

/// The grace that a run is stopped with when it is given back: its own.
type Grace = DurationMs;

/// What the bidder works with.
struct Bidder<'a> {
    host: &'a Host,
    worker: &'a Worker,
    options: &'a WorkerOptions,
    working: &'a Working,
    tell: &'a (dyn Fn(&Progress<'_>) + Sync),
}

/// Bids until it is told to stop or is done.
pub(super) fn bid(
    host: &Host,
    (worker, options): (&Worker, &WorkerOptions),
    working: &Working,
    tell: &(dyn Fn(&Progress<'_>) + Sync),
) {
    let bidder = Bidder {
        host,
        worker,
        options,
        working,
        tell,
    };
    std::thread::scope(|scope| {
        // A touch of the wake file is told to a thread of the watcher, which outlives no scope: it holds a flag of its own.
        let (touched, touches) = std::sync::mpsc::sync_channel::<()>(1);
        let watching = host.wake_file().on_touch(move || {
            let _ = touched.try_send(()); // one that waits is enough
        });
        scope.spawn(move || {
            while touches.recv().is_ok() {
                working.wake();
            }
        });
        bidder.rounds();
        drop(watching);
    });
}

impl Bidder<'_> {
    fn rounds(&self) {
        let mut first = true;
        // Whoever ends by itself has seen first what a silent worker left to be taken.
        while self.options.until != Until::Stopped && !self.may_begin() {
            self.working.sleep(POLL);
        }
        loop {
            match self.round(first) {
                Ok(Round::Over) => return,
                Ok(Round::More) => first = false,
                Err(error) => (self.tell)(&Progress::Failed(&error.to_string())),
            }
            self.working.sleep(until_next(self.host));
        }
    }

    fn may_begin(&self) -> bool {
        let shared = self.working.lock();
        shared.is_kept || shared.bidding > Bidding::Open
    }

    /// One look at everything; whether there will be another.
    fn round(&self, is_first: bool) -> Result<Round, Error> {
        self.keep_moments()?;
        let seen = self.see_ends();
        let bidding = self.working.lock().bidding;
        if bidding == Bidding::GivingBack {
            self.give_back();
        }
        let wants_more = match self.options.until {
            Until::Once => is_first,
            Until::Stopped | Until::Drained => true,
        };
        let mut taken = 0;
        if bidding == Bidding::Open && wants_more {
            taken = self.take()?;
        }
        let holds = !self.working.lock().held.is_empty();
        let ends = bidding > Bidding::Open || self.options.until != Until::Stopped;
        // What has ended may be what other work waited for.
        Ok(if holds || taken > 0 || seen > 0 || !ends {
            Round::More
        } else {
            Round::Over
        })
    }

    /// Submits what schedules make due.
    fn fire_schedules(&self) -> Result<(), Error> {
        for problem in fire_due(self.host)?.problems {
            // A worker looks once in a second: the service is who tells of it once.
            tracing::warn!(problem, "a schedule cannot be fired");
        }
        Ok(())
    }

    /// Does what time and other work make due, for everybody's rows and schedules; a worker that stays leaves it to a service that is up.
    fn keep_moments(&self) -> Result<(), Error> {
        if self.options.until == Until::Stopped && is_served(&self.host.config().database_path()) {
            return Ok(());
        }
        self.fire_schedules()?;
        let kept = keep_moments(self.host, self.options.keeping())?;
        tell_failures(&kept, self.tell);
        Ok(())
    }

    /// Takes as much as there is room for, and starts it; how much.
    fn take(&self) -> Result<usize, Error> {
        let (room, heartbeat) = {
            let shared = self.working.lock();
            (self.options.slots.saturating_sub(shared.held.len()), shared.heartbeat)
        };
        let Some(heartbeat) = heartbeat.filter(|_| room > 0) else {
            return Ok(0);
        };
        let holder = (self.worker.holder.as_str(), heartbeat);
        let taken = claim(self.host, holder, &self.options.queues, room)?;
        crash::point("worker.claimed");
        let count = taken.len();
        for one in &taken {
            self.hold(one);
        }
        for (lease, outcome) in side_by_side(taken, |taken| (taken.lease.clone(), self.start(&taken))) {
            if let Err(error) = outcome {
                (self.tell)(&Progress::Failed(&format!("{}: {error}", lease.reference)));
            }
        }
        Ok(count)
    }

    fn hold(&self, taken: &Taken) {
        let row = &taken.row;
        let until = row.entity.structural.lease_expires_at.unwrap_or_default();
        let begun = until.as_ms().saturating_sub(row.terms.lease.as_ms());
        let holding = Holding {
            lease: taken.lease.clone(),
            run: None,
            row: row.entity.row,
            length: row.terms.lease,
            until,
            renew_at: crate::model::Timestamp::from_ms(begun).plus(row.terms.renew_every()),
            authority: Authority::Held,
        };
        let mut shared = self.working.lock();
        shared.done.taken += 1;
        shared.held.insert(row.entity.reference.id.clone(), holding);
        drop(shared);
        // The renewer learns of a lease that may be shorter than its sleep.
        self.working.changed.notify_all();
    }

    fn start(&self, taken: &Taken) -> Result<(), Error> {
        let id = taken.lease.reference.id.clone();
        match start(self.host, taken, &self.options.environment) {
            Ok(Started::Run(run)) => {
                (self.tell)(&Progress::Started {
                    row: &taken.lease,
                    run: &run,
                });
                if let Some(holding) = self.working.lock().held.get_mut(&id) {
                    holding.run = Some(*run);
                }
                self.working.wake();
                Ok(())
            }
            Ok(Started::Lost) => {
                self.let_go(&id, |done| done.lost += 1);
                Ok(())
            }
            Err(error) => {
                // Nothing of it runs: another worker may have more luck.
                give_back(self.host, &taken.lease, Begun::No)?;
                self.let_go(&id, |done| done.handed_back += 1);
                Err(error)
            }
        }
    }

    /// Looks at what is held: what has ended is written and let go, what was lost is stopped. What fails for one row is told
    /// of; the others are looked at. How much was let go.
    fn see_ends(&self) -> usize {
        let before = self.working.lock().done;
        for holding in self.working.holdings() {
            let seen = match &holding.run {
                Some(run) => self.see_end(&holding, run),
                None => self.see_unstarted(&holding),
            };
            if let Err(error) = seen {
                (self.tell)(&Progress::Failed(&format!("{}: {error}", holding.lease.reference)));
            }
        }
        let done = self.working.lock().done;
        let let_go = |done: Done| done.ended + done.handed_back + done.lost;
        usize::try_from(let_go(done).saturating_sub(let_go(before))).unwrap_or(usize::MAX)
    }

    fn see_end(&self, holding: &Holding, run: &Entity) -> Result<(), Error> {
        let (store, id) = (self.host.store(), &holding.lease.reference.id);
        let row = store.load(id)?;
        let is_ours = row.as_ref().is_some_and(|row| is_held_under(row, &holding.lease));
        let run = store.load(&run.reference.id)?.unwrap_or_else(|| run.clone());
        if holding.authority == Authority::Lost || !is_ours {
            return self.leave(holding, &run, row.as_ref());
        }
        // A run whose shim was killed is found by whoever looks.
        let run = if run.terminal { run } else { repair(self.host, run)? };
        if run.terminal && end_row(self.host, &run, &holding.lease)? != RowEnd::Open {
            self.let_go(id, |done| done.ended += 1);
            if let Some(row) = store.load(id)? {
                (self.tell)(&Progress::Ended(&row));
            }
        }
        Ok(())
    }

    /// A row whose start failed, and which could not be given back then: nothing of it runs.
    fn see_unstarted(&self, holding: &Holding) -> Result<(), Error> {
        let id = &holding.lease.reference.id;
        give_back(self.host, &holding.lease, Begun::No)?;
        self.let_go(id, |done| done.handed_back += 1);
        Ok(())
    }

    /// A row that is not ours any more: it has ended, or is lost, and then its run is stopped if it goes on.
    fn leave(&self, holding: &Holding, run: &Entity, row: Option<&Entity>) -> Result<(), Error> {
        let (lease, host) = (&holding.lease, self.host);
        let id = &lease.reference.id;
        if let Some(row) = row
            && run.terminal
            && has_ended_with(host, row, run, lease)?
        {
            self.let_go(id, |done| done.ended += 1);
            (self.tell)(&Progress::Ended(row));
            return Ok(());
        }
        (self.tell)(&Progress::Lost(lease));
        if !run.terminal {
            stop_run(host, run, self.grace(holding)?, "its lease is lost")?;
        }
        if let Some(row) = row.filter(|row| row.fence != lease.fence) {
            let event = lost_lease_event(row, (&lease.holder, lease.fence), host.now());
            host.store().record(&[event], &[])?;
        }
        self.let_go(id, |done| done.lost += 1);
        Ok(())
    }

    fn grace(&self, holding: &Holding) -> Result<Grace, Error> {
        let entity = self.host.store().load(&holding.lease.reference.id)?;
        let row = entity
            .map(|entity| Row::of(self.host, entity, None))
            .transpose()?
            .flatten();
        Ok(row.map_or(crate::GRACE_DEFAULT, |row| row.work.grace_ms))
    }

    /// Stops what is held and gives it back; what cannot be stopped stays, and is found when its lease runs out.
    fn give_back(&self) {
        let back = |holding: Holding| {
            let reference = holding.lease.reference.to_string();
            (reference, self.give_one_back(&holding))
        };
        for (reference, outcome) in side_by_side(self.working.holdings(), back) {
            if let Err(error) = outcome {
                (self.tell)(&Progress::Failed(&format!("{reference}: {error}")));
            }
        }
    }

    fn give_one_back(&self, holding: &Holding) -> Result<(), Error> {
        let id = &holding.lease.reference.id;
        let Some(run) = &holding.run else { return Ok(()) };
        let stopped = stop_run(self.host, run, self.grace(holding)?, "its worker stops")?;
        let run = self
            .host
            .store()
            .load(&run.reference.id)?
            .unwrap_or_else(|| run.clone());
        if !run.terminal || !stopped.is_complete() {
            (self.tell)(&Progress::Failed(&format!("{} could not be stopped", run.reference)));
            return Ok(());
        }
        // It may have ended by itself before the stop reached it: that is the row's end then.
        if end_row(self.host, &run, &holding.lease)? != RowEnd::Open {
            self.let_go(id, |done| done.ended += 1);
            return Ok(());
        }
        give_back(self.host, &holding.lease, Begun::Yes)?;
        (self.tell)(&Progress::HandedBack(&holding.lease));
        self.let_go(id, |done| done.handed_back += 1);
        Ok(())
    }

    fn let_go(&self, id: &str, count: impl FnOnce(&mut Done)) {
        let mut shared = self.working.lock();
        if shared.held.remove(id).is_some() {
            count(&mut shared.done);
            shared.woken = true;
        }
    }
}

/// Whether a worker goes on.
#[derive(PartialEq, Eq)]
enum Round {
    More,
    Over,
}

#[cfg(test)]
mod tests;

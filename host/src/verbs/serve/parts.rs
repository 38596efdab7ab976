//! The parts at work.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::pulse::Part;
use super::service::{Rest, Service, in_words};
use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, DurationMs, Protected, Retention};
use crate::process::make_queue;
use crate::verbs::finish;
use crate::verbs::lease::{Keeping, Kept, Progress, WorkerOptions, keep, next_due, work};
use crate::verbs::outbox::{Bounds, Extent, deliver};
use crate::verbs::prune::{PruneOutcome, PruneReport, Pruning, prune_while};
use crate::verbs::repair::{Act, Repaired, repair_all};
use crate::verbs::schedule::fire_due;
use crate::wake::{POLL, Watching};

/// Between two looks for what died half-way: a row and a lock for each live run. An end is recorded by its own finishing
/// command; this is for those whose command or shim was killed.
const REAP_EVERY: Duration = Duration::from_secs(30);

/// Retention waits so long at first: a service that is started with the machine leaves it to others, and one that dies
/// again and again takes nothing away.
const RETAIN_FIRST: Duration = Duration::from_secs(300);

/// Between two rounds of retention, whose shortest age is a day.
const RETAIN_EVERY: Duration = Duration::from_secs(3_600);

/// Between two looks at the store's log: what a writer leaves of it, it works in itself.
const UPKEEP_EVERY: Duration = Duration::from_secs(60);

/// How soon a part that failed is tried again; doubled each time.
const PAUSE_FIRST: Duration = Duration::from_secs(1);

/// And at the latest.
const PAUSE_MOST: Duration = Duration::from_secs(30);

/// What a service does for queued work.
#[derive(Clone, Debug, Default)]
pub struct Labour {
    /// From the lapse of a lease to the fence, in place of what the policies say.
    pub grace: Option<DurationMs>,
    /// How it is a worker, when it has slots.
    pub worker: Option<WorkerOptions>,
}

/// Serves until it is told to stop, and what was on its way then has ended. `protected` are places that retention keeps,
/// beside those the host knows.
///
/// One service serves a store: whoever calls this holds the lock of [`crate::process::serve_alone`].
pub fn serve(host: &Host, service: &Arc<Service>, (protected, labour): (&[Protected], &Labour)) {
    let woken = Arc::clone(service);
    // Where nothing can be watched the deliverer looks once in a poll.
    let _watching = host.wake_file().on_touch(move || woken.wake());
    let waits = Arc::clone(service);
    let queue = finish::queue(host.config());
    let watched = make_queue(&queue)
        .ok()
        .and_then(|()| Watching::entries(&queue, move || waits.note_ticket()));
    let look_every = if watched.is_some() { REAP_EVERY } else { POLL };
    thread::scope(|scope| {
        scope.spawn(|| finishes(host, service, look_every));
        scope.spawn(|| schedules(host, service));
        scope.spawn(|| {
            repeat(service, Part::Reaper, (Duration::ZERO, REAP_EVERY), || {
                reap(host, service)
            })
        });
        scope.spawn(|| keeps(host, service, labour.grace));
        if let Some(options) = &labour.worker {
            scope.spawn(|| labours(host, service, options));
        }
        scope.spawn(|| {
            repeat(service, Part::Retention, (RETAIN_FIRST, RETAIN_EVERY), || {
                retain(host, service, protected)
            });
        });
        scope.spawn(|| {
            repeat(service, Part::Upkeep, (Duration::ZERO, UPKEEP_EVERY), || {
                service.keep_upkeep(host.store().upkeep()?);
                Ok(())
            });
        });
        repeat(service, Part::Deliverer, (Duration::ZERO, PAUSE_FIRST), || {
            delivers(host, service)
        });
    });
    forget_enqueued(host);
}

/// Does the passes of a part: the first after a while, then one in each period, until the service stops.
fn repeat(service: &Service, part: Part, (first, every): (Duration, Duration), pass: impl Fn() -> Result<(), Error>) {
    let (mut next, mut pause) = (first, PAUSE_FIRST);
    while service.rest(next) == Rest::Over {
        if service.pass(part, &pass) {
            (next, pause) = (every, PAUSE_FIRST);
        } else {
            next = pause;
            pause = PAUSE_MOST.min(pause * 2);
        }
    }
}

/// Delivers until the service stops: one pass of the deliverer is as long as nothing fails.
fn delivers(host: &Host, service: &Service) -> Result<(), Error> {
    let (inbox, tell) = service.new_mailbox();
    if service.is_stopping() {
        return Ok(());
    }
    deliver(host, Extent::Service(inbox, tell, service.tally()), Bounds::STANDARD).map(drop)
}

/// Records ends until the service stops, as commands come that wait for it, and looks every so often by itself.
fn finishes(host: &Host, service: &Service, look_every: Duration) {
    let work = || {
        service.count_ends(finish::finish_for_others(host));
        forget_enqueued(host);
        Ok(())
    };
    while service.rest_until_ticket(look_every) == Rest::Over {
        service.pass(Part::Finisher, work);
    }
}

/// Does what is due for queued work until the service stops, as things are written and as times come.
fn keeps(host: &Host, service: &Service, grace: Option<DurationMs>) {
    let keeping = Keeping { grace, act: Act::Do };
    let mut next = Duration::ZERO;
    while service.rest_until_touched(next) == Rest::Over {
        let work = || {
            let kept = keep(host, keeping)?;
            forget_enqueued(host);
            let (count, problems) = outcome_of_keeping(&kept);
            service.count_kept(count);
            service.complain(Part::Keeper, problems);
            Ok(())
        };
        service.pass(Part::Keeper, work);
        let due = next_due(host).ok().flatten().map(|due| due.since(host.now()).as_ms());
        let left = due
            .and_then(|ms| u64::try_from(ms).ok())
            .map_or(POLL, Duration::from_millis);
        // What is due and could not be done is looked at again in a while.
        next = if left.is_zero() { POLL } else { left.min(POLL) };
    }
}

/// Works until the service stops and what it took has ended, or was given back.
fn labours(host: &Host, service: &Service, options: &WorkerOptions) {
    let tell = |progress: &Progress<'_>| match progress {
        Progress::Failed(words) => service.complain(Part::Worker, vec![(*words).to_owned()]),
        Progress::Lost(row) => service.say(Part::Worker, &format!("{} is lost: its run is stopped", row.reference)),
        Progress::Started { .. } | Progress::Ended(_) | Progress::HandedBack(_) => {}
    };
    loop {
        let worked = service.pass(Part::Worker, || work(host, options, service.working(), &tell).map(drop));
        if worked || service.rest(PAUSE_MOST) == Rest::Stopped {
            return;
        }
    }
}

/// Fires schedules until the service stops: at the next fire time, and once in a poll, in which one may have been added or
/// the clock been put right.
fn schedules(host: &Host, service: &Service) {
    let (mut next, mut pause) = (Duration::ZERO, PAUSE_FIRST);
    while service.rest(next) == Rest::Over {
        if service.pass(Part::Scheduler, || fire(host, service)) {
            (next, pause) = (until_next_fire(host), PAUSE_FIRST);
        } else {
            next = pause;
            pause = PAUSE_MOST.min(pause * 2);
        }
    }
}

fn fire(host: &Host, service: &Service) -> Result<(), Error> {
    let fired = fire_due(host)?;
    // What skipped ones tell is due.
    forget_enqueued(host);
    service.count_fired(fired.submitted, fired.skipped);
    service.complain(Part::Scheduler, fired.problems);
    Ok(())
}

/// How long nothing is due. What is due although it was just looked at cannot be fired now, and is tried again in a poll.
fn until_next_fire(host: &Host) -> Duration {
    let next = host.store().next_fire().ok().flatten();
    let left = next.map(|next| next.since(host.now()).as_ms().unsigned_abs());
    match left {
        Some(left @ 1..) => POLL.min(Duration::from_millis(left)),
        Some(0) | None => POLL,
    }
}

fn reap(host: &Host, service: &Service) -> Result<(), Error> {
    let repaired = repair_all(host, Act::Do)?;
    forget_enqueued(host);
    let (count, problems) = outcome_of_repairs(&repaired);
    service.count_repaired(count);
    service.complain(Part::Reaper, problems);
    Ok(())
}

fn retain(host: &Host, service: &Service, protected: &[Protected]) -> Result<(), Error> {
    let report = prune_while(host, &retention(protected), &|| !service.is_stopping())?;
    let (count, problems) = outcome_of_retention(&report);
    service.count_pruned(count);
    service.complain(Part::Retention, problems);
    Ok(())
}

/// What these ends tell is due, and the deliverer finds it.
fn forget_enqueued(host: &Host) {
    drop(host.take_enqueued());
}

/// What retention is asked for by a service.
pub(super) fn retention(protected: &[Protected]) -> Pruning {
    Pruning {
        retention: Retention::STANDARD,
        actor: Actor::system("retention"),
        protected: protected.to_vec(),
    }
}

/// How many repairs were carried out, and what could not be repaired.
pub(super) fn outcome_of_repairs(repaired: &[Repaired]) -> (usize, Vec<String>) {
    let failed = |repaired: &Repaired| {
        let error = repaired.failure.as_ref()?;
        Some(format!(
            "{} cannot be repaired: {}",
            repaired.reference,
            in_words(error)
        ))
    };
    let problems: Vec<String> = repaired.iter().filter_map(failed).collect();
    let acted = |repaired: &&Repaired| repaired.failure.is_none() && repaired.decision.acts();
    (repaired.iter().filter(acted).count(), problems)
}

/// How often something was done for queued work, and what could not be done.
pub(super) fn outcome_of_keeping(kept: &[Kept]) -> (usize, Vec<String>) {
    let needs = |kept: &&Kept| kept.failure.is_some() || kept.needs_somebody;
    let problems = kept.iter().filter(needs).map(|kept| {
        let hint = if kept.failure.is_none() {
            "; `runwarden why` says more"
        } else {
            ""
        };
        format!("{}: {}{hint}", kept.reference, kept.words)
    });
    let done = kept.iter().filter(|kept| !needs(kept)).count();
    (done, problems.collect())
}

/// How many things were taken away, and what had to stay.
pub(super) fn outcome_of_retention(report: &PruneReport) -> (usize, Vec<String>) {
    let kept = |(place, why): (String, &str)| format!("{place} stays: {why}");
    let problems = report.items.iter().filter_map(|item| match &item.outcome {
        PruneOutcome::Kept(why) => {
            let place = item.reference.clone().unwrap_or_else(|| item.kind.word().to_owned());
            Some(kept((place, why)))
        }
        PruneOutcome::Planned | PruneOutcome::Done => None,
    });
    let done = report.items.iter().filter(|item| item.outcome == PruneOutcome::Done);
    (done.count(), problems.collect())
}

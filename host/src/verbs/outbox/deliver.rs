//! Delivering what is due: a coordinator that lists and chooses, and a thread for each attempt on its way.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::attempt::{Tried, attempt};
use super::replan::{Replanned, replan};
use super::tally::Tally;
use crate::error::Error;
use crate::host::Host;
use crate::model::outbox::PAUSE_AFTER;
use crate::model::{DISPATCH_KIND, DestinationHealth, Entity, Timestamp};
use crate::process::is_served;
use crate::store::DueQuery;
use crate::wake::POLL;

/// How much is on its way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// In all.
    pub total: usize,
    /// To one destination; one that was paused is asked with one at a time.
    pub per_destination: usize,
}

impl Bounds {
    /// What holds unless something else was asked for: three destinations that hang leave room for four attempts elsewhere.
    pub const STANDARD: Self = Self {
        total: 16,
        per_destination: 4,
    };
}

/// What a delivery is to do.
pub enum Extent<'a> {
    /// One pass over what is due now.
    Once,
    /// Until nothing is due now.
    UntilEmpty,
    /// These dispatches, once each, and nothing new is begun after a while.
    These(&'a [String], Duration),
    /// Until it is told to stop; woken by messages and by due times, and counted as it goes.
    Service(Receiver<Message>, Sender<Message>, &'a Tally),
}

/// What a delivery that goes on is told.
#[derive(Debug)]
pub enum Message {
    /// Something changed: look again.
    Woken,
    /// Begin nothing new; what is on its way is finished.
    Stop,
    /// An attempt came to its end.
    #[doc(hidden)]
    Done(Box<Done>),
    /// Plans that were owed were made, or tried.
    #[doc(hidden)]
    Planned(Box<Made>),
}

/// What a page of owed plans came to; a panic is told on.
#[derive(Debug)]
#[doc(hidden)]
pub struct Made(thread::Result<Result<Replanned, Error>>);

/// An attempt that came to its end.
#[derive(Debug)]
#[doc(hidden)]
pub struct Done {
    id: String,
    target: String,
    /// A panic is told on: whoever waits for this attempt would wait for ever.
    tried: thread::Result<Result<Tried, Error>>,
}

/// What a delivery came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Dispatches that were looked at.
    pub looked_at: usize,
    /// The transport took them.
    pub delivered: usize,
    /// The transport took them; their acknowledgement is awaited.
    pub unacknowledged: usize,
    /// They failed and are tried again later.
    pub retried: usize,
    /// They were given up.
    pub dead: usize,
    /// Their deadline had passed.
    pub expired: usize,
    /// They could not be attempted, and why the last of them could not.
    pub postponed: usize,
    /// Others had them, or were faster.
    pub lost: usize,
    /// Plans that were owed and were made.
    pub planned: usize,
    /// Dispatches and why each was not delivered.
    pub problems: Vec<(String, String)>,
}

/// At most so many problems are told one by one.
const PROBLEMS_MAX: usize = 100;

/// How many due dispatches are listed at once.
const PAGE: usize = 64;

/// Delivers; at least once, in no order.
///
/// # Errors
/// The store failed. What was on its way was finished.
pub fn deliver(host: &Host, extent: Extent<'_>, bounds: Bounds) -> Result<Delivered, Error> {
    thread::scope(|scope| {
        let (inbox, tell) = match extent {
            Extent::Service(..) => (None, None),
            _ => {
                let (tell, inbox) = channel();
                (Some(inbox), Some(tell))
            }
        };
        let mut course = Course::new(host, &extent, bounds);
        let (inbox, tell) = match (&extent, &inbox, &tell) {
            (Extent::Service(inbox, tell, _), ..) => (inbox, tell),
            (_, Some(inbox), Some(tell)) => (inbox, tell),
            _ => unreachable!("a channel was made for what brings none"),
        };
        loop {
            let mut more_plans = false;
            if course.begins() {
                more_plans = course.plan()?;
                if course.plans_aside()? {
                    let tell = tell.clone();
                    // A handler that is slow or broken holds up no delivery.
                    scope.spawn(move || {
                        let made = catch_unwind(AssertUnwindSafe(|| replan(host, host.now())));
                        let _ = tell.send(Message::Planned(Box::new(Made(made))));
                    });
                }
                while let Some(chosen) = course.choose()? {
                    let tell = tell.clone();
                    scope.spawn(move || {
                        let work = || attempt(host, &chosen.entity);
                        let tried = catch_unwind(AssertUnwindSafe(work));
                        // Nobody listens only when the coordinator failed; what was sent is written down.
                        let _ = tell.send(Message::Done(Box::new(Done {
                            id: chosen.entity.reference.id,
                            target: chosen.target,
                            tried,
                        })));
                    });
                }
                course.looked();
            }
            if !more_plans {
                if course.is_over()? {
                    return Ok(course.report);
                }
                match inbox.recv_timeout(course.sleep()?) {
                    Ok(message) => course.take(message)?,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Ok(course.report),
                }
            }
            // One look is enough for whatever came together.
            while let Ok(message) = inbox.try_recv() {
                course.take(message)?;
            }
        }
    })
}

/// After this a command begins no other of its own notices: it has more to do than to wait for receivers.
const OWN_BEGIN_WITHIN: Duration = Duration::from_secs(2);

/// Tries the notices that this process enqueued, once each, unless a service is up: they are its own then. What fails is
/// written down and tried later; what was not begun is due.
pub fn deliver_own(host: &Host) {
    let own = host.take_enqueued();
    if own.is_empty() || is_served(&host.config().database_path()) {
        return;
    }
    let delivered = deliver(host, Extent::These(&own, OWN_BEGIN_WITHIN), Bounds::STANDARD);
    // The command did what it was asked for; its notices are in the store, and whoever delivers next finds them.
    if let Err(error) = delivered {
        tracing::warn!(%error, "notices were not delivered now");
    }
}

/// A dispatch that is to be tried.
struct Chosen {
    entity: Entity,
    target: String,
}

/// What a coordinator knows.
struct Course<'a> {
    host: &'a Host,
    bounds: Bounds,
    kind: Kind<'a>,
    began: Timestamp,
    /// Ids on their way.
    under_way: HashSet<String>,
    /// How many are on their way to each target.
    targets: HashMap<String, usize>,
    /// Ids that were tried in this pass.
    tried: HashSet<String>,
    /// What is listed and not yet chosen.
    listed: Vec<Chosen>,
    /// How destinations do that fail.
    healths: Vec<DestinationHealth>,
    is_stopping: bool,
    /// Plans are being made aside.
    is_planning: bool,
    report: Delivered,
}

enum Kind<'a> {
    /// What was due at this moment: when the plans that were owed had been made.
    Once(Option<Timestamp>),
    UntilEmpty,
    These(&'a [String], Instant, bool),
    Service(&'a Tally),
}

impl<'a> Course<'a> {
    fn new(host: &'a Host, extent: &Extent<'a>, bounds: Bounds) -> Self {
        let kind = match extent {
            Extent::Once => Kind::Once(None),
            Extent::UntilEmpty => Kind::UntilEmpty,
            Extent::These(ids, most) => Kind::These(ids, Instant::now() + *most, false),
            Extent::Service(_, _, tally) => Kind::Service(tally),
        };
        Self {
            host,
            bounds,
            kind,
            began: host.now(),
            under_way: HashSet::new(),
            targets: HashMap::new(),
            tried: HashSet::new(),
            listed: Vec::new(),
            healths: Vec::new(),
            is_stopping: false,
            is_planning: false,
            report: Delivered::default(),
        }
    }

    /// Counts a look at what is due.
    fn looked(&self) {
        if let Kind::Service(tally) = self.kind {
            tally.look();
        }
    }

    /// Whether anything new is begun.
    fn begins(&self) -> bool {
        match self.kind {
            Kind::These(_, until, _) => Instant::now() < until,
            _ => !self.is_stopping,
        }
    }

    /// Makes some of the plans that are owed; whether more may be due. A pass tries each once, who delivers his own
    /// notices alone waits for nobody's plans, and a service makes them aside.
    fn plan(&mut self) -> Result<bool, Error> {
        let before = match self.kind {
            Kind::These(..) | Kind::Service(_) => return Ok(false),
            Kind::Once(_) | Kind::UntilEmpty => self.began,
        };
        let replanned = replan(self.host, before)?;
        self.report.planned += replanned.made;
        Ok(replanned.is_full)
    }

    /// Whether a service is to make plans that are due, beside what it delivers; then it is doing so.
    fn plans_aside(&mut self) -> Result<bool, Error> {
        if self.is_planning || !matches!(self.kind, Kind::Service(_)) {
            return Ok(false);
        }
        self.is_planning = !self.host.store().owed(self.host.now(), 1)?.is_empty();
        Ok(self.is_planning)
    }

    /// The next dispatch that may be on its way beside those that are.
    fn choose(&mut self) -> Result<Option<Chosen>, Error> {
        if self.under_way.len() >= self.bounds.total {
            return Ok(None);
        }
        let mut place = self.fitting();
        if place.is_none() {
            self.list()?;
            place = self.fitting();
        }
        let Some(place) = place else {
            return Ok(None);
        };
        let chosen = self.listed.remove(place);
        self.under_way.insert(chosen.entity.reference.id.clone());
        *self.targets.entry(chosen.target.clone()).or_default() += 1;
        if !matches!(self.kind, Kind::Service(_)) {
            self.tried.insert(chosen.entity.reference.id.clone());
        }
        Ok(Some(chosen))
    }

    /// Where the next one is that is listed and has room.
    fn fitting(&self) -> Option<usize> {
        self.listed.iter().rposition(|chosen| {
            let going = self.targets.get(&chosen.target).copied().unwrap_or(0);
            !self.under_way.contains(&chosen.entity.reference.id) && going < self.most(&chosen.target)
        })
    }

    /// How much may be on its way there at once: nothing while it is paused, and one to try it afterwards.
    fn most(&self, target: &str) -> usize {
        let health = self.healths.iter().find(|health| health.target_digest == target);
        match health {
            Some(health) if health.paused_until.is_some_and(|until| until > self.host.now()) => 0,
            Some(health) if health.failures >= PAUSE_AFTER => 1,
            _ => self.bounds.per_destination,
        }
    }

    /// Lists what is due and not tried yet, the longest due last: for destinations that have room and of which nothing is
    /// listed any more, so that one that much waits for is not read again with each attempt that ends.
    fn list(&mut self) -> Result<(), Error> {
        let now = self.host.now();
        self.healths = self.host.store().destinations()?;
        let under_way = self.targets.keys();
        let failing = self.healths.iter().map(|health| &health.target_digest);
        let going = |target: &String| self.targets.get(target).copied().unwrap_or(0);
        let full = under_way
            .chain(failing)
            .filter(|target| going(target) >= self.most(target));
        let listed = self.listed.iter().map(|chosen| &chosen.target);
        let except: HashSet<&String> = full.chain(listed).collect();
        let except_targets = except.into_iter().cloned().collect();
        let due = match &mut self.kind {
            Kind::These(_, _, true) => return Ok(()),
            Kind::These(ids, _, listed) => {
                *listed = true;
                let loaded: Result<Vec<_>, _> = ids.iter().map(|id| self.host.store().load(id)).collect();
                loaded?.into_iter().flatten().collect()
            }
            kind => {
                let before = match kind {
                    Kind::Once(began) => *began.get_or_insert(now),
                    _ => now,
                };
                // What is on its way may be listed again: room is made for the rest.
                let limit = PAGE + self.under_way.len();
                self.host.store().due(&DueQuery {
                    before,
                    except_targets,
                    limit,
                })?
            }
        };
        let due: Vec<Entity> = due
            .into_iter()
            .filter(|entity| entity.reference.kind == DISPATCH_KIND)
            .filter(|entity| !self.tried.contains(&entity.reference.id))
            .filter(|entity| !self.under_way.contains(&entity.reference.id))
            .take(PAGE)
            .collect();
        let outlines = self.host.store().outlines(&due)?;
        let found = due.into_iter().zip(outlines).rev().filter_map(|(entity, outline)| {
            let target = outline?.dispatch.target_digest;
            Some(Chosen { entity, target })
        });
        self.listed.extend(found);
        Ok(())
    }

    /// Whether nothing is left to do.
    fn is_over(&self) -> Result<bool, Error> {
        if !self.under_way.is_empty() || self.is_planning {
            return Ok(false);
        }
        Ok(match self.kind {
            Kind::Service(_) => self.is_stopping,
            _ => true,
        })
    }

    /// How long nothing needs to be looked at.
    fn sleep(&self) -> Result<Duration, Error> {
        if !matches!(self.kind, Kind::Service(_)) || !self.listed.is_empty() {
            return Ok(POLL);
        }
        let Some(due) = self.host.store().next_due()? else {
            return Ok(POLL);
        };
        let left = due.since(self.host.now()).as_ms();
        // What is due and was not begun waits for room: an attempt that ends tells so.
        if left == 0 {
            return Ok(POLL);
        }
        Ok(Duration::from_millis(u64::try_from(left).unwrap_or(0)).min(POLL))
    }

    fn take(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Woken => {}
            Message::Stop => self.is_stopping = true,
            Message::Planned(made) => {
                self.is_planning = false;
                let made = made.0.unwrap_or_else(|panic| resume_unwind(panic))?;
                self.report.planned += made.made;
            }
            Message::Done(done) => {
                self.under_way.remove(&done.id);
                if let Some(going) = self.targets.get_mut(&done.target) {
                    *going -= 1;
                    if *going == 0 {
                        self.targets.remove(&done.target);
                    }
                }
                let tried = done.tried.unwrap_or_else(|panic| resume_unwind(panic))?;
                if matches!(tried, Tried::Retried(_) | Tried::Dead(_)) {
                    self.healths = self.host.store().destinations()?;
                }
                if let Kind::Service(tally) = self.kind {
                    tally.count(&tried);
                } else {
                    self.count(done.id, tried);
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, id: String, tried: Tried) {
        let report = &mut self.report;
        report.looked_at += 1;
        let (counter, problem) = match tried {
            Tried::Delivered => (&mut report.delivered, None),
            Tried::Unacknowledged => (&mut report.unacknowledged, None),
            Tried::Retried(error) => (&mut report.retried, Some(error)),
            Tried::Dead(error) => (&mut report.dead, Some(error)),
            Tried::Expired => (&mut report.expired, None),
            Tried::Postponed(error) => (&mut report.postponed, Some(error)),
            Tried::Lost => (&mut report.lost, None),
        };
        *counter += 1;
        if let Some(problem) = problem.filter(|_| report.problems.len() < PROBLEMS_MAX) {
            report.problems.push((id, problem));
        }
    }
}

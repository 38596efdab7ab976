//! A worker: takes rows on lease, runs each as a supervised run of its own, renews, and gives back what it cannot finish.
//!
//! ```text
//!             wake file, due times ─▶ bidder   claims as much as it has room for, starts it, sees it end
//!                                     renewer  extends the leases of what is held, on time whatever the bidder does
//!                                     keeper   does what time makes due, and judges workers that are not heard of
//! ```
//!
//! If we die at any instant, what runs goes on under its shim, and its end is recorded by its finishing command under the
//! fence it was started with. A row whose run had not begun is found when its lease runs out.

mod bidder;
mod keeper;
mod renewer;

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::host::{Host, entropy};
use crate::model::{Bytes, DurationMs, Entity, Timestamp};
use crate::process::{capture, install_shim};
use crate::store::{HeldLease, Worker};
use crate::verbs::identity;
use crate::verbs::lease::keep::Keeping;
use crate::verbs::outbox::deliver_own;
use crate::verbs::repair::Act;
use crate::wake::POLL;

/// What a worker is asked for.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Its name, for people.
    pub name: String,
    /// How much it does at once.
    pub slots: usize,
    /// The queues it takes from; empty: all.
    pub queues: Vec<String>,
    /// When it ends by itself.
    pub until: Until,
    /// From the lapse to the fence, in place of what the policies say.
    pub grace: Option<DurationMs>,
    /// The environment that its runs inherit.
    pub environment: Vec<(Bytes, Bytes)>,
}

impl WorkerOptions {
    const fn keeping(&self) -> Keeping {
        Keeping {
            grace: self.grace,
            act: Act::Do,
        }
    }
}

/// When a worker ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Never.
    Stopped,
    /// When nothing is ready any more, and what it took has ended.
    Drained,
    /// When what it took in its first bid has ended.
    Once,
}

/// What a worker still wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bidding {
    /// As much as it has room for.
    Open,
    /// Nothing new; what it has goes on to its end.
    Closed,
    /// Nothing, and what it has is stopped and given back.
    GivingBack,
}

/// A row that a worker holds.
#[derive(Clone, Debug)]
pub struct Holding {
    /// The authority over it.
    pub lease: HeldLease,
    /// The run of it; none before it is made.
    pub run: Option<Entity>,
    /// Number of the row in its store.
    row: i64,
    /// Length of its lease.
    length: DurationMs,
    /// Until when it holds, in steady time.
    until: Timestamp,
    /// When it is to be renewed next, in steady time.
    renew_at: Timestamp,
    /// How its authority stands.
    authority: Authority,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Authority {
    Held,
    /// It is lost: what runs is to be stopped, and nothing more is written for it.
    Lost,
}

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows it took.
    pub taken: u64,
    /// Rows whose end it saw.
    pub ended: u64,
    /// Rows it gave back.
    pub handed_back: u64,
    /// Rows it lost.
    pub lost: u64,
}

/// Something that a worker tells of.
#[derive(Clone, Debug)]
pub enum Progress<'a> {
    /// It took a row and started its run.
    Started {
        /// The row.
        row: &'a HeldLease,
        /// The run.
        run: &'a Entity,
    },
    /// A row has ended, or is tried again later.
    Ended(&'a Entity),
    /// A row was given back.
    HandedBack(&'a HeldLease),
    /// It is no longer the holder of a row, and stops its run if it goes on.
    Lost(&'a HeldLease),
    /// Something failed, and is tried again.
    Failed(&'a str),
}

/// A worker at work: what its threads share, and how it is told to stop.
pub struct Working {
    shared: Mutex<Shared>,
    changed: Condvar,
}

#[derive(Debug)]
struct Shared {
    bidding: Bidding,
    /// By the id of the row.
    held: BTreeMap<String, Holding>,
    /// The last heartbeat that is in the store, in steady time.
    heartbeat: Option<Timestamp>,
    woken: bool,
    done: Done,
    /// The queue was kept once.
    is_kept: bool,
    /// The bidder has ended.
    is_over: bool,
}

impl Working {
    /// A worker that did nothing yet.
    #[expect(clippy::new_without_default, reason = "it is no value but a thing that happens")]
    pub fn new() -> Self {
        Self {
            shared: Mutex::new(Shared {
                bidding: Bidding::Open,
                held: BTreeMap::new(),
                heartbeat: None,
                woken: false,
                done: Done::default(),
                is_kept: false,
                is_over: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Asks for less: never for more than was asked for last. Does not wait.
    pub fn bid(&self, bidding: Bidding) {
        let mut shared = self.lock();
        shared.bidding = shared.bidding.max(bidding);
        drop(shared);
        self.wake();
    }

    /// What it holds.
    pub fn holdings(&self) -> Vec<Holding> {
        self.lock().held.values().cloned().collect()
    }

    /// What it has done so far.
    pub fn done(&self) -> Done {
        self.lock().done
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells both threads to look again.
    fn wake(&self) {
        self.lock().woken = true;
        self.changed.notify_all();
    }

    /// Sleeps until woken, at most so long.
    fn sleep(&self, most: Duration) {
        let shared = self.lock();
        let waited = self.changed.wait_timeout_while(shared, most, |shared| !shared.woken);
        let (mut shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        shared.woken = false;
    }
}

/// The workers at work, oldest first: those that said so and did not say that they stopped, but for those that are seen to
/// be gone.
///
/// # Errors
/// The store cannot be read.
pub fn at_work(host: &Host) -> Result<Vec<Worker>, Error> {
    let mut workers = host.store().workers()?;
    workers.retain(|worker| !identity::is_gone(host, (&worker.place, &worker.identity)));
    Ok(workers)
}

/// Works until it is told to stop, or its options say that it is done.
///
/// # Errors
/// The store failed before the worker was known to it; later failures are told of and tried again.
pub fn work(
    host: &Host,
    options: &WorkerOptions,
    working: &Working,
    tell: &(dyn Fn(&Progress<'_>) + Sync),
) -> Result<Done, Error> {
    // Before there are threads that start programs: a file that is being written cannot be executed.
    install_shim(&host.config().cache(), host.config().shim)?;
    let worker = introduce(host, options)?;
    host.store().put_worker(&worker)?;
    working.lock().heartbeat = Some(worker.heartbeat_at);
    thread::scope(|scope| {
        scope.spawn(|| renewer::renew(host, &worker, working, tell));
        scope.spawn(|| tell_ends(host, working));
        scope.spawn(|| keeper::keep_queue(host, options, working, tell));
        bidder::bid(host, (&worker, options), working, tell);
        working.lock().is_over = true;
        working.changed.notify_all();
    });
    let stopped = Worker {
        stopped_at: Some(host.now()),
        heartbeat_at: host.steady_now()?,
        ..worker
    };
    host.store().put_worker(&stopped)?;
    Ok(working.done())
}

/// Tells the ends that this worker wrote, beside whatever it does: no row waits for a receiver.
fn tell_ends(host: &Host, working: &Working) {
    loop {
        deliver_own(host);
        let shared = working.lock();
        if shared.is_over {
            break;
        }
        drop(working.changed.wait_timeout(shared, POLL));
    }
    deliver_own(host);
}

/// Who this worker is: a holder that nobody was before and nobody will be again.
fn introduce(host: &Host, options: &WorkerOptions) -> Result<Worker, Error> {
    let random = u64::from_le_bytes(entropy()?[..8].try_into().expect("eight bytes of sixteen"));
    let own = capture(std::process::id().cast_signed(), host.place(), "")?;
    Ok(Worker {
        holder: format!("{}-{random:016x}", options.name),
        name: options.name.clone(),
        place: identity::place(host),
        identity: identity::recorded(&own),
        slots: i64::try_from(options.slots).unwrap_or(i64::MAX),
        queues: options.queues.clone(),
        started_at: host.now(),
        heartbeat_at: host.steady_now()?,
        stopped_at: None,
    })
}

//! Leased work as a store keeps it: what may be taken, by whom, what it waits for, and who is at work.

use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::model::{AdminEvent, DurationMs, Entity, Place, ProcessIdentity, Reference, Stage, Timestamp};

/// What a store does for queued work. A part of [`super::Store`]; the same rules hold: a method is one business step in one
/// transaction, a lost race is a value.
pub trait Queue: Send + Sync {
    /// Rows that a worker may take, in the order in which they are taken: by priority, then by age, whatever their queue;
    /// none of a queue that is paused, and no more of one with a limit than it has room for. A hint: only the
    /// compare-and-set says who has one. What else waits costs nothing here.
    ///
    /// # Errors
    /// The store cannot be read.
    fn ready(&self, query: &ReadyQuery) -> Result<Vec<Entity>, StoreError>;

    /// Rows of a stage for which something is due, in order of [`StagePlace`]: a page after a place, so that a sweep ends
    /// whatever it finds.
    ///
    /// # Errors
    /// The store cannot be read.
    fn staged_due(&self, query: &StagedQuery) -> Result<Vec<Entity>, StoreError>;

    /// When the next row of a stage is due; none when nothing is.
    ///
    /// # Errors
    /// The store cannot be read.
    fn next_staged_due(&self, stage: Stage) -> Result<Option<Timestamp>, StoreError>;

    /// Extends leases, with how late each renewal was: one commit for all of them, before whatever else waits to be
    /// written. Each is written only if the row has not ended, is not doubted, has this fence and holder, and its lease
    /// has not run out (exactly at its end it still holds); its version grows, so that whoever judged it by its old end
    /// loses. A lease never gets shorter by it. No history row. The answers are in the order of the asking.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError>;

    /// How late renewals were, as counts for each upper limit in milliseconds ([`RENEWAL_DELAY_LIMITS`], and none for all
    /// above), summed over the life of the store.
    ///
    /// # Errors
    /// The store cannot be read.
    fn renewal_delays(&self) -> Result<RenewalDelays, StoreError>;

    /// What a row waits for, or waited for, in order of creation. Work that another attempt followed is waited for in its
    /// last one.
    ///
    /// # Errors
    /// The store cannot be read.
    fn dependencies(&self, row: &Entity) -> Result<Vec<Dependency>, StoreError>;

    /// Rows that have not ended and wait for work of which some has ended since they were last looked at: at most `limit`
    /// of them after a row number, oldest first, so that a sweep ends whatever it finds.
    ///
    /// # Errors
    /// The store cannot be read.
    fn awaiting_ended(&self, after_row: i64, limit: usize) -> Result<Vec<Entity>, StoreError>;

    /// Notes that a row was looked at: what was `seen` to have ended is no news for it any more. What ended after that
    /// stays news, and so does everything when the row is not as it was: it is looked at again.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn looked_at(&self, row: &Entity, seen: &[Dependency]) -> Result<(), StoreError>;

    /// Every queue that was set up, or has rows that have not ended, in order of their names. Reads every row that has
    /// not ended: for somebody who looks now and then.
    ///
    /// # Errors
    /// The store cannot be read.
    fn queues(&self) -> Result<Vec<QueueState>, StoreError>;

    /// Sets a queue up, with its audit row.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn put_queue(&self, queue: &QueueSetup, event: &AdminEvent) -> Result<(), StoreError>;

    /// Adds a worker, or notes its heartbeat.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn put_worker(&self, worker: &Worker) -> Result<(), StoreError>;

    /// Takes workers away that stopped before that moment and that no row that is held names; how many.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn forget_workers(&self, before: Timestamp) -> Result<usize, StoreError>;

    /// The workers that said they are at work and did not say that they stopped, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn workers(&self) -> Result<Vec<Worker>, StoreError>;

    /// The worker of that name for itself; kept after it stopped, until it is taken away.
    ///
    /// # Errors
    /// The store cannot be read.
    fn worker(&self, holder: &str) -> Result<Option<Worker>, StoreError>;

    /// The offset of steady time in a boot: what was kept for it.
    ///
    /// # Errors
    /// The store cannot be read.
    fn steady_offset(&self, boot: &Boot) -> Result<Option<i64>, StoreError>;

    /// Keeps an offset for a boot unless there is one; the one that is kept.
    ///
    /// # Errors
    /// The store failed; nothing was written.
    fn keep_steady_offset(&self, boot: &Boot, offset_ms: i64) -> Result<i64, StoreError>;

    /// How many writes came under a fence that was not current any more: audit rows with the action
    /// [`crate::model::LATE_WRITE`], as far back as audit rows are kept.
    ///
    /// # Errors
    /// The store cannot be read.
    fn late_writes(&self) -> Result<u64, StoreError>;

    /// The entity that goes on where this one ended, when there is one.
    ///
    /// # Errors
    /// The store cannot be read.
    fn successor(&self, row: &Entity) -> Result<Option<Entity>, StoreError>;
}

/// Upper limits of the histogram of renewals' delays, in milliseconds: from a quick commit to the bundled lease.
pub const RENEWAL_DELAY_LIMITS: [i64; 10] = [5, 20, 100, 500, 1_000, 5_000, 15_000, 50_000, 100_000, 300_000];

/// How late renewals were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenewalDelays {
    /// How many for each upper limit in milliseconds, none for all above; each counted once.
    pub counts: Vec<(Option<i64>, u64)>,
    /// How late all of them were together, in milliseconds.
    pub total_ms: u64,
}

/// Which rows a worker asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyQuery {
    /// Of these queues; empty: of all.
    pub queues: Vec<String>,
    /// At most so many.
    pub limit: usize,
}

/// A place in the order of rows that are due: when, and the row's number.
pub type StagePlace = (Timestamp, i64);

/// Which rows a sweep asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagedQuery {
    /// Of this stage.
    pub stage: Stage,
    /// Due at or before.
    pub before: Timestamp,
    /// After this place: where the page before ended.
    pub after: Option<StagePlace>,
    /// At most so many.
    pub limit: usize,
}

/// A lease that its holder extends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The row's number.
    pub row: i64,
    /// Under which fence.
    pub fence: i64,
    /// Who.
    pub holder: String,
    /// Until when, in steady time.
    pub until: Timestamp,
    /// The moment of the renewal, in steady time: a lease that had run out by then is doubtful, and is not extended.
    pub at: Timestamp,
    /// How long after its time it comes; none when that says nothing (somebody renewed by hand).
    pub late: Option<DurationMs>,
}

/// How a renewal came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease is extended.
    Extended,
    /// It ran out, and nobody took the row away yet: the holder may come back, as its policy says.
    RanOut,
    /// Authority is lost: the row has ended, is gone, or is somebody else's.
    Lost,
}

/// Work that a row waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// What it waits for.
    pub on: Reference,
    /// Whether it ended, and then whether with success.
    pub ended: Option<bool>,
}

/// How a queue is set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSetup {
    /// Its name.
    pub name: String,
    /// Since when nothing is taken from it; none: it is not paused.
    pub paused_at: Option<Timestamp>,
    /// Why it is paused, for people.
    pub note: Option<String>,
    /// At most so many rows are held at once; none: no limit.
    pub limit: Option<i64>,
}

/// A queue as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// How it is set up.
    pub setup: QueueSetup,
    /// How many rows stand where.
    pub counts: Vec<(Stage, u64)>,
    /// Since when the row that has been ready longest waits, by its last write.
    pub ready_since: Option<Timestamp>,
    /// Since when the row that has been doubted longest is, in steady time.
    pub doubted_since: Option<Timestamp>,
    /// The end of the lease that ends first, in steady time; when that is past, nobody has judged it yet.
    pub lease_ends_first: Option<Timestamp>,
}

/// A process that takes work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Random for each start: what rows name as their holder.
    pub holder: String,
    /// Its name, for people; several may share one, and come back with it.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// The process.
    pub identity: ProcessIdentity,
    /// How much it does at once.
    pub slots: i64,
    /// The queues it takes from; empty: all.
    pub queues: Vec<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// Its last sign of life, in steady time.
    pub heartbeat_at: Timestamp,
    /// When it stopped; none while it is at work.
    pub stopped_at: Option<Timestamp>,
}

/// A boot, as the machine counts its time or as one time namespace does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Boot {
    /// The boot.
    pub boot_id: String,
    /// Inode of the time namespace; 0 where what it adds is known and taken out, or none can be read.
    pub time_namespace: i64,
}

/// The authority of a holder over a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLease {
    /// The row.
    pub reference: Reference,
    /// The fence.
    pub fence: i64,
    /// Who holds it.
    pub holder: String,
    /// The attempt that the lease is for; the first is 1.
    pub attempt: i64,
}

/// Why the store admits nobody to a row now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// Its queue is paused.
    Paused,
    /// As many rows of its queue as may are held.
    Full,
}

/// Another attempt, added in the commit that ends the one before it; not when that commit ends nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Successor {
    /// The new row with its first history row, its tags and its unique key; its work, its parents and whoever waits for
    /// the one before are taken over by the store.
    pub new: Box<crate::model::NewEntity>,
}

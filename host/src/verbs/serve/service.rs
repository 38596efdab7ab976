//! What the parts of a service share: whether it is to stop, who is told what, and what they did so far.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pulse::{Part, PartHealth, Pulse};
use crate::error::Error;
use crate::store::Upkeep;
use crate::verbs::lease::{Bidding, Working};
use crate::verbs::outbox::{Message, Tally};

/// A service, from before its parts begin until they ended.
pub struct Service {
    tally: Tally,
    pulses: [Pulse; Part::ALL.len()],
    ends: AtomicU64,
    fired: AtomicU64,
    skipped: AtomicU64,
    repaired: AtomicU64,
    kept: AtomicU64,
    pruned: AtomicU64,
    upkeep: Mutex<Upkeep>,
    /// Where the deliverer that is at work is told.
    mailbox: Mutex<Option<Sender<Message>>>,
    wanted: Mutex<Wanted>,
    changed: Condvar,
    /// The worker that the service is, when it has slots.
    working: Working,
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

/// What is wanted of the parts that do not deliver.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    is_stopping: bool,
    /// A finishing command waits.
    ticket: bool,
    /// Something was written.
    touched: bool,
}

/// Whether a part rests or is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It was long enough.
    Over,
    /// The service stops.
    Stopped,
}

impl Service {
    /// A service that did nothing yet; `tell` gets a line for each new failure.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            tally: Tally::default(),
            pulses: Default::default(),
            ends: AtomicU64::new(0),
            fired: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            repaired: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            pruned: AtomicU64::new(0),
            upkeep: Mutex::default(),
            mailbox: Mutex::default(),
            wanted: Mutex::default(),
            changed: Condvar::new(),
            working: Working::new(),
            tell: Box::new(tell),
        }
    }

    /// Asks every part to begin nothing new and to finish what it is at. Does not wait.
    pub fn stop(&self) {
        locked(&self.wanted).is_stopping = true;
        self.changed.notify_all();
        self.send(Message::Stop);
        self.working.bid(Bidding::Closed);
    }

    /// Asks for what its slots run to be stopped and given back. Does not wait.
    pub fn give_back(&self) {
        self.working.bid(Bidding::GivingBack);
    }

    /// The worker that it is.
    pub const fn working(&self) -> &Working {
        &self.working
    }

    /// What was delivered.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// How every part is.
    pub fn parts(&self) -> [PartHealth; Part::ALL.len()] {
        Part::ALL.map(|part| {
            let counted = (part == Part::Deliverer).then(|| (self.tally.looks(), self.tally.since_look()));
            self.pulse(part).health(part, counted)
        })
    }

    /// How many ends were recorded for finishing commands.
    pub fn ends(&self) -> u64 {
        self.ends.load(Ordering::Relaxed)
    }

    /// How many fire times of schedules were submitted.
    pub fn fired(&self) -> u64 {
        self.fired.load(Ordering::Relaxed)
    }

    /// How often skipped fire times of schedules were recorded.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// How many repairs were carried out.
    pub fn repaired(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    /// How often something that was due for queued work was done.
    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// How many things retention took away.
    pub fn pruned(&self) -> u64 {
        self.pruned.load(Ordering::Relaxed)
    }

    /// How the store stood when it was last looked after.
    pub fn upkeep(&self) -> Upkeep {
        *locked(&self.upkeep)
    }

    /// Tells the deliverer and the keeper to look again.
    pub(super) fn wake(&self) {
        self.send(Message::Woken);
        locked(&self.wanted).touched = true;
        self.changed.notify_all();
    }

    fn send(&self, message: Message) {
        // A deliverer that is being started anew looks by itself, and asks whether it is to stop.
        let _ = locked(&self.mailbox).as_ref().map(|mailbox| mailbox.send(message));
    }

    /// The mailbox of the deliverer that begins now.
    pub(super) fn new_mailbox(&self) -> (Receiver<Message>, Sender<Message>) {
        let (tell, inbox) = channel();
        *locked(&self.mailbox) = Some(tell.clone());
        (inbox, tell)
    }

    /// Whether it was asked to stop.
    pub fn is_stopping(&self) -> bool {
        locked(&self.wanted).is_stopping
    }

    /// Rests for so long, or until the service stops.
    pub(super) fn rest(&self, length: Duration) -> Rest {
        self.rest_unless(length, |wanted| wanted.is_stopping)
    }

    /// The same, or until a finishing command waits.
    pub(super) fn rest_until_ticket(&self, length: Duration) -> Rest {
        let rest = self.rest_unless(length, |wanted| wanted.is_stopping || wanted.ticket);
        locked(&self.wanted).ticket = false;
        rest
    }

    /// The same, or until something was written.
    pub(super) fn rest_until_touched(&self, length: Duration) -> Rest {
        let rest = self.rest_unless(length, |wanted| wanted.is_stopping || wanted.touched);
        locked(&self.wanted).touched = false;
        rest
    }

    /// Tells that a finishing command waits.
    pub(super) fn note_ticket(&self) {
        locked(&self.wanted).ticket = true;
        self.changed.notify_all();
    }

    fn rest_unless(&self, length: Duration, wanted: impl Fn(&Wanted) -> bool) -> Rest {
        let before = locked(&self.wanted);
        let waited = self.changed.wait_timeout_while(before, length, |now| !wanted(now));
        let (now, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if now.is_stopping { Rest::Stopped } else { Rest::Over }
    }

    /// Does one pass of a part; false when it failed, which is told if it is new.
    pub(super) fn pass(&self, part: Part, work: impl FnOnce() -> Result<(), Error>) -> bool {
        let words = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(())) => {
                self.pulse(part).passed();
                return true;
            }
            Ok(Err(error)) => in_words(&error),
            Err(_) => "it has a fault and was ended".to_owned(),
        };
        if self.pulse(part).failed(&words) {
            self.say(part, &format!("{words}; it is tried again"));
        }
        false
    }

    /// Tells what did not come out in a pass, unless it was told after the pass before.
    pub(super) fn complain(&self, part: Part, problems: Vec<String>) {
        for problem in self.pulse(part).problems(problems) {
            self.say(part, &problem);
        }
    }

    pub(super) fn count_ends(&self, count: usize) {
        self.ends.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn count_fired(&self, submitted: usize, skipped: usize) {
        self.fired.fetch_add(submitted as u64, Ordering::Relaxed);
        self.skipped.fetch_add(skipped as u64, Ordering::Relaxed);
    }

    pub(super) fn count_repaired(&self, count: usize) {
        self.repaired.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn count_kept(&self, count: usize) {
        self.kept.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn count_pruned(&self, count: usize) {
        self.pruned.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn keep_upkeep(&self, found: Upkeep) {
        *locked(&self.upkeep) = found;
    }

    pub(super) fn say(&self, part: Part, words: &str) {
        tracing::warn!(part = part.word(), words, "a part of the service failed");
        (self.tell)(&format!("{}: {words}", part.word()));
    }

    const fn pulse(&self, part: Part) -> &Pulse {
        &self.pulses[part as usize]
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error with everything that caused it, on one line.
pub(super) fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words.push_str(&format!(": {error}"));
        source = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_part_that_fails_is_told_of_once_and_a_panic_is_a_failure_like_any() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let service = Service::new(move |line: &str| locked(&heard).push(line.to_owned()));
        let gone = || Err(Error::UnknownPolicy { word: "x".to_owned() });
        assert!(!service.pass(Part::Reaper, gone));
        assert!(!service.pass(Part::Reaper, gone));
        assert!(!service.pass(Part::Upkeep, || panic!("on purpose")));
        assert!(service.pass(Part::Upkeep, || Ok(())));
        assert_eq!(
            *locked(&told),
            [
                "reaper: no installed policy is `x`; it is tried again",
                "upkeep: it has a fault and was ended; it is tried again"
            ]
        );
        let failing = service.parts().map(|part| part.failing.is_some());
        assert_eq!(failing, Part::ALL.map(|part| part == Part::Reaper));
    }

    #[test]
    fn a_rest_ends_with_the_service_and_a_stop_reaches_a_deliverer_that_begins_later() {
        let service = Service::new(|_: &str| {});
        assert_eq!(service.rest(Duration::ZERO), Rest::Over);
        let (inbox, _tell) = service.new_mailbox();
        service.wake();
        service.stop();
        assert_eq!(service.rest(Duration::from_secs(3_600)), Rest::Stopped);
        assert!(matches!(inbox.try_recv(), Ok(Message::Woken)));
        assert!(matches!(inbox.try_recv(), Ok(Message::Stop)));
        let _anew = service.new_mailbox();
        assert!(service.is_stopping(), "which whoever begins asks");
    }
}

//! What waits for the writing thread, and in which order it takes it.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};

use super::command::{Answer, Command};
use crate::store::StoreError;

/// Commands that may wait; whoever comes later waits to hand its own over.
const QUEUE_MAX: usize = 1_024;

/// The most commands of one commit, so that the first of them does not wait for too many others.
const BATCH_MAX: usize = 512;

/// What whoever asked is answered.
pub(super) type Outcome = Result<Answer, StoreError>;

/// A command with whoever waits for its answer.
pub(super) struct Job {
    pub(super) command: Command,
    pub(super) reply: SyncSender<Outcome>,
}

/// Two lanes with nothing in them, and where they lead to.
pub(super) fn lanes() -> (Lanes, Inbox) {
    let (ordinary, ordinary_inbox) = sync_channel(QUEUE_MAX);
    let (urgent, urgent_inbox) = channel();
    let inbox = Inbox {
        urgent: urgent_inbox,
        ordinary: ordinary_inbox,
        left_over: None,
    };
    (Lanes { urgent, ordinary }, inbox)
}

/// The two lanes to the thread. Whatever is urgent has one of its own, which never fills up; the other is told of it, so
/// that the thread wakes, unless it is full and the thread is awake anyway.
#[derive(Clone)]
pub(super) struct Lanes {
    urgent: Sender<Job>,
    ordinary: SyncSender<Option<Job>>,
}

impl Lanes {
    /// Hands a command over; one that is not urgent waits for room.
    pub(super) fn hand_over(&self, job: Job) -> Result<(), Dead> {
        if !job.command.is_urgent() {
            return self.ordinary.send(Some(job)).map_err(|_| Dead);
        }
        self.urgent.send(job).map_err(|_| Dead)?;
        match self.ordinary.try_send(None) {
            Ok(()) | Err(TrySendError::Full(_)) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(Dead),
        }
    }
}

/// The thread is gone.
pub(super) struct Dead;

/// What the thread reads.
pub(super) struct Inbox {
    urgent: Receiver<Job>,
    ordinary: Receiver<Option<Job>>,
    /// The first command of the commit after the one that is being made.
    left_over: Option<Job>,
}

impl Inbox {
    /// The commands of the next commit; none when nobody can hand over any.
    pub(super) fn next_batch(&mut self) -> Option<Vec<Job>> {
        loop {
            let urgent: Vec<Job> = self.urgent.try_iter().take(BATCH_MAX).collect();
            if !urgent.is_empty() {
                return Some(urgent);
            }
            if let Some(first) = self.left_over.take() {
                return Some(self.fill(first));
            }
            if let Some(first) = self.ordinary.recv().ok()? {
                return Some(self.fill(first));
            }
        }
    }

    /// A commit as large as may be: no two commands on one entity, and nothing urgent is kept waiting for it.
    fn fill(&mut self, first: Job) -> Vec<Job> {
        let mut entities: HashSet<String> = owned(&first.command).collect();
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX {
            let Ok(next) = self.ordinary.try_recv() else { break };
            let Some(job) = next else { break };
            if job.command.entities().iter().any(|entity| entities.contains(*entity)) {
                self.left_over = Some(job);
                break;
            }
            entities.extend(owned(&job.command));
            batch.push(job);
        }
        batch
    }
}

fn owned(command: &Command) -> impl Iterator<Item = String> {
    command.entities().into_iter().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::store::samples::{self, moment};
    use crate::store::{MemoryStore, Renewal};

    fn job(command: Command) -> Job {
        let (reply, _) = sync_channel(1);
        Job { command, reply }
    }

    /// A command that is about no entity.
    fn ordinary(number: i64) -> Job {
        job(Command::DropResource(number))
    }

    fn renewal(row: i64) -> Job {
        job(Command::Renew(vec![Renewal {
            row,
            fence: 1,
            holder: "w".to_owned(),
            until: moment(9),
            at: moment(1),
            late: None,
        }]))
    }

    fn about(id: &str) -> Job {
        let new = samples::new_entity(&MemoryStore::named("lanes"), "run", id);
        job(Command::Create(Box::new(new), None))
    }

    impl Lanes {
        fn put(&self, job: Job) {
            assert!(self.hand_over(job).is_ok());
        }
    }

    /// The next commit: `r1` for a renewal of row 1, `o1` for an ordinary command, an id for a creation.
    fn next(inbox: &mut Inbox) -> Vec<String> {
        inbox
            .next_batch()
            .unwrap()
            .iter()
            .map(|job| told(&job.command))
            .collect()
    }

    fn told(command: &Command) -> String {
        match command {
            Command::Renew(renewals) => format!("r{}", renewals[0].row),
            Command::DropResource(number) => format!("o{number}"),
            Command::Create(new, _) => new.entity.reference.id.clone(),
            _ => unreachable!("no other command is handed over here"),
        }
    }

    /// Row 35: a renewal waits for no queue of writes, only for the commit that is being made.
    #[test]
    fn renewals_are_committed_before_a_thousand_commands_that_wait() {
        let (lanes, mut inbox) = lanes();
        (0..1_000).for_each(|number| lanes.put(ordinary(number)));
        (1..=2).for_each(|row| lanes.put(renewal(row)));
        assert_eq!(next(&mut inbox), ["r1", "r2"]);
        let first = next(&mut inbox);
        assert_eq!((first.len(), first[0].as_str()), (BATCH_MAX, "o0"));
        lanes.put(renewal(3));
        assert_eq!(next(&mut inbox), ["r3"]);
        let second = next(&mut inbox);
        assert_eq!((second.len(), second[0].as_str()), (1_000 - BATCH_MAX, "o512"));
        drop(lanes);
        assert!(inbox.next_batch().is_none());
    }

    #[test]
    fn a_renewal_needs_no_room_in_a_lane_that_is_full_and_wakes_a_thread_that_sleeps() {
        let (lanes, mut inbox) = lanes();
        (0..1_024).for_each(|number| lanes.put(ordinary(number)));
        lanes.put(renewal(1));
        assert_eq!(next(&mut inbox), ["r1"]);
        assert_eq!(next(&mut inbox).len() + next(&mut inbox).len(), 1_024);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(move || next(&mut inbox));
            lanes.put(renewal(2));
            assert_eq!(sleeper.join().unwrap(), ["r2"]);
        });
    }

    #[test]
    fn two_commands_on_one_entity_share_no_commit_and_a_renewal_goes_between_them() {
        let (lanes, mut inbox) = lanes();
        for id in ["a", "b", "a", "c"] {
            lanes.put(about(id));
        }
        assert_eq!(next(&mut inbox), ["a", "b"]);
        lanes.put(renewal(1));
        assert_eq!(next(&mut inbox), ["r1"]);
        assert_eq!(next(&mut inbox), ["a", "c"]);
    }

    #[test]
    fn a_commit_that_is_being_filled_is_cut_short_by_a_renewal() {
        let (lanes, mut inbox) = lanes();
        lanes.put(ordinary(2));
        lanes.put(renewal(1));
        lanes.put(ordinary(3));
        let batch: Vec<String> = inbox.fill(ordinary(1)).iter().map(|job| told(&job.command)).collect();
        assert_eq!(batch, ["o1", "o2"]);
        assert_eq!(next(&mut inbox), ["r1"]);
        assert_eq!(next(&mut inbox), ["o3"]);
    }
}

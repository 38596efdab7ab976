//! Rows as the model keeps them: without times, and fences relative to the current one, so that there are finitely many.
//! Every write is a rule's answer, decided as the host decides it; what was read before it must then be refused.

use std::cell::RefCell;
use std::collections::HashMap;

use super::super::tests::{decided, made, queueing, written};
use super::super::*;
use crate::model::{Cause, Create, Decision};

/// Every moment that a row keeps: clocks are off by so much that any look at one may find any of them ahead or past.
const NOW: Timestamp = Timestamp::from_ms(1_000_000_000);
const TERMS: Terms = Terms {
    lease: LEASE_MIN,
    grace: LEASE_MIN,
    attempts: 2,
};
/// The fence of a row that is built; whoever lost it has an older one.
const FENCE: i64 = 10;

/// What a look at a clock says of whatever moment is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Clock {
    /// It is ahead.
    Ahead,
    /// It is past.
    Past,
}

impl Clock {
    pub(super) const ALL: [Self; 2] = [Self::Ahead, Self::Past];

    fn reads(self) -> Timestamp {
        let off = match self {
            Self::Ahead => -1,
            Self::Past => 1,
        };
        NOW.plus(DurationMs::from_ms(off))
    }
}

/// Who holds a lease: a worker, or one that was started again since and is somebody else now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Holder {
    Worker(usize),
    Gone(Machine),
}

/// Where a worker works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Machine {
    /// Where whoever judges can see and stop its processes.
    Here,
    /// Where nobody here sees anything.
    Elsewhere,
}

/// One version of the newest row of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Row {
    /// Which of its policy's statuses.
    pub(super) status: usize,
    pub(super) stage: Option<u8>,
    pub(super) terminal: bool,
    pub(super) holder: Option<Holder>,
    /// It has a lease that ends at some time.
    pub(super) expires: bool,
    /// It is due at some time.
    pub(super) is_due: bool,
    pub(super) attempts: i64,
}

impl Row {
    pub(super) fn is(&self, stage: Stage) -> bool {
        self.stage == u8::try_from(stage.number()).ok()
    }
}

/// What somebody asks a rule for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ask {
    /// A worker wants it.
    Claim(Holder),
    /// Whoever keeps the queue looks what time makes due.
    Due,
    /// The grace is over, and this was seen.
    Fence(Sight),
    /// Its holder is back, or the end of its attempt was seen.
    Recover,
    /// An attempt ended.
    End(Success),
    /// Its worker gives it back.
    HandBack,
}

/// What was seen of a doubted row's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Sight {
    Stopped,
    Elsewhere,
    Confirmed,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Success {
    Yes,
    No,
}

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    /// The row's processes are to be looked at.
    Judge,
    /// The row was written.
    Written {
        row: Row,
        /// Whoever held it does not any more.
        is_fenced: bool,
        next: Next,
    },
}

/// The rules of one policy, every answer remembered.
pub(super) struct Rules {
    pub(super) lifecycle: Lifecycle,
    known: RefCell<HashMap<(Row, Ask, Clock), Answer>>,
}

impl Rules {
    pub(super) fn new(lifecycle: Lifecycle) -> Self {
        Self {
            lifecycle,
            known: RefCell::default(),
        }
    }

    /// A row that was just submitted.
    pub(super) fn submitted(&self) -> Row {
        let mut command = Create::new("schedule_run", "one", Actor::system("test"));
        command.queueing = Some(queueing(None));
        self.row(&made(&self.lifecycle, &command))
    }

    /// The attempt after a row that was fenced.
    pub(super) fn successor(&self, row: &Row) -> Row {
        let mut command = Create::new("schedule_run", "two", Actor::system("test"));
        command.queueing = Some(queueing(None));
        command.lineage = Some(lineage_after(&self.entity(row)));
        self.row(&made(&self.lifecycle, &command))
    }

    /// What the rules answer to somebody whose clock says that, written as the host writes it.
    pub(super) fn ask(&self, row: &Row, ask: Ask, clock: Clock) -> Answer {
        let key = (row.clone(), ask, clock);
        if let Some(answer) = self.known.borrow().get(&key) {
            return answer.clone();
        }
        let answer = self.answered(row, ask, clock);
        self.known.borrow_mut().insert(key, answer.clone());
        answer
    }

    fn answered(&self, row: &Row, ask: Ask, clock: Clock) -> Answer {
        let before = self.entity(row);
        let (command, next) = match self.command(&before, FENCE, ask, clock) {
            Command::Nothing => return Answer::Nothing,
            Command::Judge => return Answer::Judge,
            Command::Write(command, next) => (command, next),
        };
        let after = written(&self.lifecycle, &before, &command);
        assert!(!before.terminal, "{ask:?} left {}", before.status);
        assert!(
            after.fence == FENCE || after.fence == FENCE + 1,
            "{ask:?} led to fence {}",
            after.fence
        );
        let is_fenced = after.fence != FENCE;
        self.check_what_was_read_before(&before, &after);
        Answer::Written {
            row: self.row(&after),
            is_fenced,
            next,
        }
    }

    /// Whatever was decided on the row as it was is refused now; and if the holder changed, whatever the one before
    /// writes, whenever it writes it.
    fn check_what_was_read_before(&self, before: &Entity, after: &Entity) {
        let sights = [Sight::Stopped, Sight::Elsewhere, Sight::Confirmed].map(Ask::Fence);
        let looks = [Ask::Claim(Holder::Worker(1)), Ask::Due, Ask::Recover];
        let late = [Ask::End(Success::Yes), Ask::End(Success::No), Ask::HandBack];
        for ask in looks.into_iter().chain(sights) {
            if let Command::Write(command, _) = self.command(before, FENCE, ask, Clock::Past) {
                self.check_refused(after, &command, &["version"]);
            }
        }
        if after.fence == before.fence {
            return;
        }
        for ask in late {
            // Judged before the holder changed it loses; whoever looks again then writes under a fence that is not current.
            for (read, codes) in [(before, ["status", "fence"].as_slice()), (after, &["fence"])] {
                if let Command::Write(command, _) = self.command(read, FENCE, ask, Clock::Past) {
                    self.check_refused(after, &command, codes);
                }
            }
            let told = self.command(after, FENCE, ask, Clock::Past);
            assert!(matches!(told, Command::Write(..)), "a late {ask:?} is recorded");
        }
    }

    fn check_refused(&self, row: &Entity, command: &Transition, codes: &[&str]) {
        match decided(&self.lifecycle, row, command) {
            Decision::Conflict(conflict) => assert!(codes.contains(&conflict.code), "{command:?}: {}", conflict.code),
            other => panic!("{command:?} came to {other:?}"),
        }
    }

    fn command(&self, entity: &Entity, fence: i64, ask: Ask, clock: Clock) -> Command {
        let lifecycle = &self.lifecycle;
        let steady = clock.reads();
        let write = |command: Option<Transition>| {
            command.map_or(Command::Nothing, |it| Command::Write(Box::new(it), Next::None))
        };
        match ask {
            Ask::Claim(holder) => write(claim(lifecycle, entity, &TERMS, &word(holder), steady)),
            Ask::Due => {
                let now = Now { steady, wall: steady };
                match due(lifecycle, entity, (&TERMS, None), &Awaited::Nothing, now) {
                    Due::Nothing => Command::Nothing,
                    Due::Judge => Command::Judge,
                    Due::Write(command) => Command::Write(command, Next::None),
                }
            }
            Ask::Fence(sight) => match super::super::fence(lifecycle, entity, &TERMS, &seen(sight), steady) {
                None => Command::Nothing,
                Some(Fencing::Stays(why)) => panic!("it stays although {sight:?}: {why}"),
                Some(Fencing::Write(command, next)) => Command::Write(command, next),
            },
            Ask::Recover => write(recovered(
                lifecycle,
                entity,
                (&TERMS, fence),
                (reaper(), "seen"),
                steady,
            )),
            Ask::End(success) => write(ended(lifecycle, entity, (&TERMS, fence), &end(success), (NOW, 0))),
            Ask::HandBack => write(handed_back(lifecycle, entity, fence, NOW)),
        }
    }

    fn entity(&self, row: &Row) -> Entity {
        let mut entity = self.blank();
        entity.enter(&self.lifecycle, &self.lifecycle.descriptor().statuses[row.status].name);
        let lease = &mut entity.structural;
        lease.leased_by = row.holder.map(word);
        lease.lease_expires_at = row.expires.then_some(NOW);
        lease.next_attempt_at = row.is_due.then_some(NOW);
        lease.lease_attempts = Some(row.attempts);
        lease.unknown_since = row.is(Stage::Doubted).then_some(NOW);
        entity.line_up(&self.lifecycle);
        entity
    }

    fn blank(&self) -> Entity {
        let mut command = Create::new("schedule_run", "one", Actor::system("test"));
        command.queueing = Some(queueing(None));
        let mut entity = made(&self.lifecycle, &command);
        (entity.version, entity.fence) = (FENCE, FENCE);
        entity
    }

    fn row(&self, entity: &Entity) -> Row {
        let statuses = &self.lifecycle.descriptor().statuses;
        let lease = &entity.structural;
        let stage = entity.queued.as_ref().and_then(|queued| queued.stage);
        // Of a row that has ended, and of a lease that is doubted, nobody asks when they ran out.
        let counts = |moment: Option<Timestamp>| moment.is_some() && !entity.terminal;
        Row {
            status: statuses
                .iter()
                .position(|status| status.name == entity.status)
                .expect("it is declared"),
            stage: stage.and_then(|stage| u8::try_from(stage.number()).ok()),
            terminal: entity.terminal,
            holder: lease.leased_by.as_deref().map(holder).filter(|_| !entity.terminal),
            expires: counts(lease.lease_expires_at.filter(|_| stage != Some(Stage::Doubted))),
            is_due: counts(lease.next_attempt_at),
            attempts: lease.lease_attempts.unwrap_or(0).min(TERMS.attempts),
        }
    }
}

enum Command {
    Nothing,
    Judge,
    Write(Box<Transition>, Next),
}

const WORDS: [(Holder, &str); 5] = [
    (Holder::Worker(0), "w0"),
    (Holder::Worker(1), "w1"),
    (Holder::Worker(2), "w2"),
    (Holder::Gone(Machine::Here), "gone"),
    (Holder::Gone(Machine::Elsewhere), "gone elsewhere"),
];

fn word(holder: Holder) -> String {
    WORDS
        .iter()
        .find(|(known, _)| *known == holder)
        .expect("a holder")
        .1
        .to_owned()
}

fn holder(word: &str) -> Holder {
    WORDS.iter().find(|(_, known)| *known == word).expect("a holder").0
}

fn seen(sight: Sight) -> Seen {
    let words = format!("{sight:?}");
    match sight {
        Sight::Stopped => Seen::Stopped(words),
        Sight::Elsewhere => Seen::Elsewhere(words),
        Sight::Confirmed => Seen::Confirmed(words),
    }
}

fn end(success: Success) -> AttemptEnd {
    let (status, code) = match success {
        Success::Yes => ("completed", "run.completed.ok"),
        Success::No => ("failed", "run.failed.exit_nonzero"),
    };
    AttemptEnd {
        outcome: Outcome {
            status: status.to_owned(),
            code: code.to_owned(),
        },
        reason: Reason::code(code),
        patch: Fields::new(),
        cause: Cause::Exit,
        retry_after: None,
    }
}

//! Why an entity is where it is: what it waits for, what it is stuck on, or how it ended and what that means.
//!
//! Pure: from what the store says and what was seen, to words and the commands to type. What was seen is old when it is
//! read; nothing is decided by an explanation.

mod ended;
mod live;
mod notice;
mod queued;
#[cfg(test)]
mod tests;

pub use notice::Notice;
pub use queued::QueueSight;

use super::{AdminEvent, Condition, DurationMs, Entity, HistoryRow, Lifecycle, Runtime, SeenGone, Timestamp, Unjudged};

/// A start that has no process for longer than this is stuck: the command that made it is gone, or is itself held up.
pub const START_GRACE: DurationMs = DurationMs::from_ms(30_000);

/// What looks after runs that nobody looks after.
const REPAIR: &str = "runwarden doctor --fix";

/// Everything an explanation is made of.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The entity.
    pub entity: &'a Entity,
    /// The graph of the policy it is pinned to.
    pub lifecycle: &'a Lifecycle,
    /// Its newest runtime row.
    pub runtime: Option<&'a Runtime>,
    /// What was seen of that runtime.
    pub sight: &'a Sight,
    /// How it is by its policy, where that was asked.
    pub health: Option<&'a Condition>,
    /// Its program has ended, and the store does not say so yet.
    pub end_waits: bool,
    /// What is linked directly below it.
    pub children: &'a [Entity],
    /// The newest refusal since it was last written.
    pub refusal: Option<&'a AdminEvent>,
    /// The history row that brought it into its status.
    pub entered: Option<&'a HistoryRow>,
    /// What it delivers, when it is a dispatch.
    pub notice: Option<&'a Notice>,
    /// What is known of it as queued work, when it is that.
    pub queued: Option<&'a QueueSight>,
    /// It is an attempt at queued work, which decides what follows from its end.
    pub is_attempt: bool,
    /// The newest notices of its events.
    pub notices: &'a [Entity],
    /// Now.
    pub now: Timestamp,
}

/// What was seen of a runtime that is not stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// There is nothing to look at: no runtime, or one that is stopped, runs elsewhere, or has no process yet.
    Nothing,
    /// Its shim lives, and these processes below it, parents first.
    Held(Vec<Process>),
    /// Its shim is gone, and these processes of it live.
    Unheld(Vec<Process>),
    /// Everything of it is positively gone, and its end is not recorded.
    Gone(SeenGone),
    /// It cannot be judged from here; what the lock in its run directory says.
    Unjudged(Unjudged, ShimLock),
}

/// What the lock says that a shim holds as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShimLock {
    /// The shim lives.
    Held,
    /// The shim is gone.
    Free,
    /// It says nothing.
    Unknown,
}

/// A live process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i64,
    /// The kernel's name for it.
    pub name: String,
    /// The kernel's letter for its state.
    pub state: char,
    /// Where in the kernel it waits.
    pub waits_in: Option<String>,
    /// The lock on a file that it waits for.
    pub lock: Option<LockSeen>,
    /// The run whose shim it is, when it is one.
    pub run: Option<String>,
}

/// A lock on a file that somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockSeen {
    /// Who holds it, where that can be told.
    pub holder: Option<i64>,
    /// The file, where that can be told.
    pub file: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The whole of it in a sentence, about "it".
    pub headline: String,
    /// What it rests on.
    pub facts: Vec<Fact>,
    /// Commands to type, the likeliest first.
    pub next: Vec<String>,
}

/// One thing that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it is about, in a word or two.
    pub what: &'static str,
    /// What is known.
    pub value: String,
}

/// Explains an entity.
pub fn explain(case: &Case<'_>) -> Explanation {
    let mut answer = match case.notice {
        Some(notice) => notice::explain(case, notice),
        None if case.entity.terminal => match case.queued {
            Some(sight) => queued::after(case, sight, ended::explain(case)),
            None => ended::explain(case),
        },
        None => live::explain(case),
    };
    answer.maybe("health", case.health.map(Condition::told));
    notice::told(&mut answer, case.notices);
    if let Some(refusal) = case.refusal {
        answer.fact("refused", told(refusal));
    }
    answer
}

impl Explanation {
    fn new(headline: impl Into<String>) -> Self {
        Self {
            headline: headline.into(),
            facts: Vec::new(),
            next: Vec::new(),
        }
    }

    fn fact(&mut self, what: &'static str, value: impl Into<String>) {
        let value = value.into();
        self.facts.push(Fact { what, value });
    }

    fn maybe(&mut self, what: &'static str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.fact(what, value);
        }
    }

    #[must_use]
    fn with(mut self, what: &'static str, value: impl Into<String>) -> Self {
        self.fact(what, value);
        self
    }

    /// The same with a command to type, unless it is there already.
    #[must_use]
    fn then(mut self, command: impl Into<String>) -> Self {
        let command = command.into();
        if !self.next.contains(&command) {
            self.next.push(command);
        }
        self
    }
}

impl Case<'_> {
    /// A command of ours about the entity.
    fn command(&self, verb: &str) -> String {
        format!("runwarden {verb} {}", self.entity.reference)
    }

    /// The command that shows what it was to do.
    fn work(&self) -> String {
        format!("runwarden show {} --command", self.entity.reference)
    }

    /// The command that moves the entity by hand.
    fn move_to(&self, status: &str, code: &str) -> String {
        format!(
            "runwarden transition {} {status} --reason {code}",
            self.entity.reference
        )
    }

    /// How long its runtime row has been as it is.
    fn standing_for(&self) -> DurationMs {
        self.runtime
            .map_or(DurationMs::from_ms(0), |runtime| self.now.since(runtime.updated_at))
    }

    /// What its policy says of its reason code, behind the code.
    fn code(&self) -> String {
        let code = &self.entity.reason.code;
        let declared = &self.lifecycle.descriptor().reason_codes;
        match declared.iter().find(|reason| reason.code == *code) {
            Some(reason) => format!("{code}: {}", reason.summary),
            None => code.clone(),
        }
    }

    /// The processes that live on, a fact for each.
    fn processes(&self, answer: &mut Explanation) {
        if let Sight::Held(processes) | Sight::Unheld(processes) = self.sight {
            for process in processes {
                answer.fact("process", process.told());
            }
        }
    }
}

impl Process {
    /// Number, name, and what is unusual about it.
    fn told(&self) -> String {
        let name = self.run.as_ref().map_or_else(
            || format!("pid {}, {}", self.pid, self.name),
            |run| format!("pid {}, {run}, a run of its own", self.pid),
        );
        let place = self
            .waits_in
            .as_ref()
            .map(|place| format!(" in {place}"))
            .unwrap_or_default();
        match (self.state, &self.lock) {
            ('T', _) => format!("{name}: stopped by a signal"),
            ('t', _) => format!("{name}: stopped by a debugger"),
            ('D', _) => format!("{name}: uninterruptible{place}"),
            (_, Some(lock)) => format!("{name}: waits for a lock{}", lock.told()),
            _ => name,
        }
    }
}

impl LockSeen {
    fn told(&self) -> String {
        let file = self.file.as_ref().map(|file| format!(" on {file}")).unwrap_or_default();
        let holder = self
            .holder
            .map(|pid| format!(", held by pid {pid}"))
            .unwrap_or_default();
        format!("{file}{holder}")
    }
}

/// A refusal in words.
fn told(refusal: &AdminEvent) -> String {
    let text = |name: &str| refusal.details[name].as_str().unwrap_or("?").to_owned();
    format!(
        "{} to {}, asked for by {}: {}",
        text("previous_status"),
        text("attempted_status"),
        refusal.actor,
        text("message")
    )
}

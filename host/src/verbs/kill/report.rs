//! What came of a kill, and what a kill would do: each fact for itself.

use serde_json::{Value, json};

use crate::error::Error;
use crate::model::{Entity, KillStep, Runtime};
use crate::process::Survivor;

/// What came of a kill of one entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillResult {
    /// It was stopped, or never had a process, and its end is recorded as a kill.
    Killed,
    /// It had ended before; its status is as it was.
    Unchanged,
    /// Nothing was signalled and nothing written.
    Refused,
    /// Something could not be stopped, not be confirmed, or not be recorded.
    Incomplete,
}

impl KillResult {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Incomplete => "incomplete",
        }
    }

    /// Whether all that was asked for is done.
    pub const fn is_complete(self) -> bool {
        matches!(self, Self::Killed | Self::Unchanged)
    }
}

/// The report of a kill: what was observed, each fact for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Killed {
    /// The entity.
    pub reference: String,
    /// The status before.
    pub previous_status: String,
    /// The status after.
    pub status: String,
    /// What came of it.
    pub result: KillResult,
    /// The strongest signal sent, or the word that says why none was (SEMANTICS 5).
    pub signal: String,
    /// The worker.
    pub pid: Option<i64>,
    /// The set was observed empty.
    pub stopped: bool,
    /// What proves that it was.
    pub proof: Option<String>,
    /// What lives on.
    pub survivors: Vec<Survivor>,
    /// Those linked below it that were killed with it.
    pub children: Vec<Killed>,
    /// In words, where something has to be said.
    pub message: Option<String>,
}

/// What came of a kill as a whole.
#[derive(Debug, Default)]
pub struct Killing {
    /// One for each target, in their order, those below them inside.
    pub targets: Vec<Killed>,
    /// Entities that could not be killed at all, and why.
    pub failures: Vec<(String, Error)>,
    /// Something was stopped and its end is not in the store yet: the next command that reads it records it.
    pub unrecorded: bool,
}

impl Killing {
    /// Whether everything is as it was asked for.
    pub fn is_complete(&self) -> bool {
        self.failures.is_empty() && !self.unrecorded && self.targets.iter().all(Killed::is_complete)
    }

    /// The JSON document.
    pub fn json(&self) -> Value {
        let targets: Vec<Value> = self.targets.iter().map(Killed::json).collect();
        json!({"targets": targets, "complete": self.is_complete()})
    }
}

impl Killed {
    /// A report to be completed, of an entity as it is.
    pub(super) fn of(entity: &Entity, runtime: Option<&Runtime>, signal: &str) -> Self {
        Self {
            reference: entity.reference.to_string(),
            previous_status: entity.status.clone(),
            status: entity.status.clone(),
            result: KillResult::Killed,
            signal: signal.to_owned(),
            pid: runtime.and_then(|runtime| Some(runtime.worker.as_ref()?.pid)),
            stopped: false,
            proof: None,
            survivors: Vec::new(),
            children: Vec::new(),
            message: None,
        }
    }

    /// The same with words for people.
    pub(super) fn saying(self, message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            ..self
        }
    }

    /// Adds what came of another of its sets: what is not done of either is not done, and where something was done of
    /// one of them it is no refusal.
    pub(super) fn add(&mut self, other: Self) {
        let has_acted = self.has_acted() || other.has_acted();
        let is_weaker = other.has_signalled() && self.signal != "sigkill";
        let is_done = self.result.is_complete();
        if !other.result.is_complete() {
            let said = self.message.take().filter(|_| !is_done);
            self.message = Some(said.into_iter().chain(other.message).collect::<Vec<_>>().join("; "));
        }
        self.result = match (is_done, other.result.is_complete()) {
            (true, true) => self.result,
            (false, _) | (_, false) if has_acted => KillResult::Incomplete,
            (true, false) => other.result,
            (false, _) => self.result,
        };
        if is_weaker || (is_done && !has_acted) {
            self.signal = other.signal;
        }
        self.status = other.status;
        self.survivors.extend(other.survivors);
        self.children.extend(other.children);
        self.stopped &= other.stopped;
    }

    /// Whether somebody got a signal, or an end was written.
    fn has_acted(&self) -> bool {
        self.has_signalled() || matches!(self.result, KillResult::Killed | KillResult::Incomplete)
    }

    fn has_signalled(&self) -> bool {
        matches!(self.signal.as_str(), "sigterm" | "sigkill")
    }

    /// Whether it and everything below it is as it was asked for.
    pub fn is_complete(&self) -> bool {
        self.result.is_complete() && self.children.iter().all(Self::is_complete)
    }

    /// The JSON document.
    pub fn json(&self) -> Value {
        let children: Vec<Value> = self.children.iter().map(Self::json).collect();
        json!({
            "ref": self.reference,
            "previous_status": self.previous_status,
            "status": self.status,
            "outcome": self.result.word(),
            "signal": self.signal,
            "pid": self.pid,
            "stopped": self.stopped,
            "proof": self.proof,
            "survivors": processes(&self.survivors),
            "children": children,
            "message": self.message,
        })
    }
}

/// What a kill would do with one entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The entity.
    pub reference: String,
    /// Its status.
    pub status: String,
    /// The status it would get; none when it would keep its own.
    pub goes_to: Option<String>,
    /// The row of the set in the inventory; none when no set of it is open.
    pub runtime: Option<i64>,
    /// When: those of one round side by side, after those of the rounds before.
    pub round: usize,
    /// What would be done.
    pub step: KillStep,
    /// The worker.
    pub pid: Option<i64>,
    /// Processes that would be signalled, as one look sees them.
    pub processes: Vec<Survivor>,
}

/// What a kill would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KillPlan {
    /// Each entity once, and once more for each set that it has beside the newest, in the order of the act.
    pub steps: Vec<Planned>,
}

impl KillPlan {
    /// Whether nothing stands in its way now.
    pub fn is_complete(&self) -> bool {
        self.steps.iter().all(|planned| planned.step.is_complete())
    }

    /// The JSON document.
    pub fn json(&self) -> Value {
        let steps: Vec<Value> = self.steps.iter().map(Planned::json).collect();
        json!({"dry_run": true, "plan": steps, "complete": self.is_complete()})
    }
}

impl Planned {
    /// Why it would not be killed, in words.
    pub fn refusal(&self) -> Option<&str> {
        match &self.step {
            KillStep::Refused(why) => Some(&why.message),
            _ => None,
        }
    }

    fn json(&self) -> Value {
        let signal = match &self.step {
            KillStep::Refused(why) => Some(why.word.word()),
            _ => None,
        };
        json!({
            "ref": self.reference,
            "status": self.status,
            "goes_to": self.goes_to,
            "runtime": self.runtime,
            "round": self.round,
            "step": self.step.word(),
            "signal": signal,
            "pid": self.pid,
            "processes": processes(&self.processes),
            "message": self.refusal(),
        })
    }
}

fn processes(of: &[Survivor]) -> Vec<Value> {
    of.iter()
        .map(|s| json!({"pid": s.pid, "comm": s.comm, "state": s.state, "uid": s.uid}))
        .collect()
}

//! What a schedule starts, as it is stored.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fire::Standing;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, Create, Outcome, Queueing, Reason, Reference, Tags, Timestamp, create as decide_creation};
use crate::store::{KeptSchedule, NewRun, StoreError, Work as Stored};
use crate::verbs::create::policy_for;
use crate::work::Work;

/// The tag that names the schedule on everything it starts.
pub const SCHEDULE_TAG: &str = "schedule";

/// What a schedule starts: as `submit` has it, and how what is not started is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submitted {
    /// The kind of what is made for a fire time.
    pub kind: String,
    /// The policy it is made under, in words; none is the one in force then.
    pub policy: Option<String>,
    /// Its name; none is the schedule's.
    pub name: Option<String>,
    /// Its labels, beside [`SCHEDULE_TAG`].
    pub tags: Tags,
    /// What it is linked below.
    pub parents: Vec<Reference>,
    /// Its notify settings, as they were resolved.
    pub notify: Value,
    /// Its queue.
    pub queue: String,
    /// Higher is taken first.
    pub priority: i64,
    /// What it is to do, with how it is queued.
    pub work: Work,
    /// How fire times are recorded.
    pub words: Words,
}

/// How the kind's policy calls what becomes of a fire time: the host knows no kind's vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// The reason of what was due.
    pub due: String,
    /// What would have overlapped.
    pub overlaps: Outcome,
    /// What was missed.
    pub missed: Outcome,
    /// What cannot be linked where it belongs.
    pub refused: Outcome,
}

impl Submitted {
    /// Reads what is stored with a schedule.
    ///
    /// # Errors
    /// It is damaged.
    pub fn read(kept: &KeptSchedule) -> Result<Self, Error> {
        serde_json::from_value(kept.submission.clone()).map_err(|error| {
            Error::Store(StoreError::Failed {
                doing: "reading what a schedule starts",
                source: Box::new(error),
            })
        })
    }

    /// As it is stored.
    pub fn stored(&self) -> Value {
        serde_json::to_value(self).expect("its parts have text keys and finite numbers")
    }

    /// The work specification, as it is shown.
    pub fn work(&self) -> Value {
        serde_json::to_value(&self.work).expect("a work specification has text keys")
    }

    /// Judges, before the schedule is added, everything that it may come to; nothing is written.
    ///
    /// # Errors
    /// The kind's policy does not know a word, or the store cannot be read.
    pub(super) fn check(&self, host: &Host, schedule: &str) -> Result<(), Error> {
        let selected = policy_for(host, &self.kind, self.policy.as_deref())?;
        let id = host.draw_id()?;
        for standing in [Standing::Submitted, Standing::Overlaps, Standing::Lapsed] {
            let creation = self.creation((schedule, &id), &standing, Value::Null, host.now());
            decide_creation(
                &selected.lifecycle,
                &selected.pin,
                &creation,
                host.store().name(),
                host.now(),
            )?;
        }
        Ok(())
    }

    /// What is made for a fire time.
    pub(super) fn creation(
        &self,
        (schedule, id): (&str, &str),
        standing: &Standing,
        evidence: Value,
        now: Timestamp,
    ) -> Create {
        let mut create = Create::new(&self.kind, id, Actor::new("scheduler", schedule));
        let (outcome, code, summary) = match standing {
            Standing::Submitted => (None, &self.words.due, "it was due"),
            Standing::Waits => (None, &self.words.due, "it was due, and waits for those before it"),
            Standing::Overlaps => {
                let words = &self.words.overlaps;
                (Some(words), &words.code, "one before it has not ended")
            }
            Standing::Lapsed => {
                let words = &self.words.missed;
                (Some(words), &words.code, "nobody was there to start it in time")
            }
            Standing::Parentless(_) => {
                let words = &self.words.refused;
                (Some(words), &words.code, "what it belongs below is gone or has ended")
            }
        };
        create.status = outcome.map(|outcome| outcome.status.clone());
        create.reason = Reason::code(code).summary(summary).evidence(evidence);
        create.name = Some(self.name.clone().unwrap_or_else(|| schedule.to_owned()));
        create.tags = self.tags.clone();
        create.tags.insert(SCHEDULE_TAG.to_owned(), schedule.to_owned());
        if !matches!(standing, Standing::Parentless(_)) {
            create.parents.clone_from(&self.parents);
        }
        create.notify = self.notify.clone();
        create.queueing = Some(Queueing {
            queue: self.queue.clone(),
            priority: self.priority,
            // Due at once: to be looked at, and moved to where what waits stands.
            due_at: matches!(standing, Standing::Waits).then_some(now),
            unique_key: None,
            asked: Value::Null,
        });
        create
    }

    /// What work for a worker brings along.
    pub(super) fn brought(&self) -> NewRun {
        NewRun {
            runtime: None,
            work: Stored(self.work()),
            directories: Vec::new(),
            lease: None,
            after: Vec::new(),
        }
    }
}

//! What a schedule starts, as it is stored.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fire::Standing;
use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, Create, LeaseRule, Outcome, Reason, Reference, Tags, create as decide_creation};
use crate::store::{KeptSchedule, StoreError};
use crate::verbs::create::{IdChoice, policy_for};
use crate::verbs::lease::{Submission, checked, creation};
use crate::work::Work;

/// The tag that names the schedule on everything it starts.
pub const SCHEDULE_TAG: &str = "schedule";

/// What a schedule starts: a [`Submission`] without what is of one entity alone, and how fire times are recorded.
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
    /// Held by one live entity of the store.
    pub unique_key: Option<String>,
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
    /// What of a submission every fire time repeats.
    pub fn of(submission: Submission, words: Words) -> Self {
        let create = submission.create;
        Self {
            kind: create.kind,
            policy: submission.policy,
            name: create.name,
            tags: create.tags,
            parents: create.parents,
            notify: create.notify,
            queue: submission.queue,
            priority: submission.priority,
            unique_key: submission.unique_key,
            work: submission.work,
            words,
        }
    }

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
        let submission = self.submission(schedule, &host.draw_id()?);
        let rule = checked(host, &selected, &submission)?;
        for standing in [Standing::Submitted, Standing::Overlaps, Standing::Lapsed] {
            let made = self.made(host, (&submission, rule), &standing, Value::Null);
            decide_creation(
                &selected.lifecycle,
                &selected.pin,
                &made,
                host.store().name(),
                host.now(),
            )?;
        }
        Ok(())
    }

    /// What is made for a fire time.
    pub(super) fn made(
        &self,
        host: &Host,
        (submission, rule): (&Submission, &LeaseRule),
        standing: &Standing,
        evidence: Value,
    ) -> Create {
        let words = &self.words;
        let (outcome, code, summary) = match standing {
            Standing::Submitted => (None, &words.due, "it was due"),
            Standing::Waits => (None, &words.due, "it was due, and waits for those before it"),
            Standing::Overlaps => (
                Some(&words.overlaps),
                &words.overlaps.code,
                "one before it has not ended",
            ),
            Standing::Lapsed => (
                Some(&words.missed),
                &words.missed.code,
                "nobody was there to start it in time",
            ),
            Standing::Parentless(_) => (
                Some(&words.refused),
                &words.refused.code,
                "what it belongs below is gone or has ended",
            ),
        };
        let mut create = creation(host, submission, rule);
        create.reason = Reason::code(code).summary(summary).evidence(evidence);
        if let Some(outcome) = outcome {
            create.status = Some(outcome.status.clone());
        }
        if matches!(standing, Standing::Parentless(_)) {
            create.parents.clear();
        }
        if let Some(queueing) = create.queueing.as_mut().filter(|_| matches!(standing, Standing::Waits)) {
            // Nobody takes what waits for other work before that was looked at.
            queueing.due_at = Some(host.now());
        }
        create
    }

    /// The submission of one fire time.
    pub(super) fn submission(&self, schedule: &str, id: &str) -> Submission {
        let mut create = Create::new(&self.kind, id, Actor::new("scheduler", schedule));
        create.name = Some(self.name.clone().unwrap_or_else(|| schedule.to_owned()));
        create.tags = self.tags.clone();
        create.tags.insert(SCHEDULE_TAG.to_owned(), schedule.to_owned());
        create.parents.clone_from(&self.parents);
        create.notify = self.notify.clone();
        Submission {
            create,
            id: IdChoice::Drawn,
            policy: self.policy.clone(),
            work: self.work.clone(),
            queue: self.queue.clone(),
            priority: self.priority,
            after: Vec::new(),
            not_before: None,
            unique_key: self.unique_key.clone(),
        }
    }
}

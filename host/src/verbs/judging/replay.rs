//! History judged again, by a policy that need not be in force, nor installed.
//!
//! Every history row of the kind, and every refusal in its audit rows, is turned back into what it was: the entity as it
//! stood and the command. What a row does not tell is not made up: what was set and guarded is known only where a guard was
//! asked, and what only that could decide is counted as not judged. Read from the newest back, in pages; the same store
//! and candidate give the same report.

use std::collections::HashSet;

use serde_json::Value;

use super::judge::{Case, Judge, Opinion, Record, Sight};
use crate::error::Error;
use crate::host::Host;
use crate::model::{
    Actor, AdminEvent, Answer, Create, Difference, EndSeen, Entity, HistoryRow, Invalid, MIGRATED, Override, PolicyPin,
    RaisedLimits, Reason, Tally, Timestamp, Transition, create,
};
use crate::policy::Selected;
use crate::store::PageBack;
use crate::verbs::examine::examine;
use crate::verbs::kept::{self, KeptGuard, Missing};

/// How many rows are read at once.
const PAGE: usize = 512;

/// Who judges.
#[derive(Clone, Copy, Debug)]
pub enum Tried<'a> {
    /// A component that need not be installed, with the limits that are raised for it.
    Bytes(&'a [u8], &'a RaisedLimits),
    /// The installed component of this digest.
    Installed(&'a str),
}

/// What is judged, and by whom.
#[derive(Clone, Debug)]
pub struct Replaying<'a> {
    /// Who judges.
    pub candidate: Tried<'a>,
    /// The kind whose history it is; none is the candidate's own.
    pub kind: Option<String>,
    /// Only what happened at or after.
    pub since: Option<Timestamp>,
    /// Of transitions the newest so many, and of refusals as many; none is all.
    pub limit: Option<usize>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// Who judged.
    pub candidate: PolicyPin,
    /// Whose history.
    pub kind: String,
    /// What it said.
    pub tally: Tally,
    /// Of how many of those judged it is not known what was set and guarded.
    pub in_part: u64,
}

/// Judges the recorded history of a kind again. Nothing is written.
///
/// # Errors
/// The candidate is unusable or a handler, or the store cannot be read.
pub fn replay(host: &Host, replaying: &Replaying<'_>) -> Result<Replayed, Error> {
    let judge = judge(host, replaying.candidate)?;
    let own = judge.selected.lifecycle.kind().to_owned();
    let mut walk = Walk {
        host,
        replayed: Replayed {
            candidate: judge.selected.pin.clone(),
            kind: replaying.kind.clone().unwrap_or(own),
            tally: Tally::default(),
            in_part: 0,
        },
        judge,
        since: replaying.since,
        limit: replaying.limit.unwrap_or(usize::MAX),
    };
    walk.refusals()?;
    let overridden = walk.overridden()?;
    walk.history(&overridden)?;
    Ok(walk.replayed)
}

/// The policy that is tried, as one that judges.
fn judge(host: &Host, tried: Tried<'_>) -> Result<Judge, Error> {
    let (selected, has_verdict) = match tried {
        Tried::Bytes(bytes, raised) => {
            let candidate = examine(host, bytes, raised)?;
            let has_verdict = candidate.inspected.exports("execution");
            (host.policies().take_in(&candidate)?, has_verdict)
        }
        Tried::Installed(digest) => {
            let has_verdict = host.policies().exports(digest, "execution")?;
            (host.policies().installed(digest)?, has_verdict)
        }
    };
    let selected: Selected = selected.ok_or_else(|| {
        let hint = "a policy judges; `runwarden notify test` tries a handler".to_owned();
        Invalid::new("handler", "the candidate is a handler: it decides nothing", Some(hint))
    })?;
    Ok(Judge {
        selected,
        has_verdict,
        wall: host.policies().limits().wall,
    })
}

/// Overrides, by reference, moment and status.
type Overridden = HashSet<(String, Timestamp, String)>;

struct Walk<'a> {
    host: &'a Host,
    judge: Judge,
    since: Option<Timestamp>,
    limit: usize,
    replayed: Replayed,
}

impl Walk<'_> {
    /// Judges what was refused.
    fn refusals(&mut self) -> Result<(), Error> {
        let kind = self.replayed.kind.clone();
        let mut left = self.limit;
        let mut before = None;
        loop {
            let page = self.audit("status_transition_rejected", before)?;
            for event in page
                .iter()
                .filter(|event| event.details["entity_type"] == kind.as_str())
            {
                if left == 0 {
                    return Ok(());
                }
                left -= 1;
                self.refusal(event)?;
            }
            before = page.last().map(|event| event.id);
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Which transitions were made by override.
    fn overridden(&self) -> Result<Overridden, Error> {
        let mut all = Overridden::new();
        let mut before = None;
        loop {
            let page = self.audit("status_transition_override", before)?;
            let ours = page
                .iter()
                .filter(|event| event.details["entity_type"] == self.replayed.kind.as_str());
            all.extend(ours.filter_map(|event| {
                let to = event.details["new_status"].as_str()?;
                Some((event.target.clone()?, event.at, to.to_owned()))
            }));
            before = page.last().map(|event| event.id);
            if page.len() < PAGE {
                return Ok(all);
            }
        }
    }

    fn audit(&self, action: &str, before: Option<i64>) -> Result<Vec<AdminEvent>, Error> {
        Ok(self.host.store().audit_back(&PageBack {
            of: action.to_owned(),
            since: self.since,
            before,
            limit: PAGE,
        })?)
    }

    /// Judges what was written.
    fn history(&mut self, overridden: &Overridden) -> Result<(), Error> {
        let mut page = PageBack {
            of: self.replayed.kind.clone(),
            since: self.since,
            before: None,
            limit: PAGE,
        };
        let mut left = self.limit;
        while left > 0 {
            page.limit = PAGE.min(left);
            let rows = self.host.store().history_back(&page)?;
            for (_, row) in &rows {
                self.written(row, overridden)?;
            }
            left -= rows.len();
            page.before = rows.last().map(|(number, _)| *number);
            if rows.len() < page.limit {
                break;
            }
        }
        Ok(())
    }

    fn written(&mut self, row: &HistoryRow, overridden: &Overridden) -> Result<(), Error> {
        if row.reason.code == MIGRATED {
            // No policy admitted it: somebody moved the entity to another one.
            return Ok(());
        }
        let recorded = Answer::Applied {
            status: row.status.clone(),
            code: row.reason.code.clone(),
        };
        let Some(from) = &row.previous_status else {
            let opinion = self.creation(row);
            self.note(row, None, (recorded, opinion));
            return Ok(());
        };
        let end = kept::end_of(&row.guarded);
        let record = record(&row.guarded, end.as_ref());
        let mut command = Transition::new(&row.status, row.reason.clone(), row.actor.clone());
        command.metadata = row.metadata.clone();
        let name = row.reference.to_string();
        if overridden.contains(&(name, row.at, row.status.clone())) {
            command.overriding = Some(overriding());
        }
        let mut entity = self.before(row.reference.clone(), from);
        entity.version = row.version - 1;
        self.complete(&mut entity, &mut command, &record);
        let opinion = self.judge.opinion(
            self.host,
            &Case {
                entity: &entity,
                command: &command,
                end: end.as_ref(),
                sight: Sight::Then(&record),
            },
        )?;
        self.count_parts(&record, end.as_ref(), &opinion);
        self.note(row, Some(from), (recorded, opinion));
        Ok(())
    }

    fn refusal(&mut self, event: &AdminEvent) -> Result<(), Error> {
        let text = |name: &str| event.details[name].as_str().unwrap_or_default();
        let (from, to, code) = (text("previous_status"), text("attempted_status"), text("code"));
        let reference = kept::reference(event.target.as_deref().unwrap_or_default());
        let mut command = Transition::new(
            to,
            Reason::code(text("reason_code")),
            Actor::new(text("source"), &event.actor),
        );
        let record = record(event.details.get("guarded").unwrap_or(&Value::Null), None);
        let mut entity = self.before(reference, from);
        self.complete(&mut entity, &mut command, &record);
        let opinion = self.judge.opinion(
            self.host,
            &Case {
                entity: &entity,
                command: &command,
                end: None,
                sight: Sight::Then(&record),
            },
        )?;
        self.count_parts(&record, None, &opinion);
        let recorded = super::shadow::refused(code);
        self.tell(
            &entity.reference.to_string(),
            (Some(from), to, text("source")),
            (recorded, opinion),
        );
        Ok(())
    }

    /// The entity as it stood, as far as a row tells.
    fn before(&self, reference: crate::model::Reference, status: &str) -> Entity {
        let mut entity = kept::bare(reference, status, &self.judge.selected.pin);
        entity.terminal = self.judge.selected.lifecycle.is_terminal(status);
        entity
    }

    /// Adds what the guard was told.
    fn complete(&self, entity: &mut Entity, command: &mut Transition, record: &Record) {
        let Ok(asked) = &record.guard else { return };
        command.patch = asked.patch.clone();
        command.guards = asked.guards.clone();
        if asked.overridden {
            command.overriding = Some(overriding());
        }
        asked.complete(entity);
    }

    /// What the candidate says of a creation.
    fn creation(&self, row: &HistoryRow) -> Opinion {
        let mut command = Create::new(
            self.judge.selected.lifecycle.kind(),
            &row.reference.id,
            row.actor.clone(),
        );
        command.status = Some(row.status.clone());
        command.reason = row.reason.clone();
        command.metadata = row.metadata.clone();
        let selected = &self.judge.selected;
        match create(&selected.lifecycle, &selected.pin, &command, "", Timestamp::default()) {
            Ok(made) => {
                let (status, code) = (made.entity.status, made.entity.reason.code);
                Opinion::Says(Answer::Applied { status, code }, None)
            }
            Err(invalid) => {
                let code = invalid.code.to_owned();
                Opinion::Says(Answer::Invalid { code }, Some(invalid.message))
            }
        }
    }

    fn count_parts(&mut self, record: &Record, end: Option<&EndSeen>, opinion: &Opinion) {
        if record.guard.is_err() && end.is_none() && matches!(opinion, Opinion::Says(..)) {
            self.replayed.in_part += 1;
        }
    }

    fn note(&mut self, row: &HistoryRow, from: Option<&str>, said: (Answer, Opinion)) {
        let way = (from, row.status.as_str(), row.actor.kind.as_str());
        self.tell(&row.reference.to_string(), way, said);
    }

    fn tell(
        &mut self,
        reference: &str,
        (from, to, actor): (Option<&str>, &str, &str),
        (recorded, opinion): (Answer, Opinion),
    ) {
        match opinion {
            Opinion::Unknown(why) => self.replayed.tally.unjudged(reference, why),
            Opinion::Says(candidate, _) => self.replayed.tally.judged(
                reference,
                Difference {
                    from: from.map(str::to_owned),
                    to: to.to_owned(),
                    actor: actor.to_owned(),
                    recorded,
                    candidate,
                },
            ),
        }
    }
}

/// The calls that were kept with a row.
fn record(kept: &Value, end: Option<&EndSeen>) -> Record {
    match end {
        Some(_) => Record {
            guard: Err(Missing::NotAsked),
            verdict: kept::request(kept),
        },
        None => Record {
            guard: kept::request::<KeptGuard>(kept),
            verdict: Err(Missing::NotAsked),
        },
    }
}

/// An override of which no more is known.
fn overriding() -> Override {
    Override {
        actor: "recorded".to_owned(),
        justification: "recorded".to_owned(),
    }
}

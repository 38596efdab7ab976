//! Judging beside: a candidate is asked about every write of a kind while it is made, and nothing it says is enforced.
//!
//! It is asked after the policy that decides has answered, outside any transaction, within limits of its own. What it says
//! otherwise becomes an audit row in the commit of the write, or with the audit row of the refusal; the counts are kept in
//! the same commit. Whatever becomes of the candidate, the write is the same. If we die half-way, write, audit row and
//! counts are there together or not at all.

use std::time::Duration;

use serde_json::json;

use super::judge::{Case, Judge, Opinion, Sight};
use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, AdminEvent, Answer, Difference, Entity, Invalid, PolicyPin, Reason, Tally, Transition};
use crate::store::{ComponentRecord, Judged, JudgedCounts, PageBack, Shadow, ShadowSeen};
use crate::verbs::policy::{Activating, event, policy_meant, set_parameters};
use crate::verbs::verdict::End;

/// How long a function of a shadow may take: a write waits for it. A call takes well under a millisecond, but for the
/// interpreter of a whole language.
const WALL: Duration = Duration::from_millis(50);

/// The action of audit rows that tell what a shadow said otherwise.
const DIFFERENCE: &str = "shadow_difference";

/// How many audit rows are read at once.
const PAGE: usize = 512;

/// Learns which policy judges a kind. Until then none is known of, and a change that it should have judged is a lost race:
/// so that nobody pays for shadows where there are none.
pub(crate) fn look_again(host: &Host, kind: &str) {
    let found = host.store().shadow(kind);
    let mut known = host.shadows();
    match found {
        Ok(None) => drop(known.remove(kind)),
        Ok(found) => drop(known.insert(kind.to_owned(), found)),
        Err(error) => {
            tracing::warn!(%error, kind, "the shadow could not be looked up");
            known.insert(kind.to_owned(), None);
        }
    }
}

/// What the shadow of the entity's kind says of a command that was decided as `recorded`, to be written with it, and the
/// audit row of a difference.
pub(crate) fn judged(
    host: &Host,
    (entity, command): (&Entity, &Transition),
    end: Option<&End>,
    recorded: Answer,
) -> (ShadowSeen, Option<AdminEvent>) {
    let known = host.shadows().get(&entity.reference.kind).cloned();
    let shadow = match known {
        None => return (ShadowSeen::Absent, None),
        Some(None) => return (ShadowSeen::Unasked, None),
        Some(Some(shadow)) => shadow,
    };
    let case = Case {
        entity,
        command,
        end: end.map(|end| &end.seen),
        sight: Sight::Now(end.and_then(|end| end.observed.as_ref())),
    };
    let opinion = opinion(host, &shadow, &case).unwrap_or_else(|error| {
        tracing::warn!(%error, kind = shadow.kind, "the shadow could not be asked");
        Opinion::Unknown("it could not be asked")
    });
    let mut counts = JudgedCounts::default();
    let mut event = None;
    match opinion {
        Opinion::Unknown(_) => counts.unjudged = 1,
        Opinion::Says(candidate, _) if recorded.agrees_with(&candidate) => counts.same = 1,
        Opinion::Says(candidate, message) => {
            counts.different = 1;
            let difference = Difference {
                from: Some(entity.status.clone()),
                to: command.target.clone(),
                actor: command.actor.kind.clone(),
                recorded,
                candidate,
            };
            event = Some(told(host, (entity, &shadow), &difference, message));
        }
    }
    let judged = Judged {
        kind: shadow.kind,
        digest: shadow.digest,
        counts,
    };
    (ShadowSeen::Asked(judged), event)
}

fn opinion(host: &Host, shadow: &Shadow, case: &Case<'_>) -> Result<Opinion, Error> {
    let Some(mut selected) = host.policies().installed(&shadow.digest)? else {
        return Ok(Opinion::Unknown("it is not installed"));
    };
    selected.pin.parameters.clone_from(&shadow.parameters);
    let judge = Judge {
        has_verdict: case.end.is_some() && host.policies().exports(&shadow.digest, "execution")?,
        selected,
        wall: WALL,
    };
    judge.opinion(host, case)
}

/// The audit row of a difference.
fn told(
    host: &Host,
    (entity, shadow): (&Entity, &Shadow),
    difference: &Difference,
    message: Option<String>,
) -> AdminEvent {
    let mut details = difference.to_value();
    details["entity_type"] = json!(shadow.kind);
    details["shadow"] = json!(shadow.digest);
    details["policy"] = json!(entity.policy.digest);
    details["message"] = json!(message);
    AdminEvent {
        id: 0,
        at: host.now(),
        action: DIFFERENCE.to_owned(),
        target: Some(entity.reference.to_string()),
        actor: Actor::system("shadow").to_string(),
        details,
    }
}

/// What a refusal of that code was.
pub(crate) fn refused(code: &str) -> Answer {
    if code == "policy_fault" {
        return Answer::Fault { why: code.to_owned() };
    }
    Answer::Rejected { code: code.to_owned() }
}

/// Lets an installed policy judge the entities of its kind beside the policies that decide, in the place of any other that
/// does.
///
/// # Errors
/// None is meant by the words, it is a handler or in force, a parameter does not fit, or the store failed: nothing was
/// written.
pub fn start_shadow(
    host: &Host,
    words: &str,
    activating: &Activating,
    actor: &Actor,
) -> Result<ComponentRecord, Error> {
    host.ensure_bundled()?;
    let record = policy_meant(host, words)?;
    if record.active {
        let message = format!("{}@{} is in force for {}", record.name, record.version, record.kind);
        return Err(Invalid::new(
            "shadow",
            message,
            Some("nothing is told by judging it beside itself".to_owned()),
        )
        .into());
    }
    let unknown = || Error::UnknownPolicy {
        word: record.digest.clone(),
    };
    let lifecycle = host.policies().lifecycle(&record.digest)?.ok_or_else(unknown)?;
    let shadow = Shadow {
        kind: record.kind.clone(),
        digest: record.digest.clone(),
        parameters: set_parameters(&lifecycle, &activating.parameters)?,
        at: host.now(),
        actor: actor.to_string(),
        reason: activating.reason.clone(),
        counts: JudgedCounts::default(),
    };
    compile(host, &record.digest)?;
    let details = json!({"kind": shadow.kind, "parameters": shadow.parameters, "reason": shadow.reason});
    let event = event(host, "shadow_started", &shadow.digest, actor, details);
    if host.store().put_shadow(&shadow, &event)? {
        return Ok(record);
    }
    Err(unknown())
}

/// Compiles a component whose code is not kept here, so that it can be asked where nobody may wait for a compiler. A table
/// is never asked.
fn compile(host: &Host, digest: &str) -> Result<(), Error> {
    let policies = host.policies();
    let has_functions = policies.exports(digest, "guard")? || policies.exports(digest, "execution")?;
    if has_functions && let Err(fault) = policies.compile(digest) {
        tracing::warn!(%fault, digest, "the shadow cannot be asked");
    }
    Ok(())
}

/// Ends the shadow of a kind; which it was.
///
/// # Errors
/// No policy judges the kind, or the store failed: nothing was written.
pub fn stop_shadow(host: &Host, kind: &str, reason: &Reason, actor: &Actor) -> Result<Shadow, Error> {
    let none = || {
        let message = format!("no policy judges {kind} beside the active one");
        let hint = "`runwarden policy shadow` lists those that do".to_owned();
        Error::from(Invalid::new("shadow", message, Some(hint)))
    };
    let shadow = host.store().shadow(kind)?.ok_or_else(none)?;
    let counts = shadow.counts;
    let details = json!({"kind": kind, "reason": reason.summary,
                         "same": counts.same, "different": counts.different, "not_judged": counts.unjudged});
    let event = event(host, "shadow_stopped", &shadow.digest, actor, details);
    if host.store().drop_shadow(kind, &event)? {
        return Ok(shadow);
    }
    Err(none())
}

/// What a shadow said so far.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowReport {
    /// The shadow, with its counts.
    pub shadow: Shadow,
    /// Which policy it is.
    pub candidate: PolicyPin,
    /// What it said otherwise, as far as retention has left the audit rows.
    pub tally: Tally,
}

/// What the shadow of a kind said so far, or each of them. Code that is not compiled here is, for whoever writes next.
///
/// # Errors
/// The store cannot be read.
pub fn shadow_report(host: &Host, kind: Option<&str>) -> Result<Vec<ShadowReport>, Error> {
    let mut shadows = host.store().shadows()?;
    shadows.retain(|shadow| kind.is_none_or(|kind| kind == shadow.kind));
    let mut reports = Vec::with_capacity(shadows.len());
    for shadow in shadows {
        compile(host, &shadow.digest)?;
        let Some(selected) = host.policies().installed(&shadow.digest)? else {
            continue;
        };
        reports.push(ShadowReport {
            candidate: selected.pin,
            tally: differences(host, &shadow)?,
            shadow,
        });
    }
    Ok(reports)
}

/// The differences that the audit rows tell.
fn differences(host: &Host, shadow: &Shadow) -> Result<Tally, Error> {
    let mut tally = Tally {
        same: u64::try_from(shadow.counts.same).unwrap_or(0),
        ..Tally::default()
    };
    let mut page = PageBack {
        of: DIFFERENCE.to_owned(),
        since: Some(shadow.at),
        before: None,
        limit: PAGE,
    };
    loop {
        let rows = host.store().audit_back(&page)?;
        let ours = rows
            .iter()
            .filter(|event| event.details["shadow"] == shadow.digest.as_str());
        for event in ours.filter(|event| event.details["entity_type"] == shadow.kind.as_str()) {
            if let Some(difference) = Difference::from_value(&event.details) {
                tally.differs(event.target.as_deref().unwrap_or_default(), difference);
            }
        }
        page.before = rows.last().map(|event| event.id);
        if rows.len() < PAGE {
            return Ok(tally);
        }
    }
}

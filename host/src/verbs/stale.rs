//! `kill --all-stale`: ends what is positively gone and was never recorded as ended; signals nobody.
//!
//! Each end is a transition of its own, so dying half-way leaves the rest to the next sweep.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;
use crate::model::{
    Actor, Below, Candidate, Cause, DurationMs, Entity, Fields, KillRow, Reason, Runtime, RuntimeState, SeenGone,
    StaleVerdict, Standing, Transition, plan_stale,
};
use crate::store::{EntityQuery, RuntimeUpdate, Scope};
use crate::verbs::identity::{standing, unheld, unreadable};
use crate::verbs::repair::Act;
use crate::verbs::settle::{newest_runtime, settle};
use crate::verbs::transition::{Beside, TransitionOutcome, write};

/// What a sweep is asked for.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Nothing younger is ended.
    pub older_than: DurationMs,
    /// Who asks.
    pub actor: Actor,
    /// Why, in words.
    pub note: Option<String>,
    /// Whether it is carried out.
    pub act: Act,
}

/// What a sweep made of everything that has not ended.
#[derive(Debug, Default)]
pub struct Swept {
    /// Every candidate with its verdict, newest first.
    pub candidates: Vec<(String, StaleVerdict)>,
    /// What was ended.
    pub ended: Vec<String>,
    /// What was to be ended and was not, and why.
    pub failures: Vec<(String, String)>,
}

impl Swept {
    /// Whether every candidate could be judged, and whatever was to end has ended.
    pub fn is_complete(&self) -> bool {
        let undetermined = |(_, verdict): &(String, StaleVerdict)| matches!(verdict, StaleVerdict::Undetermined(_));
        self.failures.is_empty() && !self.candidates.iter().any(undetermined)
    }

    /// The JSON document.
    pub fn json(&self) -> Value {
        let candidate = |(reference, verdict): &(String, StaleVerdict)| json!({"ref": reference, "verdict": verdict.word(), "reason": verdict.reason()});
        let failure = |(reference, why): &(String, String)| json!({"ref": reference, "message": why});
        json!({
            "candidates": self.candidates.iter().map(candidate).collect::<Vec<_>>(),
            "ended": self.ended,
            "failures": self.failures.iter().map(failure).collect::<Vec<_>>(),
        })
    }
}

/// One that may end, with what its end is written with.
struct Found {
    row: KillRow,
    runtime: Option<Runtime>,
}

/// Plans the sweep and, unless it is only to be shown, carries it out.
///
/// # Errors
/// The store cannot be read; nothing was ended.
pub fn stale(host: &Host, sweep: &Sweep) -> Result<Swept, Error> {
    let (candidates, found) = candidates(host)?;
    let verdicts = plan_stale(&candidates, sweep.older_than, host.now());
    let mut swept = Swept::default();
    for ((candidate, found), verdict) in candidates.iter().zip(&found).zip(verdicts) {
        let reference = candidate.entity.reference.to_string();
        if matches!(verdict, StaleVerdict::End(_)) && sweep.act == Act::Do {
            match end(host, sweep, (candidate, found), verdict.reason()) {
                Ok(None) => swept.ended.push(reference.clone()),
                Ok(Some(why)) => swept.failures.push((reference.clone(), why)),
                Err(error) => swept.failures.push((reference.clone(), error.to_string())),
            }
        }
        swept.candidates.push((reference, verdict));
    }
    Ok(swept)
}

/// Everything that has not ended and could be killed. As with any reading, ends that wait are recorded first.
fn candidates(host: &Host) -> Result<(Vec<Candidate>, Vec<Found>), Error> {
    let query = EntityQuery {
        terminal: Some(false),
        ..EntityQuery::default()
    };
    let (mut candidates, mut found) = (Vec::new(), Vec::new());
    for entity in host.store().list(&query)? {
        let runtime = newest_runtime(host, &entity)?;
        // Before the exit file is read: a shim that is gone had written it.
        let standing = runtime.as_ref().map(|runtime| match runtime.is_stopped() {
            true => Standing::Nothing,
            false => standing(host, runtime).unwrap_or_else(|error| unreadable(&error)),
        });
        let entity = settle(host, entity)?;
        let lifecycle = host.lifecycle(&entity)?;
        let Some(row) = lifecycle.kill_row(&entity.status).filter(|_| !entity.terminal) else {
            continue;
        };
        let rule = lifecycle.descriptor().execution.as_ref();
        candidates.push(Candidate {
            runs_in: rule.map(|rule| rule.start.status.clone()),
            entity,
            standing,
            below: Vec::new(),
        });
        found.push(Found {
            row: row.clone(),
            runtime,
        });
    }
    let places: HashMap<i64, usize> = candidates
        .iter()
        .enumerate()
        .map(|(at, one)| (one.entity.row, at))
        .collect();
    for candidate in &mut candidates {
        let linked = host.store().linked(&candidate.entity, Scope::Children)?;
        candidate.below = linked.iter().map(|child| below(child, &places)).collect();
    }
    Ok((candidates, found))
}

fn below(child: &Entity, places: &HashMap<i64, usize>) -> Below {
    match (child.terminal, places.get(&child.row)) {
        (true, _) => Below::Ended,
        (false, Some(place)) => Below::Candidate(*place),
        (false, None) => Below::Living,
    }
}

/// Writes the end; why it was not written, if it was not.
fn end(
    host: &Host,
    sweep: &Sweep,
    (candidate, found): (&Candidate, &Found),
    why: &str,
) -> Result<Option<String>, Error> {
    let entity = &candidate.entity;
    let runtime = found.runtime.as_ref().filter(|runtime| !runtime.is_stopped());
    let evidence = json!({
        "sweep": "all_stale",
        "observed": why,
        "pid": runtime.and_then(|runtime| Some(runtime.worker.as_ref()?.pid)),
        "identity_level": runtime.and_then(|runtime| runtime.level.clone()),
        "age_ms": host.now().since(entity.created_at).as_ms(),
        "threshold_ms": sweep.older_than.as_ms(),
        "policy_digest": entity.policy.digest,
        "note": sweep.note,
    });
    let reason = Reason::code(&found.row.stale_code).summary(why).evidence(evidence);
    let mut command = Transition::new(&found.row.goes_to, reason, sweep.actor.clone());
    command.expected_version = Some(entity.version);
    command.patch = fields(host, candidate)?;
    let update = runtime.map(|runtime| RuntimeUpdate {
        id: runtime.id,
        state: Some(RuntimeState::Stopped),
        stop_unconfirmed: Some(false),
        at: host.now(),
        ..RuntimeUpdate::default()
    });
    if let Some(runtime) = runtime {
        // Before the end is told: nobody looks again then.
        unheld(host, runtime)?.remove_cgroup();
    }
    let outcome = write(host, entity, &command, &Beside::runtimes(update.as_slice()))?;
    Ok(match outcome {
        TransitionOutcome::Applied { .. } => None,
        TransitionOutcome::Conflict(_) => Some("it changed meanwhile".to_owned()),
        TransitionOutcome::Rejected(refusal) => Some(refusal.message),
    })
}

/// How it ended, as far as that is known: not at all, but for a restart of the machine.
fn fields(host: &Host, candidate: &Candidate) -> Result<Fields, Error> {
    let cause = match &candidate.standing {
        Some(Standing::Gone(SeenGone::EarlierBoot)) => Some(Cause::HostRestarted),
        Some(Standing::Gone(_)) => Some(Cause::Unobserved),
        _ => None,
    };
    let lifecycle = host.lifecycle(&candidate.entity)?;
    let all = [
        ("ended_at", Some(json!(host.now().as_ms()))),
        ("cause", cause.map(|cause| json!(cause.word()))),
        ("ended_at_is_approximate", cause.map(|_| json!(true))),
    ];
    let known = all.into_iter().filter(|(name, _)| lifecycle.field(name).is_some());
    Ok(known
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect())
}

//! How entities are: what is observed of each, put to its policy. Nothing is written, and nothing is decided by it.
//!
//! What a policy cannot answer costs that one answer. A policy that exports no `health` and has no thresholds has no
//! opinion, and its entities are not looked at.

use std::collections::HashMap;

use crate::error::Error;
use crate::host::Host;
use crate::model::{
    Condition, Entity, KillRefusal, Lifecycle, ProcessSeen, Runtime, Signs, Standing, Timestamp, by_thresholds,
    is_overdue,
};
use crate::policy::HealthRequest;
use crate::process::{has_artifacts, log_signs};
use crate::store::Scope;
use crate::verbs::guarded::surroundings;
use crate::verbs::identity::{standing, unreadable};
use crate::verbs::settle::run_directory;
use crate::verbs::view::EntityView;

/// What an entity was spawned as when nothing says it.
const SPAWN_KIND: &str = "agent";

/// Who has an opinion on the health of a policy's entities.
#[derive(Clone, Copy)]
enum Judge {
    /// The component's own function.
    Function,
    /// The thresholds in its descriptor.
    Thresholds,
    /// Nobody.
    Nobody,
}

/// How these entities are, in their order; none where the policy has no opinion. Looks at the processes of those that
/// may live, and calls one component for each entity whose policy exports `health`.
///
/// # Errors
/// The store cannot be read. A component that fails is [`Condition::Unknown`].
pub fn health(host: &Host, views: &[EntityView]) -> Result<Vec<Option<Condition>>, Error> {
    let mut judges: HashMap<&str, Judge> = HashMap::new();
    let mut conditions = Vec::with_capacity(views.len());
    for view in views {
        let lifecycle = host.lifecycle(&view.entity)?;
        let digest = view.entity.policy.digest.as_str();
        let judge = match judges.get(digest) {
            Some(judge) => *judge,
            None => judge_of(host, &lifecycle, digest)?,
        };
        judges.insert(digest, judge);
        conditions.push(condition(host, &lifecycle, view, judge)?);
    }
    Ok(conditions)
}

/// How an entity is, unless it is over: of what has ended and has nothing open no component need be asked.
///
/// # Errors
/// As [`health`].
pub fn health_if_open(host: &Host, view: &EntityView) -> Result<Option<Condition>, Error> {
    let is_open = view.runtime.as_ref().is_some_and(|runtime| !runtime.is_stopped());
    if view.entity.terminal && !is_open {
        return Ok(None);
    }
    let conditions = health(host, std::slice::from_ref(view))?;
    Ok(conditions.into_iter().next().flatten())
}

fn judge_of(host: &Host, lifecycle: &Lifecycle, digest: &str) -> Result<Judge, Error> {
    Ok(if host.policies().exports(digest, "health")? {
        Judge::Function
    } else if lifecycle.descriptor().health.is_empty() {
        Judge::Nobody
    } else {
        Judge::Thresholds
    })
}

fn condition(host: &Host, lifecycle: &Lifecycle, view: &EntityView, judge: Judge) -> Result<Option<Condition>, Error> {
    let entity = &view.entity;
    match judge {
        Judge::Nobody => Ok(None),
        Judge::Thresholds => {
            let signs = signs(host, view)?;
            let judged = by_thresholds(lifecycle, entity, &signs, host.now());
            Ok(judged.map(Condition::Known))
        }
        Judge::Function => {
            let signs = signs(host, view)?;
            let asked = HealthRequest {
                entity,
                signs: &signs,
                surroundings: &surroundings(host, lifecycle, entity)?,
            };
            let answer = host.policies().assess(&entity.policy, asked);
            Ok(Some(match answer {
                Ok(health) => Condition::Known(health),
                Err(fault) => Condition::Unknown(fault.to_string()),
            }))
        }
    }
}

/// What is observed of an entity: of its own runtime, or of the run below it that works for it.
fn signs(host: &Host, view: &EntityView) -> Result<Signs, Error> {
    let entity = &view.entity;
    let worker = worker(host, view)?;
    let (process, runtime) = match (&view.runtime, &worker) {
        (Some(own), _) => (seen(host, entity, own)?, Some(own)),
        (None, Some((worker, its))) => match seen(host, worker, its)? {
            // What it did is over; what it did it for is not.
            ProcessSeen::Ended => (ProcessSeen::None, Some(its)),
            seen => (seen, Some(its)),
        },
        (None, None) => (ProcessSeen::None, None),
    };
    let directory = runtime.and_then(|runtime| runtime.run_dir.as_deref());
    let logs = directory
        .map(|path| log_signs(&run_directory(path)))
        .unwrap_or_default();
    let both = [Some(entity), worker.as_ref().map(|(worker, _)| worker)];
    let both = both.into_iter().flatten();
    let written_at = logs.written_at_ms.map(Timestamp::from_ms);
    let activities = both.clone().map(|one| one.updated_at).chain(written_at);
    Ok(Signs {
        process,
        last_activity_at: activities.max().unwrap_or(entity.updated_at),
        messages: both
            .clone()
            .find_map(|one| one.field("num_turns").as_i64())
            .unwrap_or_else(|| i64::from(logs.has_output)),
        has_artifacts: directory.is_some_and(has_artifacts),
        has_stale_locks: process == ProcessSeen::Gone,
        spawn_kind: both
            .filter_map(|one| one.field("spawn_kind").as_str().map(str::to_owned))
            .find(|kind| !kind.is_empty())
            .unwrap_or_else(|| SPAWN_KIND.to_owned()),
    })
}

/// The newest entity directly below that has a runtime, when the entity has none of its own and goes on: that is who does
/// its work.
fn worker(host: &Host, view: &EntityView) -> Result<Option<(Entity, Runtime)>, Error> {
    if view.runtime.is_some() || view.entity.terminal || view.children.is_empty() {
        return Ok(None);
    }
    let below = host.store().linked(&view.entity, Scope::Children)?;
    let belongings = host.store().belongings(&below)?;
    let started = below.into_iter().zip(belongings);
    let started = started.filter_map(|(entity, belongings)| Some((entity, belongings.runtime?)));
    Ok(started.max_by_key(|(_, runtime)| runtime.id))
}

/// What is known of the process of an entity's runtime.
fn seen(host: &Host, entity: &Entity, runtime: &Runtime) -> Result<ProcessSeen, Error> {
    let seen = match runtime.is_stopped() {
        true => ProcessSeen::Ended,
        false => match standing(host, runtime).unwrap_or_else(|error| unreadable(&error)) {
            Standing::Held | Standing::Unheld => ProcessSeen::Alive,
            Standing::Starting if is_overdue(runtime, host.now()) => ProcessSeen::Unknown,
            Standing::Starting => ProcessSeen::Alive,
            // It is there; whose it is keeps from more than looking.
            Standing::Unjudged(why) if why.word == KillRefusal::PermissionDenied => ProcessSeen::Alive,
            Standing::Unjudged(_) => ProcessSeen::Unknown,
            Standing::Nothing => ProcessSeen::Ended,
            Standing::Gone(_) => ProcessSeen::Gone,
        },
    };
    Ok(match seen {
        ProcessSeen::Gone | ProcessSeen::Ended if !is_current(host, entity, runtime)? => ProcessSeen::Alive,
        seen => seen,
    })
}

/// Whether the store still says what was read of an entity. If it has changed, its end was recorded since: the process lived
/// when the row was read, and nothing is wrong with it.
fn is_current(host: &Host, entity: &Entity, runtime: &Runtime) -> Result<bool, Error> {
    let entity_now = host.store().load(&entity.reference.id)?;
    let runtime_now = host.store().runtime(runtime.id)?;
    Ok(entity_now.is_some_and(|now| now.version == entity.version)
        && runtime_now.is_some_and(|now| now.is_stopped() == runtime.is_stopped()))
}

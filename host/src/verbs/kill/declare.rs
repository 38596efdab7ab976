//! The operator's word that something is gone whose liveness cannot be known from here: another machine's, a vanished
//! container's. It is audited, and refused wherever a look can tell.

use serde_json::json;

use super::record::{self, End};
use super::walk::open;
use super::{Kill, KillResult, Killed, Killing};
use crate::error::Error;
use crate::host::Host;
use crate::model::{AdminEvent, Entity, KillRefusal, Runtime, Standing, Unjudged};
use crate::process::{path_of, remove_own_cgroup};
use crate::verbs::identity::{standing, unreadable};
use crate::verbs::settle::settle;

/// Ends each of the targets whose processes cannot be judged from here; signals nobody.
///
/// # Errors
/// Nothing could be read. What fails later is in the report.
pub fn declare_gone(host: &Host, targets: &[Entity], asked: &Kill) -> Result<Killing, Error> {
    let mut killing = Killing::default();
    for target in targets {
        match declare_one(host, target, asked) {
            Ok(killed) => killing.targets.push(killed),
            Err(error) => killing.failures.push((target.reference.to_string(), error)),
        }
    }
    Ok(killing)
}

fn declare_one(host: &Host, target: &Entity, asked: &Kill) -> Result<Killed, Error> {
    let runtime = open(host, target)?.into_iter().next();
    let seen = runtime
        .as_ref()
        .map(|runtime| standing(host, runtime).unwrap_or_else(|error| unreadable(&error)));
    let entity = settle(host, target.clone())?;
    let refused = |message: &str| {
        let killed = Killed::of(&entity, runtime.as_ref(), "no_process").saying(message);
        Ok(Killed {
            result: KillResult::Refused,
            ..killed
        })
    };
    let why = match &seen {
        None | Some(Standing::Nothing) if entity.terminal => {
            return Ok(Killed {
                result: KillResult::Unchanged,
                ..Killed::of(&entity, runtime.as_ref(), "no_process")
            });
        }
        None | Some(Standing::Nothing) => {
            return refused("no process of it was ever recorded: kill it without the word");
        }
        Some(Standing::Starting | Standing::Held | Standing::Unheld) => {
            return refused("it is seen to be alive: kill it without the word");
        }
        Some(Standing::Gone(_)) => return refused("it is seen to be gone: kill it without the word"),
        Some(Standing::Unjudged(why)) => why,
    };
    if matches!(why.word, KillRefusal::PermissionDenied | KillRefusal::NotKillable) {
        return refused(&why.message);
    }
    audit(host, &entity, why, asked)?;
    let lifecycle = host.lifecycle(&entity)?;
    let row = lifecycle.kill_row(&entity.status).filter(|_| !entity.terminal);
    let Some(row) = row else {
        runtime.iter().try_for_each(|runtime| record::release(host, runtime))?;
        remove_cgroup(runtime.as_ref());
        return Ok(Killed {
            result: KillResult::Unchanged,
            ..Killed::of(&entity, runtime.as_ref(), why.word.word())
        });
    };
    let end = End {
        signal: why.word.word(),
        summary: "declared gone by the operator; ended unobserved",
        proof: None,
        seen: None,
        forced: false,
    };
    let killed = record::end(host, &entity, (row, runtime.as_ref()), asked, &end)?;
    host.wake();
    remove_cgroup(runtime.as_ref());
    Ok(killed.saying("declared gone; nobody was signalled"))
}

/// Removes the cgroup that is left of a set, where one of that path is here: the shim that would have is gone by the word.
/// The kernel keeps it if the word was wrong.
fn remove_cgroup(runtime: Option<&Runtime>) {
    if let Some((runtime, cgroup)) = runtime.and_then(|runtime| Some((runtime, runtime.cgroup.as_ref()?))) {
        remove_own_cgroup(&path_of(cgroup), &runtime.attempt_token);
    }
}

/// Before anything is written on the strength of the word, the word itself is.
fn audit(host: &Host, entity: &Entity, why: &Unjudged, asked: &Kill) -> Result<(), Error> {
    let event = AdminEvent {
        id: 0,
        at: host.now(),
        action: "runtime_declared_gone".to_owned(),
        target: Some(entity.reference.to_string()),
        actor: asked.actor.to_string(),
        details: json!({"unjudged": why.word.word(), "message": why.message, "note": asked.note}),
    };
    Ok(host.store().record(&[event], &[])?)
}

//! What is seen of the attempt of a doubted row: its run's end is recorded if it left one, what lives is stopped, and what
//! cannot be known is left.

use serde_json::json;

use super::end::{RowEnd, end_row, is_stopped_for_the_lease, is_unseen, stopper};
use super::terms::{Row, stored_work};
use crate::crash;
use crate::error::Error;
use crate::host::Host;
use crate::model::lease::Seen;
use crate::model::{DurationMs, Entity, KillRefusal, Reach, Standing};
use crate::store::{HeldLease, Scope};
use crate::verbs::identity::{standing, unreadable};
use crate::verbs::kill::{Kill, Killing, kill};
use crate::verbs::repair::repair;
use crate::verbs::settle::newest_runtime;

/// What a look at the attempt came to.
pub(super) enum Looked {
    /// Its end was seen, and is the row's.
    Ended,
    /// It is to be decided by this.
    Seen(Seen),
}

/// Looks at the attempt of a row whose holder is silent, and stops what lives of it here.
pub(super) fn look(host: &Host, row: &Row) -> Result<Looked, Error> {
    let entity = &row.entity;
    let Some((run, lease)) = run_under(host, entity)? else {
        return unstarted(host, entity).map(Looked::Seen);
    };
    // Its end is recorded first, from what its shim left.
    let run = repair(host, run)?;
    if run.terminal {
        return ended(host, &run, &lease);
    }
    let Some(runtime) = newest_runtime(host, &run)? else {
        let words = format!("{} has no process that is known", run.reference);
        return Ok(Looked::Seen(Seen::Unconfirmed(words)));
    };
    match standing(host, &runtime).unwrap_or_else(|error| unreadable(&error)) {
        Standing::Unjudged(why) if why.word == KillRefusal::HostMismatch => {
            return Ok(Looked::Seen(Seen::Elsewhere(why.message)));
        }
        Standing::Unjudged(why) => return Ok(Looked::Seen(Seen::Unconfirmed(why.message))),
        _ => {}
    }
    crash::point("lease.stopping");
    let report = stop_run(host, &run, row.work.grace_ms, "its worker is not heard of")?;
    let run = host.store().load(&run.reference.id)?.unwrap_or(run);
    if run.terminal {
        return ended(host, &run, &lease);
    }
    let words = format!("{} could not be stopped: {}", run.reference, problem(&report));
    Ok(Looked::Seen(Seen::Unconfirmed(words)))
}

/// Whether the run of a row has ended and left how; that is recorded, and is the row's end.
pub(super) fn has_left_its_end(host: &Host, row: &Row) -> Result<bool, Error> {
    let Some((run, lease)) = run_under(host, &row.entity)? else {
        return Ok(false);
    };
    let run = repair(host, run)?;
    Ok(run.terminal && matches!(ended(host, &run, &lease)?, Looked::Ended))
}

/// The run that was started for a row under its current fence.
pub(super) fn run_under(host: &Host, row: &Entity) -> Result<Option<(Entity, HeldLease)>, Error> {
    for child in host.store().linked(row, Scope::Children)?.into_iter().rev() {
        let lease = stored_work(host, &child)?.and_then(|work| work.lease);
        if let Some(lease) = lease.filter(|lease| lease.fence == row.fence && lease.reference == row.reference) {
            return Ok(Some((child, lease)));
        }
    }
    Ok(None)
}

/// No run was made under the lease, and none can be any more: the store makes none for a row that is doubted.
fn unstarted(host: &Host, row: &Entity) -> Result<Seen, Error> {
    let holder = row.structural.leased_by.as_deref().unwrap_or_default();
    let here = &host.place().host;
    let elsewhere = host.store().worker(holder)?.filter(|worker| worker.place.host != *here);
    Ok(match elsewhere {
        Some(worker) => Seen::Elsewhere(format!("its worker is on {}", worker.place.host)),
        None => Seen::Stopped("no run was started under its lease".to_owned()),
    })
}

/// A run that has ended: with an end that somebody saw, that is the row's; stopped for the lease's sake, or gone with its end
/// unseen, it is only proof that nothing lives.
fn ended(host: &Host, run: &Entity, lease: &HeldLease) -> Result<Looked, Error> {
    let runtime = newest_runtime(host, run)?;
    if is_stopped_for_the_lease(runtime.as_ref()) || is_unseen(run) {
        let open = runtime.is_some_and(|runtime| !runtime.is_stopped());
        let words = format!("{} is stopped, observed as {}", run.reference, run.reason.code);
        return Ok(Looked::Seen(if open {
            Seen::Unconfirmed(format!("members of {} live on", run.reference))
        } else {
            Seen::Stopped(words)
        }));
    }
    Ok(match end_row(host, run, lease)? {
        RowEnd::Written | RowEnd::Lost => Looked::Ended,
        RowEnd::Open => Looked::Seen(Seen::Unconfirmed(format!("{} has not ended", run.reference))),
    })
}

/// Stops a run for its lease's sake: not the end of its row.
pub(super) fn stop_run(host: &Host, run: &Entity, grace: DurationMs, note: &str) -> Result<Killing, Error> {
    let asked = Kill {
        grace,
        actor: stopper(),
        note: Some(note.to_owned()),
        reach: Reach::Everything,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| Error::Home {
        doing: "wait in",
        path: "this process".to_owned(),
        source,
    })?;
    runtime.block_on(kill(host, std::slice::from_ref(run), &asked))
}

/// Why a stop is not complete, in words.
fn problem(killing: &Killing) -> String {
    let failures = killing
        .failures
        .iter()
        .map(|(place, error)| format!("{place}: {error}"));
    let messages = killing.targets.iter().map(|killed| {
        killed.message.clone().unwrap_or_else(|| {
            json!({"outcome": killed.result.word(), "survivors": killed.survivors.len()}).to_string()
        })
    });
    failures.chain(messages).collect::<Vec<_>>().join("; ")
}

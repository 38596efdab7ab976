//! Extends leases on time, and says that the worker lives.

use std::time::Duration;

use super::{Authority, Progress, Shared, Working};
use crate::error::Error;
use crate::host::Host;
use crate::model::lease::{RENEWALS_PER_LEASE, recovered};
use crate::model::{Actor, DurationMs, Timestamp};
use crate::store::{Renewal, Renewed, Worker};
use crate::verbs::lease::claim::is_held_under;
use crate::verbs::lease::terms::Row;
use crate::verbs::transition::{Beside, TransitionOutcome, write};

/// How often a worker says that it lives: three times within the bundled limit of 90 s, after which it may not claim.
const HEARTBEAT_EVERY: DurationMs = DurationMs::from_ms(30_000);

/// The longest sleep: what is taken meanwhile has a lease of its own length.
const SLEEP_MOST: Duration = Duration::from_secs(1);

/// The shortest pause after a renewal that failed.
const RETRY_LEAST: DurationMs = DurationMs::from_ms(50);

/// Renews until the worker has ended.
pub(super) fn renew(host: &Host, worker: &Worker, working: &Working, tell: &(dyn Fn(&Progress<'_>) + Sync)) {
    loop {
        let outcome = pass(host, worker, working);
        if let Err(error) = &outcome {
            tell(&Progress::Failed(&format!("leases are not renewed: {error}")));
        }
        let shared = working.lock();
        if shared.is_over {
            return;
        }
        let sleep = outcome
            .ok()
            .and_then(|()| until_next(host, &shared))
            .unwrap_or(SLEEP_MOST / 10);
        // It is woken for its end; what is taken meanwhile is not due before a third of the shortest lease.
        drop(
            working
                .changed
                .wait_timeout_while(shared, sleep, |shared| !shared.is_over),
        );
    }
}

/// How long nothing is to be renewed.
fn until_next(host: &Host, shared: &Shared) -> Option<Duration> {
    let now = host.steady_now().ok()?;
    let held = shared
        .held
        .values()
        .filter(|holding| holding.authority == Authority::Held);
    let next = held.map(|holding| holding.renew_at.since(now).as_ms()).min();
    let next = next.map_or(SLEEP_MOST, |ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
    Some(next.min(SLEEP_MOST).min(shortest_wait(shared)))
}

/// What is taken while the thread sleeps has to be renewed after a third of its lease.
fn shortest_wait(shared: &Shared) -> Duration {
    let shortest = shared.held.values().map(|holding| holding.length.as_ms()).min();
    shortest.map_or(Duration::from_millis(100), |ms| {
        Duration::from_millis(u64::try_from(ms / RENEWALS_PER_LEASE).unwrap_or(0).max(10))
    })
}

fn pass(host: &Host, worker: &Worker, working: &Working) -> Result<(), Error> {
    let now = host.steady_now()?;
    beat(host, worker, working, now)?;
    let due: Vec<Renewal> = {
        let shared = working.lock();
        let held = shared.held.values();
        let due = held.filter(|holding| holding.authority == Authority::Held && holding.renew_at <= now);
        due.map(|holding| Renewal {
            row: holding.row,
            fence: holding.lease.fence,
            holder: holding.lease.holder.clone(),
            until: now.plus(holding.length),
            at: now,
            late: Some(now.since(holding.renew_at)),
        })
        .collect()
    };
    if due.is_empty() {
        return Ok(());
    }
    let renewed = match host.store().renew(&due) {
        Ok(renewed) => renewed,
        Err(error) => {
            give_up_what_ran_out(host, working)?;
            return Err(error.into());
        }
    };
    for (renewal, renewed) in due.iter().zip(renewed) {
        match renewed {
            Renewed::Extended => extended(working, renewal),
            Renewed::RanOut if came_back(host, working, renewal)? => {}
            Renewed::RanOut | Renewed::Lost => lost(working, renewal),
        }
    }
    Ok(())
}

/// Says that the worker lives.
fn beat(host: &Host, worker: &Worker, working: &Working, now: Timestamp) -> Result<(), Error> {
    let last = working.lock().heartbeat;
    if last.is_some_and(|last| now.since(last) < HEARTBEAT_EVERY) {
        return Ok(());
    }
    host.store().put_worker(&Worker {
        heartbeat_at: now,
        ..worker.clone()
    })?;
    working.lock().heartbeat = Some(now);
    Ok(())
}

fn extended(working: &Working, renewal: &Renewal) {
    let mut shared = working.lock();
    if let Some(holding) = shared.held.values_mut().find(|holding| holding.row == renewal.row) {
        holding.until = renewal.until;
        let wait = DurationMs::from_ms(holding.length.as_ms() / RENEWALS_PER_LEASE);
        holding.renew_at = renewal.at.plus(wait);
    }
}

/// The store says that the row is not ours any more: what runs for it is stopped by the bidder.
fn lost(working: &Working, renewal: &Renewal) {
    let mut shared = working.lock();
    if let Some(holding) = shared.held.values_mut().find(|holding| holding.row == renewal.row) {
        holding.authority = Authority::Lost;
    }
    drop(shared);
    working.wake();
}

/// The lease ran out, and nobody took the row away: its policy says whether its holder may come back.
fn came_back(host: &Host, working: &Working, renewal: &Renewal) -> Result<bool, Error> {
    let holding = working
        .lock()
        .held
        .values()
        .find(|holding| holding.row == renewal.row)
        .cloned();
    let Some(holding) = holding else { return Ok(true) };
    let Some(entity) = host.store().load(&holding.lease.reference.id)? else {
        return Ok(false);
    };
    if !is_held_under(&entity, &holding.lease) {
        return Ok(false);
    }
    let Some(row) = Row::of(host, entity, None)? else {
        return Ok(false);
    };
    let actor = Actor::new("executor", &holding.lease.holder);
    let by = (actor, "its worker came back in time");
    let command = recovered(&row.lifecycle, &row.entity, (&row.terms, renewal.fence), by, renewal.at);
    let Some(command) = command else {
        // Not doubted yet: whoever keeps the queue looks at it first.
        return Ok(is_awaited(&row, working, renewal));
    };
    let outcome = write(host, &row.entity, &command, &Beside::NOTHING)?;
    if matches!(outcome, TransitionOutcome::Applied { .. }) {
        extended(working, renewal);
        return Ok(true);
    }
    Ok(false)
}

/// A lease that ran out under a policy that doubts first is doubted soon, by whoever keeps the queue; then its holder comes
/// back. Under one that requeues it is lost now.
fn is_awaited(row: &Row, working: &Working, renewal: &Renewal) -> bool {
    let rule = row.lifecycle.descriptor().lease.as_ref();
    let may_come_back = rule.is_some_and(|rule| rule.recovered.is_some());
    if may_come_back {
        let mut shared = working.lock();
        if let Some(holding) = shared.held.values_mut().find(|holding| holding.row == renewal.row) {
            holding.renew_at = renewal.at.plus(RETRY_LEAST);
        }
        shared.woken = true;
        drop(shared);
        working.changed.notify_all();
    }
    may_come_back
}

/// The store cannot be reached: what was not renewed in time is lost, as far as anybody here can know.
fn give_up_what_ran_out(host: &Host, working: &Working) -> Result<(), Error> {
    let now = host.steady_now()?;
    let mut shared = working.lock();
    for holding in shared.held.values_mut() {
        if holding.until < now {
            holding.authority = Authority::Lost;
        }
    }
    drop(shared);
    working.wake();
    Ok(())
}

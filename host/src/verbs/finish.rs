//! What a shim starts a command for when its run has ended: the end is recorded, and with it those of others that wait.
//!
//! Many runs may end at once, and each end starts a command. They queue before they open the store; whoever has the
//! turn records the ends of all that wait, side by side, so that they share commits. Those behind find theirs recorded
//! and leave. If the one at work dies, the next goes on; if all die, the exit files wait for the next reader.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::Error;
use crate::host::{Config, Host};
use crate::process::{HeldTurn, Ticket, Turn, take_turn};
use crate::store::OpenMode;
use crate::verbs::outbox::deliver_own;
use crate::verbs::settle::settle;

/// Ends that are recorded at the same time: more would open more connections than the store keeps.
const AT_A_TIME: usize = 4;

/// How often a command that serves others looks for more of them before it passes its turn on, so that a shim does not
/// give its own finishing command up.
const ROUNDS_MAX: usize = 64;

/// Records the end of a run from its exit file, unless it is recorded, and meanwhile those of others that wait.
///
/// # Errors
/// The store failed, or the run's own exit file cannot be read; the faults of other runs are theirs to tell.
pub fn finish(config: Config, id: &str) -> Result<(), Error> {
    let turn = take_turn(&config.home().join("finishing"), id);
    if matches!(turn, Turn::Served) {
        return Ok(());
    }
    let host = Host::open(config, OpenMode::Existing)?;
    let recorded = match turn {
        Turn::Come(turn) => serve(&host, turn),
        _ => settle_one(&host, id),
    };
    // The turn was passed on: no end waits for a receiver.
    deliver_own(&host);
    recorded
}

fn serve(host: &Host, mut turn: HeldTurn) -> Result<(), Error> {
    let mut own = Ok(());
    for _ in 0..ROUNDS_MAX {
        let tickets = turn.waiting();
        if tickets.is_empty() {
            break;
        }
        for (ticket, outcome) in settle_all(host, tickets) {
            match outcome {
                Ok(()) => ticket.served(),
                Err(error) if turn.is_own(&ticket) => own = Err(error),
                Err(_) => ticket.left(),
            }
        }
    }
    own
}

/// Records the ends of several runs side by side; one outcome for each.
fn settle_all(host: &Host, tickets: Vec<Ticket>) -> Vec<(Ticket, Result<(), Error>)> {
    let workers = tickets.len().min(AT_A_TIME);
    let left = Mutex::new(tickets.into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let settled = |ticket: Ticket| {
            let outcome = settle_one(host, &ticket.id);
            (ticket, outcome)
        };
        std::iter::from_fn(next).map(settled).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut settled = work();
        for other in others {
            settled.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        settled
    })
}

fn settle_one(host: &Host, id: &str) -> Result<(), Error> {
    if let Some(entity) = host.store().load(id)? {
        settle(host, entity)?;
    }
    Ok(())
}

//! What a shim starts a command for when its run has ended: the end is recorded, and with it those of others that wait.
//!
//! Many runs may end at once, and each end starts a command. They queue before they open the store; whoever has the
//! turn records the ends of all that wait, side by side, so that they share commits. Those behind find theirs recorded
//! and leave. If the one at work dies, the next goes on; if all die, the exit files wait for the next reader.

use crate::error::Error;
use crate::host::{Config, Host};
use crate::process::{HeldTurn, Ticket, Turn, take_turn};
use crate::store::OpenMode;
use crate::verbs::outbox::deliver_own;
use crate::verbs::settle::settle;
use crate::verbs::side_by_side::side_by_side;

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
        let settled = |ticket: Ticket| {
            let outcome = settle_one(host, &ticket.id);
            (ticket, outcome)
        };
        for (ticket, outcome) in side_by_side(tickets, settled) {
            match outcome {
                Ok(()) => ticket.served(),
                Err(error) if turn.is_own(&ticket) => own = Err(error),
                Err(_) => ticket.left(),
            }
        }
    }
    own
}

fn settle_one(host: &Host, id: &str) -> Result<(), Error> {
    if let Some(entity) = host.store().load(id)? {
        settle(host, entity)?;
    }
    Ok(())
}

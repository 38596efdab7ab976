//! What a shim starts a command for when its run has ended: the end is recorded, and with it those of others that wait.
//!
//! With a service up the end is left to it: it has the store open, and there is one writer. A command that is not served
//! soon does its work itself.
//!
//! Many runs may end at once, and each end starts a command. They queue before they open the store; whoever has the
//! turn records the ends of all that wait, side by side, so that they share commits. Those behind find theirs recorded
//! and leave. If the one at work dies, the next goes on; if all die, the exit files wait for the next reader.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::host::{Config, Host};
use crate::process::{HeldTurn, Ticket, Turn, draw_ticket, is_served, take_turn, take_turn_for_others};
use crate::store::OpenMode;
use crate::verbs::outbox::deliver_own;
use crate::verbs::settle::settle;
use crate::verbs::side_by_side::side_by_side;
use crate::wake::Watching;

/// How often a command that serves others looks for more of them before it passes its turn on, so that a shim does not
/// give its own finishing command up.
const ROUNDS_MAX: usize = 64;

/// How long an end is left to a service that does not record it.
const HAND_OVER_MOST: Duration = Duration::from_secs(2);

/// Records the end of a run from its exit file, unless it is recorded, and meanwhile those of others that wait.
///
/// # Errors
/// The store failed, or the run's own exit file cannot be read; the faults of other runs are theirs to tell.
pub fn finish(config: Config, id: &str) -> Result<(), Error> {
    let queue = queue(&config);
    if is_served(&config.database_path()) && hand_over(&queue, id) == Handed::Recorded {
        return Ok(());
    }
    let turn = take_turn(&queue, id);
    if matches!(turn, Turn::Served) {
        return Ok(());
    }
    let host = Host::open(config, OpenMode::Existing)?;
    let recorded = match turn {
        Turn::Come(turn) => serve(&host, turn).own,
        _ => settle_one(&host, id),
    };
    // The turn was passed on: no end waits for a receiver.
    deliver_own(&host);
    recorded
}

/// Where finishing commands wait.
pub(crate) fn queue(config: &Config) -> PathBuf {
    config.home().join("finishing")
}

/// Records the ends of all commands that wait, in their turn; how many. What cannot be recorded is left to its own command,
/// which tells why.
pub(crate) fn finish_for_others(host: &Host) -> usize {
    let turn = take_turn_for_others(&queue(host.config()));
    turn.map_or(0, |turn| serve(host, turn).recorded)
}

/// Whether a service recorded an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handed {
    Recorded,
    NotYet,
}

/// Leaves the end to the service, for a while.
fn hand_over(queue: &Path, id: &str) -> Handed {
    let (tell, told) = channel();
    // The directory is made with the first ticket.
    let Some(ticket) = draw_ticket(queue, id) else {
        return Handed::NotYet;
    };
    let Some(_watching) = Watching::entries(queue, move || {
        let _ = tell.send(()); // nobody waits any more
    }) else {
        return Handed::NotYet;
    };
    let until = Instant::now() + HAND_OVER_MOST;
    while !ticket.is_served() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || told.recv_timeout(left).is_err() {
            return Handed::NotYet;
        }
    }
    Handed::Recorded
}

/// What came of a turn.
struct Served {
    /// Of the command's own end.
    own: Result<(), Error>,
    /// Ends that were recorded, or were already.
    recorded: usize,
}

fn serve(host: &Host, mut turn: HeldTurn) -> Served {
    let mut served = Served {
        own: Ok(()),
        recorded: 0,
    };
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
                Ok(()) => {
                    served.recorded += 1;
                    ticket.served();
                }
                Err(error) if turn.is_own(&ticket) => served.own = Err(error),
                Err(_) => ticket.left(),
            }
        }
    }
    served
}

fn settle_one(host: &Host, id: &str) -> Result<(), Error> {
    if let Some(entity) = host.store().load(id)? {
        settle(host, entity)?;
    }
    Ok(())
}

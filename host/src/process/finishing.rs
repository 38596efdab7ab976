//! The queue of finishing commands: of many that come at once, one at a time works, and it works for all that wait.
//!
//! Owned here: one directory of the home. Its lock is the turn; its files are tickets, one for each command that waits,
//! named `ID.PID`. A ticket is drawn after the exit file was written and removed after the end was recorded, so a
//! command whose ticket is gone when its turn comes has nothing left to do.
//!
//! With a service up a command leaves its ticket to it for a while before it asks for the turn itself: the service has the
//! store open already.
//!
//! If a command dies, the kernel gives its turn to the next, and its ticket is served by whoever lists it. What is
//! recorded never depends on the queue: where it cannot be used, a command works alone, and the store keeps order.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::turn::take_in_order;

/// How long a command waits for its turn before it works alone: as long as it would wait for the store.
const PATIENCE: Duration = Duration::from_secs(5);

/// A ticket this old whose end could not be recorded belongs to nobody: no command waits so long.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// What came of waiting.
pub(crate) enum Turn {
    /// It has come.
    Come(HeldTurn),
    /// Another command recorded the end meanwhile.
    Served,
    /// The queue cannot be used, or whoever has the turn does not come to an end.
    Alone,
}

/// The turn; dropping it passes it on.
pub(crate) struct HeldTurn {
    directory: PathBuf,
    own: Option<OwnTicket>,
    listed: HashSet<PathBuf>,
    _lock: File,
}

/// The ticket of a command that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Whose end is to be recorded.
    pub(crate) id: String,
    path: PathBuf,
}

/// Waits for the turn of the command that is to record the end of run `id`.
pub(crate) fn take_turn(directory: &Path, id: &str) -> Turn {
    let Some(own) = OwnTicket::draw(directory, id) else {
        return Turn::Alone;
    };
    let Some(lock) = take_in_order(directory, PATIENCE) else {
        return Turn::Alone;
    };
    if own.is_served() {
        return Turn::Served;
    }
    Turn::Come(HeldTurn {
        directory: directory.to_owned(),
        own: Some(own),
        listed: HashSet::new(),
        _lock: lock,
    })
}

/// Makes the queue's directory, unless it is there.
///
/// # Errors
/// It cannot be made: the queue cannot be used.
pub(crate) fn make_queue(directory: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Waits for the turn of whoever works for others alone; none when nobody waits, or the turn does not come.
pub(crate) fn take_turn_for_others(directory: &Path) -> Option<HeldTurn> {
    fs::read_dir(directory).ok()?.next()?.ok()?;
    let lock = take_in_order(directory, PATIENCE)?;
    Some(HeldTurn {
        directory: directory.to_owned(),
        own: None,
        listed: HashSet::new(),
        _lock: lock,
    })
}

/// The ticket of a command that leaves the recording of the end of run `id` to somebody else; none when the queue cannot
/// be used. It is taken back when this is dropped.
pub(crate) fn draw_ticket(directory: &Path, id: &str) -> Option<OwnTicket> {
    OwnTicket::draw(directory, id)
}

impl OwnTicket {
    /// Whether the end was recorded.
    pub(crate) fn is_served(&self) -> bool {
        !self.path.exists()
    }
}

impl HeldTurn {
    /// The tickets that were not listed before, this command's own among the first.
    pub(crate) fn waiting(&mut self) -> Vec<Ticket> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut found: Vec<Ticket> = entries.filter_map(|entry| ticket(entry.path())).collect();
        found.retain(|ticket| self.listed.insert(ticket.path.clone()));
        found
    }

    /// Whether the ticket is this command's own.
    pub(crate) fn is_own(&self, ticket: &Ticket) -> bool {
        self.own.as_ref().is_some_and(|own| ticket.path == own.path)
    }
}

impl Ticket {
    /// Tells its command that the end is recorded.
    pub(crate) fn served(self) {
        let _ = fs::remove_file(self.path); // one that stays makes its command look for itself
    }

    /// Leaves it to its own command, which will see the fault for itself, unless there is none any more.
    pub(crate) fn left(self) {
        let age = fs::metadata(&self.path).and_then(|found| found.modified());
        if age.is_ok_and(|drawn| drawn.elapsed().is_ok_and(|age| age >= ABANDONED_AFTER)) {
            self.served();
        }
    }
}

/// Removed with the command that drew it, however that ends, unless it is killed.
pub(crate) struct OwnTicket {
    path: PathBuf,
}

impl OwnTicket {
    fn draw(directory: &Path, id: &str) -> Option<Self> {
        let path = directory.join(format!("{id}.{}", std::process::id()));
        let make = || {
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
        };
        let made = make().or_else(|_| {
            make_queue(directory)?;
            make()
        });
        made.ok().map(|_| Self { path })
    }
}

impl Drop for OwnTicket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // whoever served it has removed it already
    }
}

fn ticket(path: PathBuf) -> Option<Ticket> {
    let (id, _pid) = path.file_name()?.to_str()?.rsplit_once('.')?;
    Some(Ticket {
        id: id.to_owned(),
        path,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::thread;

    use super::*;

    fn held(turn: Turn) -> HeldTurn {
        match turn {
            Turn::Come(held) => held,
            Turn::Served => panic!("nobody served it"),
            Turn::Alone => panic!("the queue can be used"),
        }
    }

    fn ids(tickets: &[Ticket]) -> Vec<&str> {
        tickets.iter().map(|ticket| ticket.id.as_str()).collect()
    }

    #[test]
    fn whoever_has_the_turn_sees_each_ticket_once_and_serves_those_that_wait() {
        let home = tempfile::tempdir().unwrap();
        let queue = home.path().join("finishing");
        let mut first = held(take_turn(&queue, "first"));
        let own = first.waiting();
        assert_eq!(ids(&own), ["first"]);
        assert!(first.is_own(&own[0]));
        thread::scope(|scope| {
            let second = scope.spawn(|| take_turn(&queue, "sec.ond"));
            let ticket = loop {
                if let Some(ticket) = first.waiting().pop() {
                    break ticket;
                }
                thread::yield_now();
            };
            assert_eq!(ticket.id, "sec.ond");
            ticket.served();
            drop(first);
            assert!(matches!(second.join().unwrap(), Turn::Served));
        });
        assert_eq!(fs::read_dir(&queue).unwrap().count(), 0, "no ticket stays");
    }

    #[test]
    fn a_ticket_that_was_not_served_gives_its_command_the_turn() {
        let home = tempfile::tempdir().unwrap();
        let mut first = held(take_turn(home.path(), "first"));
        thread::scope(|scope| {
            let second = scope.spawn(|| take_turn(home.path(), "second"));
            while !first.waiting().iter().any(|ticket| ticket.id == "second") {
                thread::yield_now();
            }
            drop(first);
            assert_eq!(ids(&held(second.join().unwrap()).waiting()), ["second"]);
        });
    }

    #[test]
    fn a_ticket_left_behind_is_served_by_the_next_and_a_strange_file_is_no_ticket() {
        let home = tempfile::tempdir().unwrap();
        for name in ["dead.4194304", "strange"] {
            fs::write(home.path().join(name), "").unwrap();
        }
        let mut turn = held(take_turn(home.path(), "next"));
        let tickets = turn.waiting();
        let mut found = ids(&tickets);
        found.sort_unstable();
        assert_eq!(found, ["dead", "next"]);
        for ticket in tickets {
            ticket.left();
        }
        assert!(home.path().join("dead.4194304").exists(), "its command may still wait");
    }

    #[test]
    fn whoever_works_for_others_has_no_ticket_and_takes_no_turn_for_nobody() {
        let home = tempfile::tempdir().unwrap();
        assert!(take_turn_for_others(&home.path().join("absent")).is_none());
        assert!(take_turn_for_others(home.path()).is_none());
        let own = draw_ticket(home.path(), "left").unwrap();
        let mut turn = take_turn_for_others(home.path()).unwrap();
        let ticket = turn.waiting().pop().unwrap();
        assert!(!turn.is_own(&ticket) && !own.is_served());
        ticket.served();
        assert!(own.is_served());
        drop(draw_ticket(home.path(), "taken back").unwrap());
        assert!(take_turn_for_others(home.path()).is_none());
    }

    #[test]
    fn where_no_ticket_can_be_drawn_a_command_works_alone() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(take_turn(&file.join("finishing"), "r"), Turn::Alone));
    }
}

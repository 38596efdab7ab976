//! The pool of connections that read.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::connection::{Access, Db, Source};

/// Connections that read at the same time; whoever comes later waits for the first to be free. Reads are short.
const READERS_MAX: usize = 8;

/// Idle connections that are kept.
const IDLE_KEPT: usize = 4;

#[derive(Default)]
struct State {
    idle: Vec<Db>,
    /// Since when each connection is lent that is.
    lent: Vec<Instant>,
}

/// The pool.
#[derive(Default)]
pub(super) struct Readers {
    state: Mutex<State>,
    freed: Condvar,
}

impl Readers {
    /// A pool that holds one connection already.
    pub(super) fn with(db: Db) -> Self {
        Self {
            state: Mutex::new(State {
                idle: vec![db],
                lent: Vec::new(),
            }),
            freed: Condvar::new(),
        }
    }

    /// Runs `read` in one snapshot.
    pub(super) fn read<T>(
        &self,
        source: &Source,
        read: impl FnOnce(&Db) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let since = Instant::now();
        let lent = Lent {
            db: Some(self.lend(source, since)?),
            since,
            pool: self,
        };
        let db = lent.db.as_ref().expect("it is taken out only when it is given back");
        db.write("BEGIN", [])?;
        let answer = read(db);
        let ended = db.write("COMMIT", []);
        db.note_pages();
        match ended {
            Ok(_) => answer,
            Err(error) => {
                let _ = db.connection.execute_batch("ROLLBACK"); // no snapshot may stay open in the pool
                answer.and(Err(error))
            }
        }
    }

    /// An idle connection, for the writer to take over; none when there is none.
    pub(super) fn give_up_one(&self) -> Option<Db> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).idle.pop()
    }

    /// How long the oldest of those who read has been reading.
    pub(super) fn oldest(&self) -> Option<Duration> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.lent.iter().min().map(Instant::elapsed)
    }

    fn lend(&self, source: &Source, since: Instant) -> rusqlite::Result<Db> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.lent.len() >= READERS_MAX {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.lent.push(since);
        if let Some(db) = state.idle.pop() {
            return Ok(db);
        }
        drop(state);
        source
            .connect(Access::Read)
            .inspect_err(|_| self.take_back(since, None))
    }

    fn take_back(&self, since: Instant, db: Option<Db>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = state.lent.iter().position(|lent| *lent == since) {
            state.lent.swap_remove(place);
        }
        let surplus = match db {
            Some(db) if state.idle.len() < IDLE_KEPT => {
                state.idle.push(db);
                None
            }
            other => other,
        };
        drop(state);
        drop(surplus); // closing takes a while: not under the lock
        self.freed.notify_one();
    }
}

/// A connection on loan; it goes back also when the reader panics.
struct Lent<'a> {
    db: Option<Db>,
    since: Instant,
    pool: &'a Readers,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.pool
            .take_back(self.since, self.db.take().filter(|db| db.connection.is_autocommit()));
    }
}

//! The pool of connections that read.

use std::sync::{Condvar, Mutex, PoisonError};

use super::connection::{Access, Db, Source};

/// Connections that read at the same time; whoever comes later waits for the first to be free. Reads are short.
const READERS_MAX: usize = 8;

/// Idle connections that are kept.
const IDLE_KEPT: usize = 4;

#[derive(Default)]
struct State {
    idle: Vec<Db>,
    lent: usize,
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
                lent: 0,
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
        let lent = Lent {
            db: Some(self.lend(source)?),
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

    fn lend(&self, source: &Source) -> rusqlite::Result<Db> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.lent >= READERS_MAX {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.lent += 1;
        if let Some(db) = state.idle.pop() {
            return Ok(db);
        }
        drop(state);
        source.connect(Access::Read).inspect_err(|_| self.take_back(None))
    }

    fn take_back(&self, db: Option<Db>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.lent -= 1;
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
    pool: &'a Readers,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.pool
            .take_back(self.db.take().filter(|db| db.connection.is_autocommit()));
    }
}

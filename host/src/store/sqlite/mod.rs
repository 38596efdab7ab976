//! The store in one SQLite file: the default.
//!
//! Owned here: the file, its log, its schema and every statement. Promised: what was answered is durable (write-ahead
//! log, `synchronous=FULL`), what was not answered is whole or absent, plain reads never wait for a writer. If we die
//! half-way, SQLite's own recovery drops the unfinished commit at the next open; nothing of ours needs repair.
//!
//! All writes of a process go through one thread ([`writer`]), which commits what is waiting together. Reads use a
//! small pool of connections ([`readers`]), one snapshot per method. Nothing is started before it is needed, so that a
//! command that reads pays for one connection, and one that writes for one commit.

mod activation;
mod belongings;
mod columns;
mod command;
mod connection;
mod consumers;
mod creation;
mod delivery;
mod entity;
mod examine;
mod failure;
mod history;
mod image;
mod judged;
mod judging;
mod lanes;
mod outbox;
mod place;
mod query;
mod queue;
mod queueing;
mod readers;
mod removal;
mod reserve;
mod runtime;
mod schedules;
mod scheduling;
mod schema;
mod store;
mod upkeep;
mod waiting;
mod workers;
mod writer;

#[cfg(test)]
mod backlog;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod growth;
#[cfg(test)]
mod notices;
#[cfg(test)]
mod pages;
#[cfg(test)]
pub(crate) mod tests;

pub use connection::{Counts, Tuning};
pub use examine::{Log, StoreHealth, examine};
pub use store::{OpenMode, SqliteStore};

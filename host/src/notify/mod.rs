//! Notices: who is told of an end, and how a dispatch reaches its destination.
//!
//! [`settings`] reads what the operator wrote and resolves it to the handlers of one entity.
//!
//! An attempt ([`send`]) is one call of one transport: a program, a webhook, a file. It reads no store and writes none: what
//! came of it is a value ([`crate::model::Sent`]), and whoever claimed the dispatch records it. If we die during an
//! attempt its outcome is unknown, and it is made again under the same id: a receiver may get a notice twice, and can
//! tell by the id.
//!
//! This is the only module that knows HTTP and TLS. Secrets are read when they are used and kept nowhere; neither they
//! nor an acknowledgement token are part of anything that is told.

pub mod settings;
mod token;
mod transport;

pub use token::{KEY_FILE, KeyError, token, verifies};
pub use transport::{Attempt, Outlined, Surroundings, is_signed, outline, send, unreadable};

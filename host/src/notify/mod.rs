//! Notices: who is told of an end, and how it is carried there.
//!
//! [`settings`] reads what the operator wrote and resolves it to the handlers of one entity.

pub mod settings;

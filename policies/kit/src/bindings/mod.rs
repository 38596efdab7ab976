//! What the generator makes of `wit/`, one file for each world; `tests/bindings.rs` writes and compares them.
//!
//! Each world exports one interface and carries its own description of it, so a component exports what its
//! `export!` line names and nothing else. The shared types live in the first world; the others refer to them.
#![allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    unsafe_op_in_unsafe_fn,
    clippy::allow_attributes_without_reason,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::doc_markdown,
    reason = "generated"
)]

#[rustfmt::skip]
pub mod execution_policy;
#[rustfmt::skip]
pub mod guard_policy;
#[rustfmt::skip]
pub mod handler;
#[rustfmt::skip]
pub mod health_policy;
#[rustfmt::skip]
pub mod lifecycle_policy;
#[rustfmt::skip]
pub mod migrate_policy;

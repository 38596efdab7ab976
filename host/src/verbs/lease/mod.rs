//! Queued work: submitted, taken by a worker on lease, run, ended, and found again when a worker is not heard of.
//!
//! ```text
//! submit ─▶ claim ─▶ start ─▶ (a supervised run) ─▶ end
//!             ▲                                      │
//!             └──── keep: delays, retries, what waited for other work, leases that ran out
//! ```
//!
//! The rules are `model::lease`; here they are given what they need to know, and what they answer is written. Everything
//! may die anywhere: a row says who holds it until when and under which fence, and whoever keeps the queue next goes on
//! from that.

mod claim;
mod end;
#[cfg(test)]
mod faults;
mod judge;
mod keep;
mod operate;
mod sight;
mod start;
mod submit;
mod terms;
mod worker;

pub use claim::{Taken, claim};
pub use keep::{Keeping, Kept, keep, next_due};
pub use operate::{Confirmed, RenewedByHand, confirm, renew_by_hand, set_up};
pub use submit::{Submission, submit};
pub use worker::{Bidding, Done, Holding, Progress, Until, WorkerOptions, Working, at_work, work};

pub(crate) use end::end_row_of;
pub(crate) use keep::keep_row;
pub(crate) use sight::queue_sight;
pub(crate) use submit::{brought, checked, creation};
pub(crate) use terms::{RowSeen, row_of_run};

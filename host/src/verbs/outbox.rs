//! Notices: planned in the commit of the event they tell, delivered afterwards, at least once (SEMANTICS 3 and 4).

mod acknowledge;
mod attempt;
mod consumer;
mod deliver;
mod enqueue;
mod plan;
mod purge;
mod replan;
mod retry;
mod send;
mod tally;

pub use acknowledge::{Presented, acknowledge};
pub use consumer::{add_consumer, retire_consumer};
pub use deliver::{Bounds, Delivered, Extent, Message, deliver, deliver_own};
pub use purge::{Force, PurgeResult, purge};
pub use retry::{Retried, retry};
pub use send::{Sending, send};
pub use tally::Tally;

pub(crate) use plan::plan;

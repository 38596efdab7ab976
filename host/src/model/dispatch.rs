//! One delivery to one destination: what is fixed when it is planned, and what comes of an attempt.

use super::notify::Destination;
use super::{Entity, EventId, HistoryRow, Timestamp};

/// The kind of entity that a dispatch is: its policy is the one with a delivery rule.
pub const DISPATCH_KIND: &str = "dispatch";

/// What a dispatch has beside its entity, all of it fixed when it is enqueued.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatch {
    /// The event it tells; none when an operator sent it.
    pub event_id: Option<EventId>,
    /// The binding whose handler planned it; none when an operator sent it.
    pub handler: Option<String>,
    /// The destination's name.
    pub destination: String,
    /// Where that leads, as it was when the dispatch was planned.
    pub target: Destination,
    /// SHA-256 of `target` as JSON, in hexadecimal: what fails and pauses together.
    pub target_digest: String,
    /// Every attempt sends these bytes.
    pub body: Vec<u8>,
    /// While a row with this key is neither dead nor expired no other is made.
    pub dedup_key: String,
    /// After this it is no longer sent.
    pub deadline: Option<Timestamp>,
    /// The receiver presents the token, or it is sent again.
    pub wants_acknowledgement: bool,
}

/// A dispatch as it is enqueued: its entity, `row` still zero, with its first history row.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDispatch {
    /// The entity, pinned to the dispatch policy in force.
    pub entity: Entity,
    /// Its first history row.
    pub row: HistoryRow,
    /// What it delivers.
    pub dispatch: Dispatch,
}

/// What the commit of an event adds to the outbox.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    /// Dispatches of the handlers that planned.
    pub dispatches: Vec<NewDispatch>,
    /// Bindings whose handler matched and could not plan: the event is owed to them until it did.
    pub owed: Vec<OwedPlan>,
}

/// A plan that is still to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwedPlan {
    /// The binding's name, as the entity's settings have it.
    pub handler: String,
    /// How often it was tried.
    pub tries: i64,
    /// When it is tried again.
    pub due_at: Timestamp,
    /// Why the last try failed; none when time ran out before it was tried.
    pub error: Option<String>,
}

/// How a destination has been doing: written with the outcome of each attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestinationHealth {
    /// The destinations' [`Dispatch::target_digest`].
    pub target_digest: String,
    /// What it is, for people: `webhook https://example.org/…`.
    pub label: String,
    /// Failures in a row, permanent refusals of one body excepted.
    pub failures: i64,
    /// Nothing is sent there before this moment; none when it is not paused.
    pub paused_until: Option<Timestamp>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
}

/// What came of one attempt, as its transport tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The transport took it; in words, such as `exit 0` or `HTTP 204`.
    Delivered(String),
    /// It failed and may be tried again.
    Failed {
        /// Why, at most 2,000 characters, no secret in it.
        error: String,
        /// The receiver asked for this long before the next attempt.
        retry_after: Option<super::DurationMs>,
    },
    /// It will never be taken: an address class, `410 Gone`, a malformed destination. A closed list.
    Refused(String),
    /// It was not attempted: what it needs (a secret, an address) cannot be read. No attempt is counted.
    Unreadable(String),
}

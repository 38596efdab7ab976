//! What a component is told and what it answered, in the host's own types: the same whatever WIT line it speaks.
//!
//! Nothing here was judged. An adapter fills in whatever the component said; [`super::answers`] and [`super::plan`] decide
//! what of it may be used.

use super::fault::PolicyFault;
use crate::model::{Fields, Timestamp};

/// An answer, or the failure that the component reported instead.
pub(super) type Answered<T> = Result<T, Reported>;

/// What came of a call: an answer, or how the call failed.
pub(super) type Called<T> = Result<Answered<T>, PolicyFault>;

/// A failure that a component reported.
pub(super) struct Reported {
    pub(super) code: String,
    pub(super) message: String,
    /// What its author would do.
    pub(super) hint: Option<String>,
}

/// A guard's answer.
pub(super) struct Decision {
    pub(super) admitted: bool,
    pub(super) code: String,
    pub(super) message: String,
    /// The key of a part that must be understood and is not.
    pub(super) unknown: Option<String>,
}

/// A verdict function's answer.
pub(super) struct Judgement {
    pub(super) status: String,
    pub(super) code: String,
    pub(super) summary: Option<String>,
    /// Names of fields, and texts that should be JSON.
    pub(super) patch: Vec<(String, String)>,
    pub(super) retry_after_ms: Option<i64>,
    /// As in [`Decision`].
    pub(super) unknown: Option<String>,
}

/// A health function's answer.
pub(super) struct Assessment {
    pub(super) level: String,
    pub(super) message: String,
    /// As in [`Decision`].
    pub(super) unknown: Option<String>,
}

/// A mapping function's answer.
pub(super) struct Mapping {
    pub(super) status: String,
    /// As in [`Judgement`].
    pub(super) patch: Vec<(String, String)>,
    /// As in [`Decision`].
    pub(super) unknown: Option<String>,
}

/// An event that a handler is asked about.
pub(super) struct Event {
    pub(super) event_id: String,
    pub(super) schema: String,
    pub(super) kind: String,
    pub(super) id: String,
    pub(super) status: String,
    pub(super) success: bool,
    pub(super) reason_code: String,
    pub(super) occurred_at: Timestamp,
    /// The whole envelope.
    pub(super) json: String,
}

/// The binding that a handler is asked for.
pub(super) struct Binding<'a> {
    pub(super) name: &'a str,
    /// With the defaults filled in.
    pub(super) config: Fields,
    /// Names alone: what a destination is, a handler need not know.
    pub(super) destinations: Vec<String>,
}

/// One dispatch of a handler's answer.
pub(super) struct Dispatch {
    pub(super) destination: String,
    pub(super) body: Vec<u8>,
    pub(super) dedup_key: Option<String>,
    pub(super) deadline_ms: Option<i64>,
    pub(super) wants_acknowledgement: bool,
    /// As in [`Decision`].
    pub(super) unknown: Option<String>,
}

//! When and how long: what the host measures when a terminal status is entered.

use serde_json::Value;

use super::{Entity, Fields, Lifecycle, Timestamp};

/// Fills the measured end of kinds whose policy asks for it: a given end counts, then one measured earlier, then now.
/// An approximate end has no duration. Leaving a terminal status forgets the end.
pub(super) fn measure_end(lifecycle: &Lifecycle, before: &Entity, after: &mut Entity, patch: &Fields, now: Timestamp) {
    if !lifecycle.descriptor().measures_end || before.status == after.status {
        return;
    }
    if !after.terminal {
        for name in ["ended_at", "ended_at_is_approximate", "duration_ms"] {
            if before.terminal && !patch.contains_key(name) {
                after.set_field(name, &Value::Null);
            }
        }
        return;
    }
    let given = patch.get("ended_at").is_some_and(|value| !value.is_null());
    let approximate = if given {
        patch
            .get("ended_at_is_approximate")
            .is_some_and(|flag| *flag == Value::Bool(true))
    } else {
        let kept = before.structural.ended_at;
        let measured = kept.filter(|_| before.field("ended_at_is_approximate") != Value::Bool(true));
        after.structural.ended_at = Some(measured.unwrap_or(now));
        false
    };
    after.set_field("ended_at_is_approximate", &Value::Bool(approximate));
    if patch.get("duration_ms").is_none_or(Value::is_null) {
        let measured = after.structural.ended_at.filter(|_| !approximate);
        let duration = measured.map(|end| Value::from(end.since(before.created_at).as_ms()));
        after.set_field("duration_ms", &duration.unwrap_or(Value::Null));
    }
}

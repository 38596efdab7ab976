//! What the handlers that ship have in common: one dispatch for each destination, its body the envelope as it came.

use runwarden_kit::table::parameter;
use runwarden_kit::{Binding, Envelope, Fault, Parameter, PlannedDispatch};

pub mod samples;

/// The parameter `deadline_ms`.
pub fn deadline() -> Parameter {
    let summary = "Milliseconds after the end when the notice is given up; 0 is never.";
    parameter(DEADLINE, "integer", "0", summary)
}

/// The parameter `wants_acknowledgement`.
pub fn wants_acknowledgement() -> Parameter {
    let summary = "Delivered only once the receiver has presented the token that comes with the notice.";
    parameter(ACKNOWLEDGEMENT, "boolean", "false", summary)
}

/// One dispatch for each destination of the binding, as its parameters say. A parameter that the handler does not
/// declare is not in its binding, and counts as its default.
///
/// # Errors
/// The host gave a value that is none of the parameter's kind, or the deadline is negative.
pub fn each_destination(envelope: &Envelope, binding: &Binding) -> Result<Vec<PlannedDispatch>, Fault> {
    let deadline = deadline_of(envelope, binding)?;
    let acknowledged = binding.parameter(ACKNOWLEDGEMENT) == Some("true");
    let dispatch = |destination: &String| {
        let mut dispatch = PlannedDispatch::new(destination, envelope.json.as_bytes());
        dispatch.deadline = deadline;
        dispatch.wants_acknowledgement = acknowledged;
        dispatch
    };
    Ok(binding.destinations.iter().map(dispatch).collect())
}

const DEADLINE: &str = "deadline_ms";
const ACKNOWLEDGEMENT: &str = "wants_acknowledgement";

/// The moment after which the notice is given up.
fn deadline_of(envelope: &Envelope, binding: &Binding) -> Result<Option<i64>, Fault> {
    let text = binding.parameter(DEADLINE).unwrap_or("0");
    match text.parse::<i64>() {
        Ok(0) => Ok(None),
        Ok(after) if after > 0 => Ok(Some(envelope.occurred_at.saturating_add(after))),
        _ => {
            let message = format!("`{DEADLINE}` is {text}, no length of time");
            Err(Fault::new("bad_parameter", &message).hint("give milliseconds, or 0 for no deadline"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{binding, event};
    use super::{ACKNOWLEDGEMENT, DEADLINE, each_destination};

    fn deadline(value: &str) -> Result<Option<i64>, String> {
        let planned = each_destination(&event(), &binding(&[(DEADLINE, value)], &["one"]));
        planned.map(|plan| plan[0].deadline).map_err(|fault| fault.code)
    }

    #[test]
    fn a_deadline_is_counted_from_the_event() {
        assert_eq!(deadline("0"), Ok(None));
        assert_eq!(deadline("60000"), Ok(Some(event().occurred_at + 60_000)));
        assert_eq!(deadline(&i64::MAX.to_string()), Ok(Some(i64::MAX)));
        assert_eq!(deadline("-1"), Err("bad_parameter".to_owned()));
        assert_eq!(deadline("null"), Err("bad_parameter".to_owned()));
    }

    #[test]
    fn without_parameters_there_is_no_deadline_and_no_acknowledgement() {
        let plan = each_destination(&event(), &binding(&[], &["one"])).expect("it plans");
        assert_eq!((plan[0].deadline, plan[0].wants_acknowledgement), (None, false));
        let wanting = binding(&[(ACKNOWLEDGEMENT, "true")], &["one"]);
        assert!(each_destination(&event(), &wanting).expect("it plans")[0].wants_acknowledgement);
    }

    #[test]
    fn a_binding_without_destinations_is_told_nothing() {
        assert_eq!(each_destination(&event(), &binding(&[], &[])), Ok(Vec::new()));
    }
}

//! What is sent when something ended: one line for people, of every end that is no success.

use runwarden_kit::table::{handler, parameter};
use runwarden_kit::{Binding, Envelope, Fault, HandlerDescriptor, Notifier, PlannedDispatch};

/// The handler `{{name}}`.
#[derive(Debug)]
pub struct {{type}}Handler;

impl Notifier for {{type}}Handler {
    fn describe() -> HandlerDescriptor {
        let successes = parameter("successes", "boolean", "false", "Successes are told too.");
        handler("{{name}}", "1.0.0", "One line about what is no success.")
            .transports(&["exec", "file"])
            .parameters([successes])
    }

    fn plan(envelope: Envelope, binding: Binding) -> Result<Vec<PlannedDispatch>, Fault> {
        if envelope.success && binding.parameter("successes") != Some("true") {
            // An empty plan is a plan: nobody is told, and nothing is owed.
            return Ok(Vec::new());
        }
        let (kind, id, status) = (&envelope.kind, &envelope.id, &envelope.status);
        // A destination that is a file takes one line of JSON; a string is one.
        let line = format!("\"{kind}/{id} is {status} ({})\"", envelope.reason_code);
        let dispatch = |name: &String| PlannedDispatch::new(name, line.as_str());
        Ok(binding.destinations.iter().map(dispatch).collect())
    }
}

runwarden_kit::export!({{type}}Handler: notifier);

#[cfg(test)]
mod tests {
    use super::{{type}}Handler;
    use runwarden_kit::{Binding, Envelope, NamedJson, Notifier};

    fn end(success: bool) -> Envelope {
        Envelope {
            event_id: "1".to_owned(),
            schema: "runwarden.run-terminal".to_owned(),
            kind: "run".to_owned(),
            id: "one".to_owned(),
            status: "failed".to_owned(),
            success,
            reason_code: "run.failed.exit_nonzero".to_owned(),
            occurred_at: 0,
            json: "{}".to_owned(),
            ext: Vec::new(),
        }
    }

    fn binding(successes: &str) -> Binding {
        Binding {
            name: "people".to_owned(),
            config: vec![NamedJson::new("successes", successes)],
            destinations: vec!["mail".to_owned(), "journal".to_owned()],
            ext: Vec::new(),
        }
    }

    #[test]
    fn an_end_that_is_no_success_goes_to_every_destination() {
        let plan = {{type}}Handler::plan(end(false), binding("false")).expect("it plans");
        assert_eq!(plan.len(), 2);
        let line = String::from_utf8_lossy(&plan[0].body);
        assert_eq!(line, "\"run/one is failed (run.failed.exit_nonzero)\"");
    }

    #[test]
    fn a_success_is_told_only_where_that_is_asked_for() {
        for (successes, told) in [("false", 0), ("true", 2)] {
            let plan = {{type}}Handler::plan(end(true), binding(successes));
            assert_eq!(plan.expect("it plans").len(), told);
        }
    }
}

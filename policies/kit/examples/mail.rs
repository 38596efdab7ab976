//! A handler: ends that are no success go to every destination of its binding, with a subject that people can read.

use runwarden_kit::table::{handler, parameter};
use runwarden_kit::{Binding, Envelope, Fault, HandlerDescriptor, Notifier, PlannedDispatch};

/// Tells of ends in a line for people.
#[derive(Debug)]
pub(crate) struct Mail;

impl Notifier for Mail {
    fn describe() -> HandlerDescriptor {
        handler(
            "mail",
            "1.0.0",
            "One line for people about every end that is no success.",
        )
        .transports(&["exec"])
        .parameters([parameter("successes", "boolean", "false", "Tell of successes too.")])
    }

    fn plan(envelope: Envelope, binding: Binding) -> Result<Vec<PlannedDispatch>, Fault> {
        if envelope.success && binding.parameter("successes") != Some("true") {
            // An empty plan is a plan: nobody is told, and nothing is owed.
            return Ok(Vec::new());
        }
        let Envelope {
            kind,
            id,
            status,
            reason_code,
            ..
        } = envelope;
        let line = format!("{kind}/{id} is {status} ({reason_code})");
        let destinations = binding.destinations.iter();
        Ok(destinations
            .map(|name| PlannedDispatch::new(name, line.as_str()))
            .collect())
    }
}

runwarden_kit::export!(Mail: notifier);

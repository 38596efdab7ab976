//! A handler: every event goes to every destination of its binding, as it is.

use runwarden_kit::{Binding, Envelope, Fault, HandlerDescriptor, Notifier, PlannedDispatch};

/// Sends the envelope on.
#[derive(Debug)]
pub(crate) struct Mail;

impl Notifier for Mail {
    fn describe() -> HandlerDescriptor {
        HandlerDescriptor {
            name: "mail".to_owned(),
            version: "1.0.0".to_owned(),
            summary: "Sends every event to every destination.".to_owned(),
            config_schema: r#"{"type":"object"}"#.to_owned(),
            transports: vec!["exec".to_owned()],
            ext: Vec::new(),
        }
    }

    fn plan(envelope: Envelope, binding: Binding) -> Result<Vec<PlannedDispatch>, Fault> {
        let body = envelope.json.as_bytes();
        let destinations = binding.destinations.iter();
        Ok(destinations.map(|name| PlannedDispatch::new(name, body)).collect())
    }
}

runwarden_kit::export!(Mail: notifier);

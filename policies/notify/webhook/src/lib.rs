//! Tells web services of ends.

use runwarden_handler_shared::{deadline, each_destination, wants_acknowledgement};
use runwarden_kit::table::handler;
use runwarden_kit::{Binding, Envelope, Fault, HandlerDescriptor, Notifier, PlannedDispatch};

/// The handler `webhook`.
#[derive(Debug)]
pub struct Webhook;

impl Notifier for Webhook {
    fn describe() -> HandlerDescriptor {
        handler("webhook", "0.1.0", "Posts every end to a web service.")
            .transports(&["webhook"])
            .parameters([deadline(), wants_acknowledgement()])
    }

    fn plan(envelope: Envelope, binding: Binding) -> Result<Vec<PlannedDispatch>, Fault> {
        each_destination(&envelope, &binding)
    }
}

runwarden_kit::export!(Webhook: notifier);

#[cfg(test)]
mod tests {
    use runwarden_handler_shared::samples::{binding, event};
    use runwarden_kit::Notifier;

    use super::Webhook;

    #[test]
    fn every_destination_gets_the_envelope_as_it_is() {
        let planned = Webhook::plan(event(), binding(&[], &["one", "two"])).expect("it plans");
        let told: Vec<(&str, &[u8])> = planned
            .iter()
            .map(|dispatch| (&*dispatch.destination, &*dispatch.body))
            .collect();
        let body = event().json.into_bytes();
        assert_eq!(told, [("one", &*body), ("two", &*body)]);
    }

    #[test]
    fn it_names_its_own_transport_alone() {
        assert_eq!(Webhook::describe().transports, ["webhook"]);
    }

    #[test]
    fn an_acknowledgement_is_wanted_where_it_is_configured() {
        let planned = |value: &str| {
            let binding = binding(&[("wants_acknowledgement", value)], &["one"]);
            Webhook::plan(event(), binding).expect("it plans")[0].wants_acknowledgement
        };
        assert!(planned("true"));
        assert!(!planned("false"));
    }
}

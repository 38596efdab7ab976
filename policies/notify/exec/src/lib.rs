//! Tells programs of ends.

use runwarden_handler_shared::{deadline, each_destination, wants_acknowledgement};
use runwarden_kit::table::handler;
use runwarden_kit::{Binding, Envelope, Fault, HandlerDescriptor, Notifier, PlannedDispatch};

/// The handler `exec`.
#[derive(Debug)]
pub struct Exec;

impl Notifier for Exec {
    fn describe() -> HandlerDescriptor {
        handler("exec", "0.1.0", "Starts a program for every end.")
            .transports(&["exec"])
            .parameters([deadline(), wants_acknowledgement()])
    }

    fn plan(envelope: Envelope, binding: Binding) -> Result<Vec<PlannedDispatch>, Fault> {
        each_destination(&envelope, &binding)
    }
}

runwarden_kit::export!(Exec: notifier);

#[cfg(test)]
mod tests {
    use runwarden_handler_shared::samples::{binding, event};
    use runwarden_kit::Notifier;

    use super::Exec;

    #[test]
    fn every_destination_gets_the_envelope_as_it_is() {
        let planned = Exec::plan(event(), binding(&[], &["one", "two"])).expect("it plans");
        let told: Vec<(&str, &[u8])> = planned
            .iter()
            .map(|dispatch| (&*dispatch.destination, &*dispatch.body))
            .collect();
        let body = event().json.into_bytes();
        assert_eq!(told, [("one", &*body), ("two", &*body)]);
    }

    #[test]
    fn it_names_its_own_transport_alone() {
        assert_eq!(Exec::describe().transports, ["exec"]);
    }

    #[test]
    fn an_acknowledgement_is_wanted_where_it_is_configured() {
        let planned = |value: &str| {
            let binding = binding(&[("wants_acknowledgement", value)], &["one"]);
            Exec::plan(event(), binding).expect("it plans")[0].wants_acknowledgement
        };
        assert!(planned("true"));
        assert!(!planned("false"));
    }
}

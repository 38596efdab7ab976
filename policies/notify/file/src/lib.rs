//! Writes ends into files.

use runwarden_handler_shared::{deadline, each_destination};
use runwarden_kit::table::handler;
use runwarden_kit::{Binding, Envelope, Fault, HandlerDescriptor, Notifier, PlannedDispatch};

/// The handler `file`.
#[derive(Debug)]
pub struct File;

impl Notifier for File {
    fn describe() -> HandlerDescriptor {
        handler("file", "0.1.0", "Appends every end to a file.")
            .transports(&["file"])
            .parameters([deadline()])
    }

    fn plan(envelope: Envelope, binding: Binding) -> Result<Vec<PlannedDispatch>, Fault> {
        each_destination(&envelope, &binding)
    }
}

runwarden_kit::export!(File: notifier);

#[cfg(test)]
mod tests {
    use runwarden_handler_shared::samples::{binding, event};
    use runwarden_kit::Notifier;

    use super::File;

    #[test]
    fn every_destination_gets_the_envelope_as_it_is() {
        let planned = File::plan(event(), binding(&[], &["one", "two"])).expect("it plans");
        let told: Vec<(&str, &[u8])> = planned
            .iter()
            .map(|dispatch| (&*dispatch.destination, &*dispatch.body))
            .collect();
        let body = event().json.into_bytes();
        assert_eq!(told, [("one", &*body), ("two", &*body)]);
    }

    #[test]
    fn it_names_its_own_transport_alone() {
        assert_eq!(File::describe().transports, ["file"]);
    }

    #[test]
    fn a_line_in_a_file_is_never_acknowledged() {
        // A parameter that is not declared is in no binding.
        let planned = File::plan(event(), binding(&[], &["one"])).expect("it plans");
        assert!(!planned[0].wants_acknowledgement);
        let descriptor = File::describe();
        let mut parameters = descriptor.config.iter().map(|parameter| &*parameter.name);
        assert!(parameters.all(|name| name != "wants_acknowledgement"));
    }
}

//! Handlers and destinations in words.

use runwarden_host::model::{BoundHandler, Destination, EventFilter, SecretReference, Source, Transport};

/// Where a destination leads: `exec prog {payload}`, `webhook https://…`, `file /path`.
pub(super) fn target(destination: &Destination) -> String {
    let place = match &destination.transport {
        Transport::Exec { argv, .. } => argv.join(" "),
        Transport::Webhook { url, .. } => source(url),
        Transport::File { path } => path.clone(),
    };
    format!("{} {place}", destination.transport.word())
}

/// All destinations of a handler.
pub(super) fn targets(handler: &BoundHandler) -> String {
    let targets: Vec<String> = handler.destinations.values().map(target).collect();
    targets.join(", ")
}

/// Which events: `run play: failed`; nothing when all are admitted.
pub(super) fn filter(filter: &EventFilter) -> String {
    let (kinds, statuses) = (filter.kinds.join(" "), filter.statuses.join(" "));
    match (kinds.is_empty(), statuses.is_empty()) {
        (_, true) => kinds,
        (true, false) => statuses,
        (false, false) => format!("{kinds}: {statuses}"),
    }
}

/// What is used, or where it is read.
pub(super) fn source(source: &Source) -> String {
    match source {
        Source::Given(text) => text.clone(),
        Source::Env(name) => format!("${name}"),
        Source::File(path) => format!("the URL in {path}"),
    }
}

/// Where a secret is read.
pub(super) fn secret(reference: &SecretReference) -> String {
    match reference {
        SecretReference::Env(name) => format!("${name}"),
        SecretReference::File(path) => path.clone(),
    }
}

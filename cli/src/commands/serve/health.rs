//! `/healthz`: whether the service does what it is there for.

use runwarden_host::Host;
use runwarden_host::verbs::{PartHealth, Service};
use serde_json::{Value, json};

/// The answer: 200 if it is well, 503 if not.
pub(super) struct Health {
    /// Whether it is.
    pub(super) is_well: bool,
    /// What was found.
    pub(super) document: Value,
}

/// Looks at the store and at every part. Blocks for a read of the store.
pub(super) fn health(host: &Host, service: &Service) -> Health {
    let store = host.store().next_due().err();
    let parts = service.parts();
    let stopping = service.is_stopping();
    let is_well = !stopping && store.is_none() && parts.iter().all(PartHealth::is_well);
    let described = parts.iter().map(|part| (part.part.word().to_owned(), described(part)));
    Health {
        is_well,
        document: json!({
            "ok": is_well,
            "stopping": stopping,
            "store": {"ok": store.is_none(), "error": store.map(|error| error.to_string())},
            "parts": described.collect::<serde_json::Map<_, _>>(),
        }),
    }
}

fn described(part: &PartHealth) -> Value {
    json!({
        "ok": part.is_well(),
        "passes": part.passes,
        "failures": part.failures,
        "since_pass_ms": part.since_pass.map(|since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
        "failing": part.failing,
    })
}

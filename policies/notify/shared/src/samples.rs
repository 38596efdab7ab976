//! An event and bindings for the tests of handlers.

use runwarden_kit::{Binding, Envelope, NamedJson};

/// The end of a run that failed.
pub fn event() -> Envelope {
    Envelope {
        event_id: "e-1".to_owned(),
        schema: "runwarden.run-terminal".to_owned(),
        kind: "run".to_owned(),
        id: "r-1".to_owned(),
        status: "failed".to_owned(),
        success: false,
        reason_code: "run.failed.nonzero_exit".to_owned(),
        occurred_at: 1_700_000_000_000,
        json: r#"{"event_id":"e-1","status":"failed"}"#.to_owned(),
        ext: Vec::new(),
    }
}

/// A binding with these parameters, as JSON text, and these destinations.
pub fn binding(config: &[(&str, &str)], destinations: &[&str]) -> Binding {
    Binding {
        name: "ops".to_owned(),
        config: config.iter().map(|(name, json)| NamedJson::new(name, json)).collect(),
        destinations: destinations.iter().map(|name| (*name).to_owned()).collect(),
        ext: Vec::new(),
    }
}

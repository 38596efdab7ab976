//! Entities for tables of tests.

use serde_json::Value;

use super::{Entity, Fields, PolicyPin, Reason, Reference, Structural, Tags, Timestamp};

/// The entity `one` of a kind, made at the beginning of time and written once; it has not ended.
pub(super) fn entity(kind: &str, status: &str) -> Entity {
    Entity {
        row: 1,
        reference: Reference::new(kind, "one"),
        name: None,
        status: status.to_owned(),
        terminal: false,
        success: false,
        version: 1,
        reason: Reason::default(),
        policy: PolicyPin {
            name: kind.to_owned(),
            version: "1.0.0".to_owned(),
            digest: "d".to_owned(),
            parameters: Fields::new(),
        },
        fields: Fields::new(),
        structural: Structural::default(),
        tags: Tags::new(),
        unique_key: None,
        fence: 0,
        queued: None,
        root: None,
        generation: 0,
        chain_parent: None,
        notify: Value::Null,
        created_at: Timestamp::from_ms(0),
        updated_at: Timestamp::from_ms(0),
    }
}

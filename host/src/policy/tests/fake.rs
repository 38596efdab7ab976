//! A store of components alone.

use crate::model::{RaisedLimits, Timestamp};
use crate::store::{Component, ComponentRecord, MemoryStore, Store as _};

/// A store of components, to be filled.
#[derive(Default)]
pub(super) struct Components(Vec<Component>);

impl Components {
    pub(super) fn add(&mut self, digest: &str, descriptor: &str, bytes: Vec<u8>) {
        self.0.push(Component {
            record: ComponentRecord {
                digest: digest.to_owned(),
                kind: "tests".to_owned(),
                name: "tests".to_owned(),
                version: "1.0.0".to_owned(),
                source: "installed".to_owned(),
                exports: Vec::new(),
                size_bytes: 0,
                installed_at: Timestamp::from_ms(0),
                active: false,
                in_use: 0,
                raised: RaisedLimits::default(),
            },
            descriptor: descriptor.to_owned(),
            bytes,
            signatures: Vec::new(),
        });
    }

    pub(super) fn into_store(self) -> MemoryStore {
        let store = MemoryStore::named("policies");
        store.install(&self.0, &[], &[]).expect("a store in memory");
        store
    }
}

//! A store of components alone.

use std::path::Path;
use std::sync::Arc;

use super::compiled::compiled;
use crate::model::{RaisedLimits, Timestamp};
use crate::policy::{Code, Limits, Policies};
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

    /// The policies of a store that holds these beside what it holds already, each with the same descriptor. Their code
    /// is kept where and as an installation keeps it; what is no component is installed all the same.
    pub(super) fn installed(
        mut self,
        components: Vec<(String, Vec<u8>)>,
        descriptor: &str,
        (cache, limits): (&Path, Limits),
    ) -> Policies {
        let codes: Vec<(String, Code)> = components
            .iter()
            .filter_map(|(digest, bytes)| Some((digest.clone(), compiled(digest, bytes).ok()?)))
            .collect();
        for (digest, bytes) in components {
            self.add(&digest, descriptor, bytes);
        }
        let policies = Policies::new(Arc::new(self.into_store()), cache, limits);
        for (digest, code) in codes {
            policies.keep(&digest, &code);
        }
        policies
    }

    pub(super) fn into_store(self) -> MemoryStore {
        let store = MemoryStore::named("policies");
        store.install(&self.0, &[], &[]).expect("a store in memory");
        store
    }
}

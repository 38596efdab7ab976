//! Which policy governs what: pins, activations, look-ups, and the calls that need a component.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::component::InstancePre;

use super::cache::Cache;
use super::calls::{Assessed, Callable, GuardRequest, Judged, Observed, VerdictRequest};
use super::engine::engine;
use super::fault::PolicyFault;
use super::instance::{CallState, link};
use super::limits::Limits;
use super::text::line;
use crate::model::{Fields, Lifecycle, PolicyPin};
use crate::store::{ComponentRecord, Store, StoreError};

/// The policies of one store.
pub struct Policies {
    store: Arc<dyn Store>,
    cache: Cache,
    limits: Limits,
    lifecycles: Mutex<HashMap<String, Arc<Lifecycle>>>,
    linked: Mutex<HashMap<String, InstancePre<CallState>>>,
}

/// The policy in force for a kind.
#[derive(Clone, Debug)]
pub struct Selected {
    /// What entities created under it are pinned to.
    pub pin: PolicyPin,
    /// Its graph.
    pub lifecycle: Arc<Lifecycle>,
    /// Parameters as set at activation.
    pub parameters: Fields,
}

impl Policies {
    /// The policies of a store; compiled code is kept below `cache`.
    pub fn new(store: Arc<dyn Store>, cache: &Path, limits: Limits) -> Self {
        let cache = Cache::new(cache);
        Self {
            store,
            cache,
            limits,
            lifecycles: Mutex::default(),
            linked: Mutex::default(),
        }
    }

    /// What a component may use in one call.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// The graph of an installed component, by digest. None when it is not installed.
    ///
    /// # Errors
    /// The store cannot be read, or the stored descriptor is damaged.
    pub fn lifecycle(&self, digest: &str) -> Result<Option<Arc<Lifecycle>>, StoreError> {
        if let Some(known) = lock(&self.lifecycles).get(digest) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(text) = self.store.descriptor(digest)? else {
            return Ok(None);
        };
        let descriptor = serde_json::from_str(&text).map_err(|error| StoreError::Corrupt {
            path: "components".to_owned(),
            what: format!("the descriptor of {digest}: {error}"),
        })?;
        let lifecycle = Arc::new(Lifecycle::new(descriptor));
        lock(&self.lifecycles).insert(digest.to_owned(), Arc::clone(&lifecycle));
        Ok(Some(lifecycle))
    }

    /// The policy that entities of the kind are created under now. None when the kind has none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn active(&self, kind: &str) -> Result<Option<Selected>, StoreError> {
        let Some(activation) = self.store.activations(kind)?.into_iter().next() else {
            return Ok(None);
        };
        let Some(mut selected) = self.installed(&activation.digest)? else {
            return Ok(None);
        };
        selected.parameters = activation.parameters;
        Ok(Some(selected))
    }

    /// An installed policy, by digest.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn installed(&self, digest: &str) -> Result<Option<Selected>, StoreError> {
        let Some(lifecycle) = self.lifecycle(digest)? else {
            return Ok(None);
        };
        let descriptor = lifecycle.descriptor();
        let pin = PolicyPin {
            name: descriptor.name.clone(),
            version: descriptor.version.clone(),
            digest: digest.to_owned(),
        };
        Ok(Some(Selected {
            pin,
            lifecycle,
            parameters: Fields::new(),
        }))
    }

    /// The parameters in force for entities of a component: those of its newest activation, defaults filled in.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn parameters(&self, lifecycle: &Lifecycle, digest: &str) -> Result<Fields, StoreError> {
        let declared = &lifecycle.descriptor().parameters;
        if declared.is_empty() {
            return Ok(Fields::new());
        }
        let activations = self.store.activations(lifecycle.kind())?;
        let set = activations.into_iter().find(|activation| activation.digest == digest);
        let set = set.map(|activation| activation.parameters).unwrap_or_default();
        let value = |name: &str, default: &serde_json::Value| set.get(name).unwrap_or(default).clone();
        Ok(declared
            .iter()
            .map(|p| (p.name.clone(), value(&p.name, &p.default)))
            .collect())
    }

    /// Whether the component exports the optional interface: `guard`, `execution`, `health`, `migrate`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn exports(&self, digest: &str, interface: &str) -> Result<bool, StoreError> {
        let suffix = format!("/{interface}@");
        let components = self.store.components()?;
        let record = components.iter().find(|component| component.digest == digest);
        Ok(record.is_some_and(|record| record.exports.iter().any(|export| export.contains(&suffix))))
    }

    /// Asks the guard of a pinned policy: none when it admits, else its code and words.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller refuses.
    pub fn guard(&self, pin: &PolicyPin, asked: GuardRequest<'_>) -> Result<Option<(String, String)>, PolicyFault> {
        self.with(pin, |callable, lifecycle| callable.guard(lifecycle, asked))
    }

    /// Asks the verdict function of a pinned policy what an ending means.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller writes the rule's "verdict failed".
    pub fn verdict(&self, pin: &PolicyPin, asked: &VerdictRequest<'_>) -> Result<Judged, PolicyFault> {
        self.with(pin, |callable, lifecycle| callable.verdict(lifecycle, asked))
    }

    /// Asks the health function of a pinned policy how an entity is.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller says that health is not known.
    pub fn assess(&self, pin: &PolicyPin, seen: &Observed<'_>) -> Result<Assessed, PolicyFault> {
        self.with(pin, |callable, lifecycle| callable.assess(lifecycle, seen))
    }

    /// Makes the component callable, from memory, the cache of compiled code, or its bytes.
    fn with<R>(
        &self,
        pin: &PolicyPin,
        call: impl FnOnce(&Callable<'_>, &Lifecycle) -> Result<R, PolicyFault>,
    ) -> Result<R, PolicyFault> {
        let label = format!("{}@{}", pin.name, pin.version);
        let from_store = |source| PolicyFault::Store {
            policy: label.clone(),
            source,
        };
        let absent = || PolicyFault::NotLoadable {
            policy: label.clone(),
            why: "it is not installed".to_owned(),
        };
        let lifecycle = self.lifecycle(&pin.digest).map_err(from_store)?.ok_or_else(absent)?;
        let known = lock(&self.linked).get(&pin.digest).cloned();
        let pre = match known {
            Some(pre) => pre,
            None => {
                let pre = self.link(pin).map_err(|error| PolicyFault::NotLoadable {
                    policy: label.clone(),
                    why: line(&format!("{error:#}")),
                })?;
                lock(&self.linked).insert(pin.digest.clone(), pre.clone());
                pre
            }
        };
        call(&Callable::new(&label, &pre, self.limits), &lifecycle)
    }

    fn link(&self, pin: &PolicyPin) -> wasmtime::Result<InstancePre<CallState>> {
        let bytes = || {
            let bytes = self.store.component_bytes(&pin.digest).map_err(wasmtime::Error::new)?;
            bytes.ok_or_else(|| wasmtime::Error::msg("it is not installed"))
        };
        let component = self.cache.component(engine()?, &pin.digest, bytes)?;
        link(&component)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is behind it is a cache: whole after every insertion, whatever panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The components that a user's words mean: `name`, `name@1` (the newest 1.x), `name@1.2.3`, or a digest prefix of at
/// least 8 characters. Newest version first; `name` alone is every version of it.
pub fn select<'a>(components: &'a [ComponentRecord], words: &str) -> Vec<&'a ComponentRecord> {
    const DIGEST_PREFIX_CHARS_MIN: usize = 8;
    let is_digest = words.len() >= DIGEST_PREFIX_CHARS_MIN && words.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (name, version) = words
        .split_once('@')
        .map_or((words, None), |(name, version)| (name, Some(version)));
    let version_fits = |record: &ComponentRecord| {
        version.is_none_or(|wanted| {
            record.version == wanted
                || record
                    .version
                    .strip_prefix(wanted)
                    .is_some_and(|rest| rest.starts_with('.'))
                || (wanted.len() >= DIGEST_PREFIX_CHARS_MIN && record.digest.starts_with(wanted))
        })
    };
    let mut found: Vec<&ComponentRecord> = components
        .iter()
        .filter(|record| {
            (record.name == name && version_fits(record)) || (is_digest && record.digest.starts_with(words))
        })
        .collect();
    found.sort_by(|a, b| {
        version_key(&b.version)
            .cmp(&version_key(&a.version))
            .then(b.installed_at.cmp(&a.installed_at))
    });
    found
}

/// Orders versions by their numbers; a prerelease comes before its release.
pub(crate) fn version_key(version: &str) -> (Vec<u64>, bool, String) {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let numbers = core.split('.').map(|part| part.parse().unwrap_or(0)).collect();
    let is_release = !version.contains('-');
    (numbers, is_release, version.to_owned())
}

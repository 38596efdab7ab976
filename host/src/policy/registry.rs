//! Which policy governs what: pins, activations, look-ups, and the calls that need a component.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cache::Cache;
use super::calls::{GuardRequest, HealthRequest, Judged, MapRequest, VerdictRequest};
use super::code::Code;
use super::engine::engine;
use super::fault::PolicyFault;
use super::instance::{Linked, link};
use super::limits::Limits;
use super::ready::Ready;
use super::text::line;
use crate::model::{
    BoundHandler, Descriptor, Fields, HandlerDescriptor, Health, Lifecycle, Mapped, PlannedDispatch, PolicyPin,
};
use crate::store::{ComponentRecord, Store, StoreError};

/// The policies of one store.
pub struct Policies {
    store: Arc<dyn Store>,
    pub(super) cache: Cache,
    limits: Limits,
    pub(super) lifecycles: Mutex<HashMap<String, Arc<Lifecycle>>>,
    handlers: Mutex<HashMap<String, Arc<HandlerDescriptor>>>,
    pub(super) linked: Mutex<HashMap<String, Linked>>,
    /// Limits of candidates, which no store knows.
    pub(super) tried: Mutex<HashMap<String, Limits>>,
    /// Limits of installed components, and when they were read.
    limited: Mutex<HashMap<String, (Instant, Limits)>>,
}

/// How long limits are used without being read again: a call is short beside a read, and what serves need not be restarted
/// when they are raised.
const LIMITS_KEPT: Duration = Duration::from_secs(1);

/// The policy in force for a kind.
#[derive(Clone, Debug)]
pub struct Selected {
    /// What entities created under it are pinned to.
    pub pin: PolicyPin,
    /// Its graph.
    pub lifecycle: Arc<Lifecycle>,
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
            handlers: Mutex::default(),
            linked: Mutex::default(),
            tried: Mutex::default(),
            limited: Mutex::default(),
        }
    }

    /// What a component may use in one call, unless limits were raised for it.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// What an installed component may use in one call, or a candidate.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn limits_of(&self, digest: &str) -> Result<Limits, StoreError> {
        if let Some(limits) = lock(&self.tried).get(digest) {
            return Ok(*limits);
        }
        Ok(self.limits.raised(&self.store.raised_limits(digest)?))
    }

    /// The same, read a second ago at most.
    fn limits_of_late(&self, digest: &str) -> Result<Limits, StoreError> {
        if let Some((read_at, limits)) = lock(&self.limited).get(digest)
            && read_at.elapsed() < LIMITS_KEPT
        {
            return Ok(*limits);
        }
        let limits = self.limits_of(digest)?;
        lock(&self.limited).insert(digest.to_owned(), (Instant::now(), limits));
        Ok(limits)
    }

    /// The graph of an installed policy, by digest. None when there is no policy of that digest.
    ///
    /// # Errors
    /// The store cannot be read, or the stored descriptor is damaged.
    pub fn lifecycle(&self, digest: &str) -> Result<Option<Arc<Lifecycle>>, StoreError> {
        if let Some(known) = lock(&self.lifecycles).get(digest) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(descriptor) = self.described::<Descriptor, HandlerDescriptor>(digest)? else {
            return Ok(None);
        };
        let lifecycle = Arc::new(Lifecycle::new(descriptor));
        lock(&self.lifecycles).insert(digest.to_owned(), Arc::clone(&lifecycle));
        Ok(Some(lifecycle))
    }

    /// What an installed handler says of itself, by digest. None when there is no handler of that digest.
    ///
    /// # Errors
    /// The store cannot be read, or the stored descriptor is damaged.
    pub fn handler(&self, digest: &str) -> Result<Option<Arc<HandlerDescriptor>>, StoreError> {
        if let Some(known) = lock(&self.handlers).get(digest) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(descriptor) = self.described::<HandlerDescriptor, Descriptor>(digest)? else {
            return Ok(None);
        };
        let descriptor = Arc::new(descriptor);
        lock(&self.handlers).insert(digest.to_owned(), Arc::clone(&descriptor));
        Ok(Some(descriptor))
    }

    /// The stored descriptor of a component, if it is of this sort and not of the other: the two have no common form.
    fn described<Wanted: DeserializeOwned, Other: DeserializeOwned>(
        &self,
        digest: &str,
    ) -> Result<Option<Wanted>, StoreError> {
        let Some(text) = self.store.descriptor(digest)? else {
            return Ok(None);
        };
        match serde_json::from_str(&text) {
            Ok(descriptor) => Ok(Some(descriptor)),
            Err(_) if serde_json::from_str::<Other>(&text).is_ok() => Ok(None),
            Err(error) => Err(StoreError::Corrupt {
                path: "components".to_owned(),
                what: format!("the descriptor of {digest}: {error}"),
            }),
        }
    }

    /// The policy that entities of the kind are created under now. None when the kind has none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn active(&self, kind: &str) -> Result<Option<Selected>, StoreError> {
        let Some(activation) = self.store.activations(kind)?.into_iter().next() else {
            return Ok(None);
        };
        self.under(&activation.digest, activation.parameters)
    }

    /// An installed policy, by digest, with the parameters of its newest activation; none are set when it never had one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn installed(&self, digest: &str) -> Result<Option<Selected>, StoreError> {
        let Some(lifecycle) = self.lifecycle(digest)? else {
            return Ok(None);
        };
        let mut activations = if lifecycle.descriptor().parameters.is_empty() {
            Vec::new()
        } else {
            self.store.activations(lifecycle.kind())?
        };
        activations.retain(|activation| activation.digest == digest);
        let newest = activations.into_iter().next();
        self.under(
            digest,
            newest.map(|activation| activation.parameters).unwrap_or_default(),
        )
    }

    /// The policy that an entity is pinned to.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn pinned(&self, pin: &PolicyPin) -> Result<Option<Selected>, StoreError> {
        self.under(&pin.digest, pin.parameters.clone())
    }

    fn under(&self, digest: &str, parameters: Fields) -> Result<Option<Selected>, StoreError> {
        let Some(lifecycle) = self.lifecycle(digest)? else {
            return Ok(None);
        };
        let descriptor = lifecycle.descriptor();
        let pin = PolicyPin {
            name: descriptor.name.clone(),
            version: descriptor.version.clone(),
            digest: digest.to_owned(),
            parameters,
        };
        Ok(Some(Selected { pin, lifecycle }))
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
        self.ready(pin)?.guard(asked)
    }

    /// Asks the verdict function of a pinned policy what an ending means.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller writes the rule's "verdict failed".
    pub fn verdict(&self, pin: &PolicyPin, asked: &VerdictRequest<'_>) -> Result<Judged, PolicyFault> {
        self.ready(pin)?.verdict(asked)
    }

    /// Asks the health function of a pinned policy how an entity is.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller says that health is not known.
    pub fn assess(&self, pin: &PolicyPin, asked: HealthRequest<'_>) -> Result<Health, PolicyFault> {
        self.ready(pin)?.assess(asked)
    }

    /// Asks the mapping function of a policy where an entity of another one goes.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller leaves the entity where it is.
    pub fn map(&self, pin: &PolicyPin, asked: MapRequest<'_>) -> Result<Mapped, PolicyFault> {
        self.ready(pin)?.map(asked)
    }

    /// Asks a bound handler what is to be sent of an event. It may take at most `left`, and never longer than any call;
    /// code that is not in the cache is compiled first, which is not counted.
    ///
    /// # Errors
    /// [`PolicyFault`]; the caller leaves the event owed to the binding.
    pub fn plan(
        &self,
        handler: &BoundHandler,
        envelope: &Value,
        left: Duration,
    ) -> Result<Vec<PlannedDispatch>, PolicyFault> {
        let label = &handler.component;
        let found = self.handler(&handler.digest);
        let descriptor = found.map_err(from_store(label))?.ok_or_else(|| absent(label))?;
        let linked = self.linked(label, &handler.digest)?;
        let limits = self.limits_of_late(&handler.digest).map_err(from_store(label))?;
        let ready = Ready::new(label.clone(), descriptor, linked, limits).within(left);
        ready.plan(handler, envelope)
    }

    /// Keeps the code of a component that was compiled to be checked, so that its first call need not compile it in this
    /// process, unbounded. What cannot be kept costs time only.
    pub fn keep(&self, digest: &str, code: &Code) {
        if let Ok(engine) = engine() {
            self.cache.keep(engine, digest, code);
        }
    }

    /// An installed policy, ready to be asked.
    ///
    /// # Errors
    /// It is not installed, or cannot be loaded.
    pub(super) fn ready(&self, pin: &PolicyPin) -> Result<Ready<Lifecycle>, PolicyFault> {
        let label = format!("{}@{}", pin.name, pin.version);
        let found = self.lifecycle(&pin.digest);
        let lifecycle = found.map_err(from_store(&label))?.ok_or_else(|| absent(&label))?;
        let linked = self.linked(&label, &pin.digest)?;
        let limits = self.limits_of_late(&pin.digest).map_err(from_store(&label))?;
        Ok(Ready::new(label, lifecycle, linked, limits))
    }

    /// The component ready to be called, from memory, the cache of compiled code, or its bytes.
    pub(super) fn linked(&self, label: &str, digest: &str) -> Result<Linked, PolicyFault> {
        if let Some(known) = lock(&self.linked).get(digest) {
            return Ok(known.clone());
        }
        let made = self.link(digest).map_err(|error| PolicyFault::NotLoadable {
            policy: label.to_owned(),
            why: line(&format!("{error:#}")),
        })?;
        lock(&self.linked).insert(digest.to_owned(), made.clone());
        Ok(made)
    }

    fn link(&self, digest: &str) -> wasmtime::Result<Linked> {
        let bytes = || {
            let bytes = self.store.component_bytes(digest).map_err(wasmtime::Error::new)?;
            bytes.ok_or_else(|| wasmtime::Error::msg("it is not installed"))
        };
        let component = self.cache.component(engine()?, digest, bytes)?;
        link(&component)
    }
}

fn from_store(label: &str) -> impl Fn(StoreError) -> PolicyFault {
    |source| PolicyFault::Store {
        policy: label.to_owned(),
        source,
    }
}

fn absent(label: &str) -> PolicyFault {
    PolicyFault::NotLoadable {
        policy: label.to_owned(),
        why: "it is not installed".to_owned(),
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
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

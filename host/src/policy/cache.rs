//! Compiled code kept between processes: private, keyed, disposable.
//!
//! Loading compiled code runs it without checks, so an entry is used only if its keyed digest, made with a key that only
//! this user can read, is right for this component, and if nobody else can put files beside it. On any doubt the
//! component is compiled again; deleting the directory costs time only.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use wasmtime::Engine;
use wasmtime::component::Component;

use super::code::{Code, load};

/// Length of an HMAC-SHA256, and of its key.
const MAC_BYTES: usize = 32;

/// Permissions that let somebody else read, write or enter.
const OPEN_TO_OTHERS: u32 = 0o077;

/// Permissions that let somebody else put a file into a directory.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The directory of compiled components.
#[derive(Debug)]
pub(super) struct Cache {
    directory: PathBuf,
    compiled: AtomicUsize,
}

impl Cache {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            compiled: AtomicUsize::new(0),
        }
    }

    /// How many components were compiled because no entry could be used.
    #[cfg(test)]
    pub(super) fn compiled(&self) -> usize {
        self.compiled.load(Ordering::Relaxed)
    }

    /// The compiled component, from the cache or from its bytes.
    pub(super) fn component(
        &self,
        engine: &Engine,
        digest: &str,
        bytes: impl FnOnce() -> wasmtime::Result<Vec<u8>>,
    ) -> wasmtime::Result<Component> {
        let path = self.directory.join(entry_name(engine, digest));
        let key = self.key();
        if let Some(component) = key.as_ref().and_then(|key| read(engine, &path, key)) {
            return Ok(component);
        }
        // In this process: what was installed was compiled within bounds once, and the same again takes the same.
        let component = Component::new(engine, bytes()?)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if let Some(key) = key
            && let Err(error) = component.serialize().and_then(|code| Ok(write(&path, &code, &key)?))
        {
            tracing::debug!(%error, path = %path.display(), "compiled code is not kept");
        }
        Ok(component)
    }

    /// Whether code of the component is kept, as far as can be told without reading it.
    pub(super) fn holds(&self, engine: &Engine, digest: &str) -> bool {
        self.directory.join(entry_name(engine, digest)).exists()
    }

    /// Keeps code that was compiled for another reason, so that the first call of the component need not compile it.
    pub(super) fn keep(&self, engine: &Engine, digest: &str, code: &Code) {
        let path = self.directory.join(entry_name(engine, digest));
        let Some(key) = self.key() else { return };
        if let Err(error) = write(&path, code.bytes(), &key) {
            tracing::debug!(%error, path = %path.display(), "compiled code is not kept");
        }
    }

    /// The key of the keyed digests, made on first use. None when the directory cannot hold one: then nothing is kept.
    fn key(&self) -> Option<[u8; MAC_BYTES]> {
        let owner = private(&self.directory)?;
        let path = self.directory.join("key");
        if let Some(key) = stored_key(&path, owner) {
            return Some(key);
        }
        let mut key = [0; MAC_BYTES];
        getrandom::fill(&mut key).ok()?;
        publish(&path, &[&key]).ok()?;
        // Another process may have been first; what is on disk counts.
        stored_key(&path, owner)
    }
}

/// Makes the directory, and gives its owner if that is this user and nobody else could ever write in it.
fn private(directory: &Path) -> Option<u32> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .ok()?;
    let found = fs::metadata(directory).ok()?;
    let is_ours = fs::metadata("/proc/self").map_or(true, |process| process.uid() == found.uid());
    if !is_ours || found.mode() & WRITABLE_BY_OTHERS != 0 {
        tracing::warn!(path = %directory.display(), "others can write here: compiled code is neither kept nor used");
        return None;
    }
    if found.mode() & OPEN_TO_OTHERS != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).ok()?;
    }
    Some(found.uid())
}

/// The key, if it is a file of its owner's that nobody else can read.
fn stored_key(path: &Path, owner: u32) -> Option<[u8; MAC_BYTES]> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.uid() != owner || found.mode() & OPEN_TO_OTHERS != 0 {
        return None;
    }
    fs::read(path).ok()?.try_into().ok()
}

/// Compiled code fits one engine configuration, one wasmtime and one processor family.
fn entry_name(engine: &Engine, digest: &str) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let compatibility = hasher.finish();
    format!("{digest}-{compatibility:016x}-{}.bin", std::env::consts::ARCH)
}

/// The keyed digest of an entry. Its name is part of it, so that one component's code never stands in for another's.
fn mac(key: &[u8; MAC_BYTES], path: &Path, code: &[u8]) -> Hmac<Sha256> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(&name.len().to_le_bytes());
    mac.update(name);
    mac.update(code);
    mac
}

fn read(engine: &Engine, path: &Path, key: &[u8; MAC_BYTES]) -> Option<Component> {
    let entry = fs::read(path).ok()?;
    let (tag, code) = entry.split_at_checked(MAC_BYTES)?;
    if mac(key, path, code).verify_slice(tag).is_err() {
        tracing::warn!(path = %path.display(), "compiled code does not match its keyed digest: compiling again");
        return None;
    }
    // SAFETY: the bytes are what `serialize` gave for this component: only a holder of the private key could have made
    // the tag.
    unsafe { load(engine, code) }.ok()
}

fn write(path: &Path, code: &[u8], key: &[u8; MAC_BYTES]) -> std::io::Result<()> {
    let tag = mac(key, path, code).finalize().into_bytes();
    publish(path, &[&tag, code])
}

/// Writes under a name of its own, then renames: a reader sees all of it or nothing.
fn publish(path: &Path, parts: &[&[u8]]) -> std::io::Result<()> {
    let mut suffix = [0; 8];
    getrandom::fill(&mut suffix).map_err(std::io::Error::other)?;
    let temporary = path.with_extension(format!("{:016x}.tmp", u64::from_le_bytes(suffix)));
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| {
            parts.iter().try_for_each(|part| file.write_all(part))?;
            fs::rename(&temporary, path)
        });
    if written.is_err() {
        // The error that matters is the first one.
        let _ = fs::remove_file(&temporary);
    }
    written
}

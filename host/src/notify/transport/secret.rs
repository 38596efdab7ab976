//! Values that are named in the settings and read when they are used.

use std::ffi::OsString;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::{SecretReference, Source};
use crate::process::read_regular;

/// The most bytes of a file that holds a secret, a URL or certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What a secret begins with that is written as Standard Webhooks says.
pub(super) const PREFIX: &str = "whsec_";

/// The key of a signature. It has no `Debug`, and is told nowhere.
pub(super) struct Secret {
    pub(super) key: Vec<u8>,
    /// As it was written.
    pub(super) text: String,
}

/// The value of a setting; what is wrong otherwise, without the value.
pub(super) fn value(source: &Source, variable: fn(&str) -> Option<OsString>) -> Result<String, String> {
    let (bytes, place) = match source {
        Source::Given(text) => return Ok(text.clone()),
        Source::Env(name) => (of_variable(name, variable)?, named(name)),
        Source::File(path) => (of_file(path)?, path.clone()),
    };
    let text = String::from_utf8(bytes).map_err(|_| format!("{place} is not UTF-8"))?;
    Ok(text.trim().to_owned())
}

/// A secret; what is wrong otherwise, without the secret.
pub(super) fn secret(reference: &SecretReference, variable: fn(&str) -> Option<OsString>) -> Result<Secret, String> {
    let (bytes, place) = match reference {
        SecretReference::Env(name) => (of_variable(name, variable)?, named(name)),
        SecretReference::File(path) => (of_file(path)?, format!("the secret file {path}")),
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let key = key(&text, bytes).ok_or_else(|| format!("{place} holds no base64 after `{PREFIX}`"))?;
    match key.is_empty() {
        true => Err(format!("{place} is empty")),
        false => Ok(Secret { key, text }),
    }
}

/// The key that a secret stands for; none when what it announces is not base64.
pub(super) fn key(text: &str, bytes: Vec<u8>) -> Option<Vec<u8>> {
    match text.strip_prefix(PREFIX) {
        Some(encoded) => STANDARD.decode(encoded).ok(),
        None => Some(bytes),
    }
}

/// What a file of the settings holds, certificates for one.
pub(super) fn of_file(path: &str) -> Result<Vec<u8>, String> {
    let bytes = read_regular(Path::new(path), FILE_BYTES_MAX);
    filled(bytes.map_err(|error| format!("{path} cannot be read: {error}"))?, path)
}

fn of_variable(name: &str, variable: fn(&str) -> Option<OsString>) -> Result<Vec<u8>, String> {
    let place = named(name);
    let value = variable(name).ok_or_else(|| format!("{place} is not set"))?;
    filled(value.into_encoded_bytes(), &place)
}

/// Without the end of its line.
fn filled(mut bytes: Vec<u8>, place: &str) -> Result<Vec<u8>, String> {
    while matches!(bytes.last(), Some(b'\n' | b'\r')) {
        bytes.pop();
    }
    match bytes.is_empty() {
        true => Err(format!("{place} is empty")),
        false => Ok(bytes),
    }
}

fn named(variable: &str) -> String {
    format!("the variable {variable}")
}

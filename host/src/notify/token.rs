//! The token that acknowledges a dispatch: derived from its id at each attempt and each check, stored nowhere.
//!
//! The key is a file of the home, made on first need and linked to its name when it is whole: of several that make one at
//! once the first counts for all. If we die half-way a file with another name is left, which nobody reads.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::process::read_regular;

/// The key's file in the home.
pub const KEY_FILE: &str = "ack.key";

/// Length of an HMAC-SHA256, and of its key.
const KEY_BYTES: usize = 32;
/// Permissions that let somebody else read or write.
const OPEN_TO_OTHERS: u32 = 0o077;

/// Why no token can be derived or checked.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The key cannot be read or made.
    #[error("cannot {doing} the key of acknowledgements {}", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// The key's file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// Others could read the key: it proves nothing.
    #[error("the key of acknowledgements {} can be read or written by others", path.display())]
    Exposed {
        /// The key's file.
        path: PathBuf,
    },
    /// The file has not the length of a key.
    #[error("{} is not a key of acknowledgements", path.display())]
    Damaged {
        /// The key's file.
        path: PathBuf,
    },
}

/// The token of a dispatch, in hexadecimal; makes the home's key on first need.
///
/// # Errors
/// The key cannot be made, read or trusted.
pub fn token(home: &Path, dispatch_id: &str) -> Result<String, KeyError> {
    let path = home.join(KEY_FILE);
    let key = match stored(&path)? {
        Some(key) => key,
        None => {
            make(home, &path).map_err(failed("make", &path))?;
            let absent = || failed("read", &path)(ErrorKind::NotFound.into());
            stored(&path)?.ok_or_else(absent)?
        }
    };
    let tag = mac(&key, dispatch_id).finalize().into_bytes();
    Ok(tag.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether a token is that of the dispatch, in a time that tells nothing of how much of it is right.
///
/// # Errors
/// The key cannot be read or trusted; a home that has none gave no token.
pub fn verifies(home: &Path, dispatch_id: &str, token: &str) -> Result<bool, KeyError> {
    let Some(key) = stored(&home.join(KEY_FILE))? else {
        return Ok(false);
    };
    let presented = decoded(token);
    Ok(presented.is_some_and(|tag| mac(&key, dispatch_id).verify_slice(&tag).is_ok()))
}

fn mac(key: &[u8; KEY_BYTES], dispatch_id: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(dispatch_id.as_bytes());
    mac
}

/// The key; none when there is no file.
fn stored(path: &Path) -> Result<Option<[u8; KEY_BYTES]>, KeyError> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed("read", path))?,
    };
    if found.mode() & OPEN_TO_OTHERS != 0 {
        return Err(KeyError::Exposed { path: path.to_owned() });
    }
    let bytes = read_regular(path, KEY_BYTES as u64).map_err(failed("read", path))?;
    let damaged = |_| KeyError::Damaged { path: path.to_owned() };
    bytes.try_into().map(Some).map_err(damaged)
}

/// Makes a key, unless another was first.
fn make(home: &Path, path: &Path) -> io::Result<()> {
    let mut random = [0; KEY_BYTES + 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let (key, suffix) = random.split_at(KEY_BYTES);
    let suffix: String = suffix.iter().map(|byte| format!("{byte:02x}")).collect();
    let temporary = path.with_extension(format!("{suffix}.tmp"));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let linked = options.open(&temporary).and_then(|mut file| {
        file.write_all(key)?;
        file.sync_all()?;
        fs::hard_link(&temporary, path)
    });
    // What matters is whether the key has its name.
    let _ = fs::remove_file(&temporary);
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => File::open(home)?.sync_all(),
    }
}

fn decoded(token: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = token.chars().map(|digit| digit.to_digit(16)).collect();
    let (pairs, []) = digits.as_deref()?.as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| u8::try_from(high * 16 + low).ok())
        .collect()
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KeyError {
    let path = path.to_owned();
    move |source| KeyError::File { doing, path, source }
}

#[cfg(test)]
mod tests;

//! A component from outside: a file with its signature beside it, or an image layout.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use runwarden_host::Error;
use runwarden_host::policy::Limits;
use runwarden_host::provenance::{Imported, Signature, Trust, component_of};

use super::find::read;
use crate::context::Context;
use crate::errors::{Failure, Outcome};
use crate::notify::files;

/// The end of a signature's file, behind the whole name of what is signed.
const SIGNATURE_END: &str = ".sig";

/// Whom the settings trust; what else is wrong with them is said, and holds nobody up.
///
/// # Errors
/// What they say of trust cannot be understood.
pub(super) fn trusted(context: &Context) -> Outcome<Trust> {
    let (trust, problems) = runwarden_host::verbs::trust(&files())?;
    if let Some(problem) = problems.first() {
        context.output.warn(&format!("settings: {problem}"));
    }
    Ok(trust)
}

/// Reads what is offered at a path. The signature of a file is in the file given, else beside it if there is one.
///
/// # Errors
/// It cannot be read, or is not what it says.
pub(super) fn offered(path: &Path, signature: Option<&Path>) -> Outcome<Imported> {
    if path.is_dir() {
        if signature.is_some() {
            let failure = Failure::usage("an image layout has its signatures in it");
            return Err(failure.hint("leave --signature out"));
        }
        let bytes_max = Limits::DEFAULT.component_bytes;
        let imported = component_of(bytes_max, |name, limit| bounded(&path.join(name), limit));
        return Ok(imported.map_err(Error::from)?);
    }
    let bytes = read(path)?;
    let beside = signature_path(path);
    let file = match signature {
        Some(given) => Some(given),
        None => Some(beside.as_path()).filter(|beside| beside.exists()),
    };
    let signatures = file.map(signature_of).transpose()?.into_iter().collect();
    Ok(Imported { bytes, signatures })
}

/// Where the signature of a file is, unless it is said to be elsewhere.
pub(super) fn signature_path(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(SIGNATURE_END);
    PathBuf::from(name)
}

fn signature_of(path: &Path) -> Outcome<Signature> {
    let text = bounded(path, Signature::FILE_BYTES_MAX).map_err(|why| {
        Failure::new(
            crate::exit::Exit::UNUSABLE,
            "file",
            format!("cannot read {}", path.display()),
        )
        .cause(why)
    })?;
    let text = String::from_utf8_lossy(&text);
    Ok(Signature::from_file(&text).map_err(Error::from)?)
}

/// A file of at most so many bytes.
fn bounded(path: &Path, limit: usize) -> Result<Vec<u8>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(told)?;
    if !file.metadata().map_err(told)?.is_file() {
        return Err(format!("{} is no regular file", path.display()));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes).map_err(told)?;
    if bytes.len() > limit {
        return Err(format!("{} has more than {limit} bytes", path.display()));
    }
    Ok(bytes)
}

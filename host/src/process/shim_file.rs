//! The shim's own file: written out under its digest, so that a live run keeps its version through an upgrade.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::ProcessError;
use super::rundir::write_whole;

/// Digits of the digest in the file's name.
const DIGITS: usize = 16;

/// Makes sure that the shim is in the cache, as `shim-<digest>`, mode 0700; its path. A file that is there is used
/// only if it is ours and has exactly these bytes, else it is replaced.
///
/// # Errors
/// When the cache cannot be written.
pub fn install_shim(cache: &Path, bytes: &[u8]) -> Result<PathBuf, ProcessError> {
    let digest = Sha256::digest(bytes);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("shim-{}", &digits[..DIGITS]);
    let path = cache.join(&name);
    if is_ours(&path) && fs::read(&path).is_ok_and(|found| found == bytes) {
        return Ok(path);
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(cache);
    made.map_err(ProcessError::file("create", cache))?;
    write_whole(cache, &name, bytes, 0o700)
}

fn is_ours(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.uid() == own && found.mode() & 0o777 == 0o700)
}

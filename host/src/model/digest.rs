//! Digests as text.

use sha2::{Digest as _, Sha256};

/// SHA-256 of these bytes, in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string cannot fail");
            text
        })
}

//! A detached signature, and its file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::file::{ALGORITHM, payload, read, written};
use super::{KeyId, Untrusted};

/// A detached signature over bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The key that it names.
    pub key: KeyId,
    /// The signature.
    pub bytes: [u8; 64],
}

impl Signature {
    /// The largest file of a signature: its comment is one line.
    pub const FILE_BYTES_MAX: usize = 4 << 10;

    /// Reads the file of a signature.
    ///
    /// # Errors
    /// It is no such file.
    pub fn from_file(text: &str) -> Result<Self, Untrusted> {
        Ok(Self::of(&read("signature", text)?))
    }

    /// Reads the second line of its file.
    ///
    /// # Errors
    /// It is no such line.
    pub fn from_line(line: &str) -> Result<Self, Untrusted> {
        let payload = payload::<74>(line).ok_or_else(|| Untrusted::Malformed {
            what: "signature",
            why: "it is not what it should be".to_owned(),
        })?;
        Ok(Self::of(&payload))
    }

    /// The second line of its file.
    pub fn to_line(&self) -> String {
        STANDARD.encode(self.payload())
    }

    /// The file of the signature.
    pub fn to_file(&self) -> String {
        written(&format!("signed by key {}", self.key), &self.payload())
    }

    fn payload(&self) -> Vec<u8> {
        [&ALGORITHM[..], &self.key.0, &self.bytes].concat()
    }

    fn of(payload: &[u8; 74]) -> Self {
        let (key, bytes) = payload[2..].split_at(8);
        Self {
            key: KeyId(key.try_into().expect("eight bytes")),
            bytes: bytes.try_into().expect("64 bytes"),
        }
    }
}

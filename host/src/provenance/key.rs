//! Ed25519 keys, and the files they are kept in.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, SHA512, digest};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use super::file::{ALGORITHM, payload, read, written};
use super::{Signature, Untrusted};

/// What settings write before a key.
const PREFIX: &str = "ed25519:";

/// Eight bytes that a signature names its key by. They prove nothing: they say which key to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId(pub [u8; 8]);

impl KeyId {
    /// The one of a key that was given none: the beginning of its digest.
    fn of(key: &[u8; 32]) -> Self {
        let digest = digest(&SHA256, key);
        Self(digest.as_ref()[..8].try_into().expect("a digest has 32 bytes"))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// The public half of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// What signatures name it by.
    pub id: KeyId,
    /// The key.
    pub bytes: [u8; 32],
}

impl PublicKey {
    /// The key of these bytes, under the id that its bytes give it.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self {
            id: KeyId::of(&bytes),
            bytes,
        }
    }

    /// Reads `ed25519:BASE64`: the key's 32 bytes, or the second line of signify's file, which has its id.
    pub fn from_setting(text: &str) -> Option<Self> {
        let text = text.strip_prefix(PREFIX)?;
        if let Some(bytes) = payload::<42>(text) {
            return Some(Self::with_id(&bytes));
        }
        let bytes: [u8; 32] = STANDARD.decode(text).ok()?.try_into().ok()?;
        Some(Self::new(bytes))
    }

    /// What settings write.
    pub fn to_setting(&self) -> String {
        if self.id == KeyId::of(&self.bytes) {
            return format!("{PREFIX}{}", STANDARD.encode(self.bytes));
        }
        format!("{PREFIX}{}", STANDARD.encode(self.payload()))
    }

    /// The file of the key.
    pub fn to_file(&self) -> String {
        written("signify public key", &self.payload())
    }

    /// Whether the signature is of these bytes, by this key.
    pub fn verifies(&self, bytes: &[u8], signature: &Signature) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.bytes);
        key.verify(bytes, &signature.bytes).is_ok()
    }

    fn payload(&self) -> Vec<u8> {
        [&ALGORITHM[..], &self.id.0, &self.bytes].concat()
    }

    fn with_id(payload: &[u8; 42]) -> Self {
        let (id, bytes) = payload[2..].split_at(8);
        Self {
            id: KeyId(id.try_into().expect("eight bytes")),
            bytes: bytes.try_into().expect("32 bytes"),
        }
    }
}

/// The secret half of a key. Its file has no passphrase: it is kept as private as its directory is.
pub struct SecretKey {
    id: KeyId,
    pair: Ed25519KeyPair,
    seed: [u8; 32],
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretKey({})", self.id)
    }
}

/// What stands in a secret file behind the algorithm: the key derivation, of which no rounds are none, its salt, the
/// beginning of the digest of the key, the id, and the key: seed and public half.
const CHECKSUM_AT: usize = 2 + 2 + 4 + 16;
const ID_AT: usize = CHECKSUM_AT + 8;
const SEED_AT: usize = ID_AT + 8;
const FILE_BYTES: usize = SEED_AT + 64;
const DERIVATION: [u8; 2] = *b"BK";

impl SecretKey {
    /// A new key.
    ///
    /// # Errors
    /// The system has no entropy to give.
    pub fn generate() -> std::io::Result<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(std::io::Error::other)?;
        Ok(Self::from_seed(seed))
    }

    /// The key of 32 random bytes.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("every 32 bytes are a seed");
        let bytes: [u8; 32] = pair
            .public_key()
            .as_ref()
            .try_into()
            .expect("a public key has 32 bytes");
        let id = KeyId::of(&bytes);
        Self { id, pair, seed }
    }

    /// Reads the file of a key that has no passphrase.
    ///
    /// # Errors
    /// It is no such file, it is damaged, or it has a passphrase.
    pub fn from_file(text: &str) -> Result<Self, Untrusted> {
        const WHAT: &str = "secret key";
        let malformed = |why: &str| Untrusted::Malformed {
            what: WHAT,
            why: why.to_owned(),
        };
        let bytes: [u8; FILE_BYTES] = read(WHAT, text)?;
        if bytes[2..4] != DERIVATION {
            return Err(malformed("its key derivation is not known"));
        }
        if bytes[4..8] != [0; 4] {
            return Err(malformed(
                "it has a passphrase: make one without, as `signify -G -n` does",
            ));
        }
        let key = &bytes[SEED_AT..];
        if digest(&SHA512, key).as_ref()[..8] != bytes[CHECKSUM_AT..ID_AT] {
            return Err(malformed("it is damaged"));
        }
        let seed: [u8; 32] = key[..32].try_into().expect("32 bytes");
        let pair = Ed25519KeyPair::from_seed_and_public_key(&seed, &key[32..])
            .map_err(|_| malformed("its halves do not belong together"))?;
        let id = KeyId(bytes[ID_AT..SEED_AT].try_into().expect("eight bytes"));
        Ok(Self { id, pair, seed })
    }

    /// The file of the key.
    pub fn to_file(&self) -> String {
        let key = [&self.seed[..], self.pair.public_key().as_ref()].concat();
        let checksum = digest(&SHA512, &key);
        let head = [&ALGORITHM[..], &DERIVATION, &[0; 4], &[0; 16], &checksum.as_ref()[..8]].concat();
        let payload = [&head[..], &self.id.0, &key].concat();
        written("signify secret key", &payload)
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey {
            id: self.id,
            bytes: self
                .pair
                .public_key()
                .as_ref()
                .try_into()
                .expect("a public key has 32 bytes"),
        }
    }

    /// Signs bytes.
    pub fn sign(&self, bytes: &[u8]) -> Signature {
        let signature = self.pair.sign(bytes);
        Signature {
            key: self.id,
            bytes: signature.as_ref().try_into().expect("a signature has 64 bytes"),
        }
    }
}

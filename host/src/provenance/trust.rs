//! Whom the user trusts, and what is refused for it.

use std::collections::BTreeMap;

use super::{PublicKey, Signature};

/// Whose signatures count, and whether one is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// What comes from outside needs a signature by one of the keys.
    pub require_signature: bool,
    /// Keys, by the name of whose they are.
    pub keys: BTreeMap<String, PublicKey>,
}

/// Why something is not let in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// A file that is none.
    #[error("the {what} cannot be read: {why}")]
    Malformed {
        /// What it should be.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Nobody is known by that key.
    #[error("it is signed by key {key}, which no setting knows")]
    UnknownKey {
        /// The key that the signature names.
        key: String,
    },
    /// The signature is not of these bytes.
    #[error("the signature by {signer} is not of these bytes: one of the two was changed")]
    OtherBytes {
        /// Whose key it names.
        signer: String,
    },
    /// A signature is needed and there is none that counts.
    #[error("{what} is not signed by anybody whom the settings know, and they require a signature")]
    Unsigned {
        /// The component.
        what: String,
    },
    /// What the settings say of it cannot be understood: nothing is let in until it can.
    #[error("the settings do not say whom to trust: {why}")]
    Settings {
        /// What is wrong with them.
        why: String,
    },
}

impl Trust {
    /// Whose key this is.
    pub fn signer(&self, key: &[u8]) -> Option<&str> {
        let mut known = self.keys.iter();
        known
            .find(|(_, public)| public.bytes == key)
            .map(|(name, _)| name.as_str())
    }

    /// Which of the signatures on these bytes count, each with its key. Signatures by keys that are not known are passed
    /// over where another one counts.
    ///
    /// # Errors
    /// [`Untrusted`]: there are some and none counts, one is not of these bytes, or there is none and one is needed.
    pub fn verify(&self, bytes: &[u8], signatures: &[Signature]) -> Result<Vec<(PublicKey, Signature)>, Untrusted> {
        let mut counting = Vec::new();
        for signature in signatures {
            let mut named = self.keys.iter().filter(|(_, key)| key.id == signature.key);
            let Some((name, key)) = named.next() else {
                continue;
            };
            if !key.verifies(bytes, signature) {
                return Err(Untrusted::OtherBytes { signer: name.clone() });
            }
            counting.push((*key, *signature));
        }
        match signatures.first() {
            Some(unknown) if counting.is_empty() => Err(Untrusted::UnknownKey {
                key: unknown.key.to_string(),
            }),
            None if self.require_signature => Err(Untrusted::Unsigned {
                what: "the component".to_owned(),
            }),
            _ => Ok(counting),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        reason = "a test ends at the first thing that is not as it should be"
    )]

    use super::super::{KeyId, SecretKey};
    use super::*;

    const BYTES: &[u8] = b"\0asm and more";

    fn trusting(name: &str, key: PublicKey) -> Trust {
        Trust {
            require_signature: true,
            keys: BTreeMap::from([(name.to_owned(), key)]),
        }
    }

    #[test]
    fn a_signature_counts_for_its_bytes_and_its_key_alone() {
        let (ann, bob) = (SecretKey::from_seed([1; 32]), SecretKey::from_seed([2; 32]));
        let trust = trusting("ann", ann.public());
        let (hers, his) = (ann.sign(BYTES), bob.sign(BYTES));
        assert_eq!(trust.verify(BYTES, &[hers]), Ok(vec![(ann.public(), hers)]));
        assert_eq!(trust.verify(BYTES, &[his, hers]), Ok(vec![(ann.public(), hers)]));
        let other = trust.verify(b"\0asm and less", &[hers]);
        assert_eq!(
            other.unwrap_err().to_string(),
            "the signature by ann is not of these bytes: one of the two was changed"
        );
        let unknown = trust.verify(BYTES, &[his]).unwrap_err();
        assert!(matches!(unknown, Untrusted::UnknownKey { .. }), "{unknown}");
        let mut forged = his;
        forged.key = ann.public().id;
        assert!(matches!(
            trust.verify(BYTES, &[hers, forged]),
            Err(Untrusted::OtherBytes { .. })
        ));
        assert!(matches!(trust.verify(BYTES, &[]), Err(Untrusted::Unsigned { .. })));
        assert_eq!(Trust::default().verify(BYTES, &[]), Ok(Vec::new()));
    }

    #[test]
    fn keys_and_signatures_are_read_as_they_are_written() {
        let key = SecretKey::from_seed([7; 32]);
        let read = SecretKey::from_file(&key.to_file()).unwrap();
        assert_eq!(read.public(), key.public());
        let signature = key.sign(BYTES);
        assert_eq!(Signature::from_file(&signature.to_file()), Ok(signature));
        assert_eq!(PublicKey::from_setting(&key.public().to_setting()), Some(key.public()));
        // A key of signify's has an id that its bytes do not give it.
        let theirs = PublicKey {
            id: KeyId([9; 8]),
            ..key.public()
        };
        let line = theirs.to_file().lines().nth(1).unwrap().to_owned();
        assert_eq!(PublicKey::from_setting(&format!("ed25519:{line}")), Some(theirs));
        assert_eq!(PublicKey::from_setting(&theirs.to_setting()), Some(theirs));
    }

    /// Made by `signify -G -n` and `signify -S`, version 31.
    #[test]
    fn what_signify_made_is_understood() {
        const PUBLIC: &str = "RWSkF6NkJy/v+Xc2nF8dFMihoq+/3DU2ixbHLFQCkdXFoxhKBMM3coB+";
        const SECRET: &str = "untrusted comment: signify secret key\n\
            RWRCSwAAAACkeeO1B2Y2qzJqLqti8mQwqmWs6j4qOHukF6NkJy/v+Xap/WY0LF62u9jduZ06z3ssHMMG6b6J2xhRgPfsOG2WdzacXx0UyKGir7/cNTaLFscsVAKR1cWjGEoEwzdygH4=\n";
        const SIGNATURE: &str = "untrusted comment: verify with k.pub\n\
            RWSkF6NkJy/v+fQq3ub6bshLarT4QiI1qKWjJZ4lmnTT8xdymWKTnnF4KbZmA/tDn1fTDZQxUQgy1mkWxNzD8UudKMuM7YpejAA=\n";
        let public = PublicKey::from_setting(&format!("ed25519:{PUBLIC}")).unwrap();
        let signature = Signature::from_file(SIGNATURE).unwrap();
        let counting = trusting("bob", public).verify(BYTES, &[signature]);
        assert_eq!(counting, Ok(vec![(public, signature)]));
        let secret = SecretKey::from_file(SECRET).unwrap();
        assert_eq!((secret.public(), secret.sign(BYTES)), (public, signature));
    }

    #[test]
    fn what_is_no_key_or_signature_is_told_as_such() {
        let key = SecretKey::from_seed([7; 32]);
        let mut damaged = key.to_file().into_bytes();
        let at = damaged.len() - 20;
        damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
        let damaged = String::from_utf8(damaged).unwrap();
        let signature = key.sign(BYTES).to_file();
        for text in [
            "",
            "hello\nworld\n",
            &signature,
            &damaged,
            &key.to_file().replace("RWRCSw", "RWRCSx"),
        ] {
            assert!(SecretKey::from_file(text).is_err(), "{text}");
        }
        for text in ["", "hello\nworld\n", &key.to_file(), &format!("{signature}more\n")] {
            assert!(Signature::from_file(text).is_err(), "{text}");
        }
        for text in ["", "ed25519:", "ed25519:AAAA", "rsa:AAAA", &key.public().to_file()] {
            assert_eq!(PublicKey::from_setting(text), None, "{text}");
        }
    }
}

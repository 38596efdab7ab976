//! Signatures as Standard Webhooks says: HMAC-SHA256 of id, time and body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::secret::{self, Secret};

/// What a signature of this kind begins with.
const VERSION: &str = "v1,";

/// The value of `webhook-signature`: one signature for each secret, so that a receiver finds the one it knows while
/// secrets are being replaced. `seconds` is the value of `webhook-timestamp`.
pub(super) fn signatures(secrets: &[Secret], id: &str, seconds: i64, body: &[u8]) -> String {
    let each: Vec<String> = secrets
        .iter()
        .map(|secret| {
            let tag = mac(&secret.key, id, &seconds.to_string(), body).finalize();
            format!("{VERSION}{}", STANDARD.encode(tag.into_bytes()))
        })
        .collect();
    each.join(" ")
}

/// Whether one of the signatures of a request's headers is that of this secret: what a receiver checks, in a time that
/// tells nothing. Whether the request is recent is for the receiver to judge by `webhook-timestamp`.
pub fn is_signed(secret: &str, id: &str, timestamp: &str, body: &[u8], signatures: &str) -> bool {
    let Some(key) = secret::key(secret, secret.as_bytes().to_vec()) else {
        return false;
    };
    signatures.split(' ').any(|signature| {
        let tag = signature
            .strip_prefix(VERSION)
            .and_then(|tag| STANDARD.decode(tag).ok());
        tag.is_some_and(|tag| mac(&key, id, timestamp, body).verify_slice(&tag).is_ok())
    })
}

fn mac(key: &[u8], id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_signed_is_recognised_and_nothing_else() {
        let text = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0";
        let key = secret::key(text, Vec::new()).expect("it is base64");
        let old = Secret {
            key: b"old".to_vec(),
            text: String::new(),
        };
        let new = Secret {
            key,
            text: text.to_owned(),
        };
        let header = signatures(&[old, new], "d1", 1_700_000_000, b"{}");
        assert!(is_signed(text, "d1", "1700000000", b"{}", &header));
        assert!(
            is_signed("old", "d1", "1700000000", b"{}", &header),
            "both sign while secrets are replaced"
        );
        for (secret, id, time, body) in [
            ("other", "d1", "1700000000", "{}"),
            (text, "d2", "1700000000", "{}"),
            (text, "d1", "1700000001", "{}"),
            (text, "d1", "1700000000", "{} "),
            ("whsec_!", "d1", "1700000000", "{}"),
        ] {
            assert!(
                !is_signed(secret, id, time, body.as_bytes(), &header),
                "{secret} {id} {time} {body}"
            );
        }
    }
}

//! Signatures as Standard Webhooks says: HMAC-SHA256 of id, time and body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::secret::Secret;

/// The value of `webhook-signature`: one signature for each secret, so that a receiver finds the one it knows while
/// secrets are being replaced. `seconds` is the value of `webhook-timestamp`.
pub(super) fn signatures(secrets: &[Secret], id: &str, seconds: i64, body: &[u8]) -> String {
    let each: Vec<String> = secrets
        .iter()
        .map(|secret| {
            let mut mac = Hmac::<Sha256>::new_from_slice(&secret.key).expect("HMAC takes a key of any length");
            mac.update(format!("{id}.{seconds}.").as_bytes());
            mac.update(body);
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        })
        .collect();
    each.join(" ")
}
